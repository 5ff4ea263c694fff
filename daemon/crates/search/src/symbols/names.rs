//! An in-memory list of the distinct definition names of an index, for approximate queries.
//!
//! Names are compared in lower case and without separators, so that `foo_bar`, `fooBar` and
//! `FooBar` are equal. The scores of a name, best first:
//!
//! | score | the name |
//! |---|---|
//! | 1.00, 0.97 | equals the query; differs in case |
//! | 0.94 | differs in separators |
//! | 0.80–0.90 | starts with the query; a larger share of the name scores higher |
//! | 0.70–0.78 | contains the query at the start of a word |
//! | 0.66, 0.62 | differs by one edit; by two |
//! | 0.50–0.58 | contains the query elsewhere |

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_protocol::index::IndexState;
use cairn_protocol::search::NameMatch;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashSet;

use crate::root_index::Progress;
use cairn_index_base::lock;

/// Score of a name that equals the query.
pub const EQUAL: f64 = 1.0;
/// Score of a name that differs from the query in case.
pub const EQUAL_FOLDED: f64 = 0.97;
const EQUAL_WORDS: f64 = 0.94;
/// Number of hits from which misspelled names are not searched.
const ENOUGH_HITS: usize = 20;
/// Separates names in the arena; no name contains it.
const SEPARATOR: u8 = 0;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Start of its letters in `letters`.
    at: u32,
    /// Start of the name in `folded`.
    folded: u32,
    length: u16,
    /// Bitmap of the letters that occur.
    mask: u32,
    /// Bitmap of word starts in the first 64 bytes.
    word_starts: u64,
}

/// The distinct names of an index.
#[derive(Debug, Default, Clone)]
pub struct Names {
    /// All names without separators, delimited by [`SEPARATOR`].
    letters: Vec<u8>,
    /// All names in lower case, concatenated.
    folded: Vec<u8>,
    entries: Vec<Entry>,
    hashes: FxHashSet<u64>,
    /// Greatest row id that was read.
    last_row: i64,
    /// Greatest row id after the first complete read.
    first_row: i64,
}

/// A cache of a root's names, shared by its queries.
#[derive(Debug, Default)]
pub struct NameCache {
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    names: Arc<Names>,
    /// Clock and counts of the index when the names were read.
    version: Option<(u64, u64, u64)>,
    at: Option<Instant>,
}

/// Maximum age of the names while the index is being built.
const MAX_AGE: Duration = Duration::from_secs(1);

impl NameCache {
    /// Forgets all names; the next query reads them again.
    pub fn clear(&self) {
        *lock(&self.cached) = Cached::default();
    }

    /// The current names; while the index is being built they may be slightly outdated.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) fn get(
        &self,
        conn: &Connection,
        progress: &Progress,
    ) -> Result<Arc<Names>, StoreError> {
        let counts = &progress.counts;
        let version = Some((progress.clock, counts.symbol_files, counts.symbols));
        let mut cached = lock(&self.cached);
        let is_indexing = progress.state != Some(IndexState::Ready);
        let is_recent = is_indexing && cached.at.is_some_and(|at| at.elapsed() < MAX_AGE);
        if cached.version != version && !is_recent {
            Arc::make_mut(&mut cached.names).refresh(conn)?;
            cached.version = version;
            cached.at = Some(Instant::now());
        }
        Ok(Arc::clone(&cached.names))
    }
}

/// Number of rows before the last one that are read again, because SQLite reuses the ids of deleted
/// last rows.
const REREAD_ROWS: i64 = 20_000;

