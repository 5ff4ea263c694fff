//! Static embeddings: the table built into the binary, or one from a folder of the same format.
//!
//! `../../model/README.md` is the model card of the built-in table; `../../model/tokens.py` defines
//! how text maps to rows.

use std::path::Path;
use std::sync::OnceLock;

use cairn_protocol::error::{Failure, Reason};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::MAX_DIM;
use cairn_tokenizer::words;

use crate::simd;

/// Maximum number of words of a text that are used.
pub const MAX_WORDS: usize = 400;
/// Maximum letters of an unknown word whose 4-grams are used.
const MAX_LETTERS: usize = 24;
/// Size of the header before the scales, in bytes.
const HEAD: usize = 24;
static TABLE: &[u8] = include_bytes!("../../model/table.bin");
static VOCABULARY: &str = include_str!("../../model/vocab.txt");

/// SHA-256 of both files, precomputed so that starting is fast; a test verifies it.
const BUILTIN_HASH: [u8; 32] = [
    0x7a, 0x2c, 0xef, 0xc0, 0x6e, 0xd5, 0x55, 0x13, 0x40, 0xa8, 0x38, 0x03, 0xff, 0x8b, 0x9a, 0x03,
    0x3b, 0x18, 0xec, 0xff, 0x5b, 0x62, 0x5e, 0x8e, 0x58, 0xcd, 0x5d, 0xab, 0x4e, 0x16, 0x0d, 0x3a,
];

/// A static embedding: the words select rows of an int8 table, whose weighted sum is normalised to
/// length 1.
pub struct Table {
    table: std::borrow::Cow<'static, [u8]>,
    vocabulary: std::borrow::Cow<'static, str>,
    rows: OnceLock<FxHashMap<Box<[u8]>, u32>>,
    scales: OnceLock<Vec<f32>>,
    words: usize,
    buckets: usize,
    dim: usize,
    name: String,
    hash: OnceLock<[u8; 32]>,
}

impl Table {
    /// The built-in table: `static-code-v1` with 384 dimensions.
    ///
    /// # Errors
    /// Never, as long as the tests of this crate pass.
    pub fn builtin() -> Result<Self, Failure> {
        let table = Self::new(TABLE.into(), VOCABULARY.into(), "static-code-v1".into())?;
        let _ = table.hash.set(BUILTIN_HASH);
        Ok(table)
    }

    /// Reads a table of the same format as the built-in one.
    ///
    /// # Errors
    /// `invalid_params` for a missing or invalid file.
    pub fn from_folder(folder: &Path) -> Result<Self, Failure> {
        let read = |name: &str| {
            std::fs::read(folder.join(name)).map_err(|e| {
                let text = format!("model {}: cannot read {name}: {e}", folder.display());
                Failure::new(Reason::InvalidParams, text)
            })
        };
        let vocabulary = String::from_utf8(read("vocab.txt")?)
            .map_err(|_| invalid(&format!("{}: vocab.txt is not UTF-8", folder.display())))?;
        let name =
            folder.file_name().map_or_else(|| "model".into(), |n| n.to_string_lossy().into_owned());
        Self::new(read("table.bin")?.into(), vocabulary.into(), name)
    }

    fn new(
        table: std::borrow::Cow<'static, [u8]>,
        vocabulary: std::borrow::Cow<'static, str>,
        name: String,
    ) -> Result<Self, Failure> {
        let number = |at: usize| {
            table.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
        };
        let (Some(1), Some(words), Some(buckets), Some(dim)) =
            (number(8), number(12), number(16), number(20))
        else {
            return Err(invalid(&format!("{name}: table.bin has no version 1 header")));
        };
        let (words, buckets, dim) = (words as usize, buckets as usize, dim as usize);
        let size = words
            .checked_add(buckets)
            .and_then(|n| n.checked_mul(dim + 2))
            .and_then(|n| n.checked_add(HEAD));
        if !table.starts_with(b"CAIRNEMB")
            || buckets == 0
            || !(1..=MAX_DIM).contains(&dim)
            || size != Some(table.len())
        {
            return Err(invalid(&format!(
                "{name}: table.bin does not have the size stated in its header"
            )));
        }
        if vocabulary.lines().count() != words {
            return Err(invalid(&format!("{name}: vocab.txt does not have {words} words")));
        }
        let (rows, scales, hash) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { table, vocabulary, rows, scales, words, buckets, dim, name, hash })
    }

    pub fn dim(&self) -> usize {
        self.dim
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of table and vocabulary.
    pub fn hash(&self) -> &[u8; 32] {
        self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(&self.table);
            hash.update(self.vocabulary.as_bytes());
            hash.finalize().into()
        })
    }

    /// The vector of `text`, of length 1; all zero if no word has a row.
    pub fn embed(&self, text: &[&[u8]]) -> Vec<f32> {
        self.embed_bag(&self.bag(text))
    }

    /// The vector of a bag of rows with their summed weights.
    pub fn embed_bag(&self, bag: &[(u32, f32)]) -> Vec<f32> {
        let mut sum = vec![0f32; self.dim];
        let row = |(row, weight): &(u32, f32)| {
            let at = self.row_at(*row);
            (&self.table[at..at + self.dim], log_weight(*weight) * self.scales()[*row as usize])
        };
        for group in bag.chunks(4) {
            // A missing row is padded with weight 0.
            simd::add_scaled(
                &mut sum,
                std::array::from_fn::<_, 4, _>(|n| match group.get(n) {
                    Some(one) => row(one),
                    None => (row(&group[0]).0, 0.0),
                }),
            );
        }
        let norm = simd::norm(&sum);
        if norm > 0.0 {
            sum.iter_mut().for_each(|x| *x /= norm);
        }
        sum
    }

    /// The offset of a row.
    fn row_at(&self, row: u32) -> usize {
        HEAD + 2 * self.row_count() + row as usize * self.dim
    }

    /// Number of rows of the table.
    pub fn row_count(&self) -> usize {
        self.words + self.buckets
    }

    /// The rows and weights of the words of `text` in text order, not summed, and the number of
    /// words.
    pub fn rows_of(&self, text: &[u8], limit: usize) -> (Vec<(u32, f32)>, usize) {
        let before = MAX_WORDS.saturating_sub(limit);
        let mut bag = Bag { model: self, rows: self.rows(), rows_found: Vec::new(), words: before };
        words::scan(text, &mut bag);
        (bag.rows_found, bag.words - before)
    }

    /// The rows of the concatenated pieces of `text` with their summed weights, ordered by row.
    fn bag(&self, text: &[&[u8]]) -> Vec<(u32, f32)> {
        let mut bag =
            Bag { model: self, rows: self.rows(), rows_found: Vec::with_capacity(512), words: 0 };
        for piece in text {
            words::scan(piece, &mut bag);
        }
        let mut rows_found = bag.rows_found;
        rows_found.sort_by_key(|(row, _)| *row);
        rows_found.dedup_by(|next, sum_entry| {
            let same = next.0 == sum_entry.0;
            if same {
                sum_entry.1 += next.1;
            }
            same
        });
        rows_found
    }

    fn rows(&self) -> &FxHashMap<Box<[u8]>, u32> {
        self.rows.get_or_init(|| {
            self.vocabulary
                .lines()
                .zip(0u32..)
                .map(|(word, row)| (word.as_bytes().into(), row))
                .collect()
        })
    }

    fn scales(&self) -> &[f32] {
        self.scales.get_or_init(|| {
            let halves = self.table[HEAD..HEAD + 2 * self.row_count()].as_chunks::<2>().0;
            halves.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
        })
    }
}

