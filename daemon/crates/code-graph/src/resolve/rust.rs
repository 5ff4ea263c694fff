//! Rust: the module trees of all targets, and crates by the names that manifests give them.

use rustc_hash::FxHashMap;

use super::paths::{Paths, ancestors, file_name, join, parent, stem};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{FileImports, Import, ImportKind};

/// Maximum files of one crate's module tree.
const MAX_MODULES: usize = 50_000;
/// Maximum imports that are followed to find the head of a path.
const MAX_STEPS: usize = 4;

/// A package with a manifest.
#[derive(Debug, Default)]
struct Package {
    dir: String,
    name: String,
    /// Name of the library in code.
    lib_name: String,
    lib: Option<FileId>,
    /// Root files of all targets, the library first.
    roots: Vec<FileId>,
    /// Packages by the names they have in code.
    dependencies: FxHashMap<String, String>,
}

/// The position of a file in a module tree.
#[derive(Debug, Clone)]
struct Position {
    root: FileId,
    package: usize,
    module: String,
}

pub struct Crates {
    packages: Vec<Package>,
    /// Packages with a library, by package name.
    by_name: FxHashMap<String, usize>,
    /// Packages by the name of their library in code.
    by_lib: FxHashMap<String, usize>,
    modules: FxHashMap<(FileId, String), FileId>,
    positions: FxHashMap<FileId, Position>,
}

impl Crates {
    pub fn new(
        tree: &dyn SourceTree,
        paths: &Paths,
        sources: Vec<(FileId, FileImports)>,
    ) -> Self {
        let mut manifests = Vec::new();
        for id in paths.named("Cargo.toml") {
            let path = paths.path(*id);
            manifests.extend(manifest::toml(tree, path).map(|table| (parent(path), table)));
        }
        let workspaces: FxHashMap<&str, &toml::Table> =
            manifests.iter().filter(|(_, t)| t.contains_key("workspace")).map(|(d, t)| (*d, t)).collect();
        let packages: Vec<Package> = manifests
            .iter()
            .filter_map(|(dir, table)| {
                let workspace = ancestors(dir).find_map(|a| workspaces.get(a).copied());
                package(paths, dir, table, workspace)
            })
            .collect();
        let mut crates = Self {
            by_name: index(&packages, |p| &p.name),
            by_lib: index(&packages, |p| &p.lib_name),
            packages,
            modules: FxHashMap::default(),
            positions: FxHashMap::default(),
        };
        let sources: FxHashMap<FileId, FileImports> = sources.into_iter().collect();
        for package in 0..crates.packages.len() {
            for root in crates.packages[package].roots.clone() {
                crates.add_tree(paths, &sources, package, root);
            }
        }
        crates
    }

    /// Follows the `mod` items from the root file of a target.
    fn add_tree(
        &mut self,
        paths: &Paths,
        sources: &FxHashMap<FileId, FileImports>,
        package: usize,
        root: FileId,
    ) {
        let mut queue = vec![(root, String::new(), true)];
        let mut count = 0;
        while let Some((file, module, owns_folder)) = queue.pop() {
            count += 1;
            let is_known = self.modules.contains_key(&(root, module.clone()));
            if count > MAX_MODULES || is_known || module.len() > crate::import::MAX_NAME {
                continue;
            }
            self.modules.insert((root, module.clone()), file);
            let position = Position { root, package, module: module.clone() };
            self.positions.entry(file).or_insert(position);
            let Some(imports) = sources.get(&file) else { continue };
            let children = imports.imports.iter().filter(|i| i.kind == ImportKind::Module);
            for child in children {
                let target = module_file(paths, paths.path(file), owns_folder, child);
                let Some((target, owns_folder)) = target else { continue };
                queue.push((target, join_module(&module, &child.specifier), owns_folder));
            }
        }
    }