impl Names {
    /// Adds the names that were inserted since the last refresh.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn refresh(&mut self, conn: &Connection) -> Result<(), StoreError> {
        // Removed names match no rows and cost little, until there are too many of them.
        if self.last_row - self.first_row > REREAD_ROWS + self.entries.len() as i64 {
            *self = Self::default();
        }
        let is_first = self.is_empty();
        let mut all = conn.prepare_cached("SELECT id, name FROM symbol WHERE id > ?")?;
        let mut rows = all.query([self.last_row.saturating_sub(REREAD_ROWS)])?;
        while let Some(row) = rows.next()? {
            self.last_row = self.last_row.max(row.get(0)?);
            self.add(row.get_ref(1)?.as_str().unwrap_or(""));
        }
        if is_first {
            self.first_row = self.last_row;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a name, unless it is present.
    pub fn add(&mut self, name: &str) {
        let folded = name.to_lowercase();
        let mut hasher = rustc_hash::FxHasher::default();
        std::hash::Hash::hash(folded.as_str(), &mut hasher);
        let full = self.letters.len() + name.len() > u32::MAX as usize / 2;
        if folded.is_empty() || full || !self.hashes.insert(std::hash::Hasher::finish(&hasher)) {
            return;
        }
        if self.letters.is_empty() {
            self.letters.push(SEPARATOR);
        }
        let at = self.letters.len();
        let word_starts = push_letters(name, &mut self.letters);
        let length = (self.letters.len() - at).min(u16::MAX as usize);
        self.letters.truncate(at + length);
        self.entries.push(Entry {
            at: at as u32,
            folded: self.folded.len() as u32,
            length: length as u16,
            mask: mask(&self.letters[at..]),
            word_starts,
        });
        self.letters.push(SEPARATOR);
        self.folded.extend_from_slice(folded.as_bytes());
    }

    /// The names that match `query`, in lower case, best first, at most `limit`.
    pub fn find_similar(
        &self,
        query: &str,
        matching: Option<NameMatch>,
        limit: usize,
    ) -> Vec<(f64, &str)> {
        let mut letters = Vec::new();
        push_letters(query, &mut letters);
        // A query of separators alone (`[]`, `==`) only matches itself.
        if letters.is_empty() || letters.len() > 1000 {
            return Vec::new();
        }
        let mut hits: Vec<(f64, u32)> = Vec::new();
        self.add_containing(&letters, matching == Some(NameMatch::Prefix), &mut hits);
        let folded = query.to_lowercase();
        for (score, entry) in &mut hits {
            if *score == EQUAL_WORDS && self.folded(*entry) == folded {
                *score = EQUAL_FOLDED;
            }
        }
        if matching == Some(NameMatch::Fuzzy) || (matching.is_none() && hits.len() < ENOUGH_HITS) {
            self.add_misspelled(&letters, &mut hits);
        }
        let order = |a: &(f64, u32), b: &(f64, u32)| {
            b.0.total_cmp(&a.0).then_with(|| self.bytes(a.1).cmp(self.bytes(b.1)))
        };
        if hits.len() > limit && limit > 0 {
            hits.select_nth_unstable_by(limit - 1, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits.into_iter().map(|(score, entry)| (score, self.folded(entry))).collect()
    }

    /// Adds the names that contain these letters.
    fn add_containing(&self, letters: &[u8], prefix_only: bool, hits: &mut Vec<(f64, u32)>) {
        // For prefixes the preceding separator is included, which reduces candidates. A single
        // letter is in nearly all names, so it only matches as a prefix.
        let prefix_only = prefix_only || letters.len() == 1;
        let needle: Vec<u8> =
            if prefix_only { [&[SEPARATOR], letters].concat() } else { letters.to_vec() };
        let (mut before, mut index) = (u32::MAX, 0);
        for position in memchr::memmem::find_iter(&self.letters, &needle) {
            let at = position + usize::from(prefix_only);
            while self.entries.get(index + 1).is_some_and(|e| e.at as usize <= at) {
                index += 1;
            }
            let Some(entry) = self.entries.get(index) else { break };
            let (offset, length) = (at - entry.at as usize, entry.length as usize);
            let share = letters.len() as f64 / length.max(1) as f64;
            let score = match offset {
                0 if length == letters.len() => EQUAL_WORDS,
                0 => 0.8 + 0.1 * share,
                _ if offset < 64 && entry.word_starts >> offset & 1 == 1 => 0.7 + 0.08 * share,
                _ if letters.len() < 3 => continue,
                _ => 0.5 + 0.08 * share,
            };
            // The first occurrence in a name is not always the best one.
            match hits.last_mut() {
                Some(last) if before == index as u32 => last.0 = last.0.max(score),
                _ => hits.push((score, index as u32)),
            }
            before = index as u32;
        }
    }

    /// Adds the names within one or two edits.
    fn add_misspelled(&self, letters: &[u8], hits: &mut Vec<(f64, u32)>) {
        let max_edits = match letters.len() {
            0..=3 => return,
            4..=7 => 1,
            _ => 2,
        };
        let known: FxHashSet<u32> = hits.iter().map(|h| h.1).collect();
        let query_mask = mask(letters);
        let Ok(query) = std::str::from_utf8(letters) else { return };
        for (entry, index) in self.entries.iter().zip(0..) {
            let is_candidate = (entry.length as usize).abs_diff(letters.len()) <= max_edits
                && (entry.mask ^ query_mask).count_ones() as usize <= 2 * max_edits;
            if !is_candidate || known.contains(&index) {
                continue;
            }
            let from = entry.at as usize;
            let Ok(name) = std::str::from_utf8(&self.letters[from..from + entry.length as usize])
            else {
                continue;
            };
            match strsim::osa_distance(name, query) {
                n if n > max_edits => {}
                1 => hits.push((0.66, index)),
                _ => hits.push((0.62, index)),
            }
        }
    }

    fn folded(&self, index: u32) -> &str {
        std::str::from_utf8(self.bytes(index)).unwrap_or("")
    }

    fn bytes(&self, index: u32) -> &[u8] {
        let end = |i: usize| self.entries.get(i).map_or(self.folded.len(), |e| e.folded as usize);
        &self.folded[end(index as usize)..end(index as usize + 1)]
    }
}

/// Appends the letters and digits of a name in lower case; returns the bitmap of word starts.
fn push_letters(name: &str, into: &mut Vec<u8>) -> u64 {
    let from = into.len();
    let (mut word_starts, mut begins, mut lower_before) = (0u64, true, false);
    let mut buffer = [0; 4];
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        begins |= c.is_uppercase() && lower_before;
        let at = into.len() - from;
        if begins && at < 64 {
            word_starts |= 1 << at;
        }
        begins = false;
        lower_before = !c.is_uppercase();
        for low in c.to_lowercase() {
            into.extend_from_slice(low.encode_utf8(&mut buffer).as_bytes());
        }
    }
    word_starts
}

/// A bitmap with one bit per letter that occurs; digits and other bytes share the remaining bits.
fn mask(letters: &[u8]) -> u32 {
    letters.iter().fold(0, |mask, b| {
        mask | 1 << if b.is_ascii_lowercase() { u32::from(b - b'a') } else { 26 + u32::from(b % 6) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let mut names = Names::default();
        all.iter().for_each(|n| names.add(n));
        names
    }

    const SOME: &[&str] = &[
        "parse_header_block",
        "parseHeader",
        "parse_header",
        "Parser",
        "sparse",
        "HeaderParser",
        "write_value",
        "writeValues",
        "WRITE_VALUE_MAX",
        "Überschrift",
        "HTTPServer",
        "operator==",
        "x",
        "Getting started",
    ];

    #[test]
    fn queries_match_the_expected_names_in_order() {
        for (query, matching, expected) in [
            ("parse_header", None, "parse_header parseheader parse_header_block"),
            ("parseHeader", None, "parseheader parse_header parse_header_block"),
            ("parseHead", None, "parse_header parseheader parse_header_block"),
            ("header", None, "headerparser parse_header parseheader parse_header_block"),
            (
                "parse",
                None,
                "parser parse_header parseheader parse_header_block headerparser sparse",
            ),
            (
                "parse",
                Some(NameMatch::Prefix),
                "parser parse_header parseheader parse_header_block",
            ),
            ("parse_heder", None, "parse_header parseheader"),
            ("praseHeader", None, "parse_header parseheader"),
            ("parsr", Some(NameMatch::Fuzzy), "parser"),
            ("value", None, "write_value writevalues write_value_max"),
            ("WriteValue", None, "write_value writevalues write_value_max"),
            ("überschrift", None, "überschrift"),
            ("getting_started", None, "getting started"),
            ("zzz", None, ""),
            ("==", None, ""),
            ("x", None, "x"),
        ] {
            let names = names(SOME);
            let found: Vec<&str> =
                names.find_similar(query, matching, 50).into_iter().map(|h| h.1).collect();
            assert_eq!(found.join(" "), expected, "{query}");
        }
    }

    #[test]
    fn limit_returns_the_best_names() {
        let names = names(SOME);
        let all = names.find_similar("parse", None, 50);
        assert_eq!(names.find_similar("parse", None, 2), all[..2]);
        assert!(all.windows(2).all(|w| w[0].0 >= w[1].0));
    }

    #[test]
    fn names_that_differ_in_case_are_added_once() {
        let names = names(&["Foo", "foo", "FOO", "f_oo", ""]);
        assert_eq!(names.len(), 2);
        assert_eq!(
            names.find_similar("foo", None, 9),
            [(EQUAL_FOLDED, "foo"), (EQUAL_WORDS, "f_oo")]
        );
    }
}
