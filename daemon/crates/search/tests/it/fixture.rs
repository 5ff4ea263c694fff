//! Roots in temporary folders and their indexes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cairn_protocol::id::RootId;
use cairn_protocol::index::RootStatus;
use cairn_protocol::search::{SearchAnswer, SearchItem, SearchParams};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_workspace::Roots;

/// The built-in embedder, without a watch and without sweeps.
pub fn options() -> IndexOptions {
    options_with_watch(false)
}

pub fn options_with_watch(watch: bool) -> IndexOptions {
    let mut options = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    options.watch = watch;
    options.sweep_seconds = 0;
    options
}

pub fn write_file(top: &Path, path: &str, text: impl AsRef<[u8]>) {
    let full = top.join(path);
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    fs::write(full, text).unwrap();
}

pub fn write_files(top: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        write_file(top, path, text);
    }
}

/// Opens the indexes in `folder` and adds the root `top`, whose id depends on its path alone.
pub fn open(folder: &Path, top: &Path, options: IndexOptions) -> (Indexes, RootId) {
    let indexes = Indexes::open(folder.to_owned(), options, None);
    let id = add_root(&indexes, top);
    (indexes, id)
}

pub fn add_root(indexes: &Indexes, top: &Path) -> RootId {
    let root = Roots::new(Vec::new()).declare(top).unwrap();
    let id = root.id.clone();
    indexes.add_root(root).unwrap();
    id
}

pub fn build(indexes: &Indexes, id: &RootId) -> RootStatus {
    indexes.build_and_wait(id, Until::Everything, &CancelFlag::new()).unwrap()
}

/// Builds an index and checks it against the files.
pub fn build_and_verify(indexes: &Indexes, id: &RootId) -> RootStatus {
    let status = build(indexes, id);
    assert_eq!(indexes.verify(id).unwrap(), Vec::<String>::new());
    status
}

pub fn hybrid(indexes: &Indexes, params: &SearchParams) -> SearchAnswer {
    indexes.hybrid(params, &CancelFlag::new(), &|_| {}).unwrap()
}

pub fn lexical(indexes: &Indexes, params: &SearchParams) -> SearchAnswer {
    indexes.lexical(params, &CancelFlag::new(), &|_| {}).unwrap()
}

pub fn paths(items: Vec<SearchItem>) -> Vec<String> {
    items.into_iter().map(|item| item.path).collect()
}

/// Files of an index with an extension. A rebuilt index has a folder with a number in its name.
pub fn segments(index: &Path, id: &RootId, extension: &str) -> BTreeSet<PathBuf> {
    let folders = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    let is_of_root =
        |folder: &PathBuf| folder.file_name().unwrap().to_str().unwrap().starts_with(&*id.0);
    let folder = folders.filter(is_of_root).max().unwrap();
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Damages a file that the index wrote.
pub type Damage = fn(&Path);

/// Damages that every kind of segment must survive.
pub const DAMAGES: [Damage; 3] = [
    |path| fs::remove_file(path).unwrap(),
    |path| fs::write(path, "not a segment").unwrap(),
    |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    },
];

/// A root with its index, both in one temporary folder.
pub struct TestRoot {
    pub dir: tempfile::TempDir,
    pub indexes: Indexes,
    pub id: RootId,
}

impl TestRoot {
    /// Opens the index of a new root with these files; the caller builds it.
    pub fn new(files: &[(&str, &str)]) -> Self {
        Self::from_tree(|top| write_files(top, files))
    }

    /// Opens the index of a new root with the files that `write` creates; the caller builds it.
    pub fn from_tree(write: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("root");
        fs::create_dir(&top).unwrap();
        write(&top);
        let (indexes, id) = open(&dir.path().join("index"), &top, options());
        Self { dir, indexes, id }
    }

    pub fn top(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub fn index_folder(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    pub fn build(&self) -> RootStatus {
        build(&self.indexes, &self.id)
    }

    pub fn reopen(&mut self) {
        self.indexes.close();
        self.indexes = open(&self.index_folder(), &self.top(), options()).0;
    }

    /// Paths of the results of a hybrid search, best first.
    pub fn hybrid(&self, query: &str) -> Vec<String> {
        paths(hybrid(&self.indexes, &SearchParams::new(query)).items)
    }

    /// Paths of the results of a lexical search, best first.
    pub fn lexical(&self, query: &str) -> Vec<String> {
        paths(lexical(&self.indexes, &SearchParams::new(query)).items)
    }
}
