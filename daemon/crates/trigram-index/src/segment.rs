//! Writes and reads a trigram segment. The layout, with all numbers little-endian, or LEB128 where
//! noted:
//!
//! ```text
//! head       magic 8; docs, blocks, offset of dictionary, offset of postings u32 each; length u64; checksum of
//!            everything after the head u64; checksum of the preceding u64
//! docs       one record of 32 bytes per file, ordered by file id: file, flags u32; size, change time, inode u64
//! blocks     for every 64 trigrams: the first one, offset in the dictionary, offset in the postings u32 each
//! dictionary for each trigram in order: distance to the previous one, documents, bytes of its postings (LEB128)
//! postings   bit width u8 and bit-packed documents per block of 128; then the tail as LEB128 distances
//! ```
#![expect(unsafe_code, reason = "mapping a file; it is written once and never changed")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitpacking::{BitPacker, BitPacker4x};
use cairn_workspace::Facts;
use memmap2::Mmap;

use super::Gram;
use cairn_index_base::leb128;

const MAGIC: &[u8; 8] = b"CAIRNTG1";
const HEAD: usize = 64;
/// Bytes of the head that the head's checksum covers.
const CHECKSUMMED: usize = 40;
const DOC: usize = 32;
const BLOCK: usize = 12;
/// Number of trigrams per block.
const WIDTH: u32 = 64;
/// Number of documents per packed block.
const PACKED: usize = BitPacker4x::BLOCK_LEN;

/// A file at the time when its trigrams were extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doc {
    /// Id of the file in the database.
    pub file: u32,
    /// See [`Doc::ANY`] and [`Doc::RECENT`].
    pub flags: u32,
    /// Facts that show whether the file has changed since.
    pub facts: Facts,
}

impl Doc {
    /// The trigrams are not stored: every pattern may match.
    pub const ANY: u32 = 1;
    /// The file was modified so recently that a later change may have the same time.
    pub const RECENT: u32 = 2;
}

/// A segment cannot be decoded.
#[derive(Debug)]
pub struct Damaged;

/// Builds the bytes of a segment from documents ordered by file id, followed by trigrams in
/// ascending order.
pub struct Writer {
    docs: Vec<u8>,
    blocks: Vec<u8>,
    dictionary: Vec<u8>,
    postings: Vec<u8>,
    grams: u32,
    last: Gram,
    packer: BitPacker4x,
}

impl Writer {
    pub fn new() -> Self {
        Self {
            docs: Vec::new(),
            blocks: Vec::new(),
            dictionary: Vec::new(),
            postings: Vec::new(),
            grams: 0,
            last: 0,
            packer: BitPacker4x::new(),
        }
    }

    /// Adds the next document.
    pub fn doc(&mut self, doc: &Doc) {
        self.docs.extend_from_slice(&doc.file.to_le_bytes());
        self.docs.extend_from_slice(&doc.flags.to_le_bytes());
        for number in [doc.facts.size, doc.facts.changed_ns as u64, doc.facts.inode] {
            self.docs.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Adds the next trigram with its ascending documents; a trigram without documents is ignored.
    pub fn list(&mut self, gram: Gram, docs: &[u32]) {
        if docs.is_empty() {
            return;
        }
        if self.grams.is_multiple_of(WIDTH) {
            for number in [gram, self.dictionary.len() as u32, self.postings.len() as u32] {
                self.blocks.extend_from_slice(&number.to_le_bytes());
            }
            self.last = gram;
        }
        let start = self.postings.len();
        let full = docs.chunks_exact(PACKED);
        let (tail, mut before) = (full.remainder(), None);
        for block in full {
            let bits = self.packer.num_bits_strictly_sorted(before, block);
            self.postings.push(bits);
            let at = self.postings.len();
            self.postings.resize(at + PACKED * usize::from(bits) / 8, 0);
            self.packer.compress_strictly_sorted(before, block, &mut self.postings[at..], bits);
            before = block.last().copied();
        }
        let mut next = before.map_or(0, |doc| doc + 1);
        for doc in tail {
            leb128(doc - next, &mut self.postings);
            next = doc + 1;
        }
        leb128(gram - self.last, &mut self.dictionary);
        leb128(docs.len() as u32, &mut self.dictionary);
        leb128((self.postings.len() - start) as u32, &mut self.dictionary);
        self.last = gram;
        self.grams += 1;
    }

    pub fn finish(self) -> Vec<u8> {
        let parts = [&self.docs, &self.blocks, &self.dictionary, &self.postings];
        let length = HEAD + parts.iter().map(|p| p.len()).sum::<usize>();
        let mut out = Vec::with_capacity(length);
        out.extend_from_slice(MAGIC);
        let dictionary = HEAD + self.docs.len() + self.blocks.len();
        for number in [
            self.docs.len() / DOC,
            self.blocks.len() / BLOCK,
            dictionary,
            dictionary + self.dictionary.len(),
        ] {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        out.extend_from_slice(&(length as u64).to_le_bytes());
        out.resize(HEAD, 0);
        for part in parts {
            out.extend_from_slice(part);
        }
        let body = checksum(&out[HEAD..]);
        out[CHECKSUMMED - 8..CHECKSUMMED].copy_from_slice(&body.to_le_bytes());
        let head = checksum(&out[..CHECKSUMMED]);
        out[CHECKSUMMED..CHECKSUMMED + 8].copy_from_slice(&head.to_le_bytes());
        out
    }
}

/// A 64-bit checksum over eight bytes at a time in four lanes, which is as fast as memory.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |lane: u64, word: [u8; 8]| {
        (lane ^ u64::from_le_bytes(word)).wrapping_mul(PRIME).rotate_left(29)
    };
    let (blocks, tail) = bytes.as_chunks::<32>();
    let mut lanes = [1u64, 2, 3, 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, *word);
        }
    }
    let mut sum = lanes.iter().fold(bytes.len() as u64, |sum, lane| mix(sum, lane.to_le_bytes()));
    for byte in tail {
        sum = mix(sum, u64::from(*byte).to_le_bytes());
    }
    sum ^ sum >> 32
}

