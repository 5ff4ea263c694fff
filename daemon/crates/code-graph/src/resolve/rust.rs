//! Rust: the module trees of all targets, and crates by the names that manifests give them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::paths::{Paths, ancestors, file_name, join, parent, stem};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{FileImports, Import, ImportKind};

/// Maximum files of one crate's module tree.
const MAX_MODULES: usize = 50_000;
/// Maximum imports that are followed to resolve one path.
const MAX_STEPS: usize = 48;
/// Maximum glob imports of a file that are searched for a name.
const MAX_GLOBS: usize = 16;

/// Names that were looked up in files while one path is resolved, each of which is looked up once.
type Seen = FxHashSet<(FileId, u32)>;

/// A package with a manifest.
#[derive(Debug, Default)]
struct Package {
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
    /// True if the files of its modules are beside it, as for `mod.rs`.
    owns_folder: bool,
}

/// Names that the `use` items of a file bind, with the paths that they stand for.
#[derive(Debug, Default)]
struct Bindings {
    names: FxHashMap<String, String>,
    globs: Vec<String>,
    exported: FxHashSet<String>,
}

/// The module that a path leads to; `is_exact` if no segment is left.
#[derive(Debug, Clone, Copy)]
struct Located {
    file: FileId,
    is_exact: bool,
}

pub struct Crates {
    bindings: FxHashMap<FileId, Bindings>,
    packages: Vec<Package>,
    /// Packages with a library, by package name.
    by_name: FxHashMap<String, usize>,
    /// Packages by the name of their library in code.
    by_lib: FxHashMap<String, usize>,
    modules: FxHashMap<(FileId, String), FileId>,
    positions: FxHashMap<FileId, Position>,
}

