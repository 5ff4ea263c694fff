//! The names under which files see a definition, through imports and re-exports.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Target;
use crate::graph::{Direction, ImportGraph};
use crate::import::{FileImports, Import, ImportKind, ImportedName};
use crate::resolve::{FileId, Resolved, Resolver};

/// Maximum files and names through which a definition is exported again.
const MAX_EXPORTS: usize = 5_000;

/// The names under which one file sees a definition, or the type that contains it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    pub is_same_file: bool,
    /// True if the file sees it without an import.
    pub is_same_package: bool,
    /// True if an import brings all names of a file that has it.
    pub has_glob: bool,
    /// Local names of it.
    pub names: Vec<String>,
    /// Local names of types that inherit the member, and do not define it themselves.
    pub heirs: Vec<String>,
    /// Members that are imported by their own name: Java's static imports.
    pub members: Vec<String>,
    /// Expressions of modules that have it, with its name there.
    pub modules: Vec<(String, String)>,
    /// Lines of the imports that bind it.
    pub import_lines: Vec<u32>,
}

impl View {
    /// The view of the file that contains the definition.
    pub fn of_home() -> Self {
        Self { is_same_file: true, ..Self::default() }
    }

    /// True if the file can see it by any way.
    pub fn is_related(&self) -> bool {
        self.is_same_file
            || self.is_same_package
            || self.has_glob
            || !self.names.is_empty()
            || !self.modules.is_empty()
            || !self.members.is_empty()
    }
}

/// The views of all files that import a definition.
pub struct Views {
    home: FileId,
    home_folder: String,
    lang: String,
    views: FxHashMap<FileId, View>,
}

/// The imports of a file with its language.
pub type ImportsOf<'a> = dyn Fn(FileId) -> Option<(&'a str, &'a FileImports)> + 'a;

/// The files that one file sees through its imports. It gives the views of many definitions from
/// the same file: imports are resolved once, and followed only on the way to this file.
pub struct Sight<'a, 'i> {
    resolver: &'a Resolver,
    graph: &'a ImportGraph,
    imports: &'a ImportsOf<'i>,
    file: FileId,
    /// Files that are reached by imports, with the file itself.
    files: FxHashSet<FileId>,
    /// Targets of the imports of these files, in the order of the imports.
    targets: RefCell<FxHashMap<FileId, Rc<Vec<Vec<FileId>>>>>,
}

/// Steps of imports, and files, through which a file sees definitions.
const SIGHT_DEPTH: u32 = 4;
const SIGHT_FILES: usize = 3_000;

impl<'a, 'i> Sight<'a, 'i> {
    pub fn new(
        resolver: &'a Resolver,
        graph: &'a ImportGraph,
        imports: &'a ImportsOf<'i>,
        file: FileId,
    ) -> Self {
        let reached = graph.reachable(file, Direction::Dependencies, SIGHT_DEPTH, SIGHT_FILES);
        let files = reached.into_iter().map(|(id, _)| id).chain([file]).collect();
        Self { resolver, graph, imports, file, files, targets: RefCell::default() }
    }

    /// True if the file imports `other`, directly or by others.
    pub fn includes(&self, other: FileId) -> bool {
        self.files.contains(&other)
    }

    /// The names under which the file sees `target`, which is defined in the file `home`.
    pub fn view(&self, target: &Target, home: FileId) -> View {
        if home == self.file {
            return View::of_home();
        }
        let views = Views::search(
            Search {
                resolver: self.resolver,
                graph: self.graph,
                imports: self.imports,
                target,
                within: Some(self),
                views: FxHashMap::default(),
                queue: Vec::new(),
                seen: FxHashSet::default(),
            },
            home,
        );
        views.of(self.file, self.resolver.path(self.file))
    }

    fn targets(&self, file: FileId, lang: &str, imports: &FileImports) -> Rc<Vec<Vec<FileId>>> {
        if let Some(known) = self.targets.borrow().get(&file) {
            return Rc::clone(known);
        }
        let path = self.resolver.path(file);
        let resolve = |import| match self.resolver.resolve(path, lang, imports, import) {
            Resolved::Files(files) => files,
            _ => Vec::new(),
        };
        let targets: Rc<Vec<_>> = Rc::new(imports.imports.iter().map(resolve).collect());
        self.targets.borrow_mut().insert(file, Rc::clone(&targets));
        targets
    }
}

struct Search<'a, 'i> {
    resolver: &'a Resolver,
    graph: &'a ImportGraph,
    imports: &'a ImportsOf<'i>,
    target: &'a Target,
    /// Limits the search to the files that one file sees.
    within: Option<&'a Sight<'a, 'i>>,
    views: FxHashMap<FileId, View>,
    /// Files with the name under which each has the definition.
    queue: Vec<(FileId, String)>,
    seen: FxHashSet<(FileId, String)>,
}