/// A segment open for reading. Damaged bytes never cause reads outside of them.
pub struct Segment {
    map: Arc<Mmap>,
    /// Row id in `gram_segment`; negative for a segment of another index.
    pub id: i64,
    docs: u32,
    blocks: usize,
    /// Offsets of blocks, dictionary and postings.
    at: [usize; 3],
    dead: Box<[AtomicU64]>,
    dead_count: AtomicU32,
}

impl Segment {
    /// Maps a segment file and verifies its checksum; `None` if the file is not a complete segment.
    ///
    /// # Errors
    /// The I/O error of opening or mapping.
    pub fn mapped(path: &Path, id: i64) -> std::io::Result<Option<Self>> {
        let file = std::fs::File::open(path)?;
        // SAFETY: see the module's reason.
        let map = unsafe { Mmap::map(&file)? };
        let segment = Self::read(map, id);
        // Most pages that the checksum touched are not needed soon; the page cache retains them.
        if let Some(segment) = &segment {
            // SAFETY: the mapping is shared and read-only, so dropped pages are loaded from the
            // file again.
            let _ = unsafe { segment.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
        Ok(segment)
    }

    fn read(map: Mmap, id: i64) -> Option<Self> {
        if !is_complete(&map) {
            return None;
        }
        let docs = number(&map, 8);
        let blocks = number(&map, 12) as usize;
        let begin = HEAD + docs as usize * DOC;
        let at = [begin, number(&map, 16) as usize, number(&map, 20) as usize];
        let fits = at[1] == begin + blocks * BLOCK && at[1] <= at[2] && at[2] <= map.len();
        let dead = (0..docs.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let map = Arc::new(map);
        fits.then_some(Self { map, id, docs, blocks, at, dead, dead_count: AtomicU32::new(0) })
    }

    /// The same segment for another index, in which all documents are dead at first that `is_alive`
    /// rejects.
    pub fn share(&self, mut is_alive: impl FnMut(u32) -> bool) -> Self {
        let shared = Self {
            map: Arc::clone(&self.map),
            id: -self.id.abs(),
            docs: self.docs,
            blocks: self.blocks,
            at: self.at,
            dead: self.dead.iter().map(|_| AtomicU64::new(0)).collect(),
            dead_count: AtomicU32::new(0),
        };
        for doc in (0..self.docs).filter(|doc| !is_alive(self.file(*doc))) {
            shared.mark_dead(doc);
        }
        shared
    }

    /// Verifies the checksum again, which reads the entire file.
    pub fn is_complete(&self) -> bool {
        is_complete(&self.map)
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> usize {
        self.map.len()
    }

    /// Number of documents, dead ones included.
    pub fn docs(&self) -> u32 {
        self.docs
    }

    /// Number of documents that are outdated.
    pub fn dead(&self) -> u32 {
        self.dead_count.load(Ordering::Relaxed)
    }

    /// The id of a document's file.
    #[inline]
    pub fn file(&self, doc: u32) -> u32 {
        number(&self.map, HEAD + doc as usize * DOC)
    }

    /// The document with a number below [`Segment::docs`].
    pub fn doc(&self, doc: u32) -> Doc {
        let at = HEAD + doc as usize * DOC;
        let read_u64 = |at: usize| {
            u64::from(number(&self.map, at)) | u64::from(number(&self.map, at + 4)) << 32
        };
        Doc {
            file: number(&self.map, at),
            flags: number(&self.map, at + 4),
            facts: Facts {
                size: read_u64(at + 8),
                changed_ns: read_u64(at + 16) as i64,
                inode: read_u64(at + 24),
            },
        }
    }

    /// The document of a file.
    pub fn find_file(&self, file: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.docs);
        while low < high {
            let middle = (low + high) / 2;
            match self.file(middle).cmp(&file) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Marks a document as outdated.
    pub fn mark_dead(&self, doc: u32) {
        let bit = 1 << (doc % 64);
        // Sequentially consistent, because it must be visible before the transaction that commits
        // the change.
        let old =
            self.dead.get(doc as usize / 64).map_or(bit, |w| w.fetch_or(bit, Ordering::SeqCst));
        if old & bit == 0 {
            self.dead_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn is_dead(&self, doc: u32) -> bool {
        self.dead
            .get(doc as usize / 64)
            .is_none_or(|w| w.load(Ordering::SeqCst) & (1 << (doc % 64)) != 0)
    }

    /// The documents that are not dead.
    pub fn alive(&self) -> impl Iterator<Item = u32> {
        (0..self.docs).filter(|doc| !self.is_dead(*doc))
    }

    /// The documents of a trigram; `None` if there are none.
    pub fn list(&self, gram: Gram) -> Result<Option<List<'_>>, Damaged> {
        let first = |block: usize| number(&self.map, self.at[0] + block * BLOCK);
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = (low + high) / 2;
            if first(middle) <= gram {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(block) = low.checked_sub(1) else { return Ok(None) };
        let mut lists = self.block(block)?;
        while let Some((at, list)) = lists.next(self)? {
            if at >= gram {
                return Ok((at == gram).then_some(list));
            }
        }
        Ok(None)
    }

    fn block(&self, block: usize) -> Result<Lists, Damaged> {
        let entry = self.map.get(self.at[0] + block * BLOCK..self.at[1]).ok_or(Damaged)?;
        Ok(Lists {
            block,
            consumed: 0,
            gram: number(entry, 0),
            at: self.at[1] + number(entry, 4) as usize,
            postings: self.at[2] + number(entry, 8) as usize,
        })
    }

    /// Iterates over all trigrams in ascending order.
    pub fn lists(&self) -> Lists {
        self.block(0).unwrap_or(Lists {
            block: self.blocks,
            consumed: WIDTH,
            gram: 0,
            at: 0,
            postings: 0,
        })
    }
}

/// An iterator over the trigrams of a segment.
pub struct Lists {
    block: usize,
    /// Number of trigrams of the block so far.
    consumed: u32,
    gram: Gram,
    at: usize,
    postings: usize,
}

impl Lists {
    /// The next trigram with its documents.
    pub fn next<'a>(&mut self, of: &'a Segment) -> Result<Option<(Gram, List<'a>)>, Damaged> {
        if self.consumed == WIDTH {
            if self.block + 1 >= of.blocks {
                return Ok(None);
            }
            *self = of.block(self.block + 1)?;
        }
        let dictionary = of.map.get(..of.at[2]).ok_or(Damaged)?;
        if self.at >= dictionary.len() {
            return Ok(None);
        }
        self.gram = self.gram.checked_add(read_leb128(dictionary, &mut self.at)?).ok_or(Damaged)?;
        let count = read_leb128(dictionary, &mut self.at)?;
        let size = read_leb128(dictionary, &mut self.at)? as usize;
        let bytes = of.map.get(self.postings..self.postings + size).ok_or(Damaged)?;
        self.postings += size;
        self.consumed += 1;
        Ok(Some((self.gram, List { count, bytes })))
    }
}

/// The documents of a trigram.
pub struct List<'a> {
    pub count: u32,
    bytes: &'a [u8],
}

impl List<'_> {
    /// Calls `each` with every document, dead ones included, ascending.
    pub fn each(&self, mut each: impl FnMut(u32)) -> Result<(), Damaged> {
        let packer = BitPacker4x::new();
        let (mut at, mut before) = (0, None);
        let mut docs = [0; PACKED];
        for _ in 0..self.count as usize / PACKED {
            let bits = *self.bytes.get(at).filter(|bits| **bits <= 32).ok_or(Damaged)?;
            let size = PACKED * usize::from(bits) / 8;
            let packed = self.bytes.get(at + 1..at + 1 + size).ok_or(Damaged)?;
            packer.decompress_strictly_sorted(before, packed, &mut docs, bits);
            docs.iter().for_each(|doc| each(*doc));
            before = docs.last().copied();
            at += 1 + size;
        }
        let mut next = before.map_or(0, |doc| doc.wrapping_add(1));
        for _ in 0..self.count as usize % PACKED {
            let doc = next.checked_add(read_leb128(self.bytes, &mut at)?).ok_or(Damaged)?;
            each(doc);
            next = doc.wrapping_add(1);
        }
        Ok(())
    }
}

fn is_complete(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return false };
    let read_u64 = |at: usize| u64::from(number(head, at)) | u64::from(number(head, at + 4)) << 32;
    head.starts_with(MAGIC)
        && read_u64(CHECKSUMMED) == checksum(&head[..CHECKSUMMED])
        && read_u64(24) == bytes.len() as u64
        && read_u64(32) == checksum(&bytes[HEAD..])
}

#[inline]
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[inline]
fn read_leb128(bytes: &[u8], at: &mut usize) -> Result<u32, Damaged> {
    let (mut value, mut shift) = (0u32, 0);
    loop {
        let byte = *bytes.get(*at).ok_or(Damaged)?;
        *at += 1;
        value |= u32::from(byte & 127).checked_shl(shift).ok_or(Damaged)?;
        if byte < 128 {
            return Ok(value);
        }
        shift += 7;
    }
}
