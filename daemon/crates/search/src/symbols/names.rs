//! The distinct names of an index's definitions in memory, and which of them a query means.
//!
//! Names are compared in lower case and without what joins their words, so that `foo_bar`, `fooBar` and `FooBar` are one.
//! How well a name is met, best first:
//!
//! | score | the name |
//! |---|---|
//! | 1.00, 0.97 | is the query; in other case |
//! | 0.94 | is the query but for `_` and the like |
//! | 0.80–0.90 | begins with it: more of the name is more |
//! | 0.70–0.78 | has it where one of its words begins |
//! | 0.66, 0.62 | is the query but for one edit, for two |
//! | 0.50–0.58 | has it elsewhere |

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_protocol::index::IndexState;
use cairn_protocol::search::NameMatch;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashSet;

use crate::root_index::Progress;
use crate::sync::lock;

/// Score of a name that is the query, and of one in other case.
pub const EQUAL: f64 = 1.0;
/// Score of a name that is the query in other case.
pub const EQUAL_FOLDED: f64 = 0.97;
const EQUAL_WORDS: f64 = 0.94;
/// Hits above which names with typos are not looked for.
const ENOUGH: usize = 20;
/// Between two names in the arena; part of no name.
const GAP: u8 = 0;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where its letters begin in `letters`.
    at: u32,
    /// Where it begins in `folded`.
    folded: u32,
    length: u16,
    /// Which letters it has, roughly.
    mask: u32,
    /// Where its words begin, of the first 64 bytes.
    words: u64,
}

/// The distinct names of an index.
#[derive(Debug, Default, Clone)]
pub struct Names {
    /// All names without joints, a gap before each and one at the end.
    letters: Vec<u8>,
    /// All names in lower case, end to end.
    folded: Vec<u8>,
    entries: Vec<Entry>,
    seen: FxHashSet<u64>,
    /// The greatest row that was read, and the one when all were.
    last_row: i64,
    first_row: i64,
}

/// The names of a root as its queries share them.
#[derive(Debug, Default)]
pub struct NameCache {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    names: Arc<Names>,
    /// What the index said of itself when they were read.
    version: Option<(u64, u64, u64)>,
    at: Option<Instant>,
}

/// How old names may be while an index is being made.
const MAX_AGE: Duration = Duration::from_secs(1);

impl NameCache {
    /// The names now; while the index is being made, those of a moment ago.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) fn get(&self, conn: &Connection, progress: &Progress) -> Result<Arc<Names>, StoreError> {
        let counts = &progress.counts;
        let version = Some((progress.clock, counts.symbol_files, counts.symbols));
        let mut held = lock(&self.held);
        let in_work = progress.state != Some(IndexState::Ready);
        let young = in_work && held.at.is_some_and(|at| at.elapsed() < MAX_AGE);
        if held.version != version && !young {
            Arc::make_mut(&mut held.names).refresh(conn)?;
            held.version = version;
            held.at = Some(Instant::now());
        }
        Ok(Arc::clone(&held.names))
    }
}

/// Rows before the last one that are read again: SQLite gives the numbers of deleted last rows away a second time.
const AGAIN: i64 = 20_000;

impl Names {
    /// Takes in the names that came since the last time.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn refresh(&mut self, conn: &Connection) -> Result<(), StoreError> {
        // Names that are gone find nothing and cost little, until there are too many of them.
        if self.last_row - self.first_row > AGAIN + self.entries.len() as i64 {
            *self = Self::default();
        }
        let is_first = self.is_empty();
        let mut all = conn.prepare_cached("SELECT id, name FROM symbol WHERE id > ?")?;
        let mut rows = all.query([self.last_row.saturating_sub(AGAIN)])?;
        while let Some(row) = rows.next()? {
            self.last_row = self.last_row.max(row.get(0)?);
            self.add(row.get_ref(1)?.as_str().unwrap_or(""));
        }
        if is_first {
            self.first_row = self.last_row;
        }
        Ok(())
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes in one name.
    pub fn add(&mut self, name: &str) {
        let folded = name.to_lowercase();
        let mut hasher = rustc_hash::FxHasher::default();
        std::hash::Hash::hash(folded.as_str(), &mut hasher);
        let full = self.letters.len() + name.len() > u32::MAX as usize / 2;
        if folded.is_empty() || full || !self.seen.insert(std::hash::Hasher::finish(&hasher)) {
            return;
        }
        if self.letters.is_empty() {
            self.letters.push(GAP);
        }
        let at = self.letters.len();
        let words = push_letters(name, &mut self.letters);
        let length = (self.letters.len() - at).min(u16::MAX as usize);
        self.letters.truncate(at + length);
        self.entries.push(Entry {
            at: at as u32,
            folded: self.folded.len() as u32,
            length: length as u16,
            mask: mask(&self.letters[at..]),
            words,
        });
        self.letters.push(GAP);
        self.folded.extend_from_slice(folded.as_bytes());
    }

