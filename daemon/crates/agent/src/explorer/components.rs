//! Parts of a system: packages of its manifests, folders, and in a flat folder its files.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::explore::{Component, GraphFile, GraphGroup, LayoutEntry};

use super::{
    describe,
    facts::Facts,
    manifests::{self, Manifest},
    paths, roles,
};

/// Most components of a summary.
const MAX: usize = 15;
/// Most parts whose imports are requested: a file belongs to the nearest, shown or not.
const MAX_GROUPS: usize = 100;
/// Components above which a large part is not divided further.
const ENOUGH: usize = 12;
/// Share of the source files above which a part is divided, in percent.
const LARGE: u64 = 25;
/// Share of a folder's files in one of its folders above which the folder only wraps it, in
/// percent.
const WRAPS: u64 = 80;
/// Subfolders below which a folder counts as flat, so that its files are the parts.
const FLAT: usize = 4;
/// Share of the imports above which a flat folder is shown by its files, in percent.
const FLAT_SHARE: u64 = 60;
/// Most parts that one of several packages is divided into.
const MAX_CHILDREN: usize = 6;
/// Most secondary folders of a summary.
const MAX_SECONDARY: usize = 10;

/// A part before its role and its imports are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub path: String,
    /// Index of the manifest in its folder.
    pub manifest: Option<usize>,
    is_file: bool,
    /// True if it came from dividing a part that stays.
    is_inner: bool,
}

impl Part {
    /// True for a part that is one file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    fn folder(path: &str) -> Self {
        Self { path: path.to_owned(), manifest: None, is_file: false, is_inner: false }
    }
}

/// The folders of a root as a tree; secondary folders are left out.
struct Folders<'a> {
    folders: BTreeMap<&'a str, &'a LayoutEntry>,
    /// The folders directly in each folder, by size.
    children: BTreeMap<&'a str, Vec<&'a LayoutEntry>>,
    /// The source files directly in each folder, the most imported first.
    sources: BTreeMap<&'a str, Vec<&'a GraphFile>>,
    importance: BTreeMap<&'a str, u64>,
}

impl<'a> Folders<'a> {
    fn new(facts: &'a Facts) -> Self {
        let is_product = |entry: &&LayoutEntry| {
            entry.path != "." && !entry.path.starts_with('.') && !is_secondary_folder(&entry.path)
        };
        let mut folders = BTreeMap::new();
        let mut children: BTreeMap<&str, Vec<&LayoutEntry>> = BTreeMap::new();
        for folder in facts.folders.iter().filter(is_product) {
            folders.insert(folder.path.as_str(), folder);
            children.entry(paths::folder(&folder.path)).or_default().push(folder);
        }
        for folders in children.values_mut() {
            folders.sort_by(|a, b| b.files.cmp(&a.files).then(a.path.cmp(&b.path)));
        }
        let mut sources: BTreeMap<&str, Vec<&GraphFile>> = BTreeMap::new();
        // A file that no import connects configures a tool, where there are imports.
        let is_connected = |file: &&GraphFile| file.dependents + file.dependencies > 0;
        let has_imports = facts.graph.files.iter().any(|file| is_connected(&file));
        let files = facts.graph.files.iter().filter(|file| !has_imports || is_connected(file));
        for file in files.filter(|file| !paths::secondary(&file.path)) {
            sources.entry(paths::folder(&file.path)).or_default().push(file);
        }
        Self { folders, children, sources, importance: importance(facts) }
    }

    fn files(&self, path: &str) -> u64 {
        if path.is_empty() {
            return self.children("").iter().map(|folder| folder.files).sum();
        }
        self.folders.get(path).map_or(0, |folder| folder.files)
    }

    /// The folders directly in a folder, by size.
    fn children(&self, path: &str) -> &[&'a LayoutEntry] {
        self.children.get(path).map_or(&[], Vec::as_slice)
    }

    /// True for a folder of programs: most of its files are, or are data beside them.
    fn is_code(&self, path: &str) -> bool {
        self.folders.get(path).is_some_and(|folder| {
            let is_data = ["json", "yaml", "xml", "toml"].contains(&folder.role.as_str());
            is_code(&folder.role) || (is_data && self.has_code(path))
        })
    }

    /// Imports from and to the files in a folder, or a file.
    fn importance(&self, path: &str) -> u64 {
        self.importance.get(path).copied().unwrap_or(0)
    }

    /// True if a file below a folder takes part in imports.
    fn has_imports(&self, path: &str) -> bool {
        path.is_empty() || self.importance.contains_key(path)
    }

