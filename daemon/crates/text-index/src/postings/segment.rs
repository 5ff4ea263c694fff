//! Reads a segment from memory or a mapped file. Damaged bytes never cause reads outside of them.
#![expect(
    unsafe_code,
    reason = "mapping a file; it is written once, renamed into place and never changed"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitpacking::{BitPacker, BitPacker4x};
use memmap2::Mmap;

use super::encode::{BLOCK, DOC, HEAD, MAGIC, SKIP, TERM, checksum};
use super::{Impacts, Payload};

/// Metadata of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doc {
    /// Id of the chunk in the database.
    pub chunk: u64,
    /// Id of the file in the database.
    pub file: u32,
    /// First line, counted from 1.
    pub start_line: u32,
    pub end_line: u32,
    pub tokens: u32,
    /// Hash of the text; windows with equal fingerprints are treated as duplicates.
    pub fingerprint: u64,
}

enum Bytes {
    Owned(Vec<u8>),
    Mapped(Mmap),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }
}

/// A segment open for reading.
pub struct Segment {
    bytes: Arc<Bytes>,
    /// Row id in `segment`; 0 for a segment in memory only, negative for one of another index.
    pub id: i64,
    docs: u32,
    terms: u32,
    first: u64,
    /// Offsets of classes, terms, words and postings.
    at: [usize; 4],
    dead: Box<[AtomicU64]>,
    dead_count: AtomicU32,
}

