//! Changes that commands make in a workspace: its files before a command, compared with those after
//! it.
//!
//! A command can change any file it may write to, and reports no former contents. So the files that
//! a walk finds are stored in memory while it runs, up to a bound, and the last result is cached
//! for the next command: then only files that changed meanwhile are read again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cairn_protocol::id::RootId;
use cairn_workspace::{FileStat, MAX_WRITTEN_BYTES, Root, WalkOptions, Walked, walk};

use crate::{Change, Changes};

/// Most files of a workspace that is examined.
const MAX_FILES: usize = 50_000;
/// Most bytes that are stored; the smallest files first.
const MAX_STORED: u64 = 32 * 1024 * 1024;

/// Time for which a workspace that was found too large is skipped.
const TOO_LARGE: Duration = Duration::from_secs(600);

/// The files of the workspace that was examined last.
#[derive(Debug)]
pub struct Snapshots {
    max_files: usize,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    last: Option<Snapshot>,
    /// The last workspace that was found too large, and when.
    large: Option<(RootId, Instant)>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { max_files: MAX_FILES, cache: Mutex::default() }
    }
}

#[derive(Debug)]
struct Snapshot {
    root: RootId,
    files: HashMap<String, Seen>,
}

#[derive(Debug, Clone)]
struct Seen {
    stat: FileStat,
    /// `None` when the bound left no room for it.
    bytes: Option<Arc<[u8]>>,
}

impl Snapshots {
    /// Runs `work`, and records in `changes` what has changed in the workspace meanwhile. Blocks.
    pub fn around<T>(&self, root: &Root, changes: &Changes, work: impl FnOnce() -> T) -> T {
        let last = self.cache().last.take().filter(|last| last.root == root.id);
        let Some(before) = self.look(root, last.as_ref(), changes) else { return work() };
        drop(last);
        let done = work();
        if let Some(after) = self.look(root, Some(&before), changes) {
            before.compare(&after, root, changes);
            self.cache().last = Some(after);
        }
        done
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current state of the workspace; `None` when it is too large, which is recorded.
    fn look(&self, root: &Root, last: Option<&Snapshot>, changes: &Changes) -> Option<Snapshot> {
        // Another count would take as long as reading all of it.
        let known = self
            .cache()
            .large
            .as_ref()
            .is_some_and(|(id, at)| *id == root.id && at.elapsed() < TOO_LARGE);
        let snapshot = if known { None } else { Snapshot::take(root, last, self.max_files) };
        if snapshot.is_none() {
            changes
                .mark_incomplete(format!("the workspace has more than {} files", self.max_files));
            if !known {
                self.cache().large = Some((root.id.clone(), Instant::now()));
            }
        }
        snapshot
    }
}

impl Snapshot {
    /// Reads the workspace; files unchanged since `last` are not read again. `None` when it has
    /// more than `most` files.
    fn take(root: &Root, last: Option<&Self>, most: usize) -> Option<Self> {
        let candidates = Mutex::new(Vec::<Walked>::new());
        walk(root, &WalkOptions::default(), &|file| {
            let mut candidates = candidates.lock().unwrap_or_else(PoisonError::into_inner);
            if candidates.len() <= most {
                candidates.push(file);
            }
        });
        let mut candidates = candidates.into_inner().unwrap_or_else(PoisonError::into_inner);
        if candidates.len() > most {
            return None;
        }
        candidates
            .sort_unstable_by(|a, b| a.stat.size.cmp(&b.stat.size).then_with(|| a.rel.cmp(&b.rel)));
        let (mut files, mut room) = (HashMap::with_capacity(candidates.len()), MAX_STORED);
        for Walked { rel, stat } in candidates {
            let bytes = (stat.size <= room).then(|| {
                let same =
                    last.and_then(|last| last.files.get(&rel)).filter(|seen| seen.stat == stat);
                same.and_then(|seen| seen.bytes.clone()).or_else(|| read(root, &rel))
            });
            let bytes = bytes.flatten();
            room = room.saturating_sub(bytes.as_ref().map_or(0, |b| b.len() as u64));
            files.insert(rel, Seen { stat, bytes });
        }
        Some(Self { root: root.id.clone(), files })
    }

