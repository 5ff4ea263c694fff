//! A hash table from byte strings to numbers, the bytes kept by its owner: one arena for all, nothing to allocate for each.

use std::hash::Hasher;

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

    /// The entry, or the free slot for it.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let (mut at, bits) = (hash as usize & mask, (hash >> 32) as u32);
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
