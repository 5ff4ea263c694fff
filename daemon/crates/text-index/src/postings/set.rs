//! The current segments of one index, and the merge policy that bounds their number.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use cairn_index_base::IndexContext;

use super::{Segment, merge};

/// Documents up to which segments stay in memory only; indexing them again takes moments.
pub const MEMORY_DOCS: u32 = 1024;
/// Number of segments in memory above which they are merged.
const MAX_IN_MEMORY: usize = 8;
/// Number of segment files that a merge aims for.
const MAX_FILES: usize = 8;
/// Maximum number of segments that are merged at once.
const WIDTH: usize = 10;
/// Maximum documents of a merged segment: some 50 MB, which are in memory while they are written.
const MAX_MERGED: u32 = 250_000;

/// An immutable list of segments, ordered by chunk ids.
#[derive(Default)]
pub struct Snapshot {
    pub segments: Vec<Arc<Segment>>,
}

/// A window in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub segment: u32,
    pub doc: u32,
}

impl Snapshot {
    /// The position of a chunk.
    pub fn find(&self, chunk: u64) -> Option<Position> {
        let mut all = (0u32..).zip(&self.segments).filter(|(_, s)| {
            let (first, last) = s.range();
            (first..=last).contains(&chunk)
        });
        all.find_map(|(segment, s)| Some(Position { segment, doc: s.find(chunk)? }))
    }

    /// Number of windows with a word, dead ones included.
    pub fn frequency(&self, word: &[u8]) -> u64 {
        self.segments.iter().filter_map(|s| s.term(word).map(|t| u64::from(s.frequency(t)))).sum()
    }

    /// Number of windows, dead ones included.
    pub fn docs(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.docs())).sum()
    }

    fn in_memory(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().filter(|s| s.id == 0)
    }

    /// The segments in memory, if they and `docs` more documents are too many to index again at an
    /// opening.
    pub fn spill_candidates(&self, docs: u32) -> Option<Vec<Arc<Segment>>> {
        let in_memory = self.in_memory().map(|s| s.docs()).sum::<u32>();
        (in_memory + docs > MEMORY_DOCS).then(|| self.in_memory().cloned().collect())
    }

    /// The segments in memory, if they should be merged.
    fn memory_merge_candidates(&self) -> Option<Vec<Arc<Segment>>> {
        let in_memory: Vec<_> = self.in_memory().cloned().collect();
        (in_memory.len() > MAX_IN_MEMORY).then_some(in_memory)
    }

    /// Adjacent files that should be merged, because they are too many or one of them is mostly
    /// dead.
    pub fn merge_candidates(&self, limit: usize) -> Option<Vec<Arc<Segment>>> {
        let files: Vec<_> = self.segments.iter().filter(|s| s.id > 0).collect();
        if let Some(mostly_dead) = files.iter().find(|s| s.dead() > 1000 && s.dead() > s.docs() / 3)
        {
            return Some(vec![Arc::clone(mostly_dead)]);
        }
        if files.len() <= limit.max(MAX_FILES) {
            return None;
        }
        let size = |group: &[&Arc<Segment>]| group.iter().map(|s| s.docs() - s.dead()).sum::<u32>();
        let width = WIDTH.min(files.len());
        let wide = files.windows(width).min_by_key(|g| size(g)).filter(|g| size(g) <= MAX_MERGED);
        let group = wide
            .or_else(|| files.windows(2).min_by_key(|g| size(g)).filter(|g| size(g) <= MAX_MERGED));
        group.map(|g| g.iter().map(|s| Arc::clone(s)).collect())
    }
}

/// The segments of one index.
pub struct Postings {
    pub(super) context: IndexContext,
    current: RwLock<Arc<Snapshot>>,
}

impl Postings {
    /// Creates an empty list of segments; [`Postings::open`] reads them.
    pub fn new(context: IndexContext) -> Self {
        Self { context, current: RwLock::default() }
    }

    pub fn file(&self, id: i64) -> PathBuf {
        self.context.folder.join(format!("words-{id}.seg"))
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// Replaces `old` by `fresh` for all queries that start from now on. Files of `old` are
    /// unlinked; running queries keep their mappings.
    pub fn replace(&self, old: &[Arc<Segment>], fresh: Vec<Segment>) {
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        let is_old = |s: &Arc<Segment>| old.iter().any(|o| Arc::ptr_eq(o, s));
        let mut segments: Vec<_> =
            current.segments.iter().filter(|s| !is_old(s)).cloned().collect();
        segments.extend(fresh.into_iter().map(Arc::new));
        segments.sort_by_key(|s| s.range().0);
        *current = Arc::new(Snapshot { segments });
        drop(current);
        for old_segment in old.iter().filter(|s| s.id > 0) {
            let _ = std::fs::remove_file(self.file(old_segment.id));
        }
    }

    /// Merges the segments in memory if they are many.
    pub fn merge_in_memory(&self) {
        if let Some(group) = self.snapshot().memory_merge_candidates() {
            let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
            let merged = merge::merge(&refs).and_then(|parts| Segment::from_bytes(parts.joined()));
            self.replace(&group, merged.into_iter().collect());
        }
    }

    /// Marks chunks as removed.
    pub fn mark_dead(&self, chunks: &[i64]) {
        let snapshot = self.snapshot();
        for chunk in chunks {
            let _ = snapshot.segments.iter().any(|s| {
                let (first, last) = s.range();
                (first..=last).contains(&(*chunk as u64)) && s.mark_dead(*chunk as u64)
            });
        }
    }

    /// Sets the segments that the index shares with another one, of which it sees the files that
    /// `is_visible` accepts. Returns their chunks that it does not see.
    pub fn set_shared(
        &self,
        shared: &[Arc<Segment>],
        is_visible: &dyn Fn(u32) -> bool,
    ) -> Vec<i64> {
        let (shared, hidden): (Vec<_>, Vec<_>) = shared.iter().map(|s| s.share(is_visible)).unzip();
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        // Their chunks have lower ids than all others.
        let own = current.segments.iter().filter(|s| s.id >= 0).cloned();
        let segments = shared.into_iter().map(Arc::new).chain(own).collect();
        *current = Arc::new(Snapshot { segments });
        hidden.concat()
    }

    /// Replaces all segments of its own without touching their files.
    pub fn set(&self, segments: Vec<Segment>) {
        let mut current = self.current.write().unwrap_or_else(|e| e.into_inner());
        let shared = current.segments.iter().filter(|s| s.id < 0).cloned();
        let segments = shared.chain(segments.into_iter().map(Arc::new)).collect();
        *current = Arc::new(Snapshot { segments });
    }
}
