//! Content of manifests: names, descriptions, entrypoints, commands that build, test and run.

mod cargo;
mod compiled;
mod jvm;
mod node;
mod other;
mod python;

use cairn_protocol::explore::Project;

use super::{facts::Facts, paths};

/// Names of manifests, for a look-up over the complete index.
pub const GLOBS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "manage.py",
    "__main__.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
    "GNUmakefile",
    "makefile",
    "meson.build",
    "configure.ac",
    "Gemfile",
    "*.gemspec",
    "composer.json",
    "Package.swift",
    "*.csproj",
    "Dockerfile",
    "mix.exs",
    "deno.json",
    "tox.ini",
    "noxfile.py",
    "main.rs",
    "lib.rs",
    "build.rs",
    "config.ru",
    "artisan",
    "package-info.java",
    "doc.go",
];

/// Files whose first comment describes their folder, relative to it.
pub const MODULE_ROOTS: &[&str] = &[
    "README.md",
    "README.rst",
    "README",
    "doc.go",
    "src/lib.rs",
    "lib.rs",
    "mod.rs",
    "src/main.rs",
    "__init__.py",
    "src/index.ts",
    "index.ts",
    "index.js",
    "src/main.ts",
    "package-info.java",
    "main.go",
];

/// An entrypoint that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Paths it may refer to; the first that exists is used.
    pub candidates: Vec<String>,
    pub kind: &'static str,
    /// Reason why it is an entrypoint.
    pub reason: String,
    /// True if a missing file must be reported.
    pub promised: bool,
}

/// Parsed content of one manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    pub path: String,
    pub kind: &'static str,
    pub name: Option<String>,
    /// Description of the project.
    pub description: Option<String>,
    /// Entrypoints that it names.
    pub starts: Vec<Start>,
    /// Names and folders of the libraries that it makes, where no file is named as their root.
    pub modules: Vec<(String, String)>,
    pub build: Vec<String>,
    pub test: Vec<String>,
    pub run: Vec<String>,
    pub lint: Vec<String>,
    pub format: Vec<String>,
}

impl Manifest {
    fn new(path: &str, kind: &'static str) -> Self {
        Self { path: path.into(), kind, ..Self::default() }
    }

    fn start(
        &mut self,
        candidates: Vec<Option<String>>,
        kind: &'static str,
        reason: String,
        promised: bool,
    ) {
        let candidates: Vec<String> = candidates.into_iter().flatten().collect();
        if !candidates.is_empty() {
            self.starts.push(Start { candidates, kind, reason, promised });
        }
    }
}

/// Returns true if a file with this path is parsed as a manifest.
pub fn is_manifest(path: &str) -> bool {
    reader(path).is_some()
}

type Reader = fn(&str, &str) -> Manifest;

fn reader(path: &str) -> Option<Reader> {
    let name = paths::file_name(path);
    Some(match name {
        "Cargo.toml" => cargo::read,
        "package.json" => node::read,
        "pyproject.toml" => python::pyproject,
        "setup.py" | "setup.cfg" => python::setup,
        "go.mod" => compiled::go_mod,
        "pom.xml" => jvm::maven,
        "build.gradle" | "build.gradle.kts" => jvm::gradle,
        "CMakeLists.txt" => compiled::cmake,
        "Makefile" | "GNUmakefile" | "makefile" => compiled::make,
        "meson.build" => compiled::meson,
        "configure.ac" => compiled::autotools,
        "Gemfile" => other::gemfile,
        "composer.json" => other::composer,
        "Package.swift" => other::swift,
        "mix.exs" => other::mix,
        "Dockerfile" => other::docker,
        _ if name.ends_with(".gemspec") => other::gemspec,
        _ if name.ends_with(".csproj") => other::csproj,
        _ => return None,
    })
}

/// Names of manifests, one of each form.
pub const NAMES: [&str; 18] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    "Makefile",
    "meson.build",
    "configure.ac",
    "Gemfile",
    "composer.json",
    "Package.swift",
    "mix.exs",
    "Dockerfile",
    "x.gemspec",
];

/// The longest line of what a manifest yields: a fuzzer checks that it is no longer than its text.
pub fn longest_part(name: &str, text: &str) -> Option<usize> {
    let manifest = reader(name)?(name, text);
    let starts = manifest.starts.iter().flat_map(|s| &s.candidates);
    let lists = [&manifest.build, &manifest.test, &manifest.run, &manifest.lint, &manifest.format];
    starts.chain(lists.into_iter().flatten()).map(String::len).max()
}

/// Parses every manifest that was read, the outermost and least secondary first.
pub fn read_all(facts: &Facts) -> Vec<Manifest> {
    let mut all: Vec<Manifest> = facts
        .texts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .filter_map(|(path, text)| reader(path).map(|read| read(path, text)))
        .collect();
    all.sort_by_key(|m| (paths::secondary(&m.path), paths::depth(&m.path), m.path.clone()));
    all
}

/// Returns every path that a manifest of the product itself names.
pub fn named_files(facts: &Facts) -> impl Iterator<Item = String> + use<> {
    let primary = read_all(facts).into_iter().filter(|m| !paths::secondary(&m.path));
    primary.flat_map(|m| m.starts).flat_map(|s| s.candidates)
}

/// Returns the packages of a repository.
pub fn projects(manifests: &[Manifest]) -> Vec<Project> {
    let named = manifests.iter().filter_map(|m| {
        let name = m.name.clone()?;
        Some(Project {
            name,
            manifest: m.path.clone(),
            kind: m.kind.into(),
            description: m.description.clone(),
        })
    });
    let mut all: Vec<Project> =
        named.filter(|p| !paths::secondary(&p.manifest)).take(100).collect();
    all.dedup_by(|a, b| a.name == b.name && a.kind == b.kind);
    all
}

/// Returns the text between the first pair of quotes.
fn quoted(text: &str) -> Option<&str> {
    let start = text.find(['"', '\''])?;
    let quote = text[start..].chars().next()?;
    let rest = &text[start + 1..];
    rest.find(quote).map(|end| &rest[..end])
}