    /// The names that `query` means, in lower case, best first, at most `limit`.
    pub fn close_to(&self, query: &str, matching: Option<NameMatch>, limit: usize) -> Vec<(f64, &str)> {
        let mut letters = Vec::new();
        push_letters(query, &mut letters);
        // A query of joints alone (`[]`, `==`) has only itself.
        if letters.is_empty() || letters.len() > 1000 {
            return Vec::new();
        }
        let mut hits: Vec<(f64, u32)> = Vec::new();
        self.holding(&letters, matching == Some(NameMatch::Prefix), &mut hits);
        let folded = query.to_lowercase();
        for (score, entry) in &mut hits {
            if *score == EQUAL_WORDS && self.folded(*entry) == folded {
                *score = EQUAL_FOLDED;
            }
        }
        if matching == Some(NameMatch::Fuzzy) || (matching.is_none() && hits.len() < ENOUGH) {
            self.misspelt(&letters, &mut hits);
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

    /// Adds the names that hold these letters.
    fn holding(&self, letters: &[u8], only_begin: bool, hits: &mut Vec<(f64, u32)>) {
        // Names are compared with the gap before them when only their beginning counts: fewer places to look at.
        // One letter is in nearly all of them, and begins enough.
        let only_begin = only_begin || letters.len() == 1;
        let wanted: Vec<u8> = if only_begin { [&[GAP], letters].concat() } else { letters.to_vec() };
        let (mut before, mut index) = (u32::MAX, 0);
        for found in memchr::memmem::find_iter(&self.letters, &wanted) {
            let at = found + usize::from(only_begin);
            while self.entries.get(index + 1).is_some_and(|e| e.at as usize <= at) {
                index += 1;
            }
            let Some(entry) = self.entries.get(index) else { break };
            let (offset, length) = (at - entry.at as usize, entry.length as usize);
            let share = letters.len() as f64 / length.max(1) as f64;
            let score = match offset {
                0 if length == letters.len() => EQUAL_WORDS,
                0 => 0.8 + 0.1 * share,
                _ if offset < 64 && entry.words >> offset & 1 == 1 => 0.7 + 0.08 * share,
                _ if letters.len() < 3 => continue,
                _ => 0.5 + 0.08 * share,
            };
            // The first place in a name is not always its best.
            match hits.last_mut() {
                Some(last) if before == index as u32 => last.0 = last.0.max(score),
                _ => hits.push((score, index as u32)),
            }
            before = index as u32;
        }
    }

    /// Adds the names that are a slip or two away.
    fn misspelt(&self, letters: &[u8], hits: &mut Vec<(f64, u32)>) {
        let allowed = match letters.len() {
            0..=3 => return,
            4..=7 => 1,
            _ => 2,
        };
        let have: FxHashSet<u32> = hits.iter().map(|h| h.1).collect();
        let wanted = mask(letters);
        let Ok(query) = std::str::from_utf8(letters) else { return };
        for (entry, index) in self.entries.iter().zip(0..) {
            let near = (entry.length as usize).abs_diff(letters.len()) <= allowed
                && (entry.mask ^ wanted).count_ones() as usize <= 2 * allowed;
            if !near || have.contains(&index) {
                continue;
            }
            let from = entry.at as usize;
            let Ok(name) = std::str::from_utf8(&self.letters[from..from + entry.length as usize]) else {
                continue;
            };
            match strsim::osa_distance(name, query) {
                n if n > allowed => {}
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

/// Adds the letters and digits of a name in lower case; says where its words begin.
fn push_letters(name: &str, into: &mut Vec<u8>) -> u64 {
    let from = into.len();
    let (mut words, mut begins, mut lower_before) = (0u64, true, false);
    let mut buffer = [0; 4];
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        begins |= c.is_uppercase() && lower_before;
        let at = into.len() - from;
        if begins && at < 64 {
            words |= 1 << at;
        }
        begins = false;
        lower_before = !c.is_uppercase();
        for low in c.to_lowercase() {
            into.extend_from_slice(low.encode_utf8(&mut buffer).as_bytes());
        }
    }
    words
}

/// One bit for each letter that occurs; digits and others share the rest.
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
    fn golden_queries() {
        for (query, matching, wanted) in [
            ("parse_header", None, "parse_header parseheader parse_header_block"),
            ("parseHeader", None, "parseheader parse_header parse_header_block"),
            ("parseHead", None, "parse_header parseheader parse_header_block"),
            ("header", None, "headerparser parse_header parseheader parse_header_block"),
            ("parse", None, "parser parse_header parseheader parse_header_block headerparser sparse"),
            ("parse", Some(NameMatch::Prefix), "parser parse_header parseheader parse_header_block"),
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
            let found: Vec<&str> = names.close_to(query, matching, 50).into_iter().map(|h| h.1).collect();
            assert_eq!(found.join(" "), wanted, "{query}");
        }
    }

    #[test]
    fn the_limit_keeps_the_best() {
        let names = names(SOME);
        let all = names.close_to("parse", None, 50);
        assert_eq!(names.close_to("parse", None, 2), all[..2]);
        assert!(all.windows(2).all(|w| w[0].0 >= w[1].0));
    }

    #[test]
    fn a_name_counts_once() {
        let names = names(&["Foo", "foo", "FOO", "f_oo", ""]);
        assert_eq!(names.len(), 2);
        assert_eq!(names.close_to("foo", None, 9), [(EQUAL_FOLDED, "foo"), (EQUAL_WORDS, "f_oo")]);
    }
}