impl Views {
    /// Follows the imports of `target`, which is defined in the file `home`.
    pub fn new(
        resolver: &Resolver,
        graph: &ImportGraph,
        imports: &ImportsOf<'_>,
        target: &Target,
        home: FileId,
    ) -> Self {
        let (queue, seen) = Default::default();
        let views = FxHashMap::default();
        let within = None;
        let search = Search { resolver, graph, imports, target, within, views, queue, seen };
        Self::search(search, home)
    }

    fn search(mut search: Search<'_, '_>, home: FileId) -> Self {
        let target = search.target;
        search.export(home, target.importable().to_owned());
        if target.is_default {
            search.export(home, "default".to_owned());
        }
        while let Some((file, name)) = search.queue.pop() {
            search.follow(file, &name);
        }
        let lang = (search.imports)(home).map_or("", |(lang, _)| lang).to_owned();
        let home_folder = folder(search.resolver.path(home)).to_owned();
        Self { home, home_folder, lang, views: search.views }
    }

    /// Adds the files that see `class`, a type defined in `file` that inherits the target. The name
    /// of such a type comes from [`super::subclasses_in`].
    pub fn add_subclass(
        &mut self,
        resolver: &Resolver,
        graph: &ImportGraph,
        imports: &ImportsOf<'_>,
        (file, class): (FileId, &str),
    ) {
        let target = Target {
            name: class.to_owned(),
            kind: "class".to_owned(),
            container: None,
            path: resolver.path(file).to_owned(),
            line: 0,
            is_default: false,
            is_unique: false,
        };
        let found = Self::new(resolver, graph, imports, &target, file);
        for (id, seen) in found.views {
            let view = self.views.entry(id).or_default();
            view.heirs.extend(seen.names);
            view.modules.extend(seen.modules);
        }
    }

    /// The view of a file, which has a path of its own tree.
    pub fn of(&self, file: FileId, path: &str) -> View {
        if file == self.home {
            return View::of_home();
        }
        let mut view = self.views.get(&file).cloned().unwrap_or_default();
        view.is_same_package = match self.lang.as_str() {
            "go" | "java" => folder(path) == self.home_folder,
            // A global of C is seen wherever it is declared.
            "c" | "cpp" => true,
            _ => false,
        };
        view
    }

