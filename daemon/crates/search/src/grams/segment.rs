//! A trigram segment, written and read. All numbers little-endian, LEB128 where said:
//!
//! ```text
//! head      magic 8; docs, blocks, offset of dictionary, offset of postings u32 each; length u64; checksum of what is
//!           behind the head u64; checksum of these u64
//! docs      one record of 32 bytes each, by file id: file, flags u32; size, time of change, inode u64
//! blocks    for every 64 trigrams: the first, offset in the dictionary, offset in the postings u32 each
//! dictionary for each trigram, by number: distance to the one before, documents, bytes of its postings (LEB128)
//! postings  documents in bit-packed blocks of 128 behind their bits u8; then the rest as LEB128 distances
//! ```
#![expect(unsafe_code, reason = "mapping a file; it is written once and never changed")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitpacking::{BitPacker, BitPacker4x};
use cairn_workspace::Facts;
use memmap2::Mmap;

use super::Gram;
use crate::postings::leb128;

const MAGIC: &[u8; 8] = b"CAIRNTG1";
const HEAD: usize = 64;
/// Bytes of the head that its checksum covers.
const SUMMED: usize = 40;
const DOC: usize = 32;
const BLOCK: usize = 12;
/// Trigrams of a block.
const WIDTH: u32 = 64;
/// Documents packed together.
const PACKED: usize = BitPacker4x::BLOCK_LEN;

/// A file as it was when its trigrams were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doc {
    /// Its id in `file`.
    pub file: u32,
    /// See [`Doc::ANY`] and [`Doc::YOUNG`].
    pub flags: u32,
    /// By which it is known not to have changed.
    pub facts: Facts,
}

impl Doc {
    /// Its trigrams are not kept: every pattern may be in it.
    pub const ANY: u32 = 1;
    /// It was so young when it was read that a later change may have the same time.
    pub const YOUNG: u32 = 2;
}

/// Why a segment cannot be read.
#[derive(Debug)]
pub struct Damaged;

/// Takes documents by ascending file id, then trigrams in their order, and gives the bytes.
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
    /// Without anything yet.
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

    /// Adds the next trigram with its documents, ascending; none is allowed.
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
        let (rest, mut before) = (full.remainder(), None);
        for block in full {
            let bits = self.packer.num_bits_strictly_sorted(before, block);
            self.postings.push(bits);
            let at = self.postings.len();
            self.postings.resize(at + PACKED * usize::from(bits) / 8, 0);
            self.packer.compress_strictly_sorted(before, block, &mut self.postings[at..], bits);
            before = block.last().copied();
        }
        let mut next = before.map_or(0, |doc| doc + 1);
        for doc in rest {
            leb128(doc - next, &mut self.postings);
            next = doc + 1;
        }
        leb128(gram - self.last, &mut self.dictionary);
        leb128(docs.len() as u32, &mut self.dictionary);
        leb128((self.postings.len() - start) as u32, &mut self.dictionary);
        self.last = gram;
        self.grams += 1;
    }

    /// The segment.
    pub fn finish(self) -> Vec<u8> {
        let parts = [&self.docs, &self.blocks, &self.dictionary, &self.postings];
        let length = HEAD + parts.iter().map(|p| p.len()).sum::<usize>();
        let mut out = Vec::with_capacity(length);
        out.extend_from_slice(MAGIC);
        let dictionary = HEAD + self.docs.len() + self.blocks.len();
        for number in
            [self.docs.len() / DOC, self.blocks.len() / BLOCK, dictionary, dictionary + self.dictionary.len()]
        {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        out.extend_from_slice(&(length as u64).to_le_bytes());
        out.resize(HEAD, 0);
        for part in parts {
            out.extend_from_slice(part);
        }
        let body = checksum(&out[HEAD..]);
        out[SUMMED - 8..SUMMED].copy_from_slice(&body.to_le_bytes());
        let head = checksum(&out[..SUMMED]);
        out[SUMMED..SUMMED + 8].copy_from_slice(&head.to_le_bytes());
        out
    }
}

/// 64 bits over the bytes, eight at a time in four lanes: as fast as they come from memory.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix =
        |lane: u64, word: [u8; 8]| (lane ^ u64::from_le_bytes(word)).wrapping_mul(PRIME).rotate_left(29);
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut lanes = [1u64, 2, 3, 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, *word);
        }
    }
    let mut sum = lanes.iter().fold(bytes.len() as u64, |sum, lane| mix(sum, lane.to_le_bytes()));
    for byte in rest {
        sum = mix(sum, u64::from(*byte).to_le_bytes());
    }
    sum ^ sum >> 32
}

/// A segment open for reading. Whatever its bytes are, reading stays inside them.
pub struct Segment {
    map: Mmap,
    /// Its row in `gram_segment`.
    pub id: i64,
    docs: u32,
    blocks: usize,
    /// Where blocks, dictionary and postings begin.
    at: [usize; 3],
    dead: Box<[AtomicU64]>,
    dead_count: AtomicU32,
}

