//! The files of a root as queries see them.

use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::language_of;
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of file ids.
pub type FileSet = FxHashSet<u32>;

/// A file as queries see it.
#[derive(Debug)]
pub struct FileEntry {
    pub id: u32,
    pub path: Box<str>,
}

impl FileEntry {
    /// The file's language, derived from its name.
    pub fn lang(&self) -> Option<&'static str> {
        language_of(&self.path)
    }
}

/// All files that the walk found, sorted by path.
#[derive(Debug, Default)]
pub struct FileTable {
    pub files: Vec<FileEntry>,
    by_id: FxHashMap<u32, u32>,
}

impl FileTable {
    pub fn get(&self, id: u32) -> Option<&FileEntry> {
        self.by_id.get(&id).and_then(|i| self.files.get(*i as usize))
    }

    /// Reads the table from the database.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn read(conn: &Connection) -> Result<Self, StoreError> {
        let mut table = FileTable::default();
        let mut all = conn.prepare_cached("SELECT id, path FROM file ORDER BY path")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let path = row.get_ref(1)?.as_str().unwrap_or("").into();
            table.files.push(FileEntry { id: row.get(0)?, path });
        }
        table.by_id = table.files.iter().map(|f| f.id).zip(0..).collect();
        Ok(table)
    }
}