    /// Files that import the definition.
    pub fn files(&self) -> impl Iterator<Item = FileId> {
        self.views.keys().copied()
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The name of the module that a file is: its stem, or the folder of an index file.
fn module_name(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let stem = name.split('.').next().unwrap_or(name);
    if matches!(stem, "__init__" | "mod" | "index") {
        let folder = folder(path);
        return folder.rsplit_once('/').map_or(folder, |(_, name)| name);
    }
    stem
}

impl Search<'_, '_> {
    fn export(&mut self, file: FileId, name: String) {
        if self.seen.len() < MAX_EXPORTS && self.seen.insert((file, name.clone())) {
            self.queue.push((file, name));
        }
    }

    fn follow(&mut self, file: FileId, exported: &str) {
        let mut dependents: Vec<FileId> = self.graph.dependents(file).map(|e| e.from).collect();
        dependents.dedup();
        for dependent in dependents {
            if self.within.is_some_and(|sight| !sight.includes(dependent)) {
                continue;
            }
            let Some((lang, imports)) = (self.imports)(dependent) else { continue };
            let known = self.within.map(|sight| sight.targets(dependent, lang, imports));
            for (at, import) in imports.imports.iter().enumerate() {
                let reaches = match known.as_ref().and_then(|known| known.get(at)) {
                    Some(files) => files.contains(&file),
                    None => self.reaches(dependent, lang, imports, import, file),
                };
                if reaches {
                    self.bind(dependent, lang, imports, import, (file, exported));
                }
            }
        }
    }

    fn reaches(
        &self,
        from: FileId,
        lang: &str,
        imports: &FileImports,
        import: &Import,
        to: FileId,
    ) -> bool {
        let path = self.resolver.path(from);
        match self.resolver.resolve(path, lang, imports, import) {
            Resolved::Files(files) => files.contains(&to),
            _ => false,
        }
    }

    /// Records the names that `import` of `file` binds for `exported` of another file.
    fn bind(
        &mut self,
        file: FileId,
        lang: &str,
        imports: &FileImports,
        import: &Import,
        (home, exported): (FileId, &str),
    ) {
        let home_path = self.resolver.path(home).to_owned();
        let mut exports = Vec::new();
        let mut view = self.views.remove(&file).unwrap_or_default();
        match lang {
            "go" => {
                let name = import.specifier.rsplit('/').find(|s| !is_version(s));
                match import.alias.as_deref() {
                    Some(".") => view.has_glob = true,
                    alias => view.add_module(alias.or(name).unwrap_or_default(), exported),
                }
            }
            "c" | "cpp" | "objc" => {
                view.has_glob = true;
                exports.push(exported.to_owned());
            }
            "python" => {
                // Names of a package may be modules of it; others are names in the module.
                let itself = Import { names: Vec::new(), ..import.clone() };
                let is_itself = self.reaches(file, lang, imports, &itself, home);
                python(
                    &mut view,
                    import,
                    exported,
                    is_itself,
                    module_name(&home_path),
                    &mut exports,
                );
            }
            "javascript" | "typescript" | "tsx" | "vue" | "svelte" => {
                script(&mut view, import, exported, &mut exports);
                let is_own = |i: &&Import| i.kind == ImportKind::ReExport && i.specifier.is_empty();
                for name in imports.imports.iter().filter(is_own).flat_map(|i| &i.names) {
                    if view.names.contains(&name.name) {
                        exports.push(name.local().to_owned());
                    }
                }
            }
            "rust" => rust(&mut view, import, exported, module_name(&home_path), &mut exports),
            _ => java(&mut view, import, exported, self.target),
        }
        self.views.insert(file, view);
        for name in exports {
            self.export(file, name);
        }
    }
}

impl View {
    fn add_name(&mut self, name: &str, line: u32) {
        if !self.names.iter().any(|n| n == name) {
            self.names.push(name.to_owned());
        }
        self.import_lines.push(line);
    }

    fn add_module(&mut self, module: &str, exported: &str) {
        let entry = (module.to_owned(), exported.to_owned());
        if !module.is_empty() && !self.modules.contains(&entry) {
            self.modules.push(entry);
        }
    }
}

/// True for the last segment of a module path of a later version: `v3`.
fn is_version(segment: &str) -> bool {
    segment
        .strip_prefix('v')
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn python(
    view: &mut View,
    import: &Import,
    exported: &str,
    is_itself: bool,
    module: &str,
    exports: &mut Vec<String>,
) {
    if import.names.is_empty() {
        view.add_module(import.alias.as_deref().unwrap_or(&import.specifier), exported);
        return;
    }
    for name in &import.names {
        if is_itself && name.name == "*" {
            view.has_glob = true;
            exports.push(exported.to_owned());
        } else if is_itself && name.name == exported {
            view.add_name(name.local(), import.line);
            exports.push(name.local().to_owned());
        } else if !is_itself && name.name == module {
            view.add_module(name.local(), exported);
        }
    }
}

fn script(view: &mut View, import: &Import, exported: &str, exports: &mut Vec<String>) {
    let is_export = import.kind == ImportKind::ReExport;
    if let Some(alias) = &import.alias {
        let is_value = exported == "default" && import.kind == ImportKind::Require;
        if is_value {
            view.add_name(alias, import.line);
        } else {
            view.add_module(alias, exported);
        }
    }
    for name in &import.names {
        if name.name == exported {
            view.add_name(name.local(), import.line);
            if is_export {
                exports.push(name.local().to_owned());
            }
        } else if name.name == "*" && is_export && exported != "default" {
            exports.push(exported.to_owned());
        }
    }
}

fn rust(view: &mut View, import: &Import, exported: &str, module: &str, exports: &mut Vec<String>) {
    let is_export = import.kind == ImportKind::ReExport;
    if import.kind == ImportKind::Module {
        let name = import.specifier.rsplit("::").next().unwrap_or_default();
        view.add_module(name, exported);
        return;
    }
    for name in &import.names {
        if name.name == exported {
            // A path in code names it where it is used.
            let dotted = import.specifier.replace("::", ".");
            view.add_module(&dotted, exported);
            if import.kind != ImportKind::Path {
                view.add_name(name.local(), import.line);
            }
            if is_export {
                exports.push(name.local().to_owned());
            }
        } else if name.name == "*" {
            view.has_glob = true;
            if is_export {
                exports.push(exported.to_owned());
            }
        } else if name.name == module {
            view.add_module(name.local(), exported);
        }
    }
}

fn java(view: &mut View, import: &Import, exported: &str, target: &Target) {
    let is_static = import.alias.is_some();
    for name in &import.names {
        let ImportedName { name, alias } = name;
        if name == exported && !is_static {
            view.add_name(alias.as_deref().unwrap_or(name), import.line);
        } else if is_static && (*name == target.name || name == "*") {
            view.members.push(target.name.clone());
            view.import_lines.push(import.line);
        } else if name == "*" {
            view.has_glob = true;
        }
    }
}
