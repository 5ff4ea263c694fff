//! Text to vectors by a static table: the one built into the binary, or a folder of the same form.
//!
//! `../../model/README.md` is the card of the built-in one; `../../model/tokens.py` defines how text becomes rows.

use std::path::Path;
use std::sync::OnceLock;

use cairn_protocol::error::{Failure, Reason};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

use super::MAX_DIM;
use crate::{simd, words};

/// Words of a text that count.
pub const MAX_WORDS: usize = 400;
/// Letters of an unknown word whose 4-grams count.
const MAX_LETTERS: usize = 24;
/// Bytes of the table before its scales.
const HEAD: usize = 24;
static TABLE: &[u8] = include_bytes!("../../model/table.bin");
static VOCABULARY: &str = include_str!("../../model/vocab.txt");

/// SHA-256 of both, written down so that no start has to reckon it; a test does.
const BUILTIN_HASH: [u8; 32] = [
    0x7a, 0x2c, 0xef, 0xc0, 0x6e, 0xd5, 0x55, 0x13, 0x40, 0xa8, 0x38, 0x03, 0xff, 0x8b, 0x9a, 0x03, 0x3b,
    0x18, 0xec, 0xff, 0x5b, 0x62, 0x5e, 0x8e, 0x58, 0xcd, 0x5d, 0xab, 0x4e, 0x16, 0x0d, 0x3a,
];

