//! The segments of one index as queries see them, and the rules that keep them few.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use super::{Segment, merge};

/// Documents below which a segment is held in memory only: few enough to be made again in a moment.
pub const HELD_DOCS: u32 = 1024;
/// Segments in memory before they become one.
const MAX_HELD: usize = 8;
/// Segments in files after a tidying, those merged at once, and documents of a merged one at most: some 50 MB, which are held
/// while they are written.
const MAX_FILES: usize = 8;
const WIDTH: usize = 10;
const MAX_MERGED: u32 = 250_000;

/// All segments at one moment, by ascending chunk ids.
#[derive(Default)]
pub struct Snapshot {
    pub segments: Vec<Arc<Segment>>,
}

/// A window in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub segment: u32,
    pub doc: u32,
}

impl Snapshot {
    /// Where a chunk is.
    pub fn find(&self, chunk: u64) -> Option<Place> {
        let mut all = (0u32..).zip(&self.segments).filter(|(_, s)| {
            let (first, last) = s.range();
            (first..=last).contains(&chunk)
        });
        all.find_map(|(segment, s)| Some(Place { segment, doc: s.find(chunk)? }))
    }

    /// Windows that have a word, dead ones included.
    pub fn frequency(&self, word: &[u8]) -> u64 {
        self.segments.iter().filter_map(|s| s.term(word).map(|t| u64::from(s.frequency(t)))).sum()
    }

    /// Windows, dead ones included.
    pub fn docs(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.docs())).sum()
    }

    fn held(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().filter(|s| s.id == 0)
    }

    /// What is in memory only, when adding `docs` would be too much to be made again at an opening.
    pub fn to_file(&self, docs: u32) -> Option<Vec<Arc<Segment>>> {
        let held = self.held().map(|s| s.docs()).sum::<u32>();
        (held + docs > HELD_DOCS).then(|| self.held().cloned().collect())
    }

    /// A group of neighbours in memory that should become one.
    fn crowded(&self) -> Option<Vec<Arc<Segment>>> {
        let held: Vec<_> = self.held().cloned().collect();
        (held.len() > MAX_HELD).then_some(held)
    }

    /// A group of neighbouring files that should become one: too many, or too much in them is dead.
    pub fn untidy(&self, limit: usize) -> Option<Vec<Arc<Segment>>> {
        let files: Vec<_> = self.segments.iter().filter(|s| s.id != 0).collect();
        if let Some(rotten) = files.iter().find(|s| s.dead() > 1000 && s.dead() > s.docs() / 3) {
            return Some(vec![Arc::clone(rotten)]);
        }
        if files.len() <= limit.max(MAX_FILES) {
            return None;
        }
        let size = |group: &[&Arc<Segment>]| group.iter().map(|s| s.docs() - s.dead()).sum::<u32>();
        let width = WIDTH.min(files.len());
        let wide = files.windows(width).min_by_key(|g| size(g)).filter(|g| size(g) <= MAX_MERGED);
        let group =
            wide.or_else(|| files.windows(2).min_by_key(|g| size(g)).filter(|g| size(g) <= MAX_MERGED));
        group.map(|g| g.iter().map(|s| Arc::clone(s)).collect())
    }
}

/// The segments of one index.
pub struct Postings {
    folder: PathBuf,
    now: RwLock<Arc<Snapshot>>,
}

impl Postings {
    /// No segments yet, their files below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), now: RwLock::default() }
    }

    /// The file of a segment.
    pub fn file(&self, id: i64) -> PathBuf {
        self.folder.join(format!("words-{id}.seg"))
    }

    /// All segments now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// Puts `fresh` in the place of `old` for all queries that begin from now on. Files of `old` are deleted; who still
    /// reads them keeps them.
    pub fn replace(&self, old: &[Arc<Segment>], fresh: Vec<Segment>) {
        let mut now = self.now.write().unwrap_or_else(|e| e.into_inner());
        let is_old = |s: &Arc<Segment>| old.iter().any(|o| Arc::ptr_eq(o, s));
        let mut segments: Vec<_> = now.segments.iter().filter(|s| !is_old(s)).cloned().collect();
        segments.extend(fresh.into_iter().map(Arc::new));
        segments.sort_by_key(|s| s.range().0);
        *now = Arc::new(Snapshot { segments });
        drop(now);
        for gone in old.iter().filter(|s| s.id != 0) {
            let _ = std::fs::remove_file(self.file(gone.id));
        }
    }

    /// Makes one of many in memory.
    pub fn tidy_held(&self) {
        if let Some(group) = self.snapshot().crowded() {
            let refs: Vec<&Segment> = group.iter().map(|s| &**s).collect();
            let merged = merge::merge(&refs).and_then(|parts| Segment::held(parts.joined()));
            self.replace(&group, merged.into_iter().collect());
        }
    }

    /// Marks chunks as gone.
    pub fn kill(&self, chunks: &[i64]) {
        let snapshot = self.snapshot();
        for chunk in chunks {
            let _ = snapshot.segments.iter().any(|s| {
                let (first, last) = s.range();
                (first..=last).contains(&(*chunk as u64)) && s.kill(*chunk as u64)
            });
        }
    }

    /// Makes `segments` all there are. Files are the caller's matter.
    pub fn set(&self, segments: Vec<Segment>) {
        let segments = segments.into_iter().map(Arc::new).collect();
        *self.now.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(Snapshot { segments });
    }
}
