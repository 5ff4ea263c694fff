//! SHA-256 of many files at once. Processors with SHA instructions hash one file after the other;
//! processors with only wide registers hash one file per lane, which is several times as fast as
//! the scalar code.
#![expect(
    unsafe_code,
    reason = "a function compiled for an instruction set may only be called on a processor that supports it"
)]

use sha2::{Digest, Sha256};

/// Size in bytes from which a file is hashed alone, because it would occupy its lane after all
/// others are finished.
const LARGE_FILE: usize = 256 * 1024;

/// Computes the SHA-256 of each input.
pub fn sha256_all(inputs: &[&[u8]]) -> Vec<[u8; 32]> {
    #[cfg(target_arch = "x86_64")]
    if inputs.len() >= 4 && !std::arch::is_x86_feature_detected!("sha") {
        if std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has AVX-512 F, BW and VL.
            return unsafe { lanes_avx512(inputs) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { lanes_avx2(inputs) };
        }
    }
    inputs.iter().map(|input| Sha256::digest(input).into()).collect()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn lanes_avx512(inputs: &[&[u8]]) -> Vec<[u8; 32]> {
    lanes::<16>(inputs)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn lanes_avx2(inputs: &[&[u8]]) -> Vec<[u8; 32]> {
    lanes::<8>(inputs)
}

/// FIPS 180-4: the first 32 bits of the fractional parts of the square roots of the first 8 primes.
const INITIAL_STATE: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// FIPS 180-4: the same of the cube roots of the first 64.
const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The input of one lane.
#[derive(Clone, Copy)]
struct Lane<'a> {
    index: usize,
    input: &'a [u8],
    /// Number of consumed blocks.
    consumed: usize,
    /// Padding after the last full block: the remaining bytes, a one bit, zeros and the length in
    /// bits.
    tail: [u8; 128],
    blocks: usize,
}

impl<'a> Lane<'a> {
    const IDLE: Self =
        Self { index: usize::MAX, input: &[], consumed: 0, tail: [0; 128], blocks: usize::MAX };

    fn new(index: usize, input: &'a [u8]) -> Self {
        let full = input.len() / 64;
        let tail_bytes = &input[full * 64..];
        let mut tail = [0; 128];
        tail[..tail_bytes.len()].copy_from_slice(tail_bytes);
        tail[tail_bytes.len()] = 0x80;
        let extra_blocks = if tail_bytes.len() < 56 { 1 } else { 2 };
        tail[extra_blocks * 64 - 8..extra_blocks * 64]
            .copy_from_slice(&(input.len() as u64 * 8).to_be_bytes());
        Self { index, input, consumed: 0, tail, blocks: full + extra_blocks }
    }

    fn next(&mut self) -> [u8; 64] {
        let at = self.consumed;
        self.consumed = at.wrapping_add(1);
        let full = self.input.len() / 64;
        let from =
            if at < full { &self.input[at * 64..] } else { &self.tail[(at - full).min(1) * 64..] };
        from.first_chunk().copied().unwrap_or([0; 64])
    }
}

#[inline(always)]
fn lanes<const N: usize>(inputs: &[&[u8]]) -> Vec<[u8; 32]> {
    let mut out = vec![[0; 32]; inputs.len()];
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    // Popped from the end, so that the longest come first.
    order.sort_unstable_by_key(|i| inputs[*i].len());
    while let Some(i) = order.last().copied().filter(|i| inputs[*i].len() >= LARGE_FILE) {
        out[i] = Sha256::digest(inputs[i]).into();
        order.pop();
    }
    let mut lanes = [Lane::IDLE; N];
    let mut state = INITIAL_STATE.map(|word| [word; N]);
    let mut busy = 0;
    for lane in &mut lanes {
        if let Some(i) = order.pop() {
            *lane = Lane::new(i, inputs[i]);
            busy += 1;
        }
    }
    while busy > 0 {
        let mut words = [[0u32; N]; 16];
        for (n, lane) in lanes.iter_mut().enumerate() {
            if lane.index != usize::MAX {
                let block = lane.next();
                for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
                    word[n] = u32::from_be_bytes(*bytes);
                }
            }
        }
        compress(&mut state, words);
        for (n, lane) in lanes.iter_mut().enumerate() {
            if lane.consumed != lane.blocks {
                continue;
            }
            for (to, word) in out[lane.index].as_chunks_mut::<4>().0.iter_mut().zip(&state) {
                *to = word[n].to_be_bytes();
            }
            for (word, start) in state.iter_mut().zip(INITIAL_STATE) {
                word[n] = start;
            }
            *lane = order.pop().map_or(Lane::IDLE, |i| Lane::new(i, inputs[i]));
            busy -= usize::from(lane.index == usize::MAX);
        }
    }
    out
}