impl Segment {
    /// Reads a segment in memory; `None` if the bytes are not a segment.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        Self::read(Bytes::Owned(bytes), 0)
    }

    /// Maps a segment file; `None` if the file is not a complete segment.
    ///
    /// # Errors
    /// The I/O error of opening or mapping.
    pub fn mapped(path: &Path, id: i64) -> std::io::Result<Option<Self>> {
        let file = std::fs::File::open(path)?;
        // SAFETY: see the module's reason.
        let map = unsafe { Mmap::map(&file)? };
        Ok(Self::read(Bytes::Mapped(map), id))
    }

    fn read(bytes: Bytes, id: i64) -> Option<Self> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        let sum = u64::from_le_bytes(*head[48..56].first_chunk()?);
        let length = u64::from_le_bytes(*head[40..48].first_chunk()?);
        if !head.starts_with(MAGIC) || checksum(&head[..48]) != sum || length != bytes.len() as u64
        {
            return None;
        }
        let (docs, terms) = (number(head, 8), number(head, 12));
        let first = u64::from_le_bytes(*head[16..24].first_chunk()?);
        let at = [24, 28, 32, 36].map(|at| number(head, at) as usize);
        let fits = at[0] == HEAD + docs as usize * DOC
            && at[1] == at[0] + docs as usize
            && at[2] == at[1] + (terms as usize + 1) * TERM
            && at[2] <= at[3]
            && at[3] <= bytes.len();
        let dead = (0..docs.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        fits.then_some(Self {
            bytes: Arc::new(bytes),
            id,
            docs,
            terms,
            first,
            at,
            dead,
            dead_count: AtomicU32::new(0),
        })
    }

    /// The same segment for another index, which removes documents independently and sees the files
    /// that `is_visible` accepts. Returns the chunks of other and of removed files as well.
    pub fn share(&self, is_visible: &dyn Fn(u32) -> bool) -> (Self, Vec<i64>) {
        let shared = Self {
            bytes: Arc::clone(&self.bytes),
            id: -self.id.abs(),
            docs: self.docs,
            terms: self.terms,
            first: self.first,
            at: self.at,
            dead: self.dead.iter().map(|_| AtomicU64::new(0)).collect(),
            dead_count: AtomicU32::new(0),
        };
        let mut hidden = Vec::new();
        for n in 0..self.docs {
            let doc = self.doc(n);
            if self.is_dead(n) || !is_visible(doc.file) {
                shared.mark_dead(doc.chunk);
                hidden.push(doc.chunk as i64);
            }
        }
        (shared, hidden)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of documents, dead ones included.
    pub fn docs(&self) -> u32 {
        self.docs
    }

    /// Number of documents whose chunk was removed.
    pub fn dead(&self) -> u32 {
        self.dead_count.load(Ordering::Relaxed)
    }

    /// The document with a number below [`Segment::docs`].
    pub fn doc(&self, doc: u32) -> Doc {
        let record = self.bytes.get(HEAD + doc as usize * DOC..).unwrap_or(&[]);
        Doc {
            chunk: self.first + u64::from(number(record, 0)),
            file: number(record, 4),
            start_line: number(record, 8),
            end_line: number(record, 12),
            tokens: number(record, 16),
            fingerprint: record
                .get(24..32)
                .and_then(|b| b.try_into().ok())
                .map_or(0, u64::from_le_bytes),
        }
    }

    #[inline]
    pub fn class(&self, doc: u32) -> u8 {
        self.bytes.get(self.at[0] + doc as usize).copied().unwrap_or(0)
    }

    /// Ids of its first and last chunk.
    pub fn range(&self) -> (u64, u64) {
        match self.docs {
            0 => (u64::MAX, 0),
            n => (self.doc(0).chunk, self.doc(n - 1).chunk),
        }
    }

    /// The document of a chunk.
    pub fn find(&self, chunk: u64) -> Option<u32> {
        let (mut low, mut high) = (0, self.docs);
        while low < high {
            let middle = (low + high) / 2;
            match self.doc(middle).chunk.cmp(&chunk) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Marks a chunk as removed. Returns false if this segment does not contain it.
    pub fn mark_dead(&self, chunk: u64) -> bool {
        let Some(doc) = self.find(chunk) else { return false };
        let bit = 1 << (doc % 64);
        let old =
            self.dead.get(doc as usize / 64).map_or(bit, |w| w.fetch_or(bit, Ordering::Relaxed));
        if old & bit == 0 {
            self.dead_count.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    pub fn is_dead(&self, doc: u32) -> bool {
        self.dead
            .get(doc as usize / 64)
            .is_none_or(|w| w.load(Ordering::Relaxed) & (1 << (doc % 64)) != 0)
    }

    /// Number of distinct words.
    pub fn terms(&self) -> u32 {
        self.terms
    }

    /// The word with a number below [`Segment::terms`].
    pub fn word(&self, term: u32) -> &[u8] {
        let entry = self.at[1] + term as usize * TERM;
        let (from, to) =
            (number(&self.bytes, entry) as usize, number(&self.bytes, entry + TERM) as usize);
        self.bytes.get(self.at[2]..self.at[3]).and_then(|words| words.get(from..to)).unwrap_or(&[])
    }

    /// The number of a word.
    pub fn term(&self, word: &[u8]) -> Option<u32> {
        let (mut low, mut high) = (0, self.terms);
        while low < high {
            let middle = (low + high) / 2;
            match self.word(middle).cmp(word) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Number of documents with a word, dead ones included.
    pub fn frequency(&self, term: u32) -> u32 {
        number(&self.bytes, self.at[1] + term as usize * TERM + 8)
    }

    /// Iterates over the documents of a word.
    pub fn cursor(&self, term: u32) -> Cursor<'_> {
        let entry = self.at[1] + term as usize * TERM;
        let start = self.at[3] + number(&self.bytes, entry + 4) as usize;
        Cursor::new(self.bytes.get(start..).unwrap_or(&[]), number(&self.bytes, entry + 8))
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// An iterator over the postings of one word.
pub struct Cursor<'a> {
    /// One record per full block.
    skips: &'a [u8],
    data: &'a [u8],
    blocks: usize,
    /// Number of documents after the full blocks.
    tail: usize,
    /// The decoded block; `blocks` for the tail, more at the end.
    block: usize,
    /// The first block that [`Cursor::max_score`] has not passed.
    next_block: usize,
    at: usize,
    len: usize,
    docs: [u32; BLOCK],
    payloads: [u32; BLOCK],
    max_score: u8,
    packer: BitPacker4x,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8], docs: u32) -> Self {
        let (blocks, tail) = (docs as usize / BLOCK, docs as usize % BLOCK);
        let max_score = bytes.first().copied().unwrap_or(0);
        let bytes = bytes.get(1..).unwrap_or(&[]);
        let (skips, data) = bytes.split_at(bytes.len().min(blocks * SKIP));
        let mut cursor = Self {
            skips,
            data,
            blocks,
            tail,
            block: 0,
            next_block: 0,
            at: 0,
            len: 0,
            docs: [0; BLOCK],
            payloads: [0; BLOCK],
            max_score,
            packer: BitPacker4x::new(),
        };
        cursor.decode(0);
        cursor
    }

    /// The current document; `u32::MAX` at the end.
    #[inline]
    pub fn doc(&self) -> u32 {
        if self.at < self.len { self.docs[self.at] } else { u32::MAX }
    }

    /// The payload of the current posting.
    #[inline]
    pub fn payload(&self) -> Payload {
        Payload(self.payloads[self.at.min(BLOCK - 1)] as u8)
    }

    /// Moves to the next document.
    #[inline]
    pub fn advance(&mut self) {
        self.at += 1;
        if self.at >= self.len {
            self.decode(self.block + 1);
        }
    }

    /// Moves to the first document at or after `target`.
    pub fn seek(&mut self, target: u32) {
        if self.doc() >= target {
            return;
        }
        if self.docs[self.len - 1] < target {
            let mut block = self.block + 1;
            while block < self.blocks && self.last(block) < target {
                block += 1;
            }
            self.decode(block);
        }
        while self.at < self.len && self.docs[self.at] < target {
            self.at += 1;
        }
        if self.at >= self.len {
            self.decode(self.block + 1);
        }
    }

    /// An upper bound of the scores of documents in `from..to`; `from` must not decrease between
    /// calls.
    pub fn max_score(&mut self, from: u32, to: u32) -> f32 {
        while self.next_block < self.blocks && self.last(self.next_block) < from {
            self.next_block += 1;
        }
        let mut most = 0;
        let mut block = self.next_block;
        while block < self.blocks {
            most = most.max(self.skips.get(block * SKIP + 8).copied().unwrap_or(255));
            if self.last(block) >= to - 1 {
                return f32::from(most) / 255.0;
            }
            block += 1;
        }
        let most = if self.tail > 0 && self.block <= self.blocks {
            most.max(self.max_score)
        } else {
            most
        };
        f32::from(most) / 255.0
    }

    fn last(&self, block: usize) -> u32 {
        number(self.skips, block * SKIP)
    }

    fn decode(&mut self, block: usize) {
        self.block = block;
        self.at = 0;
        self.len = 0;
        if block < self.blocks {
            self.len = self.decode_full(block).map_or(0, |()| BLOCK);
        } else if block == self.blocks && self.tail > 0 {
            self.len = self.decode_rest().unwrap_or(0);
        }
        if self.len == 0 {
            self.block = self.blocks + 1;
        }
    }

    fn decode_full(&mut self, block: usize) -> Option<()> {
        let before = if block == 0 { 0 } else { self.last(block - 1) };
        let (start, doc_size, size) = self.extent(block)?;
        let [doc_bits, bits] = *self.skips.get(block * SKIP + 9..)?.first_chunk()?;
        self.packer.decompress_sorted(
            before,
            self.data.get(start..start + doc_size)?,
            &mut self.docs,
            doc_bits,
        );
        let packed = self.data.get(start + doc_size..start + doc_size + size)?;
        self.packer.decompress(packed, &mut self.payloads, bits);
        Some(())
    }

    /// The offset of a block and the sizes of its documents and payloads.
    fn extent(&self, block: usize) -> Option<(usize, usize, usize)> {
        let [doc_bits, bits] = *self.skips.get(block * SKIP + 9..)?.first_chunk()?;
        if doc_bits > 32 || bits > 8 {
            return None;
        }
        let start = number(self.skips, block * SKIP + 4) as usize;
        Some((start, BLOCK * doc_bits as usize / 8, BLOCK * bits as usize / 8))
    }

    fn decode_rest(&mut self) -> Option<usize> {
        let (mut at, mut doc) = (0, 0);
        if self.blocks > 0 {
            let (start, doc_size, size) = self.extent(self.blocks - 1)?;
            at = start + doc_size + size;
            doc = self.last(self.blocks - 1);
        }
        for n in 0..self.tail {
            let (mut delta, mut shift) = (0u32, 0);
            loop {
                let byte = *self.data.get(at)?;
                at += 1;
                delta |= u32::from(byte & 127).checked_shl(shift)?;
                shift += 7;
                if byte < 128 {
                    break;
                }
            }
            doc = doc.checked_add(delta)?;
            self.docs[n] = doc;
            self.payloads[n] = u32::from(*self.data.get(at)?);
            at += 1;
        }
        Some(self.tail)
    }
}

impl Segment {
    /// The score of a posting without the word's weight.
    #[inline]
    pub fn score(&self, payload: Payload, doc: u32) -> f32 {
        Impacts::get().score(payload.0, self.class(doc))
    }
}