    /// Records the differences from `after`, by path.
    fn compare(mut self, after: &Self, root: &Root, changes: &Changes) {
        let mut all = Vec::new();
        for (path, now) in &after.files {
            let then = self.files.remove(path);
            if then.as_ref().is_some_and(|then| then.stat == now.stat) {
                continue;
            }
            // A file that had no room before may be readable now; its former contents are lost.
            let Some(content) = now.bytes.clone().or_else(|| read(root, path)) else {
                changes.mark_incomplete(format!(
                    "'{path}' cannot be read, or has more than {MAX_WRITTEN_BYTES} bytes"
                ));
                continue;
            };
            let lost = then.as_ref().is_some_and(|then| then.bytes.is_none());
            let before = then.and_then(|then| then.bytes);
            if lost || before.as_ref() != Some(&content) {
                let (before, after) = (before.map(|b| b.to_vec()), Some(content.to_vec()));
                all.push(Change { path: path.clone(), before, after, lost });
            }
        }
        all.extend(self.files.into_iter().map(|(path, then)| {
            let lost = then.bytes.is_none();
            Change { path, before: then.bytes.map(|b| b.to_vec()), after: None, lost }
        }));
        all.sort_by(|a: &Change, b| a.path.cmp(&b.path));
        all.into_iter().for_each(|change| changes.push(change));
    }
}

/// Reads a file of a size that could be restored; `None` when it cannot be read.
fn read(root: &Root, rel: &str) -> Option<Arc<[u8]>> {
    root.read_file(rel, MAX_WRITTEN_BYTES).ok().flatten().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cairn_workspace::Roots;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Roots::new(vec![]).declare(dir.path()).unwrap();
        (dir, root)
    }

    fn take_changes(changes: &Changes) -> Vec<(String, Option<String>, Option<String>, bool)> {
        let text = |bytes: Option<Vec<u8>>| bytes.map(|b| String::from_utf8(b).unwrap());
        changes
            .take()
            .into_iter()
            .map(|c| (c.path, text(c.before), text(c.after), c.lost))
            .collect()
    }

    #[test]
    fn every_kind_of_change_is_detected() {
        let (dir, root) = workspace();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at(".git")).unwrap();
        for name in ["same", "edited", "gone", "touched", ".gitignore"] {
            fs::write(at(name), if name == ".gitignore" { "built\n" } else { name }).unwrap();
        }
        let (snapshots, changes) = (Snapshots::default(), Changes::default());
        let done = snapshots.around(&root, &changes, || {
            fs::write(at("edited"), "other").unwrap();
            fs::remove_file(at("gone")).unwrap();
            fs::write(at("made"), "new").unwrap();
            // A file rewritten with the same contents, and an ignored one.
            fs::remove_file(at("touched")).unwrap();
            fs::write(at("touched"), "touched").unwrap();
            fs::write(at("built"), "x").unwrap();
            7
        });
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(done, 7);
        assert_eq!(
            take_changes(&changes),
            [
                ("edited".to_owned(), some("edited"), some("other"), false),
                ("gone".to_owned(), some("gone"), None, false),
                ("made".to_owned(), None, some("new"), false),
            ]
        );
        // A change between two commands belongs to neither.
        fs::write(at("same"), "between").unwrap();
        snapshots.around(&root, &changes, || fs::write(at("made"), "newer").unwrap());
        assert_eq!(
            take_changes(&changes),
            [("made".to_owned(), some("new"), some("newer"), false)]
        );
        assert_eq!(changes.incomplete_reason(), None);
    }

    #[test]
    fn large_workspace_is_skipped_and_reported() {
        let (dir, root) = workspace();
        for n in 0..3 {
            fs::write(dir.path().join(n.to_string()), "x").unwrap();
        }
        let snapshots = Snapshots { max_files: 3, ..Snapshots::default() };
        let edit = |text: &str| fs::write(dir.path().join("0"), text).unwrap();
        let changes = Changes::default();
        snapshots.around(&root, &changes, || edit("y"));
        assert_eq!((take_changes(&changes).len(), changes.incomplete_reason()), (1, None));
        // It grows past the bound, and is not counted again soon.
        snapshots.around(&root, &changes, || fs::write(dir.path().join("3"), "x").unwrap());
        let why = Some("the workspace has more than 3 files".to_owned());
        assert_eq!((take_changes(&changes).len(), changes.incomplete_reason()), (0, why.clone()));
        fs::remove_file(dir.path().join("3")).unwrap();
        let changes = Changes::default();
        snapshots.around(&root, &changes, || edit("z"));
        assert_eq!((take_changes(&changes).len(), changes.incomplete_reason()), (0, why));
    }

    #[test]
    fn unstored_contents_are_reported_as_lost() {
        let (dir, root) = workspace();
        let large = |byte: u8, size: u64| vec![byte; usize::try_from(size).unwrap()];
        // Two files that fit one by one and not together: the larger is omitted.
        fs::write(dir.path().join("a"), large(b'a', MAX_WRITTEN_BYTES)).unwrap();
        fs::write(dir.path().join("b"), large(b'b', MAX_WRITTEN_BYTES - 1)).unwrap();
        fs::write(dir.path().join("c"), large(b'c', 2)).unwrap();
        let (snapshots, changes) = (Snapshots::default(), Changes::default());
        snapshots.around(&root, &changes, || {
            fs::write(dir.path().join("a"), "1").unwrap();
            fs::write(dir.path().join("b"), "2").unwrap();
        });
        let lost: Vec<_> =
            changes.take().into_iter().map(|c| (c.path, c.before.is_some(), c.lost)).collect();
        assert_eq!(lost, [("a".into(), false, true), ("b".into(), true, false)]);
    }
}