    /// The importance of all top-level folders.
    fn total_importance(&self) -> u64 {
        self.children("").iter().map(|folder| self.importance(&folder.path)).sum()
    }

    /// Descends as long as nearly all files are in one folder.
    fn unwrapped(&self, path: &str) -> String {
        let mut at = path.to_owned();
        for _ in 0..12 {
            let children = self.children(&at);
            let total: u64 = children.iter().map(|folder| folder.files).sum();
            match children.first() {
                Some(first) if first.files * 100 >= total * WRAPS && !self.has_code(&at) => {
                    at.clone_from(&first.path);
                }
                _ => break,
            }
        }
        at
    }

    /// True if at least two source files are directly in a folder.
    fn has_code(&self, path: &str) -> bool {
        self.files_in(path).len() > 1
    }

    /// The share of the source text below a folder that is in its own files, in percent.
    fn direct_share(&self, path: &str) -> u64 {
        let bytes = |files: &[&GraphFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        let is_below = |folder: &&str| contains(path, folder);
        let below: u64 = self
            .sources
            .iter()
            .filter(|(folder, _)| path.is_empty() || is_below(folder))
            .map(|(_, files)| bytes(files))
            .sum();
        let direct = bytes(self.files_in(path));
        direct * 100 / (direct + below).max(1)
    }

    /// The source files directly in a folder, the most imported first.
    fn files_in(&self, path: &str) -> &[&'a GraphFile] {
        self.sources.get(path).map_or(&[], Vec::as_slice)
    }
}

/// The importance of each folder and file: the imports from and to the files in it. The history
/// tells less, since it favours what is changed by machines and what is unfinished.
fn importance(facts: &Facts) -> BTreeMap<&str, u64> {
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for file in &facts.graph.files {
        let ends = file.path.match_indices('/').map(|(at, _)| at).chain([file.path.len()]);
        for end in ends {
            *all.entry(&file.path[..end]).or_default() +=
                u64::from(file.dependents + file.dependencies);
        }
    }
    all
}

/// True if a folder is not part of the product; a folder of templates or builds is, if it is code.
fn is_secondary_folder(path: &str) -> bool {
    paths::secondary(&format!("{path}/x"))
}

/// Returns the parts of the repository, the packages of manifests first.
pub fn parts(facts: &Facts, manifests: &[Manifest]) -> Vec<Part> {
    let folders = Folders::new(facts);
    let total = folders.files("").max(1);
    let mut parts = packages(manifests, &folders);
    let is_covered = |parts: &[Part], path: &str| {
        parts.iter().any(|p| p.path == path || contains(path, &p.path) || contains(&p.path, path))
    };
    // A folder beside packages is a part of the outermost one.
    let packed: Vec<String> = parts.iter().map(|part| part.path.clone()).collect();
    let has_packages = |folder: &LayoutEntry| {
        packed.iter().any(|path| paths::folder(path) == folder.path)
            && !packed.contains(&folder.path)
    };
    let siblings = folders.children("").iter().filter(|folder| has_packages(folder));
    let siblings: Vec<&LayoutEntry> =
        siblings.flat_map(|folder| folders.children(&folder.path)).copied().collect();
    for folder in siblings {
        let is_new = !packed.iter().any(|p| *p == folder.path || contains(&folder.path, p));
        if is_new && folder.files > 1 && folders.is_code(&folder.path) && !is_tools(&folder.path) {
            parts.push(Part::folder(&folder.path));
        }
    }
    for folder in folders.children("").iter().filter(|folder| !is_tools(&folder.path)) {
        let is_large = folder.files * 100 >= total * 5;
        let is_code = folders.is_code(&folder.path);
        if !is_covered(&parts, &folder.path) && (is_large || (is_code && parts.len() < ENOUGH)) {
            parts.push(Part::folder(&folder.path));
        }
    }
    if parts.is_empty() {
        parts.push(Part::folder(""));
    }
    let has_root_package = manifests.iter().any(|m| paths::depth(&m.path) == 0 && m.name.is_some());
    divide(&mut parts, &folders, total, has_root_package);
    parts.retain(|part| !part.path.is_empty());
    parts.extend(facade(facts, &parts));
    parts.sort_by_key(|part| std::cmp::Reverse(weight(&folders, part)));
    parts.truncate(MAX_GROUPS);
    parts
}

/// True for a folder of what only developers of the project run.
fn is_tools(path: &str) -> bool {
    const NAMES: &[&str] = &[
        "scripts",
        "script",
        "tools",
        "ci",
        "hack",
        "misc",
        "rake",
        "rubocop",
        "patches",
        "packaging",
        "release",
        "releasing",
        "devtools",
        "results",
        "etc",
        "assets",
        "screenshots",
    ];
    let name = paths::file_name(path).to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || name.starts_with('.')
}

/// True for a file of what only developers of the project run.
pub fn is_tool(path: &str) -> bool {
    let folder = paths::folder(path);
    let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
    ends.into_iter().any(|end| is_tools(&folder[..end]))
}

/// The file that bears the name of the project, if its folder is a part.
fn facade(facts: &Facts, parts: &[Part]) -> Option<Part> {
    let name = describe::name(facts).to_lowercase();
    let file = facts.graph.files.iter().find(|file| {
        !paths::secondary(&file.path)
            && stem(&file.path).to_lowercase() == name
            && parts.iter().any(|part| part.path == paths::folder(&file.path))
    })?;
    let is_new = parts.iter().all(|part| part.path != file.path);
    is_new.then(|| Part { is_file: true, ..Part::folder(&file.path) })
}

/// The folders of manifests that describe a package, without the root's own.
fn packages(manifests: &[Manifest], folders: &Folders<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, manifest) in manifests.iter().enumerate() {
        let path = paths::folder(&manifest.path);
        let is_package = !path.is_empty()
            && manifest.name.is_some()
            && !is_secondary_folder(path)
            && folders.files(path) > 1;
        if is_package && parts.iter().all(|part| part.path != path) {
            parts.push(Part { manifest: Some(at), ..Part::folder(path) });
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(weight(folders, part)));
    parts
}

/// The order of parts: by importance and size; inner ones count half, since their parent is shown.
fn weight(folders: &Folders<'_>, part: &Part) -> u64 {
    let size = if part.is_file { 0 } else { folders.files(&part.path) / 4 };
    let weight = 2 * (folders.importance(&part.path) + size);
    if part.is_inner { weight / 2 } else { weight }
}

/// Divides parts that only wrap others, then the main one, then large ones, as long as there is
/// room. `has_root_package` is true if the root's own manifest names a package.
fn divide(parts: &mut Vec<Part>, folders: &Folders<'_>, total: u64, has_root_package: bool) {
    let mut divided = BTreeSet::new();
    for _ in 0..ENOUGH {
        let next = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| !part.is_file && !divided.contains(&part.path))
            .filter(|(_, part)| part.path.is_empty() || folders.is_code(&part.path))
            .map(|(at, part)| (urgency(part, parts.len(), folders, total, has_root_package), at))
            .filter(|((rank, _), _)| *rank > 0)
            .max();
        let Some((_, at)) = next else { return };
        divided.insert(parts[at].path.clone());
        divide_part(parts, at, folders);
    }
}

