//! Overviews of a root: its files and languages.

use std::collections::BTreeMap;

use cairn_protocol::error::Failure;
use cairn_protocol::id::RootId;
use cairn_store::StoreError;

use crate::indexes::Indexes;
use cairn_index_base::FileEntry;

/// Totals over the files of a root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileStats {
    /// Number of files that the walk found.
    pub files: u64,
    /// Number of files by language, including files that are not indexed.
    pub languages: BTreeMap<&'static str, u64>,
}

impl Indexes {
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

    /// The files of a root with the first 16 hexadecimal digits of the SHA-256 of their contents, or
    /// their size for files that are not indexed.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn contents(&self, root: &RootId) -> Result<BTreeMap<String, String>, Failure> {
        let index = self.index(root)?;
        let view = index.root.view();
        let conn = index.readers.get()?;
        let read = || -> Result<BTreeMap<String, String>, StoreError> {
            let mut all = conn.prepare_cached("SELECT path, sha256, size_bytes FROM file")?;
            let mut rows = all.query([])?;
            let mut files = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let path: String = row.get(0)?;
                let content = match row.get_ref(1)?.as_blob_or_null().unwrap_or(None) {
                    Some(hash) => hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
                    None => format!("{} bytes", row.get::<_, u64>(2)?),
                };
                if view.shows(&path) {
                    files.insert(path, content);
                }
            }
            Ok(files)
        };
        Ok(read()?)
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
