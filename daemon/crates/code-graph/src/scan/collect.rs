//! The bounded result of a scan, and line numbers.

use memchr::memchr_iter;
use rustc_hash::FxHashSet;

use crate::import::{
    FileImports, Import, ImportedName, MAX_IMPORTS, MAX_NAME, MAX_NAMES, MAX_TYPES,
};

/// Maximum distinct paths in code of one file.
const MAX_PATHS: usize = 500;

pub struct Collector<'a> {
    text: &'a [u8],
    /// Position and line of the last request, from which the next is counted.
    at: usize,
    line: u32,
    pub file: FileImports,
    used: FxHashSet<u32>,
    paths: FxHashSet<&'a [u8]>,
}

impl<'a> Collector<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        let file = FileImports::default();
        Self { text, at: 0, line: 1, file, used: FxHashSet::default(), paths: FxHashSet::default() }
    }

    /// The line of a position, counted from 1.
    pub fn line_at(&mut self, at: usize) -> u32 {
        let at = at.min(self.text.len());
        let count =
            |from: usize, to: usize| memchr_iter(b'\n', &self.text[from..to]).count() as u32;
        if at >= self.at {
            self.line += count(self.at, at);
        } else {
            self.line -= count(at, self.at);
        }
        self.at = at;
        self.line
    }

    /// Adds an import within the limits.
    pub fn push(&mut self, mut import: Import) {
        let fits = |name: &str| name.len() <= MAX_NAME;
        if self.file.imports.len() >= MAX_IMPORTS || !fits(&import.specifier) {
            return;
        }
        let is_short = |n: &ImportedName| fits(&n.name) && n.alias.as_deref().is_none_or(fits);
        import.names.retain(is_short);
        import.names.truncate(MAX_NAMES);
        import.alias = import.alias.filter(|a| fits(a));
        self.file.imports.push(import);
    }

    pub fn declare(&mut self, name: &[u8]) {
        if self.file.declared.len() < MAX_TYPES
            && name.len() <= MAX_NAME
            && let Ok(name) = std::str::from_utf8(name)
        {
            self.file.declared.push(name.to_owned());
        }
    }

    /// Records a capitalised name.
    pub fn use_type(&mut self, name: &[u8]) {
        if self.used.len() < MAX_TYPES && name.len() <= MAX_NAME {
            self.used.insert(cairn_symbols::extract::ident_hash(name));
        }
    }

    /// True for the first time that a path appears in code, within the limit.
    pub fn is_new_path(&mut self, path: &'a [u8]) -> bool {
        self.paths.len() < MAX_PATHS && path.len() <= MAX_NAME && self.paths.insert(path)
    }

    pub fn finish(mut self) -> FileImports {
        self.file.used = self.used.into_iter().collect();
        self.file.used.sort_unstable();
        self.file.declared.sort_unstable();
        self.file.declared.dedup();
        self.file
    }
}
