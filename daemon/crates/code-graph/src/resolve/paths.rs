//! The files of a tree by path, folder and name.

use rustc_hash::{FxHashMap, FxHashSet};

use super::FileId;

/// Maximum files of one name that are compared by their ends.
const MAX_SAME_NAME: usize = 2_000;

pub struct Paths {
    files: Vec<String>,
    ids: FxHashMap<String, FileId>,
    /// Files directly in each folder.
    folders: FxHashMap<String, Vec<FileId>>,
    /// All folders, also those that contain only folders.
    all_folders: FxHashSet<String>,
    names: FxHashMap<String, Vec<FileId>>,
}

impl Paths {
    pub fn new(files: &[String]) -> Self {
        let mut paths = Self {
            files: files.to_vec(),
            ids: FxHashMap::default(),
            folders: FxHashMap::default(),
            all_folders: FxHashSet::default(),
            names: FxHashMap::default(),
        };
        for (id, path) in (0..).zip(files) {
            paths.ids.insert(path.clone(), id);
            paths.folders.entry(parent(path).to_owned()).or_default().push(id);
            paths.names.entry(file_name(path).to_owned()).or_default().push(id);
            let mut folder = parent(path);
            while paths.all_folders.insert(folder.to_owned()) && !folder.is_empty() {
                folder = parent(folder);
            }
        }
        paths
    }

    pub fn id(&self, path: &str) -> Option<FileId> {
        self.ids.get(path).copied()
    }

    pub fn path(&self, id: FileId) -> &str {
        self.files.get(id as usize).map_or("", String::as_str)
    }

    pub fn has_folder(&self, folder: &str) -> bool {
        self.all_folders.contains(folder)
    }

    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.all_folders.iter().map(String::as_str)
    }

    /// The files directly in a folder.
    pub fn in_folder(&self, folder: &str) -> &[FileId] {
        self.folders.get(folder).map_or(&[], Vec::as_slice)
    }

    /// All files below a folder, in order.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = FileId> + 'a {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let first = self.files.partition_point(|f| *f < prefix);
        let is_below = move |f: &&String| f.starts_with(&prefix);
        (first as FileId..).zip(self.files[first..].iter().take_while(is_below)).map(|(id, _)| id)
    }

    /// Files with one of the given names, in order of their paths.
    pub fn named(&self, name: &str) -> &[FileId] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    /// Files whose paths end with `suffix` after a `/`.
    pub fn ending_with(&self, suffix: &str) -> Vec<FileId> {
        let is_match = |id: &&FileId| {
            self.path(**id).strip_suffix(suffix).is_some_and(|p| p.is_empty() || p.ends_with('/'))
        };
        let same_name = self.named(file_name(suffix)).iter().take(MAX_SAME_NAME);
        same_name.filter(is_match).copied().collect()
    }

    /// The file `suffix` below one of the folders that `is_root` accepts; of several, the one whose
    /// folder is nearest to the importer.
    pub fn below_roots(
        &self,
        importer: &str,
        suffix: &str,
        is_root: impl Fn(&str) -> bool,
    ) -> Option<FileId> {
        let suffix = join("", suffix)?;
        let mut best: Option<(usize, FileId)> = None;
        for id in self.ending_with(&suffix) {
            let path = self.path(id);
            let folder = path[..path.len() - suffix.len()].trim_end_matches('/');
            if is_root(folder) {
                let common = common_folders(importer, &format!("{folder}/x"));
                if best.is_none_or(|(most, _)| common > most) {
                    best = Some((common, id));
                }
            }
        }
        best.map(|(_, id)| id)
    }

    /// The candidate with the most leading folders in common with `importer`.
    pub fn closest(&self, importer: &str, candidates: &[FileId]) -> Option<FileId> {
        let key = |id: &&FileId| (common_folders(importer, self.path(**id)), u32::MAX - **id);
        candidates.iter().max_by_key(key).copied()
    }
}

/// The number of leading folders that two paths have in common.
pub fn common_folders(a: &str, b: &str) -> usize {
    parent(a).split('/').zip(parent(b).split('/')).take_while(|(x, y)| x == y).count()
}

/// The folder of a path; empty for the root.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The name of a file without its last extension.
pub fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// `folder` and `path` joined, without `.` and `..`. `None` if the result leaves the root.
pub fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `folder` and its ancestors up to the root, nearest first.
pub fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |f| (!f.is_empty()).then(|| parent(f)))
}
