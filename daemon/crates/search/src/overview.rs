//! Overviews of a root: its folders and files.

use std::collections::BTreeMap;

use cairn_protocol::error::Failure;
use cairn_protocol::id::RootId;

use crate::indexes::Indexes;
use cairn_index_base::FileEntry;

/// A top-level folder with totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Name of the folder; `.` for files at the root.
    pub path: String,
    /// Number of files at any depth.
    pub files: u64,
    /// The most frequent known language of its files.
    pub language: Option<&'static str>,
}

/// Totals over the files of a root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Number of files that the walk found.
    pub files: u64,
    /// Number of files by language, including files that are not indexed.
    pub languages: BTreeMap<&'static str, u64>,
}

impl Indexes {
    /// The top-level folders of a root, sorted by path.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn folders(&self, root: &RootId) -> Result<Vec<Folder>, Failure> {
        let index = self.index(root)?;
        let table = index.file_table()?;
        let mut folders: BTreeMap<&str, (u64, BTreeMap<&'static str, u64>)> = BTreeMap::new();
        let view = index.root.view();
        for file in table.files.iter().filter(|f| view.shows(&f.path)) {
            let top = file.path.split_once('/').map_or(".", |(top, _)| top);
            let (files, languages) = folders.entry(top).or_default();
            *files += 1;
            if let Some(lang) = file.lang() {
                *languages.entry(lang).or_default() += 1;
            }
        }
        let main = |languages: BTreeMap<&'static str, u64>| {
            languages.into_iter().max_by_key(|(l, n)| (*n, std::cmp::Reverse(*l))).map(|(l, _)| l)
        };
        Ok(folders
            .into_iter()
            .map(|(path, (files, l))| Folder { path: path.into(), files, language: main(l) })
            .collect())
    }

    /// The totals over the files of a root.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn file_stats(&self, root: &RootId) -> Result<FileStats, Failure> {
        let index = self.index(root)?;
        let table = index.file_table()?;
        let mut stats = FileStats { files: table.files.len() as u64, ..FileStats::default() };
        for lang in table.files.iter().filter_map(FileEntry::lang) {
            *stats.languages.entry(lang).or_default() += 1;
        }
        Ok(stats)
    }

    /// The sorted paths of a root's files that the walk found, including files that are not
    /// indexed.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn paths(&self, root: &RootId) -> Result<Vec<String>, Failure> {
        let index = self.index(root)?;
        let table = index.file_table()?;
        let view = index.root.view();
        Ok(table.files.iter().filter(|f| view.shows(&f.path)).map(|f| f.path.to_string()).collect())
    }
}