/// The rank of a part among those that may be divided, 0 for none, and its size.
fn urgency(
    part: &Part,
    count: usize,
    folders: &Folders<'_>,
    total: u64,
    has_root_package: bool,
) -> (usize, u64) {
    let files = if part.path.is_empty() { total } else { folders.files(&part.path) };
    let is_wrapper = part.manifest.is_none()
        && !part.is_inner
        && folders.has_imports(&part.path)
        && !folders.has_code(&part.path);
    let is_main = has_root_package && part.manifest.is_none();
    let is_large = files * 100 >= total * LARGE && !part.is_inner;
    let rank = if is_wrapper {
        3
    } else if is_large {
        2
    } else if is_main && count < ENOUGH {
        1
    } else {
        usize::from(count < FLAT) * usize::from(files > 4)
    };
    (rank, files)
}

/// Replaces a part by its children, or adds them.
fn divide_part(parts: &mut Vec<Part>, at: usize, folders: &Folders<'_>) {
    let part = parts[at].clone();
    let inner = folders.unwrapped(&part.path);
    // The folder that nearly all work is done in is shown by its files.
    let share = folders.importance(&part.path) * 100 / folders.total_importance().max(1);
    let may_be_flat = parts.len() < FLAT || share >= FLAT_SHARE;
    let mut children = children(folders, &inner, may_be_flat);
    let is_all = share >= FLAT_SHARE && children.iter().all(|child| child.is_file);
    if part.manifest.is_some() || (parts.len() >= FLAT && !is_all) {
        children.truncate(MAX_CHILDREN);
    }
    let is_new = |parts: &[Part], path: &str| parts.iter().all(|part| part.path != path);
    if children.len() < 2 {
        let is_wrapper = part.manifest.is_none() && !part.is_inner;
        if is_wrapper && !folders.has_code(&part.path) && is_new(parts, &inner) {
            parts[at].path = inner;
        }
        return;
    }
    // A part that only wraps its children says nothing of its own.
    let is_part = part.manifest.is_some()
        || folders.has_code(&part.path)
        || !(part.path.is_empty() || describe::is_generic(paths::file_name(&part.path)));
    if !is_part {
        parts.remove(at);
    }
    let has_code = folders.has_code(&inner) && inner != part.path && !inner.is_empty();
    if has_code && !is_part && is_new(parts, &inner) && children.iter().all(|child| !child.is_file)
    {
        parts.push(Part::folder(&inner));
    }
    for child in children {
        if is_new(parts, &child.path) {
            parts.push(Part { is_inner: is_part, ..child });
        }
    }
}

