//! Text to a segment: every run of letters and digits is looked up once, and what it means (which stems) is known
//! from the first time it was seen.

use super::encode::Writer;
use super::segment::Doc;
use super::{Payload, Segment};
use crate::table::{MAX_RUN, RunTable, Table, hash};
use crate::words;

const NONE: u32 = u32::MAX;

/// Gathers windows and their words, then writes them as a segment.
#[derive(Default)]
pub struct Builder {
    runs: Runs,
    stems: Stems,
    docs: Vec<Doc>,
    /// Word and payload of each posting, by document; `ends` says where each document's end.
    postings: Vec<(u32, u8)>,
    ends: Vec<u32>,
}

/// Words of a path, ready for each window of the file.
pub struct PathWords(Vec<u32>);

impl Builder {
    /// Windows so far.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// The words of a path.
    pub fn path(&mut self, path: &str) -> PathWords {
        let mut ids = Vec::new();
        self.each(path.as_bytes(), |_, id| ids.push(id));
        ids.sort_unstable();
        ids.dedup();
        PathWords(ids)
    }

    /// Adds a window with its text; returns how many words it has, which is its `tokens` from then on. Windows come by
    /// ascending chunk ids.
    pub fn add(&mut self, mut doc: Doc, path: &PathWords, text: &[u8]) -> u32 {
        let n = self.docs.len() as u32;
        let from = self.postings.len();
        let mut tokens = 0;
        let mut postings = std::mem::take(&mut self.postings);
        self.each(text, |stems, id| {
            tokens += 1;
            let at = stems.place(id, n, &mut postings);
            if at.1 & Payload::MAX_BODY < Payload::MAX_BODY {
                at.1 += 1;
            }
        });
        for id in &path.0 {
            self.stems.place(*id, n, &mut postings).1 |= 16;
        }
        crate::chunk::defined_names(text, |name| {
            self.each(name, |stems, id| {
                let at = stems.place(id, n, &mut postings);
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
    fn each(&mut self, text: &[u8], mut each: impl FnMut(&mut Stems, u32)) {
        // What is known of runs lies all over the memory: a few are looked for before the first is needed.
        let (mut waiting, mut count) = ([(&b""[..], 0u128, 0u64); AHEAD], 0);
        words::runs(text, |run, key| {
            waiting[count] = (run, key, self.runs.table.ahead(run, key));
            count += 1;
            if count == AHEAD {
                self.take(&waiting, &mut each);
                count = 0;
            }
        });
        self.take(&waiting[..count], &mut each);
    }

    #[inline]
    fn take(&mut self, waiting: &[(&[u8], u128, u64)], each: &mut impl FnMut(&mut Stems, u32)) {
        waiting.iter().for_each(|(_, _, of)| self.runs.table.nearer(*of));
        for (run, key, of) in waiting {
            if run.len() > MAX_RUN {
                words::each_lexical(run, |stem, _, _| {
                    let id = self.stems.id(stem.as_bytes());
                    each(&mut self.stems, id);
                });
                continue;
            }
            match self.runs.find(run, (*key, *of), &mut self.stems) {
                Meaning::One(id) => each(&mut self.stems, id),
                Meaning::Many(from, to) => {
                    for at in from..to {
                        let id = self.runs.lists[at as usize];
                        each(&mut self.stems, id);
                    }
                }
            }
        }
    }

    /// The segment of what was added, with `more` added to all chunk ids. `None` when nothing was.
    pub fn finish(self, more: u64) -> Option<Segment> {
        let mut writer = Writer::new(self.docs.first()?.chunk + more);
        for doc in &self.docs {
            writer.doc(&Doc { chunk: doc.chunk + more, ..*doc });
        }
        // Postings by word: counted, then put in place, documents in their order.
        let count = self.stems.entries.len();
        let mut starts = vec![0u32; count + 1];
        for (id, _) in &self.postings {
            starts[*id as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let (mut docs, mut payloads) = (vec![0u32; self.postings.len()], vec![0u32; self.postings.len()]);
        let mut from = 0;
        for (n, end) in (0u32..).zip(&self.ends) {
            for (id, payload) in &self.postings[from as usize..*end as usize] {
                let at = &mut fill[*id as usize];
                (docs[*at as usize], payloads[*at as usize]) = (n, u32::from(*payload));
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
        Segment::held(writer.finish().joined())
    }
}

/// Runs that are looked for at a time.
const AHEAD: usize = 16;

/// The stems of a run: one, or a range of `lists`.
#[derive(Clone, Copy)]
enum Meaning {
    One(u32),
    Many(u32, u32),
}

/// Runs seen, and the stems each of them holds.
struct Runs {
    table: RunTable<Meaning>,
    lists: Vec<u32>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { table: RunTable::new(), lists: Vec::new() }
    }
}

impl Runs {
    #[inline]
    fn find(&mut self, run: &[u8], key: (u128, u64), stems: &mut Stems) -> Meaning {
        let lists = &mut self.lists;
        self.table.get(run, key, || {
            let from = lists.len() as u32;
            words::each_lexical(run, |stem, _, _| lists.push(stems.id(stem.as_bytes())));
            match lists.len() as u32 - from {
                1 => Meaning::One(lists.pop().unwrap_or(0)),
                count => Meaning::Many(from, from + count),
            }
        })
    }
}

struct StemEntry {
    start: u32,
    len: u32,
    /// The document it was last seen in, and where its posting there is.
    doc: u32,
    at: u32,
}

/// Stems by number.
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
                self.entries.push(StemEntry { start, len, doc: NONE, at: 0 });
                let (entries, bytes) = (&self.entries, &self.bytes);
                self.table.put(slot, of, id, |id| {
                    let e = &entries[id as usize];
                    hash(&bytes[e.start as usize..][..e.len as usize])
                });
                id
            }
        }
    }

    /// The posting of a word in document `n`, which is the newest; made when it is new.
    #[inline]
    fn place<'a>(&mut self, id: u32, n: u32, postings: &'a mut Vec<(u32, u8)>) -> &'a mut (u32, u8) {
        let entry = &mut self.entries[id as usize];
        if entry.doc != n {
            (entry.doc, entry.at) = (n, postings.len() as u32);
            postings.push((id, 0));
        }
        &mut postings[entry.at as usize]
    }
}
