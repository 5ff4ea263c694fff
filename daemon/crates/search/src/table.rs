//! A hash table from byte strings to numbers, the bytes kept by its owner: one arena for all, nothing to allocate for each.

use std::hash::Hasher;

use crate::simd;

const NONE: u32 = u32::MAX;

/// A hash of bytes; not for keys that somebody could choose to collide where that would do harm.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// A hash table of byte strings, open addressing, half full at most.
pub struct Table {
    /// Entry's number and some bits of its hash.
    slots: Vec<(u32, u32)>,
}

impl Table {
    /// Room for half of `size` entries before it grows.
    pub fn new(size: usize) -> Self {
        Self { slots: vec![(NONE, 0); size.next_power_of_two()] }
    }

    /// The slot where the search for a hash begins.
    #[inline]
    fn first(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The entry, or the free slot for it.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let (mut at, bits) = (self.first(hash), (hash >> 32) as u32);
        loop {
            let (entry, have) = self.slots[at];
            if entry == NONE {
                return Err(at);
            }
            if have == bits && is(entry) {
                return Ok(entry);
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts an entry into the slot that [`Table::find`] gave for its hash; `hash_of` gives the hash of any entry.
    pub fn put(&mut self, slot: usize, hash: u64, entry: u32, hash_of: impl Fn(u32) -> u64) {
        self.slots[slot] = (entry, (hash >> 32) as u32);
        if (entry as usize + 1) * 2 > self.slots.len() {
            let mut larger = Self::new(self.slots.len() * 2);
            for (entry, _) in self.slots.iter().filter(|s| s.0 != NONE) {
                let hash = hash_of(*entry);
                if let Err(slot) = larger.find(hash, |_| false) {
                    larger.slots[slot] = (*entry, (hash >> 32) as u32);
                }
            }
            *self = larger;
        }
    }
}

/// Longest key of a [`RunTable`] that is worth its room, in bytes.
pub const MAX_RUN: usize = 64;

/// Runs of letters and digits, each with something known about it; all that a look-up needs lies together.
pub struct RunTable<T> {
    table: Table,
    entries: Vec<Run<T>>,
    bytes: Vec<u8>,
}

struct Run<T> {
    /// Its first sixteen bytes, and where the others are in `bytes`.
    key: [u64; 2],
    rest: u32,
    len: u32,
    known: T,
}

impl<T: Copy> RunTable<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self { table: Table::new(1 << 12), entries: Vec::new(), bytes: Vec::new() }
    }

    /// Runs in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The hash of a run with its [`key`](crate::words::runs), for [`RunTable::get`]; where it is looked up first is asked
    /// for ahead.
    #[inline]
    pub fn ahead(&self, run: &[u8], key: u128) -> u64 {
        let of = hash_parts(run.get(16..).unwrap_or(&[]), halves(key), run.len() as u32);
        simd::prefetch(&self.table.slots, self.table.first(of));
        of
    }

    /// Asks for the entry that a hash leads to first.
    #[inline]
    pub fn nearer(&self, of: u64) {
        simd::prefetch(&self.entries, self.table.slots[self.table.first(of)].0 as usize);
    }

    /// What is known of a run with its [`key`](crate::words::runs) and its hash; `learn` tells it the first time.
    #[inline]
    pub fn get(&mut self, run: &[u8], (key, of): (u128, u64), learn: impl FnOnce() -> T) -> T {
        let (entries, bytes, halves) = (&self.entries, &self.bytes, halves(key));
        let found = self.table.find(of, |e| {
            let entry = &entries[e as usize];
            entry.key == halves
                && entry.len as usize == run.len()
                && (run.len() <= 16 || bytes[entry.rest as usize..][..run.len() - 16] == run[16..])
        });
        match found {
            Ok(entry) => self.entries[entry as usize].known,
            Err(slot) => {
                let known = learn();
                self.put(run, key, of, slot, known);
                known
            }
        }
    }

    #[cold]
    fn put(&mut self, run: &[u8], key: u128, of: u64, slot: usize, known: T) {
        let number = self.entries.len() as u32;
        self.entries.push(Run {
            key: halves(key),
            rest: self.bytes.len() as u32,
            len: run.len() as u32,
            known,
        });
        self.bytes.extend_from_slice(run.get(16..).unwrap_or(&[]));
        let (entries, bytes) = (&self.entries, &self.bytes);
        self.table.put(slot, of, number, |e| {
            let entry = &entries[e as usize];
            let rest = (entry.len as usize).saturating_sub(16);
            hash_parts(&bytes[entry.rest as usize..][..rest], entry.key, entry.len)
        });
    }
}

/// A key in a form that needs no room to be aligned.
#[inline]
fn halves(key: u128) -> [u64; 2] {
    [key as u64, (key >> 64) as u64]
}

#[inline]
fn hash_parts(rest: &[u8], key: [u64; 2], len: u32) -> u64 {
    let (low, high) = (key[0] ^ 0x9E37_79B9_7F4A_7C15, key[1] ^ 0xD1B5_4A32_D192_ED03);
    let product = u128::from(low) * u128::from(high.wrapping_add(u64::from(len)));
    let mixed = (product >> 64) as u64 ^ product as u64;
    if rest.is_empty() { mixed } else { mixed.rotate_left(23) ^ hash(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_is_known_of_a_run_is_found_again(text in "([a-c]{1,4}|[a-b]{14,40}|[xyz]{15,17}| ){0,300}") {
            let mut table = RunTable::new();
            let mut known = std::collections::HashMap::new();
            for _ in 0..2 {
                crate::words::runs(text.as_bytes(), |run, key| {
                    let next = known.len() as u32;
                    let wanted = *known.entry(run.to_vec()).or_insert(next);
                    let of = table.ahead(run, key);
                    table.nearer(of);
                    assert_eq!(table.get(run, (key, of), || next), wanted);
                });
            }
            assert_eq!(table.len(), known.len());
        }
    }
}
