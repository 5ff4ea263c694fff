//! A hash table from byte strings to numbers. The owner stores the bytes in one arena, so that
//! entries need no allocation.

use std::hash::Hasher;

use crate::simd;

const NONE: u32 = u32::MAX;

/// A fast hash of bytes, which is not resistant to chosen collisions.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// A hash table of byte strings with open addressing, at most half full.
pub struct Table {
    /// The number of an entry and some bits of its hash.
    slots: Vec<(u32, u32)>,
}

impl Table {
    /// Creates a table that grows after `size / 2` entries.
    pub fn new(size: usize) -> Self {
        Self { slots: vec![(NONE, 0); size.next_power_of_two()] }
    }

    /// The first slot that is probed for a hash.
    #[inline]
    fn first(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Finds the entry for which `is` returns true, or else the free slot for it.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let (mut at, bits) = (self.first(hash), (hash >> 32) as u32);
        loop {
            let (entry, stored_bits) = self.slots[at];
            if entry == NONE {
                return Err(at);
            }
            if stored_bits == bits && is(entry) {
                return Ok(entry);
            }
            at = (at + 1) & mask;
        }
    }

    /// Inserts an entry into the slot that [`Table::find`] returned for its hash; `hash_of`
    /// computes the hash of an entry.
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

/// Maximum bytes of a key of [`RunTable`]; longer runs are too rare to be worth caching.
pub const MAX_RUN: usize = 64;

/// A cache from runs of letters and digits to values, laid out so that a look-up touches few cache
/// lines.
pub struct RunTable<T> {
    table: Table,
    entries: Vec<Run<T>>,
    bytes: Vec<u8>,
}

struct Run<T> {
    /// Its first sixteen bytes; the others are in `bytes` from `rest` on.
    key: [u64; 2],
    rest: u32,
    len: u32,
    value: T,
}

impl<T> Default for RunTable<T> {
    fn default() -> Self {
        Self { table: Table::new(1 << 12), entries: Vec::new(), bytes: Vec::new() }
    }
}

impl<T: Copy> RunTable<T> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Computes the hash of a run with its [`key`](crate::words::runs) for [`RunTable::get`] and
    /// prefetches its slot.
    #[inline]
    pub fn prefetch_slot(&self, run: &[u8], key: u128) -> u64 {
        let hash_of_run = hash_parts(run.get(16..).unwrap_or(&[]), halves(key), run.len() as u32);
        simd::prefetch(&self.table.slots, self.table.first(hash_of_run));
        hash_of_run
    }

    /// Prefetches the first entry that a hash leads to.
    #[inline]
    pub fn prefetch_entry(&self, hash_of_run: u64) {
        simd::prefetch(&self.entries, self.table.slots[self.table.first(hash_of_run)].0 as usize);
    }

    /// The value of a run with its [`key`](crate::words::runs) and hash; `compute` computes it the
    /// first time.
    #[inline]
    pub fn get(
        &mut self,
        run: &[u8],
        (key, hash_of_run): (u128, u64),
        compute: impl FnOnce() -> T,
    ) -> T {
        let (entries, bytes, halves) = (&self.entries, &self.bytes, halves(key));
        let lookup = self.table.find(hash_of_run, |e| {
            let entry = &entries[e as usize];
            entry.key == halves
                && entry.len as usize == run.len()
                && (run.len() <= 16 || bytes[entry.rest as usize..][..run.len() - 16] == run[16..])
        });
        match lookup {
            Ok(entry) => self.entries[entry as usize].value,
            Err(slot) => {
                let value = compute();
                self.put(run, key, hash_of_run, slot, value);
                value
            }
        }
    }

    #[cold]
    fn put(&mut self, run: &[u8], key: u128, hash_of_run: u64, slot: usize, value: T) {
        let number = self.entries.len() as u32;
        self.entries.push(Run {
            key: halves(key),
            rest: self.bytes.len() as u32,
            len: run.len() as u32,
            value,
        });
        self.bytes.extend_from_slice(run.get(16..).unwrap_or(&[]));
        let (entries, bytes) = (&self.entries, &self.bytes);
        self.table.put(slot, hash_of_run, number, |e| {
            let entry = &entries[e as usize];
            let rest = (entry.len as usize).saturating_sub(16);
            hash_parts(&bytes[entry.rest as usize..][..rest], entry.key, entry.len)
        });
    }
}

/// A key as two words, which need no 16-byte alignment.
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
        fn cached_runs_are_found(text in "([a-c]{1,4}|[a-b]{14,40}|[xyz]{15,17}| ){0,300}") {
            let mut table = RunTable::default();
            let mut value = std::collections::HashMap::new();
            for _ in 0..2 {
                crate::words::runs(text.as_bytes(), |run, key| {
                    let next = value.len() as u32;
                    let expected = *value.entry(run.to_vec()).or_insert(next);
                    let hash_of_run = table.prefetch_slot(run, key);
                    table.prefetch_entry(hash_of_run);
                    assert_eq!(table.get(run, (key, hash_of_run), || next), expected);
                });
            }
            assert_eq!(table.len(), value.len());
        }
    }
}