/// The parts directly in a folder: its folders with code, and its files if it is flat.
fn children(folders: &Folders<'_>, path: &str, may_be_flat: bool) -> Vec<Part> {
    let mut all = folders.children(path).to_vec();
    all.sort_by_key(|folder| std::cmp::Reverse(folders.importance(&folder.path)));
    let inner: Vec<Part> = all
        .into_iter()
        .filter(|f| f.files >= 2 && folders.is_code(&f.path) && !is_tools(&f.path))
        .map(|folder| Part::folder(&folder.path))
        .collect();
    let direct = folders.direct_share(path);
    let is_flat = may_be_flat && direct >= if inner.len() < FLAT { 10 } else { 50 };
    let mut parts = inner;
    if is_flat {
        let mut files = folders.files_in(path).to_vec();
        let worth = |bytes: u64, dependents: u32| u64::from(dependents) * 1000 + bytes / 8;
        files.sort_by_key(|f| std::cmp::Reverse(worth(f.bytes, f.dependents)));
        let folders: Vec<String> = parts.iter().map(|part| part.path.clone()).collect();
        // A file beside the folder of its name belongs to it.
        let has_folder = |file: &GraphFile| {
            let name = stem(&file.path);
            folders.iter().any(|f| paths::folder(f) == path && paths::file_name(f) == name)
        };
        let is_part = |file: &&&GraphFile| {
            let stem = stem(&file.path);
            let is_script = ["setup", "conftest", "Rakefile", "Gemfile"].contains(&stem);
            let is_root = ["__init__", "index", "mod", "lib", "doc"].contains(&stem);
            let is_configuration = paths::file_name(&file.path).contains(".config.");
            let is_secondary_file = is_root || is_script || is_configuration;
            file.bytes > 1_500 && !is_secondary_file && !has_folder(file)
        };
        let mut seen = BTreeSet::new();
        parts.extend(
            files
                .iter()
                .filter(is_part)
                // A header and its source are one part.
                .filter(|file| seen.insert(stem(&file.path).to_owned()))
                .take(ENOUGH)
                .map(|file| Part { is_file: true, ..Part::folder(&file.path) }),
        );
    }
    parts
}

