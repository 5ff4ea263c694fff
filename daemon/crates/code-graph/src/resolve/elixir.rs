//! Elixir: modules by their full names, with the aliases of the importing file.

use rustc_hash::FxHashMap;

use super::paths::Paths;
use super::{FileId, Resolved};
use crate::import::{FileImports, Import, ImportKind};

pub struct Modules {
    files: FxHashMap<String, Vec<FileId>>,
}

impl Modules {
    pub fn new(sources: Vec<(FileId, FileImports)>) -> Self {
        let mut files: FxHashMap<String, Vec<FileId>> = FxHashMap::default();
        for (id, imports) in sources {
            for name in imports.declared {
                files.entry(name).or_default().push(id);
            }
        }
        Self { files }
    }

    pub fn resolve(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let module = full_name(file, import);
        let find = |name: &str| paths.closest(importer, self.files.get(name)?);
        let found: Vec<FileId> = if import.names.is_empty() {
            find(&module).into_iter().collect()
        } else {
            let full = import.names.iter().map(|name| format!("{module}.{}", name.name));
            full.filter_map(|name| find(&name)).collect()
        };
        match Resolved::from_files(found) {
            Resolved::Unresolved if import.kind != ImportKind::Path => {
                let first = module.split('.').next().unwrap_or(&module).to_owned();
                Resolved::External(first)
            }
            resolved => resolved,
        }
    }
}

/// The name of a module with its alias replaced.
fn full_name(file: &FileImports, import: &Import) -> String {
    let name = import.specifier.as_str();
    let (first, rest) = name.split_once('.').map_or((name, ""), |(first, rest)| (first, rest));
    let expanded = file.imports.iter().filter(|i| i.kind == ImportKind::Static).find_map(|other| {
        // A statement does not rename itself.
        if std::ptr::eq(other, import) || other.specifier == name {
            return None;
        }
        if other.alias.as_deref() == Some(first) {
            return Some(other.specifier.clone());
        }
        let named = other.names.iter().find(|named| named.local() == first)?;
        Some(format!("{}.{}", other.specifier, named.name))
    });
    match expanded {
        Some(full) if rest.is_empty() => full,
        Some(full) => format!("{full}.{rest}"),
        None => name.to_owned(),
    }
}
