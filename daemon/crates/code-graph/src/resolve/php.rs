//! PHP: classes by the autoload rules of `composer.json`, and files by path.

use serde_json::Value;

use super::packages::Packages;
use super::paths::{Paths, join, parent};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{FileImports, Import, ImportKind};

pub struct Autoload {
    /// Namespace prefix and folder, longest prefix first.
    prefixes: Vec<(String, String)>,
    packages: Packages,
}

impl Autoload {
    pub fn new(tree: &dyn SourceTree, paths: &Paths, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut prefixes = Vec::new();
        for id in paths.named("composer.json") {
            let path = paths.path(*id);
            let Some(value) = manifest::json(tree, path) else { continue };
            for rules in ["autoload", "autoload-dev"].iter().filter_map(|k| value.get(*k)) {
                let maps = ["psr-4", "psr-0"].iter().filter_map(|k| rules.get(*k)?.as_object());
                for (prefix, folders) in maps.flatten() {
                    let folders = match folders {
                        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                        one => one.as_str().into_iter().collect::<Vec<_>>(),
                    };
                    let folders = folders.iter().filter_map(|f| join(parent(path), f));
                    prefixes.extend(folders.map(|f| (prefix.clone(), f)));
                }
            }
        }
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self { prefixes, packages: Packages::new('\\', sources) }
    }

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let one =
            |id: Option<FileId>| id.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![f]));
        if matches!(import.kind, ImportKind::Require | ImportKind::Include) {
            let beside = join(parent(importer), &import.specifier).and_then(|p| paths.id(&p));
            return one(beside.or_else(|| paths.id(&join("", &import.specifier)?)));
        }
        let files: Vec<FileId> = import
            .names
            .iter()
            .filter_map(|name| self.class(paths, importer, &import.specifier, &name.name))
            .collect();
        match Resolved::from_files(files) {
            Resolved::Unresolved => {
                let vendor = import.specifier.split('\\').next().unwrap_or_default();
                let is_own =
                    self.prefixes.iter().any(|(p, _)| p.split('\\').next() == Some(vendor));
                if is_own { Resolved::Unresolved } else { Resolved::External(vendor.to_owned()) }
            }
            resolved => resolved,
        }
    }

    fn class(&self, paths: &Paths, importer: &str, namespace: &str, name: &str) -> Option<FileId> {
        let full =
            if namespace.is_empty() { name.to_owned() } else { format!("{namespace}\\{name}") };
        let mapped = self.prefixes.iter().find_map(|(prefix, folder)| {
            let rest =
                full.strip_prefix(prefix.as_str())?.trim_start_matches('\\').replace('\\', "/");
            paths.id(&join(folder, &format!("{rest}.php"))?)
        });
        mapped.or_else(|| self.packages.file_of(paths, importer, namespace, name))
    }

    pub fn same_package(&self, paths: &Paths, importer: &str, file: &FileImports) -> Vec<FileId> {
        self.packages.same_package(paths, importer, file)
    }
}
