//! Builds a segment from text. The stems of each distinct run of letters and digits are computed
//! once and cached.

use super::encode::Writer;
use super::segment::Doc;
use super::{Payload, Segment};
use cairn_tokenizer::run_table::{MAX_RUN, RunTable, Table, hash};
use cairn_tokenizer::words;

const NO_DOC: u32 = u32::MAX;

/// Collects windows with their words and builds a segment from them.
#[derive(Default)]
pub struct Builder {
    runs: Runs,
    stems: Stems,
    docs: Vec<Doc>,
    /// Word and payload of each posting, grouped by document.
    postings: Vec<(u32, u8)>,
    /// End of each document's postings.
    ends: Vec<u32>,
}

/// The words of a path, which every window of the file shares.
pub struct PathWords(Vec<u32>);

impl Builder {
    /// Number of windows so far.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    pub fn path(&mut self, path: &str) -> PathWords {
        let mut ids = Vec::new();
        self.for_each_stem(path.as_bytes(), |_, id| ids.push(id));
        ids.sort_unstable();
        ids.dedup();
        PathWords(ids)
    }

    /// Adds a window with its text and returns its number of words, which becomes its `tokens`.
    /// Windows must be added by ascending chunk ids.
    pub fn add(&mut self, mut doc: Doc, path: &PathWords, text: &[u8]) -> u32 {
        let n = self.docs.len() as u32;
        let from = self.postings.len();
        let mut tokens = 0;
        let mut postings = std::mem::take(&mut self.postings);
        self.for_each_stem(text, |stems, id| {
            tokens += 1;
            let at = stems.posting(id, n, &mut postings);
            if at.1 & Payload::MAX_BODY < Payload::MAX_BODY {
                at.1 += 1;
            }
        });
        for id in &path.0 {
            self.stems.posting(*id, n, &mut postings).1 |= 16;
        }
        crate::chunk::defined_names(text, |name| {
            self.for_each_stem(name, |stems, id| {
                let at = stems.posting(id, n, &mut postings);
                if at.1 >> 5 < Payload::MAX_NAMES {
                    at.1 += 32;
                }
            });
        });
        debug_assert!(postings.len() >= from);
        self.postings = postings;
        self.ends.push(self.postings.len() as u32);
        doc.tokens = tokens;
        self.docs.push(doc);
        tokens
    }

    /// Calls `each` with every stem of `text`.
    fn for_each_stem(&mut self, text: &[u8], mut each: impl FnMut(&mut Stems, u32)) {
        // Look-ups in the cache miss the processor's caches: a batch of slots is prefetched before
        // the first is read.
        let (mut batch, mut count) = ([(&b""[..], 0u128, 0u64); PREFETCH], 0);
        words::runs(text, |run, key| {
            batch[count] = (run, key, self.runs.table.prefetch_slot(run, key));
            count += 1;
            if count == PREFETCH {
                self.process_runs(&batch, &mut each);
                count = 0;
            }
        });
        self.process_runs(&batch[..count], &mut each);
    }

    #[inline]
    fn process_runs(
        &mut self,
        batch: &[(&[u8], u128, u64)],
        each: &mut impl FnMut(&mut Stems, u32),
    ) {
        batch.iter().for_each(|(_, _, of)| self.runs.table.prefetch_entry(*of));
        for (run, key, of) in batch {
            if run.len() > MAX_RUN {
                words::each_lexical(run, |stem, _, _| {
                    let id = self.stems.id(stem.as_bytes());
                    each(&mut self.stems, id);
                });
                continue;
            }
            match self.runs.find(run, (*key, *of), &mut self.stems) {
                RunStems::One(id) => each(&mut self.stems, id),
                RunStems::Many(from, to) => {
                    for at in from..to {
                        let id = self.runs.lists[at as usize];
                        each(&mut self.stems, id);
                    }
                }
            }
        }
    }

    /// Builds the segment with `chunk_offset` added to all chunk ids; `None` if there are no
    /// windows.
    pub fn finish(self, chunk_offset: u64) -> Option<Segment> {
        let mut writer = Writer::new(self.docs.first()?.chunk + chunk_offset);
        for doc in &self.docs {
            writer.doc(&Doc { chunk: doc.chunk + chunk_offset, ..*doc });
        }
        // A counting sort groups the postings by word and preserves the order of documents.
        let count = self.stems.entries.len();
        let mut starts = vec![0u32; count + 1];
        for (id, _) in &self.postings {
            starts[*id as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let (mut docs, mut payloads) =
            (vec![0u32; self.postings.len()], vec![0u32; self.postings.len()]);
        let mut from = 0;
        for (n, end) in (0u32..).zip(&self.ends) {
            for (id, payload) in &self.postings[from as usize..*end as usize] {
                let at = &mut next[*id as usize];
                docs[*at as usize] = n;
                payloads[*at as usize] = u32::from(*payload);
                *at += 1;
            }
            from = *end;
        }
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_unstable_by_key(|id| self.stems.word(*id));
        for id in order {
            let range = starts[id as usize] as usize..starts[id as usize + 1] as usize;
            writer.term(self.stems.word(id), &docs[range.clone()], &payloads[range]);
        }
        Segment::from_bytes(writer.finish().joined())
    }
}

/// Number of runs that are prefetched at a time.
const PREFETCH: usize = 16;

/// The stems of a run: a single one, or a range of `lists`.
#[derive(Clone, Copy)]
enum RunStems {
    One(u32),
    Many(u32, u32),
}

/// A cache of runs with their stems.
#[derive(Default)]
struct Runs {
    table: RunTable<RunStems>,
    lists: Vec<u32>,
}

impl Runs {
    #[inline]
    fn find(&mut self, run: &[u8], key: (u128, u64), stems: &mut Stems) -> RunStems {
        let lists = &mut self.lists;
        self.table.get(run, key, || {
            let from = lists.len() as u32;
            words::each_lexical(run, |stem, _, _| lists.push(stems.id(stem.as_bytes())));
            match lists.len() as u32 - from {
                1 => RunStems::One(lists.pop().unwrap_or(0)),
                count => RunStems::Many(from, from + count),
            }
        })
    }
}

struct StemEntry {
    start: u32,
    len: u32,
    /// The last document with the stem.
    doc: u32,
    /// Position of its posting in that document.
    at: u32,
}

struct Stems {
    table: Table,
    entries: Vec<StemEntry>,
    bytes: Vec<u8>,
}

impl Default for Stems {
    fn default() -> Self {
        Self { table: Table::new(1 << 10), entries: Vec::new(), bytes: Vec::new() }
    }
}

impl Stems {
    fn word(&self, id: u32) -> &[u8] {
        let entry = &self.entries[id as usize];
        &self.bytes[entry.start as usize..][..entry.len as usize]
    }

    fn id(&mut self, word: &[u8]) -> u32 {
        let of = hash(word);
        match self.table.find(of, |id| self.word(id) == word) {
            Ok(id) => id,
            Err(slot) => {
                let id = self.entries.len() as u32;
                let (start, len) = (self.bytes.len() as u32, word.len() as u32);
                self.bytes.extend_from_slice(word);
                self.entries.push(StemEntry { start, len, doc: NO_DOC, at: 0 });
                let (entries, bytes) = (&self.entries, &self.bytes);
                self.table.put(slot, of, id, |id| {
                    let e = &entries[id as usize];
                    hash(&bytes[e.start as usize..][..e.len as usize])
                });
                id
            }
        }
    }

    /// The posting of a word in the newest document `n`; it is created if missing.
    #[inline]
    fn posting<'a>(
        &mut self,
        id: u32,
        n: u32,
        postings: &'a mut Vec<(u32, u8)>,
    ) -> &'a mut (u32, u8) {
        let entry = &mut self.entries[id as usize];
        if entry.doc != n {
            entry.doc = n;
            entry.at = postings.len() as u32;
            postings.push((id, 0));
        }
        &mut postings[entry.at as usize]
    }
}
