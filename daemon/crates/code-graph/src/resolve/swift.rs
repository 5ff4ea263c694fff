//! Swift: modules by the targets of `Package.swift`, and by convention.

use rustc_hash::FxHashMap;

use super::packages::Packages;
use super::paths::{Paths, file_name, join, parent};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{FileImports, Import};

pub struct Targets {
    packages: Packages,
    /// The names of targets whose folders a manifest gives.
    folders: FxHashMap<String, String>,
}

impl Targets {
    pub fn new(tree: &dyn SourceTree, paths: &Paths, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut folders: FxHashMap<String, String> = FxHashMap::default();
        for id in paths.named("Package.swift") {
            let path = paths.path(*id);
            if let Some(text) = manifest::text(tree, path) {
                declared_targets(&text, parent(path), &mut folders);
            }
        }
        let mut packages = Packages::new('.', Vec::new());
        for (id, imports) in sources {
            let module = module_of(paths, &folders, paths.path(id));
            packages.add(id, &module, imports.declared);
        }
        Self { packages, folders }
    }

    /// Files of the importer's own module whose types it names.
    pub fn same_module(&self, paths: &Paths, importer: &str, file: &FileImports) -> Vec<FileId> {
        let module = module_of(paths, &self.folders, importer);
        self.packages.used(paths, importer, &module, file)
    }

    pub fn resolve(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let module = import.specifier.as_str();
        if !self.packages.has_package(module) {
            return Resolved::External(module.to_owned());
        }
        let named = |name: &str| self.packages.file_of(paths, importer, module, name);
        let single: Vec<FileId> = import.names.iter().filter_map(|n| named(&n.name)).collect();
        let used = || self.packages.used(paths, importer, module, file);
        Resolved::from_files(if single.is_empty() { used() } else { single })
    }
}

/// Folders of the targets whose `path` a manifest gives.
fn declared_targets(text: &str, root: &str, folders: &mut FxHashMap<String, String>) {
    for kind in [".target(", ".testTarget(", ".executableTarget(", ".macro("] {
        for (at, _) in text.match_indices(kind) {
            let body = &text[at + kind.len()..];
            let body =
                &body[..body.find("Target(").or(body.find(".target(")).unwrap_or(body.len())];
            let field = |key: &str| {
                let rest = &body[body.find(key)? + key.len()..];
                let rest = rest.trim_start().strip_prefix('"')?;
                rest.split_once('"').map(|(value, _)| value)
            };
            if let (Some(name), Some(path)) = (field("name:"), field("path:"))
                && let Some(folder) = join(root, path)
            {
                folders.insert(folder, name.to_owned());
            }
        }
    }
}

/// The module of a file: the target whose folder contains it, or the folder below `Sources`.
fn module_of(paths: &Paths, folders: &FxHashMap<String, String>, path: &str) -> String {
    debug_assert!(paths.id(path).is_some(), "the file is in the tree");
    let mut folder = parent(path);
    loop {
        if let Some(name) = folders.get(folder) {
            return name.clone();
        }
        if matches!(file_name(parent(folder)), "Sources" | "Tests" | "Source") {
            return file_name(folder).to_owned();
        }
        if folder.is_empty() {
            return String::new();
        }
        folder = parent(folder);
    }
}