impl Crates {
    pub fn new(tree: &dyn SourceTree, paths: &Paths, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut manifests = Vec::new();
        for id in paths.named("Cargo.toml") {
            let path = paths.path(*id);
            manifests.extend(manifest::toml(tree, path).map(|table| (parent(path), table)));
        }
        let workspaces: FxHashMap<&str, &toml::Table> = manifests
            .iter()
            .filter(|(_, t)| t.contains_key("workspace"))
            .map(|(d, t)| (*d, t))
            .collect();
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
            bindings: sources.iter().map(|(id, file)| (*id, bindings(file))).collect(),
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
        let mut seen = FxHashSet::default();
        while let Some((file, module, owns_folder)) = queue.pop() {
            let is_long = module.len() > crate::import::MAX_NAME;
            if seen.len() > MAX_MODULES || is_long || !seen.insert(file) {
                continue;
            }
            self.modules.entry((root, module.clone())).or_insert(file);
            let position = Position { root, package, module: module.clone(), owns_folder };
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

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let Some(id) = paths.id(importer) else { return Resolved::Unresolved };
        let Some(position) = self.positions.get(&id) else {
            return self.resolve_orphan(paths, importer, import);
        };
        if import.kind == ImportKind::Module {
            let target = module_file(paths, importer, position.owns_folder, import);
            return target.map_or(Resolved::Unresolved, |(f, _)| Resolved::Files(vec![f]));
        }
        let mut files = Vec::new();
        let heads: Vec<&str> = import.specifier.split("::").filter(|s| !s.is_empty()).collect();
        let names = import.names.iter().map(|n| Some(n.name.as_str()));
        let names: Vec<_> = if import.names.is_empty() { vec![None] } else { names.collect() };
        for name in names {
            let path: Vec<&str> = heads.iter().copied().chain(name).collect();
            files.extend(self.locate(id, &path, &mut Seen::default()).map(|l| l.file));
        }
        let head = heads.first().copied().or(import.names.first().map(|n| n.name.as_str()));
        match (Resolved::from_files(files), head) {
            (Resolved::Unresolved, Some(head)) => self.external(position, import, head),
            (resolved, _) => resolved,
        }
    }

    /// The package outside of the tree that a path begins with.
    fn external(&self, from: &Position, import: &Import, head: &str) -> Resolved {
        match self.packages[from.package].dependencies.get(head) {
            Some(name) => Resolved::External(name.clone()),
            // A bare path may begin with anything in scope, and so may `use` of an enum's names.
            None if import.kind == ImportKind::Path || head.starts_with(char::is_uppercase) => {
                Resolved::Unresolved
            }
            None if matches!(head, "crate" | "self" | "super") => Resolved::Unresolved,
            None => Resolved::External(head.to_owned()),
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

    /// The file of the longest prefix of `path` that is a module, seen from the module `file`.
    fn locate(&self, file: FileId, path: &[&str], seen: &mut Seen) -> Option<Located> {
        let (head, rest) = path.split_first()?;
        let from = self.positions.get(&file)?;
        match *head {
            "crate" => return self.descend(from.root, "", rest, seen),
            "self" => return self.descend(from.root, &from.module, rest, seen),
            "super" => {
                let mut module = from.module.as_str();
                let ups = path.iter().take_while(|s| **s == "super").count();
                for _ in 0..ups {
                    module = module.rsplit_once("::").map_or("", |(outer, _)| outer);
                }
                return self.descend(from.root, module, &path[ups..], seen);
            }
            _ => {}
        }
        if self.modules.contains_key(&(from.root, join_module(&from.module, head))) {
            return self.descend(from.root, &from.module, path, seen);
        }
        let bindings = self.bindings.get(&file);
        if let Some(full) = bindings.and_then(|b| b.names.get(*head))
            && let Some(found) = self.alias(file, head, full, rest, seen)
        {
            return Some(found);
        }
        let package = &self.packages[from.package];
        if package.lib_name == *head
            && let Some(lib) = package.lib
        {
            return self.descend(lib, "", rest, seen);
        }
        let internal = match package.dependencies.get(*head) {
            Some(name) => self.by_name.get(name),
            None => self.by_lib.get(*head),
        };
        if let Some(lib) = internal.and_then(|p| self.packages[*p].lib) {
            return self.descend(lib, "", rest, seen);
        }
        let is_external = package.dependencies.contains_key(*head);
        if is_external { None } else { self.through_globs(file, head, rest, seen) }
    }

    /// The module of a path whose head stands for the path `full`.
    fn alias(
        &self,
        file: FileId,
        head: &str,
        full: &str,
        rest: &[&str],
        seen: &mut Seen,
    ) -> Option<Located> {
        let key = (file, cairn_symbols::extract::ident_hash(head.as_bytes()));
        if seen.len() >= MAX_STEPS || !seen.insert(key) {
            return None;
        }
        let full: Vec<&str> = full.split("::").chain(rest.iter().copied()).collect();
        self.locate(file, &full, seen)
    }

    /// The module of a path whose head `file` exports.
    fn exported(
        &self,
        file: FileId,
        head: &str,
        rest: &[&str],
        seen: &mut Seen,
    ) -> Option<Located> {
        let bindings = self.bindings.get(&file)?;
        if bindings.exported.contains(head)
            && let Some(full) = bindings.names.get(head)
        {
            return self.alias(file, head, full, rest, seen);
        }
        self.through_globs(file, head, rest, seen)
    }

    /// The module of a path whose head is among the names of a glob import of `file`.
    fn through_globs(
        &self,
        file: FileId,
        head: &str,
        rest: &[&str],
        seen: &mut Seen,
    ) -> Option<Located> {
        let bindings = self.bindings.get(&file)?;
        let key = (file, !cairn_symbols::extract::ident_hash(head.as_bytes()));
        if bindings.globs.is_empty() || seen.len() >= MAX_STEPS || !seen.insert(key) {
            return None;
        }
        bindings.globs.iter().take(MAX_GLOBS).find_map(|glob| {
            let glob: Vec<&str> = glob.split("::").collect();
            let module = self.locate(file, &glob, seen)?;
            if !module.is_exact || module.file == file {
                return None;
            }
            let position = self.positions.get(&module.file)?;
            if self.modules.contains_key(&(position.root, join_module(&position.module, head))) {
                let path: Vec<&str> = std::iter::once(head).chain(rest.iter().copied()).collect();
                return self.descend(position.root, &position.module, &path, seen);
            }
            // A child sees the private names of its parents.
            let names = &self.bindings.get(&module.file)?.names;
            match names.get(head) {
                Some(full) => self.alias(module.file, head, full, rest, seen),
                None => self.through_globs(module.file, head, rest, seen),
            }
        })
    }

    /// Follows `path` from a module. A segment that is no module may be one that the file exports.
    fn descend(
        &self,
        root: FileId,
        module: &str,
        path: &[&str],
        seen: &mut Seen,
    ) -> Option<Located> {
        let mut at = module.to_owned();
        let mut file = self.modules.get(&(root, at.clone())).copied();
        // The number of segments up to the last one that is a module.
        let mut reached = 0;
        for (index, segment) in path.iter().enumerate() {
            at = join_module(&at, segment);
            if at.len() > crate::import::MAX_NAME {
                break;
            }
            if let Some(found) = self.modules.get(&(root, at.clone())) {
                file = Some(*found);
                reached = index + 1;
            }
        }
        let file = file?;
        if let Some((segment, rest)) = path[reached..].split_first()
            && let Some(exported) = self.exported(file, segment, &[], seen)
            && exported.is_exact
        {
            let position = self.positions.get(&exported.file)?;
            return self.descend(position.root, &position.module, rest, seen);
        }
        Some(Located { file, is_exact: reached == path.len() })
    }
}

/// The names that the `use` items of a file bind.
fn bindings(file: &FileImports) -> Bindings {
    let mut all = Bindings::default();
    let is_use = |i: &&Import| matches!(i.kind, ImportKind::Static | ImportKind::ReExport);
    for import in file.imports.iter().filter(is_use) {
        for name in &import.names {
            if name.name == "*" {
                all.globs.push(import.specifier.clone());
                continue;
            }
            let path = join_module(&import.specifier, &name.name);
            // `use a::{self}` binds what its head is already.
            let is_same = path.split("::").next() == Some(name.local());
            // An inline module may import a name of the file.
            let is_own = path.strip_prefix("self::") == Some(name.local());
            if is_same || is_own || name.local() == "_" {
                continue;
            }
            let is_exported = import.kind == ImportKind::ReExport;
            let is_new = is_exported && all.exported.insert(name.local().to_owned());
            if is_new {
                all.names.insert(name.local().to_owned(), path);
            } else {
                all.names.entry(name.local().to_owned()).or_insert(path);
            }
        }
    }
    all
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
    let mut seen = FxHashSet::default();
    roots.retain(|root| seen.insert(*root));
    let dependencies = dependencies(table, workspace);
    Some(Package { name, lib_name, lib, roots, dependencies })
}

/// All dependencies of a manifest, also those of one platform.
fn dependencies(table: &toml::Table, workspace: Option<&toml::Table>) -> FxHashMap<String, String> {
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