/// A static embedding: identifier words → rows of an int8 table → weighted sum → length 1.
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
    /// The model inside the binary: `static-code-v1`, 384 dimensions.
    ///
    /// # Errors
    /// Never, as long as the tests of this crate pass.
    pub fn builtin() -> Result<Self, Failure> {
        let made = Self::new(TABLE.into(), VOCABULARY.into(), "static-code-v1".into())?;
        let _ = made.hash.set(BUILTIN_HASH);
        Ok(made)
    }

    /// A model of the same form as the built-in one.
    ///
    /// # Errors
    /// `invalid_params` with what is missing or wrong.
    pub fn from_folder(folder: &Path) -> Result<Self, Failure> {
        let read = |name: &str| {
            std::fs::read(folder.join(name)).map_err(|e| {
                let text = format!("model {}: cannot read {name}: {e}", folder.display());
                Failure::new(Reason::InvalidParams, text)
            })
        };
        let vocabulary = String::from_utf8(read("vocab.txt")?)
            .map_err(|_| bad(&format!("{}: vocab.txt is not UTF-8", folder.display())))?;
        let name = folder.file_name().map_or_else(|| "model".into(), |n| n.to_string_lossy().into_owned());
        Self::new(read("table.bin")?.into(), vocabulary.into(), name)
    }

    fn new(
        table: std::borrow::Cow<'static, [u8]>,
        vocabulary: std::borrow::Cow<'static, str>,
        name: String,
    ) -> Result<Self, Failure> {
        let number =
            |at: usize| table.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let (Some(1), Some(words), Some(buckets), Some(dim)) =
            (number(8), number(12), number(16), number(20))
        else {
            return Err(bad(&format!("{name}: table.bin has no head of version 1")));
        };
        let (words, buckets, dim) = (words as usize, buckets as usize, dim as usize);
        let size =
            words.checked_add(buckets).and_then(|n| n.checked_mul(dim + 2)).and_then(|n| n.checked_add(HEAD));
        if !table.starts_with(b"CAIRNEMB")
            || buckets == 0
            || !(1..=MAX_DIM).contains(&dim)
            || size != Some(table.len())
        {
            return Err(bad(&format!("{name}: table.bin does not have the size its head tells")));
        }
        if vocabulary.lines().count() != words {
            return Err(bad(&format!("{name}: vocab.txt has other than {words} words")));
        }
        let (rows, scales, hash) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { table, vocabulary, rows, scales, words, buckets, dim, name, hash })
    }

    /// Dimensions of its vectors.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Its name, as `index.status` tells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of table and vocabulary: vectors of two models never mix.
    pub fn hash(&self) -> &[u8; 32] {
        self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            hash.update(&self.table);
            hash.update(self.vocabulary.as_bytes());
            hash.finalize().into()
        })
    }

    /// The vector of `text`, of length 1; all zero when no word of it has a row.
    pub fn embed(&self, text: &[&[u8]]) -> Vec<f32> {
        self.of_bag(&self.bag(text))
    }

    /// The vector of rows with their summed weights.
    pub fn of_bag(&self, bag: &[(u32, f32)]) -> Vec<f32> {
        let mut sum = vec![0f32; self.dim];
        let row = |(row, weight): &(u32, f32)| {
            let at = self.row_at(*row);
            (&self.table[at..at + self.dim], log_weight(*weight) * self.scales()[*row as usize])
        };
        for group in bag.chunks(4) {
            // A row that is not there counts nothing.
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

    /// Where a row begins.
    fn row_at(&self, row: u32) -> usize {
        HEAD + 2 * self.row_count() + row as usize * self.dim
    }

    /// Rows of its table.
    pub fn row_count(&self) -> usize {
        self.words + self.buckets
    }

    /// Rows and weights of the words of `text`, in the order of the text, not summed; with the number of words.
    pub fn rows_of(&self, text: &[u8], most: usize) -> (Vec<(u32, f32)>, usize) {
        let before = MAX_WORDS.saturating_sub(most);
        let mut bag = Bag { model: self, rows: self.rows(), found: Vec::new(), words: before };
        words::scan(text, &mut bag);
        (bag.found, bag.words - before)
    }

    /// Rows of `text` (its pieces one after the other) with their summed weights, in row order.
    fn bag(&self, text: &[&[u8]]) -> Vec<(u32, f32)> {
        let mut bag = Bag { model: self, rows: self.rows(), found: Vec::with_capacity(512), words: 0 };
        for piece in text {
            words::scan(piece, &mut bag);
        }
        let mut found = bag.found;
        found.sort_by_key(|(row, _)| *row);
        found.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        found
    }

    fn rows(&self) -> &FxHashMap<Box<[u8]>, u32> {
        self.rows.get_or_init(|| {
            self.vocabulary.lines().zip(0u32..).map(|(word, row)| (word.as_bytes().into(), row)).collect()
        })
    }

    fn scales(&self) -> &[f32] {
        self.scales.get_or_init(|| {
            let halves = self.table[HEAD..HEAD + 2 * self.row_count()].as_chunks::<2>().0;
            halves.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect()
        })
    }
}

/// The weight of a row in a text: the logarithm of one more than its sum.
fn log_weight(sum: f32) -> f32 {
    static LOGS: OnceLock<[f32; 64]> = OnceLock::new();
    let logs = LOGS.get_or_init(|| std::array::from_fn(|n| (n as f32).ln_1p()));
    let integer = sum as usize;
    if integer as f32 == sum && integer < logs.len() { logs[integer] } else { sum.ln_1p() }
}

fn bad(what: &str) -> Failure {
    Failure::new(Reason::InvalidParams, format!("model {what}"))
}

struct Bag<'a> {
    model: &'a Table,
    rows: &'a FxHashMap<Box<[u8]>, u32>,
    found: Vec<(u32, f32)>,
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
            self.found.push((*row, 1.0));
        } else if word.len() >= 2 {
            let cut = word.len().min(MAX_LETTERS);
            let mut marked = [b'<'; MAX_LETTERS + 2];
            marked[1..=cut].copy_from_slice(&word[..cut]);
            marked[cut + 1] = b'>';
            let grams = marked[..cut + 2].windows(4);
            let weight = 1.0 / (grams.len() as f32).sqrt();
            for gram in grams {
                self.found.push((self.model.words as u32 + fnv1a(gram) % self.model.buckets as u32, weight));
            }
        }
    }
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors_are_met() {
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
                let wanted = rows[&row.to_string()].as_f64().unwrap() as f32;
                assert!((weight - wanted).abs() < 1e-4, "{text}: row {row}");
            }
            let vector = model.embed(&[text.as_bytes()]);
            for (have, want) in vector.iter().zip(case["first8"].as_array().unwrap()) {
                assert!((have - want.as_f64().unwrap() as f32).abs() < 2e-5, "{text}");
            }
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((norm - case["norm"].as_f64().unwrap() as f32).abs() < 1e-4, "{text}");
        }
    }

    #[test]
    fn the_hash_is_of_the_files() {
        let made = Table::new(TABLE.into(), VOCABULARY.into(), "same".into()).unwrap();
        assert_eq!(*made.hash(), BUILTIN_HASH);
    }

    #[test]
    fn a_wrong_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let reason = |found: Result<Table, Failure>| found.err().map(|e| e.reason);
        assert_eq!(reason(Table::from_folder(dir.path())), Some(Reason::InvalidParams));
        std::fs::write(dir.path().join("vocab.txt"), "a\nb\n").unwrap();
        std::fs::write(
            dir.path().join("table.bin"),
            b"CAIRNEMB\x01\0\0\0\xff\xff\xff\xff\x01\0\0\0\x80\x01\0\0",
        )
        .unwrap();
        assert_eq!(Table::from_folder(dir.path()).err().map(|e| e.reason), Some(Reason::InvalidParams));
    }
}