fn stem(path: &str) -> &str {
    let name = paths::file_name(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// True for a language of programs, not of text or data.
fn is_code(language: &str) -> bool {
    const TEXTS: &[&str] = &[
        "", "markdown", "rst", "text", "json", "yaml", "toml", "xml", "html", "css", "ini", "svg",
    ];
    !TEXTS.contains(&language)
}

/// True if `path` is below `folder`.
pub fn contains(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the parts with their roles and imports.
pub fn describe(facts: &Facts, manifests: &[Manifest], parts: &[Part]) -> Vec<Component> {
    let has_code = |part: &&Part| {
        let group = facts.groups.iter().find(|group| group.path == part.path);
        group.is_none_or(|group| group.files > 0)
    };
    // A folder without code is a part only where there is no code at all.
    let with_code: Vec<&Part> = parts.iter().filter(has_code).take(MAX).collect();
    let listed = if with_code.is_empty() { parts.iter().take(MAX).collect() } else { with_code };
    let is_listed = |path: &String| listed.iter().any(|part| part.path == *path);
    let mut all: Vec<Component> = listed
        .iter()
        .map(|part| {
            let manifest = part.manifest.map(|at| &manifests[at]);
            let group = facts.groups.iter().find(|group| group.path == part.path);
            let role = roles::of(facts, part, manifest, group);
            let name = manifest.and_then(|m| m.name.clone());
            Component {
                name: name.unwrap_or_else(|| paths::file_name(&part.path).to_owned()),
                path: part.path.clone(),
                kind: kind(facts, part, manifest).to_owned(),
                role: role.text,
                evidence: role.evidence,
                files: group.map_or(0, |g| g.files),
                lines: group.map_or(0, |g| g.lines),
                key_files: group.map(|g| g.key_files.clone()).unwrap_or_default(),
                depends_on: group
                    .map(|group| dependencies(group).into_iter().filter(is_listed).collect())
                    .unwrap_or_default(),
            }
        })
        .collect();
    all.sort_by_key(|component| std::cmp::Reverse((component.lines, component.files)));
    all
}

/// The groups that a group imports.
fn dependencies(group: &GraphGroup) -> Vec<String> {
    group.depends_on.iter().map(|edge| edge.name.clone()).collect()
}

fn kind(facts: &Facts, part: &Part, manifest: Option<&Manifest>) -> &'static str {
    let Some(manifest) = manifest else { return "module" };
    let mut starts = manifest.starts.iter().filter(|start| start.kind != "library");
    let is_program = starts.any(|start| start.candidates.iter().any(|path| facts.exists(path)));
    if is_program && !part.is_file { "program" } else { "library" }
}

/// Returns the folders that are not part of the product, the largest first.
pub fn secondary(facts: &Facts) -> Vec<Component> {
    let outermost = |entry: &&LayoutEntry| {
        entry.path != "."
            && is_secondary_folder(&entry.path)
            && !paths::folder(&entry.path).split('/').any(is_secondary_folder)
    };
    let mut all: Vec<Component> = facts
        .folders
        .iter()
        .filter(outermost)
        .map(|entry| Component {
            name: paths::file_name(&entry.path).to_owned(),
            path: entry.path.clone(),
            kind: secondary_kind(&entry.path).to_owned(),
            role: describe::role(paths::file_name(&entry.path)).unwrap_or("").to_owned(),
            files: entry.files,
            ..Component::default()
        })
        .collect();
    all.sort_by(|a, b| b.files.cmp(&a.files).then(a.path.cmp(&b.path)));
    all.truncate(MAX_SECONDARY);
    all
}

fn secondary_kind(path: &str) -> &'static str {
    let name = paths::file_name(path).to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["test", "spec", "e2e", "fixture", "mock", "fuzz"]) {
        "tests"
    } else if has(&["example", "sample", "demo", "playground", "template", "skeleton"]) {
        "examples"
    } else if has(&["doc", "site"]) {
        "documents"
    } else if has(&["vendor", "third", "deps", "extern", "node_modules"]) {
        "vendored"
    } else if has(&["generated", "dist", "build", "out", "target"]) {
        "generated"
    } else {
        "tools"
    }
}

/// Returns the paths of parts, as groups of the graph of imports.
pub fn names_of(parts: &[Part]) -> Vec<String> {
    parts.iter().map(|part| part.path.clone()).collect()
}

/// Returns the files to read for the roles of parts: their documents and their roots.
pub fn files_to_read(facts: &Facts, parts: &[Part]) -> Vec<String> {
    let mut files = Vec::new();
    let is_package = |path: &&str| {
        ["package-info.java", "doc.go"].contains(&paths::file_name(path)) && !paths::secondary(path)
    };
    let packages: Vec<&str> = facts.known_files().filter(is_package).collect();
    for part in parts.iter().take(MAX) {
        if part.is_file {
            files.push(part.path.clone());
            continue;
        }
        let roots = manifests::MODULE_ROOTS.iter().map(|name| format!("{}/{name}", part.path));
        files.extend(roots.filter(|path| facts.exists(path)));
        let group = facts.groups.iter().find(|group| group.path == part.path);
        files.extend(group.and_then(|group| group.key_files.first()).cloned());
        files.extend(beside(facts, &part.path));
        // The package that is nearest to the folder of the part.
        let inner = packages.iter().filter(|path| contains(&part.path, path));
        files.extend(inner.min_by_key(|path| path.len()).map(|path| (*path).to_owned()));
    }
    files
}

/// The file of the same name beside a folder, which holds what the folder is about: `query.ex` of
/// `query/`.
pub fn beside(facts: &Facts, folder: &str) -> Option<String> {
    let files = facts.graph.files.iter().map(|file| file.path.as_str());
    let mut files = files.filter(|path| {
        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('.') && !rest.contains('/'))
    });
    files.next().map(str::to_owned)
}

#[cfg(test)]
#[path = "components_tests.rs"]
mod tests;
