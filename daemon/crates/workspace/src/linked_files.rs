//! Identities of files that have several names (hard links): whoever hides one name hides the
//! others.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use crate::Root;

/// Device and inode of a file.
pub(crate) type Identity = (u64, u64);

/// Most entries of hidden folders of a root that are examined.
const MAX_HIDDEN: usize = 20_000;
/// Most entries of blocked folders that are examined: a configuration folder can hold a browser's
/// cache.
const MAX_BLOCKED: usize = 200_000;
/// Time for which the files of blocked folders count as known.
const KNOWN: Duration = Duration::from_secs(10);

/// The files with several names in the hidden paths of a root.
#[derive(Debug, Default)]
struct Hidden {
    files: HashSet<Identity>,
    /// True if not all entries were examined.
    is_cut: bool,
}

/// The hidden files of one view, which are looked for when the first file with several names is
/// read.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenFiles(Arc<OnceLock<Hidden>>);

/// Views are compared by their rules, from which this follows.
impl PartialEq for HiddenFiles {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for HiddenFiles {}

impl HiddenFiles {
    /// Returns true if a file is one of those in `paths`, which are relative to the root. If there
    /// are too many entries, it counts as one.
    pub fn contains(
        &self,
        root: &Root,
        file: Identity,
        paths: impl FnOnce() -> Vec<String>,
    ) -> bool {
        let hidden = self.0.get_or_init(|| {
            let mut hidden = Hidden::default();
            let mut remaining = MAX_HIDDEN;
            for rel in paths() {
                collect_hidden(root, &rel, &mut hidden.files, &mut remaining);
            }
            hidden.is_cut = remaining == 0;
            hidden
        });
        hidden.is_cut || hidden.files.contains(&file)
    }
}

fn collect_hidden(root: &Root, rel: &str, files: &mut HashSet<Identity>, remaining: &mut usize) {
    files.extend(root.linked(rel));
    for (name, _) in root.names(rel) {
        *remaining = remaining.saturating_sub(1);
        if *remaining == 0 {
            return;
        }
        collect_hidden(root, &format!("{rel}/{name}"), files, remaining);
    }
}

/// The files with several names in the blocked paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockedFiles(Arc<Mutex<Option<KnownFiles>>>);

/// Files, and the time at which they were looked for.
type KnownFiles = (Instant, HashSet<Identity>);

impl BlockedFiles {
    /// Returns true if a file is in one of `paths`, which are absolute.
    pub fn contains(&self, file: Identity, paths: impl Iterator<Item = PathBuf>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, files)) = &*known
            && at.elapsed() < KNOWN
        {
            return files.contains(&file);
        }
        let mut files = HashSet::new();
        let mut remaining = MAX_BLOCKED;
        for path in paths {
            collect_blocked(&path, &mut files, &mut remaining);
        }
        if remaining == 0 {
            tracing::warn!(
                "blocked folders have too many entries to find other names of all files"
            );
        }
        let contains = files.contains(&file);
        *known = Some((Instant::now(), files));
        contains
    }
}

fn collect_blocked(path: &Path, files: &mut HashSet<Identity>, remaining: &mut usize) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    if meta.is_file() && meta.nlink() > 1 {
        files.insert((meta.dev(), meta.ino()));
    }
    if !meta.is_dir() {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        *remaining = remaining.saturating_sub(1);
        if *remaining == 0 {
            return;
        }
        collect_blocked(&entry.path(), files, remaining);
    }
}
