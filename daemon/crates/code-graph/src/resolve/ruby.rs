//! Ruby: constants, which a file may name without a `require` of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use super::FileId;
use super::paths::Paths;
use crate::import::FileImports;

/// Classes and modules of the language, which a tree may open again.
const CORE: &[&str] = &[
    "Array",
    "BasicObject",
    "Class",
    "Comparable",
    "Dir",
    "Encoding",
    "Enumerable",
    "Enumerator",
    "Error",
    "Exception",
    "FalseClass",
    "File",
    "FileUtils",
    "Float",
    "Hash",
    "IO",
    "Integer",
    "JSON",
    "Kernel",
    "Logger",
    "Method",
    "Module",
    "Mutex",
    "NilClass",
    "Numeric",
    "Object",
    "Pathname",
    "Proc",
    "Process",
    "Random",
    "Range",
    "Regexp",
    "Set",
    "StandardError",
    "String",
    "StringIO",
    "Struct",
    "Symbol",
    "Thread",
    "Time",
    "TrueClass",
    "URI",
];

/// The file of each constant that only one file opens, with the outermost module of that file: a
/// module that many files open is a namespace.
pub struct Constants(FxHashMap<u32, (FileId, Option<String>)>);

impl Constants {
    pub fn new(paths: &Paths, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut files: FxHashMap<u32, (FileId, Option<String>)> = FxHashMap::default();
        let mut shared: FxHashSet<u32> =
            CORE.iter().map(|name| cairn_symbols::extract::ident_hash(name.as_bytes())).collect();
        // A test opens classes again.
        for (id, imports) in sources.into_iter().filter(|(id, _)| !is_test(paths.path(*id))) {
            for name in &imports.declared {
                let hash = cairn_symbols::extract::ident_hash(name.as_bytes());
                let new = (id, imports.package.clone());
                if files.insert(hash, new).is_some_and(|(other, _)| other != id) {
                    shared.insert(hash);
                }
            }
        }
        files.retain(|hash, _| !shared.contains(hash));
        Self(files)
    }

    /// The files of the constants that a file names: those of its own outermost module, and of
    /// modules that it names.
    pub fn named(&self, paths: &Paths, importer: &str, file: &FileImports) -> Vec<FileId> {
        let is_visible = |module: &Option<String>| {
            *module == file.package || module.as_deref().is_some_and(|name| file.uses(name))
        };
        let found = file.used.iter().filter_map(|hash| self.0.get(hash));
        let visible = found.filter(|(_, module)| is_visible(module)).map(|(id, _)| *id);
        visible.filter(|id| paths.path(*id) != importer).collect()
    }
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "test" | "tests" | "spec" | "features"))
}
