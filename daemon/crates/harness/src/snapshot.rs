//! What commands change in a workspace: its files as they were before one, compared with what it left.
//!
//! A command can change any file it may write to, and says of none of them what it held. So the files that a walk finds
//! are kept in memory while it runs, up to a bound, and what was found last is kept for the next command: then only
//! what changed meanwhile is read again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_workspace::{FileStat, MAX_WRITTEN_BYTES, Root, WalkOptions, Walked, walk};

use crate::{Change, Changes};

/// Most files of a workspace that is looked at.
const MAX_FILES: usize = 50_000;
/// Most bytes of them that are kept; the smallest files first.
const MAX_KEPT: u64 = 32 * 1024 * 1024;

/// The files of the workspace that was looked at last.
#[derive(Debug, Default)]
pub struct Snapshots(Mutex<Option<Snapshot>>);

#[derive(Debug)]
struct Snapshot {
    root: cairn_protocol::id::RootId,
    files: HashMap<String, Seen>,
}

#[derive(Debug, Clone)]
struct Seen {
    stat: FileStat,
    /// `None` when there was no room for it.
    bytes: Option<Arc<[u8]>>,
}

impl Snapshots {
    /// Does `work`, and notes in `changes` what has changed in the workspace meanwhile. Blocks.
    pub fn around<T>(&self, root: &Root, changes: &Changes, work: impl FnOnce() -> T) -> T {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let last = last.filter(|last| last.root == root.id);
        let before = match Snapshot::take(root, last.as_ref()) {
            Ok(before) => before,
            Err(why) => {
                changes.leave_out(why);
                return work();
            }
        };
        drop(last);
        let done = work();
        match Snapshot::take(root, Some(&before)) {
            Ok(after) => {
                before.compare(&after, root, changes);
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(after);
            }
            Err(why) => changes.leave_out(why),
        }
        done
    }
}

impl Snapshot {
    /// Looks at the workspace; what is as it was in `last` is not read again.
    fn take(root: &Root, last: Option<&Self>) -> Result<Self, String> {
        let found = Mutex::new(Vec::<Walked>::new());
        walk(root, &WalkOptions::default(), &|file| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.len() <= MAX_FILES {
                found.push(file);
            }
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if found.len() > MAX_FILES {
            return Err(format!("the workspace has more than {MAX_FILES} files"));
        }
        found.sort_unstable_by(|a, b| a.stat.size.cmp(&b.stat.size).then_with(|| a.rel.cmp(&b.rel)));
        let (mut files, mut room) = (HashMap::with_capacity(found.len()), MAX_KEPT);
        for Walked { rel, stat } in found {
            let bytes = (stat.size <= room).then(|| {
                let same = last.and_then(|last| last.files.get(&rel)).filter(|seen| seen.stat == stat);
                same.and_then(|seen| seen.bytes.clone()).or_else(|| read(root, &rel))
            });
            let bytes = bytes.flatten();
            room = room.saturating_sub(bytes.as_ref().map_or(0, |b| b.len() as u64));
            files.insert(rel, Seen { stat, bytes });
        }
        Ok(Self { root: root.id.clone(), files })
    }

    /// Notes what is other than in `after`, by path.
    fn compare(mut self, after: &Self, root: &Root, changes: &Changes) {
        let mut all = Vec::new();
        for (path, now) in &after.files {
            let then = self.files.remove(path);
            if then.as_ref().is_some_and(|then| then.stat == now.stat) {
                continue;
            }
            // What there was no room for may still be read now; what it held before cannot.
            let Some(held) = now.bytes.clone().or_else(|| read(root, path)) else {
                changes.leave_out(format!(
                    "'{path}' cannot be read, or has more than {MAX_WRITTEN_BYTES} bytes"
                ));
                continue;
            };
            let lost = then.as_ref().is_some_and(|then| then.bytes.is_none());
            let before = then.and_then(|then| then.bytes);
            if lost || before.as_ref() != Some(&held) {
                let (before, after) = (before.map(|b| b.to_vec()), Some(held.to_vec()));
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

/// A file of a size that could be put back; `None` when it cannot be read.
fn read(root: &Root, rel: &str) -> Option<Arc<[u8]>> {
    root.read_whole(rel, MAX_WRITTEN_BYTES).ok().flatten().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cairn_workspace::Roots;

    use super::*;

    fn place() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Roots::new(vec![]).declare(dir.path()).unwrap();
        (dir, root)
    }

    fn told(changes: &Changes) -> Vec<(String, Option<String>, Option<String>, bool)> {
        let text = |bytes: Option<Vec<u8>>| bytes.map(|b| String::from_utf8(b).unwrap());
        changes.take().into_iter().map(|c| (c.path, text(c.before), text(c.after), c.lost)).collect()
    }

    #[test]
    fn every_kind_of_change_is_seen_and_nothing_else() {
        let (dir, root) = place();
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
            // Written anew with what it held, and what is ignored.
            fs::remove_file(at("touched")).unwrap();
            fs::write(at("touched"), "touched").unwrap();
            fs::write(at("built"), "x").unwrap();
            7
        });
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(done, 7);
        assert_eq!(
            told(&changes),
            [
                ("edited".to_owned(), some("edited"), some("other"), false),
                ("gone".to_owned(), some("gone"), None, false),
                ("made".to_owned(), None, some("new"), false),
            ]
        );
        // A change between two commands is nobody's of them.
        fs::write(at("same"), "between").unwrap();
        snapshots.around(&root, &changes, || fs::write(at("made"), "newer").unwrap());
        assert_eq!(told(&changes), [("made".to_owned(), some("new"), some("newer"), false)]);
        assert_eq!(changes.left_out(), None);
    }

    #[test]
    fn what_there_was_no_room_for_is_told_as_lost() {
        let (dir, root) = place();
        let large = |byte: u8, size: u64| vec![byte; usize::try_from(size).unwrap()];
        // Two that fit one by one and not together: the larger is left out.
        fs::write(dir.path().join("a"), large(b'a', MAX_WRITTEN_BYTES)).unwrap();
        fs::write(dir.path().join("b"), large(b'b', MAX_WRITTEN_BYTES - 1)).unwrap();
        fs::write(dir.path().join("c"), large(b'c', 2)).unwrap();
        let (snapshots, changes) = (Snapshots::default(), Changes::default());
        snapshots.around(&root, &changes, || {
            fs::write(dir.path().join("a"), "1").unwrap();
            fs::write(dir.path().join("b"), "2").unwrap();
        });
        let lost: Vec<_> = changes.take().into_iter().map(|c| (c.path, c.before.is_some(), c.lost)).collect();
        assert_eq!(lost, [("a".into(), false, true), ("b".into(), true, false)]);
    }
}