    pub fn resolve(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let Some(id) = paths.id(importer) else { return Resolved::Unresolved };
        let Some(position) = self.positions.get(&id) else {
            return self.resolve_orphan(paths, importer, import);
        };
        if import.kind == ImportKind::Module {
            let module = join_module(&position.module, &import.specifier);
            let target = self.modules.get(&(position.root, module));
            return target.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![*f]));
        }
        let mut files = Vec::new();
        let mut external = None;
        let heads: Vec<&str> = import.specifier.split("::").filter(|s| !s.is_empty()).collect();
        let names = import.names.iter().map(|n| Some(n.name.as_str()));
        let names: Vec<_> = if import.names.is_empty() { vec![None] } else { names.collect() };
        for name in names {
            let path: Vec<&str> = heads.iter().copied().chain(name).collect();
            match self.locate(position, file, import, &path, 0) {
                Resolved::Files(found) => files.extend(found),
                Resolved::External(package) => external = Some(package),
                Resolved::Unresolved => {}
            }
        }
        match (Resolved::from_files(files), external) {
            (Resolved::Unresolved, Some(package)) => Resolved::External(package),
            (resolved, _) => resolved,
        }
    }

    /// A module of a file that is in no module tree, such as one under another `cfg`.
    fn resolve_orphan(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        if import.kind == ImportKind::Module {
            let owns_folder = matches!(file_name(importer), "mod.rs" | "lib.rs" | "main.rs");
            let target = module_file(paths, importer, owns_folder, import);
            return target.map_or(Resolved::Unresolved, |(f, _)| Resolved::Files(vec![f]));
        }
        let head = import.specifier.split("::").next().unwrap_or_default();
        let library = self.by_lib.get(head).and_then(|p| self.packages[*p].lib);
        library.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![f]))
    }

    /// The file of the longest prefix of `path` that is a module.
    fn locate(
        &self,
        from: &Position,
        file: &FileImports,
        import: &Import,
        path: &[&str],
        steps: usize,
    ) -> Resolved {
        let Some((head, rest)) = path.split_first() else { return Resolved::Unresolved };
        match *head {
            "crate" => return self.descend(from.root, "", rest),
            "self" => return self.descend(from.root, &from.module, rest),
            "super" => {
                let mut module = from.module.as_str();
                let ups = path.iter().take_while(|s| **s == "super").count();
                for _ in 0..ups {
                    module = module.rsplit_once("::").map_or("", |(outer, _)| outer);
                }
                return self.descend(from.root, module, &path[ups..]);
            }
            _ => {}
        }
        if self.modules.contains_key(&(from.root, join_module(&from.module, head))) {
            return self.descend(from.root, &from.module, path);
        }
        if steps < MAX_STEPS
            && let Some((other, target)) = imported(file, import, head)
        {
            let full: Vec<&str> = target.into_iter().chain(rest.iter().copied()).collect();
            return self.locate(from, file, other, &full, steps + 1);
        }
        let package = &self.packages[from.package];
        if package.lib_name == *head
            && let Some(lib) = package.lib
        {
            return self.descend(lib, "", rest);
        }
        let dependency = package.dependencies.get(*head);
        let internal = match dependency {
            Some(name) => self.by_name.get(name),
            None => self.by_lib.get(*head),
        };
        if let Some(lib) = internal.and_then(|p| self.packages[*p].lib) {
            return self.descend(lib, "", rest);
        }
        match dependency {
            Some(name) => Resolved::External(name.clone()),
            // A bare path may begin with anything in scope.
            None if import.kind == ImportKind::Path || rest.is_empty() => Resolved::Unresolved,
            None => Resolved::External((*head).to_owned()),
        }
    }

    fn descend(&self, root: FileId, module: &str, path: &[&str]) -> Resolved {
        let mut at = module.to_owned();
        let mut found = self.modules.get(&(root, at.clone())).copied();
        for segment in path {
            at = join_module(&at, segment);
            match self.modules.get(&(root, at.clone())) {
                Some(file) => found = Some(*file),
                // An inline module may contain modules with files.
                None if at.len() > crate::import::MAX_NAME => break,
                None => {}
            }
        }
        found.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![f]))
    }
}

fn index(packages: &[Package], key: impl Fn(&Package) -> &String) -> FxHashMap<String, usize> {
    let mut map = FxHashMap::default();
    for (at, package) in packages.iter().enumerate() {
        if package.lib.is_some() {
            map.entry(key(package).clone()).or_insert(at);
        }
    }
    map
}

fn join_module(outer: &str, inner: &str) -> String {
    if outer.is_empty() { inner.to_owned() } else { format!("{outer}::{inner}") }
}