impl Segment {
    /// A segment in a file, read through once. Nothing when the file is no whole segment.
    ///
    /// # Errors
    /// What the system says.
    pub fn mapped(path: &Path, id: i64) -> std::io::Result<Option<Self>> {
        let file = std::fs::File::open(path)?;
        // SAFETY: see the module's reason.
        let map = unsafe { Mmap::map(&file)? };
        let segment = Self::read(map, id);
        // Most of what the checksum touched is not needed soon; the system's cache keeps it.
        if let Some(segment) = &segment {
            // SAFETY: the mapping is shared and read-only: its pages are those of the file and come back from there.
            let _ = unsafe { segment.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
        }
        Ok(segment)
    }

    fn read(map: Mmap, id: i64) -> Option<Self> {
        if !is_whole(&map) {
            return None;
        }
        let docs = number(&map, 8);
        let blocks = number(&map, 12) as usize;
        let begin = HEAD + docs as usize * DOC;
        let at = [begin, number(&map, 16) as usize, number(&map, 20) as usize];
        let fits = at[1] == begin + blocks * BLOCK && at[1] <= at[2] && at[2] <= map.len();
        let dead = (0..docs.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        fits.then_some(Self { map, id, docs, blocks, at, dead, dead_count: AtomicU32::new(0) })
    }

    /// Whether its bytes are still those that were written; reads all of them.
    pub fn is_whole(&self) -> bool {
        is_whole(&self.map)
    }

    /// Bytes of its file.
    pub fn size(&self) -> usize {
        self.map.len()
    }

    /// Documents, dead ones included.
    pub fn docs(&self) -> u32 {
        self.docs
    }

    /// Documents that speak for no file any more.
    pub fn dead(&self) -> u32 {
        self.dead_count.load(Ordering::Relaxed)
    }

    /// The id of a document's file.
    #[inline]
    pub fn file(&self, doc: u32) -> u32 {
        number(&self.map, HEAD + doc as usize * DOC)
    }

    /// A document below [`Segment::docs`].
    pub fn doc(&self, doc: u32) -> Doc {
        let at = HEAD + doc as usize * DOC;
        let wide = |at: usize| u64::from(number(&self.map, at)) | u64::from(number(&self.map, at + 4)) << 32;
        Doc {
            file: number(&self.map, at),
            flags: number(&self.map, at + 4),
            facts: Facts { size: wide(at + 8), changed_ns: wide(at + 16) as i64, inode: wide(at + 24) },
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

    /// Marks a document as one that speaks for no file.
    pub fn kill(&self, doc: u32) {
        let bit = 1 << (doc % 64);
        // Ordered before the transaction that says so to others.
        let old = self.dead.get(doc as usize / 64).map_or(bit, |w| w.fetch_or(bit, Ordering::SeqCst));
        if old & bit == 0 {
            self.dead_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn is_dead(&self, doc: u32) -> bool {
        self.dead.get(doc as usize / 64).is_none_or(|w| w.load(Ordering::SeqCst) & (1 << (doc % 64)) != 0)
    }

    /// Documents that are not dead.
    pub fn alive(&self) -> impl Iterator<Item = u32> {
        (0..self.docs).filter(|doc| !self.is_dead(*doc))
    }

    /// The documents of a trigram; `None` when there are none.
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
            taken: 0,
            gram: number(entry, 0),
            at: self.at[1] + number(entry, 4) as usize,
            postings: self.at[2] + number(entry, 8) as usize,
        })
    }

    /// All trigrams in their order.
    pub fn lists(&self) -> Lists {
        self.block(0).unwrap_or(Lists { block: self.blocks, taken: WIDTH, gram: 0, at: 0, postings: 0 })
    }
}

/// Walks the trigrams of a segment from some block on.
pub struct Lists {
    block: usize,
    /// Trigrams of the block so far.
    taken: u32,
    gram: Gram,
    at: usize,
    postings: usize,
}

impl Lists {
    /// The next trigram and its documents; blocks follow each other.
    pub fn next<'a>(&mut self, of: &'a Segment) -> Result<Option<(Gram, List<'a>)>, Damaged> {
        if self.taken == WIDTH {
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
        self.taken += 1;
        Ok(Some((self.gram, List { count, bytes })))
    }
}

/// The documents of a trigram.
pub struct List<'a> {
    /// How many.
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

fn is_whole(bytes: &[u8]) -> bool {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return false };
    let wide = |at: usize| u64::from(number(head, at)) | u64::from(number(head, at + 4)) << 32;
    head.starts_with(MAGIC)
        && wide(SUMMED) == checksum(&head[..SUMMED])
        && wide(24) == bytes.len() as u64
        && wide(32) == checksum(&bytes[HEAD..])
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
