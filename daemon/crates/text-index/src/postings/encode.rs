//! Writes a segment. The layout, with all numbers little-endian:
//!
//! ```text
//! head      magic 8, docs u32, terms u32, first chunk u64, offsets of classes, terms, words, postings u32 each,
//!           length u64, checksum of the preceding u64
//! docs      one record of 32 bytes per document, ordered by chunk id
//! classes   length class u8 per document
//! terms     offset of word u32, offset of postings u32, documents u32; ordered by word, with an end sentinel
//! words     bytes of the words
//! postings  maximum score u8; for each full block: last doc u32, offset u32, score, doc bits, payload bits u8, 0;
//!           the bit-packed blocks; then the tail as LEB128 distances and payloads
//! ```

use bitpacking::{BitPacker, BitPacker4x};

use cairn_index_base::leb128;

use super::segment::Doc;
use super::{Impacts, length_class};

pub const MAGIC: &[u8; 8] = b"CAIRNPO1";
pub const HEAD: usize = 64;
pub const DOC: usize = 32;
pub const TERM: usize = 12;
pub const SKIP: usize = 12;
pub const BLOCK: usize = BitPacker4x::BLOCK_LEN;

/// Builds the bytes of a segment from documents ordered by chunk, followed by words in their order.
pub struct Writer {
    first: u64,
    docs: Vec<u8>,
    classes: Vec<u8>,
    terms: Vec<u8>,
    words: Vec<u8>,
    postings: Vec<u8>,
    packer: BitPacker4x,
}

impl Writer {
    /// Creates a writer for documents whose chunk ids start at `first`.
    pub fn new(first: u64) -> Self {
        Self {
            first,
            docs: Vec::new(),
            classes: Vec::new(),
            terms: Vec::new(),
            words: Vec::new(),
            postings: Vec::new(),
            packer: BitPacker4x::new(),
        }
    }

    /// Adds the next document.
    pub fn doc(&mut self, doc: &Doc) {
        for number in
            [(doc.chunk - self.first) as u32, doc.file, doc.start_line, doc.end_line, doc.tokens, 0]
        {
            self.docs.extend_from_slice(&number.to_le_bytes());
        }
        self.docs.extend_from_slice(&doc.fingerprint.to_le_bytes());
        self.classes.push(length_class(doc.tokens));
    }

    /// Number of documents so far.
    pub fn docs(&self) -> u32 {
        self.classes.len() as u32
    }

    /// Adds the next word with its ascending documents and their payloads; a word without documents
    /// is ignored.
    pub fn term(&mut self, word: &[u8], docs: &[u32], payloads: &[u32]) {
        if docs.is_empty() {
            return;
        }
        self.entry(docs.len() as u32);
        self.words.extend_from_slice(word);
        let impacts = Impacts::get();
        let classes = &self.classes;
        let score = |docs: &[u32], payloads: &[u32]| {
            let each = docs
                .iter()
                .zip(payloads)
                .map(|(d, p)| impacts.score(*p as u8, classes[*d as usize]));
            (each.fold(0f32, f32::max) * 255.0).ceil() as u8
        };
        let (blocks, full_payloads) = (docs.chunks_exact(BLOCK), payloads.chunks_exact(BLOCK));
        let max_score_at = self.postings.len();
        self.postings.push(0);
        let skips_at = self.postings.len();
        self.postings.resize(skips_at + blocks.len() * SKIP, 0);
        let data_at = self.postings.len();
        let (mut before, mut max_score) = (0, 0);
        for (n, (docs, payloads)) in blocks.zip(full_payloads).enumerate() {
            let (doc_bits, bits) =
                (self.packer.num_bits_sorted(before, docs), self.packer.num_bits(payloads));
            let start = self.postings.len();
            let (doc_size, size) = (BLOCK * doc_bits as usize / 8, BLOCK * bits as usize / 8);
            self.postings.resize(start + doc_size + size, 0);
            let (doc_out, out) = self.postings[start..].split_at_mut(doc_size);
            self.packer.compress_sorted(before, docs, doc_out, doc_bits);
            self.packer.compress(payloads, out, bits);
            before = docs[BLOCK - 1];
            let block_max = score(docs, payloads);
            max_score = max_score.max(block_max);
            let skip = &mut self.postings[skips_at + n * SKIP..][..SKIP];
            skip[..4].copy_from_slice(&before.to_le_bytes());
            skip[4..8].copy_from_slice(&((start - data_at) as u32).to_le_bytes());
            skip[8..11].copy_from_slice(&[block_max, doc_bits, bits]);
        }
        let tail = docs.len() / BLOCK * BLOCK;
        max_score = max_score.max(score(&docs[tail..], &payloads[tail..]));
        for (doc, payload) in docs[tail..].iter().zip(&payloads[tail..]) {
            leb128(doc - before, &mut self.postings);
            self.postings.push(*payload as u8);
            before = *doc;
        }
        self.postings[max_score_at] = max_score;
    }

    fn entry(&mut self, docs: u32) {
        for number in [self.words.len() as u32, self.postings.len() as u32, docs] {
            self.terms.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub fn finish(mut self) -> Parts {
        let terms = (self.terms.len() / TERM) as u32;
        self.entry(0);
        let docs = self.docs();
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&docs.to_le_bytes());
        head.extend_from_slice(&terms.to_le_bytes());
        head.extend_from_slice(&self.first.to_le_bytes());
        let mut at = HEAD + self.docs.len();
        for part in [&self.classes, &self.terms, &self.words] {
            head.extend_from_slice(&(at as u32).to_le_bytes());
            at += part.len();
        }
        head.extend_from_slice(&(at as u32).to_le_bytes());
        at += self.postings.len();
        head.extend_from_slice(&(at as u64).to_le_bytes());
        head.extend_from_slice(&checksum(&head).to_le_bytes());
        head.resize(HEAD, 0);
        Parts([head, self.docs, self.classes, self.terms, self.words, self.postings])
    }
}

/// The bytes of a segment in consecutive pieces, so that a large one is written without a second
/// copy.
pub struct Parts([Vec<u8>; 6]);

impl Parts {
    pub fn slices(&self) -> [&[u8]; 6] {
        self.0.each_ref().map(Vec::as_slice)
    }

    pub fn joined(&self) -> Vec<u8> {
        self.0.concat()
    }
}

/// FNV-1a with 64 bits, which is enough to recognise a truncated or foreign head.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