/// Compresses one block of each lane into its state.
#[inline(always)]
fn compress<const N: usize>(state: &mut [[u32; N]; 8], mut w: [[u32; N]; 16]) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for round in 0..64 {
        if round >= 16 {
            let (w15, w2) = (w[(round + 1) % 16], w[(round + 14) % 16]);
            let (w16, w7) = (w[round % 16], w[(round + 9) % 16]);
            let mut next = [0; N];
            for n in 0..N {
                let s0 = w15[n].rotate_right(7) ^ w15[n].rotate_right(18) ^ (w15[n] >> 3);
                let s1 = w2[n].rotate_right(17) ^ w2[n].rotate_right(19) ^ (w2[n] >> 10);
                next[n] = w16[n].wrapping_add(s0).wrapping_add(w7[n]).wrapping_add(s1);
            }
            w[round % 16] = next;
        }
        let word = w[round % 16];
        let (mut to_d, mut to_h) = ([0; N], [0; N]);
        for n in 0..N {
            let s1 = e[n].rotate_right(6) ^ e[n].rotate_right(11) ^ e[n].rotate_right(25);
            let choice = (e[n] & f[n]) ^ (!e[n] & g[n]);
            let t1 = h[n]
                .wrapping_add(s1)
                .wrapping_add(choice)
                .wrapping_add(K[round])
                .wrapping_add(word[n]);
            let s0 = a[n].rotate_right(2) ^ a[n].rotate_right(13) ^ a[n].rotate_right(22);
            let majority = (a[n] & b[n]) ^ (a[n] & c[n]) ^ (b[n] & c[n]);
            to_d[n] = d[n].wrapping_add(t1);
            to_h[n] = t1.wrapping_add(s0).wrapping_add(majority);
        }
        (h, g, f, e, d, c, b, a) = (g, f, e, to_d, c, b, a, to_h);
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        for n in 0..N {
            old[n] = old[n].wrapping_add(new[n]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn lanes_agree_with_the_library(lengths in proptest::collection::vec(0usize..700, 0..60), seed in 0u8..255) {
            let texts: Vec<Vec<u8>> =
                lengths.iter().map(|n| (0..*n).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect()).collect();
            let inputs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let expected: Vec<[u8; 32]> = inputs.iter().map(|i| Sha256::digest(i).into()).collect();
            assert_eq!(sha256_all(&inputs), expected);
            assert_eq!(lanes::<8>(&inputs), expected);
            assert_eq!(lanes::<16>(&inputs), expected);
        }
    }

    #[test]
    fn large_and_small_files_are_hashed_together() {
        let texts: Vec<Vec<u8>> =
            [LARGE_FILE + 5, 10, 0, LARGE_FILE, 64, 55, 56].map(|n| vec![b'x'; n]).into();
        let inputs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let expected: Vec<[u8; 32]> = inputs.iter().map(|i| Sha256::digest(i).into()).collect();
        assert_eq!(sha256_all(&inputs), expected);
    }
}