/// The import of `file` that binds `head`, and the full path that it stands for.
fn imported<'a>(
    file: &'a FileImports,
    import: &Import,
    head: &str,
) -> Option<(&'a Import, Vec<&'a str>)> {
    let is_use = |i: &&Import| {
        matches!(i.kind, ImportKind::Static | ImportKind::ReExport) && !std::ptr::eq(*i, import)
    };
    file.imports.iter().filter(is_use).find_map(|other| {
        let name = other.names.iter().find(|n| n.local() == head)?;
        if other.specifier.is_empty() && name.name == head {
            return None;
        }
        let path = other.specifier.split("::").filter(|s| !s.is_empty());
        Some((other, path.chain([name.name.as_str()]).collect()))
    })
}

/// The file of a `mod` item; true if its own modules are in the same folder.
fn module_file(
    paths: &Paths,
    file: &str,
    owns_folder: bool,
    import: &Import,
) -> Option<(FileId, bool)> {
    let folder = parent(file);
    let children = if owns_folder { folder.to_owned() } else { join(folder, stem(file))? };
    let (scope, name) = import.specifier.rsplit_once("::").unwrap_or(("", &import.specifier));
    let nested = join(&children, &scope.replace("::", "/"))?;
    if let Some(path) = &import.alias {
        let base = if scope.is_empty() { folder } else { &nested };
        return Some((paths.id(&join(base, path)?)?, true));
    }
    let name = name.strip_prefix("r#").unwrap_or(name);
    let file = paths.id(&join(&nested, &format!("{name}.rs"))?).map(|f| (f, false));
    file.or_else(|| Some((paths.id(&join(&nested, &format!("{name}/mod.rs"))?)?, true)))
}

fn package(
    paths: &Paths,
    dir: &str,
    table: &toml::Table,
    workspace: Option<&toml::Table>,
) -> Option<Package> {
    let name = table.get("package")?.get("name")?.as_str()?.to_owned();
    let file = |path: &str| join(dir, path).and_then(|p| paths.id(&p));
    let lib_table = table.get("lib");
    let field = |key: &str| lib_table.and_then(|l| l.get(key)).and_then(|v| v.as_str());
    let lib = file(field("path").unwrap_or("src/lib.rs"));
    let lib_name = field("name").unwrap_or(&name).replace('-', "_");
    let mut roots: Vec<FileId> = lib.into_iter().collect();
    roots.extend(["src/main.rs", "build.rs"].iter().filter_map(|p| file(p)));
    for key in ["bin", "test", "example", "bench"] {
        let targets = table.get(key).and_then(|v| v.as_array()).into_iter().flatten();
        let declared = targets.filter_map(|t| t.get("path")?.as_str());
        roots.extend(declared.filter_map(file));
    }
    for folder in ["src/bin", "tests", "examples", "benches"] {
        let Some(folder) = join(dir, folder) else { continue };
        for id in paths.below(&folder) {
            let rest = paths.path(id)[folder.len()..].trim_start_matches('/');
            let is_main = rest.ends_with("/main.rs") && rest.matches('/').count() == 1;
            if is_main || rest.ends_with(".rs") && !rest.contains('/') {
                roots.push(id);
            }
        }
    }
    let build = table.get("package").and_then(|p| p.get("build")).and_then(|b| b.as_str());
    roots.extend(build.and_then(file));
    let mut seen = rustc_hash::FxHashSet::default();
    roots.retain(|root| seen.insert(*root));
    let dependencies = dependencies(table, workspace);
    Some(Package { dir: dir.to_owned(), name, lib_name, lib, roots, dependencies })
}

/// All dependencies of a manifest, also those of one platform.
fn dependencies(
    table: &toml::Table,
    workspace: Option<&toml::Table>,
) -> FxHashMap<String, String> {
    const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let shared = workspace.and_then(|w| w.get("workspace")?.get("dependencies")?.as_table());
    let platforms = table.get("target").and_then(|t| t.as_table());
    let platforms = platforms.into_iter().flat_map(|t| t.values().filter_map(|v| v.as_table()));
    let mut all = FxHashMap::default();
    for owner in std::iter::once(table).chain(platforms) {
        for (key, value) in TABLES.iter().filter_map(|t| owner.get(*t)?.as_table()).flatten() {
            let package = |v: &toml::Value| v.get("package")?.as_str().map(str::to_owned);
            let inherited = || shared.and_then(|s| package(s.get(key)?));
            let package = package(value).or_else(inherited).unwrap_or_else(|| key.clone());
            all.insert(key.replace('-', "_"), package);
        }
    }
    all
}
