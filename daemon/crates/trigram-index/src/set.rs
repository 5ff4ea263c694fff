//! The current trigram segments of one index, and the files that a grep may skip because of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use cairn_index_base::{FileTable, IndexContext, lock};
use cairn_workspace::{Facts, Ticks};
use rustc_hash::{FxHashMap, FxHashSet};

use super::query::Query;
use super::segment::{Doc, Segment};

/// Number of segments above which small ones are merged.
const MAX_FILES: usize = 16;
/// Maximum bytes of segments that are merged together; larger segments stay as they are.
const MAX_MERGED: usize = 32 * 1024 * 1024;
/// Number of dead documents above which a segment may be rewritten.
const MANY_DEAD: u32 = 1000;
/// File ids from which no file is skipped, because the skip set has one bit per id.
const MAX_ID: u32 = 1 << 28;
/// No change of the watch was applied yet.
const NOTHING: u64 = u64::MAX;

/// The segments of one index.
pub struct TrigramIndex {
    pub(crate) context: IndexContext,
    current: RwLock<Arc<Vec<Arc<Segment>>>>,
    /// Progress of the watch, if there is one.
    ticks: Mutex<Option<Ticks>>,
    /// Number of its changes that were applied.
    applied: AtomicU64,
}

impl TrigramIndex {
    /// Creates an empty list of segments; [`TrigramIndex::open`] reads them.
    pub fn new(context: IndexContext) -> Self {
        Self {
            context,
            current: RwLock::default(),
            ticks: Mutex::default(),
            applied: AtomicU64::new(NOTHING),
        }
    }

    pub fn file(&self, id: i64) -> PathBuf {
        file_of(&self.context.folder, id)
    }

    pub fn snapshot(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&self.current.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// Replaces all segments of its own without touching their files.
    pub fn set(&self, segments: Vec<Segment>) {
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        let shared = current.iter().filter(|s| s.id < 0).cloned();
        *current = Arc::new(shared.chain(segments.into_iter().map(Arc::new)).collect());
    }

    /// Sets the segments that the index shares with another one, oldest first. `covered` are the
    /// files whose trigrams are current; a segment of the index itself takes precedence.
    pub fn set_shared(&self, shared: &[Arc<Segment>], mut covered: FxHashSet<u32>) {
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        let own: Vec<_> = current.iter().filter(|s| s.id >= 0).cloned().collect();
        for segment in &own {
            segment.alive().for_each(|doc| {
                covered.remove(&segment.file(doc));
            });
        }
        let mut segments: Vec<_> = shared
            .iter()
            .rev()
            .map(|segment| Arc::new(segment.share(|file| covered.remove(&file))))
            .collect();
        segments.reverse();
        segments.extend(own);
        *current = Arc::new(segments);
    }

    /// Replaces `old` by `fresh` and unlinks the files of `old`; running queries keep their
    /// mappings.
    pub fn replace(&self, old: &[Arc<Segment>], fresh: Option<Segment>) {
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        let is_old = |s: &Arc<Segment>| old.iter().any(|o| Arc::ptr_eq(o, s));
        let mut segments: Vec<_> = current.iter().filter(|s| !is_old(s)).cloned().collect();
        segments.extend(fresh.map(Arc::new));
        *current = Arc::new(segments);
        drop(current);
        for old_segment in old.iter().filter(|s| s.id > 0) {
            let _ = std::fs::remove_file(self.file(old_segment.id));
        }
    }

    /// Marks files as changed, so that no segment covers them any more. This happens before the
    /// change is committed to the database: a reader that sees the change there also sees it
    /// here.
    pub fn mark_changed(&self, files: impl IntoIterator<Item = u32>) {
        let segments = self.snapshot();
        for file in files {
            for segment in segments.iter() {
                if let Some(doc) = segment.find_file(file) {
                    segment.mark_dead(doc);
                }
            }
        }
    }

    /// Ids of the files that no segment covers, ascending.
    pub fn files_without_segment(&self, table: &FileTable) -> Vec<u32> {
        let mut covered = Bits::default();
        for segment in self.snapshot().iter() {
            segment.alive().for_each(|doc| covered.set(segment.file(doc)));
        }
        let mut ids: Vec<u32> =
            table.files.iter().map(|f| f.id).filter(|id| !covered.get(*id)).collect();
        ids.sort_unstable();
        ids
    }

    /// Segments that should be merged, because small ones are too many or one of them is mostly
    /// dead.
    pub fn merge_candidates(&self) -> Option<Vec<Arc<Segment>>> {
        let mut segments: Vec<_> = self.snapshot().iter().filter(|s| s.id > 0).cloned().collect();
        if let Some(mostly_dead) = segments
            .iter()
            .find(|s| s.dead() == s.docs() || (s.dead() > MANY_DEAD && s.dead() > s.docs() / 3))
        {
            return Some(vec![Arc::clone(mostly_dead)]);
        }
        if segments.len() <= MAX_FILES {
            return None;
        }
        segments.sort_by_key(|s| s.size());
        let mut sum = 0;
        segments.retain(|s| {
            sum += s.size();
            sum <= MAX_MERGED
        });
        (segments.len() > 1).then_some(segments)
    }

    /// Attaches the progress of a watch.
    pub fn follow(&self, ticks: Ticks) {
        *lock(&self.ticks) = Some(ticks);
    }

    /// Records the number of changes of the watch whose files were marked as changed.
    pub fn set_applied(&self, changes: u64) {
        self.applied.store(changes, Ordering::SeqCst);
    }

    /// True if a watch sees all changes and all changes it has seen were applied.
    pub fn is_current(&self) -> bool {
        let sent = lock(&self.ticks).as_ref().and_then(Ticks::settled);
        sent.is_some_and(|sent| sent == self.applied.load(Ordering::SeqCst))
    }

    /// The files that cannot match. Call this before reading the file list: a newer list cannot
    /// contain a file that is skipped wrongly.
    pub fn skippable_files(&self, query: &Query) -> SkipSet {
        let mut skippable = SkipSet::default();
        if *query == Query::All {
            return skippable;
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
                    skippable.files.set(known.file);
                } else if known.flags & Doc::RECENT == 0 {
                    facts.insert(known.file, known.facts);
                }
            }
        }
        skippable.facts = facts;
        skippable
    }
}

/// The file of a segment in the folder of its index.
pub(crate) fn file_of(folder: &std::path::Path, id: i64) -> PathBuf {
    folder.join(format!("grams-{id}.tri"))
}

/// A bitmap of file ids.
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

/// The files that a grep may skip.
#[derive(Default)]
pub struct SkipSet {
    files: Bits,
    /// Files that may be skipped if they still have these facts.
    facts: FxHashMap<u32, Facts>,
}

impl SkipSet {
    /// True if a file cannot match.
    pub fn contains(&self, file: u32) -> bool {
        self.files.get(file)
    }

    /// True if a file cannot match provided it is unchanged; `current` reads its facts and is only
    /// called if needed.
    pub fn contains_if_unchanged(
        &self,
        file: u32,
        current: impl FnOnce() -> Option<Facts>,
    ) -> bool {
        self.facts.get(&file).is_some_and(|known| current() == Some(*known))
    }
}
