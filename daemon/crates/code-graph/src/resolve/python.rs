//! Python: modules by their dotted names below the folders of the path.

use rustc_hash::{FxHashMap, FxHashSet};

use super::paths::{Paths, ancestors, common_folders, file_name, join, parent};
use super::{FileId, Resolved};
use crate::import::Import;

/// Maximum folders that are tried for one top-level name.
const MAX_ROOTS: usize = 64;
/// Names of the standard library that folders of a repository often have as well.
const STANDARD: [&str; 9] =
    ["test", "email", "json", "http", "logging", "types", "typing", "collections", "unittest"];

pub struct Modules {
    /// Folders of the path that contain each top-level package or module.
    roots: FxHashMap<String, Vec<String>>,
    /// Folders with a manifest, and their `src`.
    projects: FxHashSet<String>,
    /// Names of all folders, each of which may be a package without `__init__.py`.
    folder_names: FxHashSet<String>,
}

impl Modules {
    pub fn new(paths: &Paths) -> Self {
        let mut projects = FxHashSet::default();
        projects.insert(String::new());
        projects.insert("src".to_owned());
        for name in ["pyproject.toml", "setup.py", "setup.cfg", "manage.py", "requirements.txt"] {
            for id in paths.named(name) {
                let folder = parent(paths.path(*id));
                projects.insert(folder.to_owned());
                projects.extend(["src", "lib"].iter().filter_map(|sub| join(folder, sub)));
            }
        }
        projects.retain(|folder| paths.has_folder(folder));
        let mut roots: FxHashMap<String, Vec<String>> = FxHashMap::default();
        let mut add = |name: &str, root: &str| {
            let known = roots.entry(name.to_owned()).or_default();
            if known.len() < MAX_ROOTS && !known.iter().any(|r| r == root) {
                known.push(root.to_owned());
            }
        };
        for folder in paths.folders() {
            if is_package(paths, folder) {
                if !folder.is_empty() && !is_package(paths, parent(folder)) {
                    add(file_name(folder), parent(folder));
                }
                continue;
            }
            for id in paths.in_folder(folder) {
                let name = file_name(paths.path(*id));
                if let Some(stem) = name.strip_suffix(".py").or(name.strip_suffix(".pyi")) {
                    add(stem, folder);
                }
            }
        }
        roots.values_mut().for_each(|folders| folders.sort_unstable());
        let folder_names = paths.folders().map(|f| file_name(f).to_owned()).collect();
        Self { roots, projects, folder_names }
    }

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let dots = import.specifier.bytes().take_while(|b| *b == b'.').count();
        let module = &import.specifier[dots..];
        if dots > 0 {
            let mut base = parent(importer);
            for _ in 1..dots {
                if base.is_empty() {
                    return Resolved::Unresolved;
                }
                base = parent(base);
            }
            return Resolved::from_files(targets(paths, base, module, import));
        }
        let head = module.split('.').next().unwrap_or_default();
        if !self.roots.contains_key(head) && !self.folder_names.contains(head) {
            return Resolved::External(head.to_owned());
        }
        for root in self.roots_of(paths, importer, head) {
            let files = targets(paths, &root, module, import);
            if !files.is_empty() {
                return Resolved::Files(files);
            }
        }
        Resolved::External(head.to_owned())
    }

    /// The folders in which a top-level name is looked up, in order.
    fn roots_of(&self, paths: &Paths, importer: &str, head: &str) -> Vec<String> {
        let folder = parent(importer);
        let mut roots: Vec<String> = Vec::new();
        // The folder of a script, and those above it from which it may be started.
        let above = ancestors(folder).skip_while(|f| is_package(paths, f));
        let is_near = |f: &str| f == folder || self.projects.contains(f);
        roots.extend(above.filter(|f| is_near(f)).map(str::to_owned));
        let common =
            |root: &String| std::cmp::Reverse(common_folders(importer, &format!("{root}/x")));
        let mut known = self.roots.get(head).cloned().unwrap_or_default();
        known.retain(|root| {
            let is_module = !is_package(paths, &join(root, head).unwrap_or_default());
            let is_above =
                root.is_empty() || folder == root || folder.starts_with(&format!("{root}/"));
            let hides_standard = STANDARD.contains(&head);
            is_above || self.projects.contains(root) || !is_module && !hides_standard
        });
        known.sort_by_key(common);
        roots.extend(known);
        let mut projects: Vec<String> = self.projects.iter().cloned().collect();
        projects.sort_unstable();
        projects.sort_by_key(common);
        roots.extend(projects);
        let mut seen = FxHashSet::default();
        roots.retain(|root| seen.insert(root.clone()));
        roots
    }
}

fn is_package(paths: &Paths, folder: &str) -> bool {
    let init = |name: &str| join(folder, name).and_then(|p| paths.id(&p)).is_some();
    init("__init__.py") || init("__init__.pyi")
}

/// The file of a module whose path without extension is `path`.
fn module(paths: &Paths, path: &str) -> Option<FileId> {
    let files = [".py", "/__init__.py", ".pyi", "/__init__.pyi"];
    // A package precedes a module of the same name.
    let order = if is_package(paths, path) { [1, 3, 0, 2] } else { [0, 2, 1, 3] };
    order.iter().find_map(|i| paths.id(&format!("{path}{}", files[*i])))
}

/// The files of an import whose module is below `root`.
fn targets(paths: &Paths, root: &str, name: &str, import: &Import) -> Vec<FileId> {
    let Some(path) = join(root, &name.replace('.', "/")) else { return Vec::new() };
    let itself = if path.is_empty() { None } else { module(paths, &path) };
    let itself = itself.or_else(|| paths.id(&format!("{path}/__init__.py")));
    if import.names.is_empty() {
        return itself.into_iter().collect();
    }
    let is_folder = !path.is_empty() && paths.has_folder(&path) || path.is_empty();
    let mut files = Vec::new();
    for name in &import.names {
        let submodule = if is_folder && name.name != "*" {
            join(&path, &name.name).and_then(|p| module(paths, &p))
        } else {
            None
        };
        files.extend(submodule.or(itself));
    }
    files.sort_unstable();
    files.dedup();
    files
}
