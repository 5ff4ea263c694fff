//! C and C++: headers by the folders that build files and conventions name.

use rustc_hash::FxHashSet;

use super::paths::{Paths, ancestors, file_name, join, parent};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{Import, ImportKind};

/// Names of build files that may name such folders.
const BUILD_FILES: [&str; 7] = [
    "CMakeLists.txt",
    "Makefile",
    "Makefile.am",
    "Makefile.in",
    "GNUmakefile",
    "meson.build",
    "Makefile.inc",
];
/// Folders that are searched by convention, below the folders of build files and above the
/// importer.
const CONVENTIONAL: [&str; 5] = ["include", "", "src", "lib", "inc"];

pub struct Includes {
    /// Folders that build files name.
    folders: FxHashSet<String>,
    /// Folders named `include` or `inc`.
    public: FxHashSet<String>,
}

impl Includes {
    pub fn new(tree: &dyn SourceTree, paths: &Paths) -> Self {
        let mut folders: FxHashSet<String> = FxHashSet::default();
        for name in BUILD_FILES {
            for id in paths.named(name) {
                let path = paths.path(*id);
                let Some(text) = manifest::text(tree, path) else { continue };
                let named = if name == "CMakeLists.txt" { cmake(&text) } else { flags(&text) };
                for folder in named {
                    folders.extend(expand(paths, parent(path), folder));
                }
            }
        }
        let is_public = |f: &&str| matches!(file_name(f), "include" | "inc" | "Include");
        let public = paths.folders().filter(is_public).map(str::to_owned).collect();
        Self { folders, public }
    }

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let name = import.specifier.as_str();
        let file = |folder: &str| join(folder, name).and_then(|path| paths.id(&path));
        let one = |id: FileId| Resolved::Files(vec![id]);
        let is_quoted = import.kind != ImportKind::SystemInclude;
        if is_quoted && let Some(id) = file(parent(importer)) {
            return one(id);
        }
        let below = |folders: &FxHashSet<String>| {
            paths.below_roots(importer, name, |folder| folders.contains(folder))
        };
        if let Some(id) = below(&self.folders).or_else(|| below(&self.public)) {
            return one(id);
        }
        let is_standard = !is_quoted && !name.contains('/');
        if is_standard {
            return Resolved::External(name.to_owned());
        }
        for folder in ancestors(parent(importer)) {
            for convention in CONVENTIONAL {
                if let Some(id) = join(folder, convention).and_then(|f| file(&f)) {
                    return one(id);
                }
            }
        }
        let Some(suffix) = join("", name.trim_start_matches("../")) else {
            return Resolved::Unresolved;
        };
        let found = paths.ending_with(&suffix);
        let nearest = paths.closest(importer, &found).filter(|_| is_quoted || found.len() == 1);
        match nearest {
            Some(id) => one(id),
            None if is_quoted => Resolved::Unresolved,
            None => Resolved::External(name.split('/').next().unwrap_or_default().to_owned()),
        }
    }
}

/// The arguments of `include_directories` and `target_include_directories`.
fn cmake(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("include_directories") {
        let Some(open) = text[at..].find('(') else { continue };
        let start = at + open + 1;
        let Some(close) = text[start..].find(')') else { continue };
        all.extend(text[start..start + close].split_whitespace());
    }
    all
}

/// The folders of `-I` flags, and of Meson's `include_directories`.
fn flags(text: &str) -> Vec<&str> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    let flags = text.match_indices("-I").map(|(at, flag)| &text[at + flag.len()..]);
    let mut all: Vec<&str> = flags.filter_map(|rest| rest.split(is_end).next()).collect();
    all.extend(cmake(text).into_iter().map(|f| f.trim_matches(|c| matches!(c, '\'' | ','))));
    all
}

/// The folders of the tree that an argument with variables may stand for.
fn expand(paths: &Paths, folder: &str, argument: &str) -> Vec<String> {
    let mut argument = argument.trim_matches('"');
    if let Some(rest) = argument.strip_prefix("$<BUILD_INTERFACE:") {
        argument = rest.trim_end_matches('>');
    }
    let argument = argument.trim_matches('"');
    let (variable, rest) = match argument.strip_prefix('$') {
        Some(rest) => match rest.find(['}', ')']) {
            Some(end) => (rest[1..end].to_ascii_lowercase(), &rest[end + 1..]),
            None => return Vec::new(),
        },
        None => (String::new(), argument),
    };
    let rest = rest.trim_start_matches('/');
    if variable.contains("binary") || variable.contains("build") || rest.contains('$') {
        return Vec::new();
    }
    let is_local = variable.is_empty() || variable.contains("current") || variable == "srcdir";
    let bases: Vec<&str> = if is_local { vec![folder] } else { ancestors(folder).collect() };
    let folders = bases.iter().filter_map(|base| join(base, rest));
    // The outermost folder that exists is the root of the project.
    folders.filter(|f| paths.has_folder(f)).reduce(|_, outer| outer).into_iter().collect()
}
