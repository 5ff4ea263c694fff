//! Go: packages by the module paths of all `go.mod` of the tree.

use super::paths::{Paths, common_folders, join, parent};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::Import;

pub struct Modules {
    /// Module path and folder, longest path first.
    modules: Vec<(String, String)>,
    /// Folder of the module, replaced module path, and folder of its replacement.
    replaced: Vec<(String, String, String)>,
}

impl Modules {
    pub fn new(tree: &dyn SourceTree, paths: &Paths) -> Self {
        let mut modules = Vec::new();
        let mut replaced = Vec::new();
        for id in paths.named("go.mod") {
            let path = paths.path(*id);
            let folder = parent(path);
            let Some(text) = manifest::text(tree, path) else { continue };
            for line in text.lines() {
                let line = line.split("//").next().unwrap_or_default().trim();
                if let Some(module) = line.strip_prefix("module ") {
                    modules.push((module.trim().trim_matches('"').to_owned(), folder.to_owned()));
                }
                let rule = line.strip_prefix("replace ").unwrap_or(line);
                if let Some((from, to)) = rule.split_once("=>")
                    && let Some(from) = from.split_whitespace().next()
                    && to.trim().starts_with('.')
                    && let Some(target) = join(folder, to.trim())
                {
                    replaced.push((folder.to_owned(), from.to_owned(), target));
                }
            }
        }
        modules.sort_by_key(|(module, _)| std::cmp::Reverse(module.len()));
        replaced.sort_by_key(|(_, from, _)| std::cmp::Reverse(from.len()));
        Self { modules, replaced }
    }

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let name = import.specifier.as_str();
        if name.starts_with('.') {
            let folder = join(parent(importer), name);
            return Resolved::from_files(folder.map_or_else(Vec::new, |f| package(paths, &f)));
        }
        let mut folders = Vec::new();
        let below = |folder: &str| folder.is_empty() || importer.starts_with(&format!("{folder}/"));
        let replaced = self.replaced.iter().filter(|(folder, ..)| below(folder));
        folders.extend(replaced.filter_map(|(_, from, to)| within(name, from, to)));
        // Of two modules with one path, the nearest is meant.
        let mut own: Vec<_> =
            self.modules.iter().filter(|(m, f)| within(name, m, f).is_some()).collect();
        own.sort_by_key(|(module, folder)| {
            let common = common_folders(importer, &format!("{folder}/x"));
            (std::cmp::Reverse(module.len()), std::cmp::Reverse(common))
        });
        folders.extend(own.iter().filter_map(|(module, folder)| within(name, module, folder)));
        let vendored = self.modules.iter().filter(|(_, folder)| below(folder));
        folders.extend(vendored.filter_map(|(_, f)| join(f, &format!("vendor/{name}"))));
        let files = folders.iter().map(|f| package(paths, f)).find(|files| !files.is_empty());
        match files {
            Some(files) => Resolved::Files(files),
            None if own.is_empty() => Resolved::External(name.to_owned()),
            None => Resolved::Unresolved,
        }
    }
}

/// The folder of the package `name`, if the module contains it.
fn within(name: &str, module: &str, folder: &str) -> Option<String> {
    let rest = name.strip_prefix(module)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| join(folder, rest)).flatten()
}

/// The files of a package without its tests.
fn package(paths: &Paths, folder: &str) -> Vec<FileId> {
    let is_source = |id: &&FileId| {
        let path = paths.path(**id);
        path.ends_with(".go") && !path.ends_with("_test.go")
    };
    paths.in_folder(folder).iter().filter(is_source).copied().collect()
}