/// The weight of a row in a text: `ln(1 + sum)`, from a table for small integers.
fn log_weight(sum: f32) -> f32 {
    static LOGS: OnceLock<[f32; 64]> = OnceLock::new();
    let logs = LOGS.get_or_init(|| std::array::from_fn(|n| (n as f32).ln_1p()));
    let integer = sum as usize;
    if integer as f32 == sum && integer < logs.len() { logs[integer] } else { sum.ln_1p() }
}

fn invalid(what: &str) -> Failure {
    Failure::new(Reason::InvalidParams, format!("model {what}"))
}

struct Bag<'a> {
    model: &'a Table,
    rows: &'a FxHashMap<Box<[u8]>, u32>,
    rows_found: Vec<(u32, f32)>,
    words: usize,
}

impl words::Sink for Bag<'_> {
    fn lexical(&mut self, _: &[u8], _: usize, _: usize) {}

    fn embed(&mut self, word: &[u8]) {
        if self.words >= MAX_WORDS {
            return;
        }
        self.words += 1;
        if let Some(row) = self.rows.get(word) {
            self.rows_found.push((*row, 1.0));
        } else if word.len() >= 2 {
            let cut = word.len().min(MAX_LETTERS);
            let mut marked = [b'<'; MAX_LETTERS + 2];
            marked[1..=cut].copy_from_slice(&word[..cut]);
            marked[cut + 1] = b'>';
            let grams = marked[..cut + 2].windows(4);
            let weight = 1.0 / (grams.len() as f32).sqrt();
            for gram in grams {
                self.rows_found.push((
                    self.model.words as u32 + fnv1a(gram) % self.model.buckets as u32,
                    weight,
                ));
            }
        }
    }
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(2_166_136_261, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_match_the_golden_file() {
        let model = Table::builtin().unwrap();
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../model/golden.json")).unwrap();
        let cases = golden.as_array().unwrap();
        assert!(cases.len() > 5);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let bag = model.bag(&[text.as_bytes()]);
            let rows = case["rows"].as_object().unwrap();
            assert_eq!(bag.len(), rows.len(), "{text}");
            for (row, weight) in &bag {
                let expected = rows[&row.to_string()].as_f64().unwrap() as f32;
                assert!((weight - expected).abs() < 1e-4, "{text}: row {row}");
            }
            let vector = model.embed(&[text.as_bytes()]);
            for (actual, want) in vector.iter().zip(case["first8"].as_array().unwrap()) {
                assert!((actual - want.as_f64().unwrap() as f32).abs() < 2e-5, "{text}");
            }
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((norm - case["norm"].as_f64().unwrap() as f32).abs() < 1e-4, "{text}");
        }
    }

    #[test]
    fn precomputed_hash_matches_the_files() {
        let table = Table::new(TABLE.into(), VOCABULARY.into(), "same".into()).unwrap();
        assert_eq!(*table.hash(), BUILTIN_HASH);
    }

    #[test]
    fn folder_with_missing_or_invalid_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let reason = |outcome: Result<Table, Failure>| outcome.err().map(|e| e.reason);
        assert_eq!(reason(Table::from_folder(dir.path())), Some(Reason::InvalidParams));
        std::fs::write(dir.path().join("vocab.txt"), "a\nb\n").unwrap();
        std::fs::write(
            dir.path().join("table.bin"),
            b"CAIRNEMB\x01\0\0\0\xff\xff\xff\xff\x01\0\0\0\x80\x01\0\0",
        )
        .unwrap();
        assert_eq!(
            Table::from_folder(dir.path()).err().map(|e| e.reason),
            Some(Reason::InvalidParams)
        );
    }
}
