//! The watched folders: those that a walk enters, and the top of `.git`.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::inbox::Inbox;
use crate::{
    root::Root,
    walk::{Ignore, WalkOptions, rel_of},
};

/// The watches of a root.
pub(super) struct Tree {
    root: Root,
    opts: WalkOptions,
    inbox: Arc<Inbox>,
    rules: Ignore,
    /// True if it was a repository when the rules were read: only then does `.gitignore` apply.
    repository: bool,
    /// `None` when the system provides no notifier; then the root is polled.
    watcher: Option<RecommendedWatcher>,
    /// Watched folders, relative to the root, `""` for the root.
    watched: BTreeSet<String>,
}

impl Tree {
    pub(super) fn new(root: &Root, opts: &WalkOptions, inbox: Arc<Inbox>) -> Self {
        let events = inbox.clone();
        let watcher = notify::recommended_watcher(move |event| events.put(event)).ok();
        if watcher.is_none() {
            inbox.set_polling();
        }
        let (repository, rules) = (is_repository(root), Ignore::build(root, opts));
        let (root, opts) = (root.clone(), opts.clone());
        Self { root, opts, inbox, rules, repository, watcher, watched: BTreeSet::new() }
    }

    /// Reloads the rules; watches folders that were ignored until now.
    pub(super) fn reload(&mut self) {
        self.repository = is_repository(&self.root);
        self.rules = Ignore::build(&self.root, &self.opts);
        self.watch_all();
    }

    /// Returns true if the root has become a repository since the rules were read, or has stopped
    /// being one. An empty `.git`, as a sandbox creates to reserve the name, does not count.
    pub(super) fn repository_changed(&self) -> bool {
        is_repository(&self.root) != self.repository
    }

    /// Removes all watches and creates them again: after lost events their state is unknown.
    pub(super) fn restart(&mut self) {
        self.watched.clear();
        self.reload();
    }

    /// Watches every folder of the root.
    pub(super) fn watch_all(&mut self) {
        self.watch_git();
        self.watch_below("", &mut |_| {});
    }

    /// Watches git's own folder, without its contents.
    pub(super) fn watch_git(&mut self) {
        for part in [".git", ".git/info"] {
            let is_dir =
                std::fs::symlink_metadata(self.root.path.join(part)).is_ok_and(|m| m.is_dir());
            if is_dir {
                self.watch_one(part);
            }
        }
    }

    /// Watches a folder and those below it, and passes every file in them to `on_file`: each folder
    /// is watched first and listed then, so that a file is either listed or reported.
    pub(super) fn watch_below(&mut self, rel: &str, on_file: &mut dyn FnMut(String)) {
        let mut todo = vec![rel.to_owned()];
        while let Some(dir) = todo.pop() {
            if self.inbox.is_stopped() {
                return;
            }
            self.watch_one(&dir);
            let Ok(entries) = std::fs::read_dir(self.root.path.join(&dir)) else { continue };
            for entry in entries.flatten() {
                let (Ok(kind), Some(path)) =
                    (entry.file_type(), rel_of(&self.root.path, &entry.path()))
                else {
                    continue;
                };
                match kind.is_dir() {
                    true if self.rules.is_walked(&path, true) => todo.push(path),
                    true => {}
                    false => on_file(path),
                }
            }
        }
    }

    fn watch_one(&mut self, rel: &str) {
        let Some(watcher) = &mut self.watcher else { return };
        // The notifier of macOS watches trees; one watch at the top is enough.
        let mode = match cfg!(target_os = "macos") {
            true if rel.is_empty() => RecursiveMode::Recursive,
            true => return,
            false => RecursiveMode::NonRecursive,
        };
        if self.inbox.is_polling() || self.watched.contains(rel) {
            return;
        }
        match watcher.watch(&self.root.path.join(rel), mode) {
            Ok(()) => {
                self.watched.insert(rel.to_owned());
            }
            Err(e) if matches!(e.kind, notify::ErrorKind::MaxFilesWatch) => {
                tracing::warn!(root = %self.root.path.display(), "no watches left: changes are found by sweeps");
                self.inbox.set_polling();
            }
            // Removed or unreadable: its parent's events report the former, the walk the latter.
            Err(e) => tracing::debug!(folder = rel, error = %e, "cannot watch a folder"),
        }
    }

    /// Removes the watches of a deleted folder; the notifier dropped them itself.
    pub(super) fn forget(&mut self, rel: &str) {
        if self.watched.remove(rel) {
            let below = format!("{rel}/");
            let inner: Vec<String> = self
                .watched
                .range(below.clone()..)
                .take_while(|w| w.starts_with(&below))
                .cloned()
                .collect();
            for dir in inner {
                self.watched.remove(&dir);
            }
        }
    }

    pub(super) fn root_exists(&self) -> bool {
        self.root.path.is_dir()
    }

    pub(super) fn is_watched(&self, rel: &str) -> bool {
        self.watched.contains(rel)
    }

    /// Returns true if a walk could yield this file, or enter this folder.
    pub(super) fn is_walked(&self, rel: &str, is_dir: bool) -> bool {
        self.rules.is_walked(rel, is_dir)
    }

    pub(super) fn rel(&self, path: &Path) -> Option<String> {
        rel_of(&self.root.path, path)
    }
}

/// Returns true if `.git` in the root is a folder with a `HEAD`, or a file that names a folder.
fn is_repository(root: &Root) -> bool {
    let git = root.path.join(".git");
    git.is_file() || git.join("HEAD").is_file()
}
