//! The trigram segments of one index as greps see them, and which files they let them pass over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use cairn_workspace::{Facts, Ticks};
use rustc_hash::FxHashMap;

use super::query::Query;
use super::segment::{Doc, Segment};
use crate::live::FileTable;
use crate::sync::lock;

/// Segments after a tidying, and bytes of those merged together at most: the rest stays as it is.
const MAX_FILES: usize = 16;
const MAX_MERGED: usize = 32 * 1024 * 1024;
/// Dead documents from which a segment may be worth writing anew.
const MANY_DEAD: u32 = 1000;
/// File ids beyond which nothing is passed over: a bit is held for each.
const MAX_ID: u32 = 1 << 28;
/// Nothing of the watch was taken in yet.
const NOTHING: u64 = u64::MAX;

/// The segments of one index.
pub struct Grams {
    folder: PathBuf,
    now: RwLock<Arc<Vec<Arc<Segment>>>>,
    /// How far the watch is, when there is one, and how many of its changes were taken in.
    ticks: Mutex<Option<Ticks>>,
    taken: AtomicU64,
}

impl Grams {
    /// No segments yet, their files below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            now: RwLock::default(),
            ticks: Mutex::default(),
            taken: AtomicU64::new(NOTHING),
        }
    }

    /// The file of a segment.
    pub fn file(&self, id: i64) -> PathBuf {
        self.folder.join(format!("grams-{id}.tri"))
    }

    /// All segments now.
    pub fn snapshot(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&self.now.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// Makes `segments` all there are. Files are the caller's matter.
    pub fn set(&self, segments: Vec<Segment>) {
        let segments = segments.into_iter().map(Arc::new).collect();
        *self.now.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(segments);
    }

    /// Puts `fresh` in the place of `old` and deletes the files of those; who still reads them keeps them.
    pub fn replace(&self, old: &[Arc<Segment>], fresh: Option<Segment>) {
        let mut now = self.now.write().unwrap_or_else(|e| e.into_inner());
        let is_old = |s: &Arc<Segment>| old.iter().any(|o| Arc::ptr_eq(o, s));
        let mut segments: Vec<_> = now.iter().filter(|s| !is_old(s)).cloned().collect();
        segments.extend(fresh.map(Arc::new));
        *now = Arc::new(segments);
        drop(now);
        for gone in old {
            let _ = std::fs::remove_file(self.file(gone.id));
        }
    }

    /// Lets no trigrams speak for these files from now on. Done before the database says that they changed: whoever
    /// reads of the change there finds it done here.
    pub fn kill(&self, files: impl IntoIterator<Item = u32>) {
        let segments = self.snapshot();
        for file in files {
            for segment in segments.iter() {
                if let Some(doc) = segment.find_file(file) {
                    segment.kill(doc);
                }
            }
        }
    }

    /// Ids of files for which no trigrams speak, ascending.
    pub fn uncovered(&self, table: &FileTable) -> Vec<u32> {
        let mut covered = Bits::default();
        for segment in self.snapshot().iter() {
            segment.alive().for_each(|doc| covered.set(segment.file(doc)));
        }
        let mut ids: Vec<u32> = table.files.iter().map(|f| f.id).filter(|id| !covered.get(*id)).collect();
        ids.sort_unstable();
        ids
    }

    /// Segments that should become one: too many small ones, or too much of one is dead.
    pub fn untidy(&self) -> Option<Vec<Arc<Segment>>> {
        let mut all: Vec<_> = self.snapshot().iter().cloned().collect();
        if let Some(rotten) =
            all.iter().find(|s| s.dead() == s.docs() || (s.dead() > MANY_DEAD && s.dead() > s.docs() / 3))
        {
            return Some(vec![Arc::clone(rotten)]);
        }
        if all.len() <= MAX_FILES {
            return None;
        }
        all.sort_by_key(|s| s.size());
        let mut sum = 0;
        all.retain(|s| {
            sum += s.size();
            sum <= MAX_MERGED
        });
        (all.len() > 1).then_some(all)
    }

    /// Follows a watch from now on.
    pub fn follow(&self, ticks: Ticks) {
        *lock(&self.ticks) = Some(ticks);
    }

    /// Notes that so many changes of the watch were taken in: their files were killed.
    pub fn took(&self, changes: u64) {
        self.taken.store(changes, Ordering::SeqCst);
    }

    /// Whether a watch sees all changes and all it has seen was taken in.
    pub fn is_current(&self) -> bool {
        let sent = lock(&self.ticks).as_ref().and_then(Ticks::settled);
        sent.is_some_and(|sent| sent == self.taken.load(Ordering::SeqCst))
    }

    /// The files that cannot match. Ask before the file list is read: a list that is newer has none that is here wrongly.
    pub fn skips(&self, query: &Query) -> Skips {
        let mut skips = Skips::default();
        if *query == Query::All {
            return skips;
        }
        let is_current = self.is_current();
        let mut facts = FxHashMap::default();
        for segment in self.snapshot().iter() {
            let Ok(found) = query.documents(segment) else {
                tracing::warn!(segment = segment.id, "a trigram segment cannot be read");
                continue;
            };
            for doc in segment.alive() {
                if found[doc as usize / 64] & (1 << (doc % 64)) != 0 {
                    continue;
                }
                let known = segment.doc(doc);
                if known.flags & Doc::ANY != 0 || known.file >= MAX_ID {
                    continue;
                }
                if is_current {
                    skips.files.set(known.file);
                } else if known.flags & Doc::YOUNG == 0 {
                    facts.insert(known.file, known.facts);
                }
            }
        }
        skips.facts = facts;
        skips
    }
}

/// A bit for each file id.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, id: u32) {
        let at = id as usize / 64;
        if id < MAX_ID {
            if at >= self.0.len() {
                self.0.resize(at + 1, 0);
            }
            self.0[at] |= 1 << (id % 64);
        }
    }

    fn get(&self, id: u32) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }
}

/// Which files a grep may pass over.
#[derive(Default)]
pub struct Skips {
    files: Bits,
    /// Those that may be passed over as long as they are what they were.
    facts: FxHashMap<u32, Facts>,
}

impl Skips {
    /// Whether nothing in this file can match.
    pub fn has(&self, file: u32) -> bool {
        self.files.get(file)
    }

    /// Whether nothing in this file can match if its facts are still what they were; `now` tells them when it matters.
    pub fn has_if(&self, file: u32, now: impl FnOnce() -> Option<Facts>) -> bool {
        self.facts.get(&file).is_some_and(|known| now() == Some(*known))
    }
}
