//! Resolution of imports to files of the tree, by the rules of each language.

mod c;
mod csharp;
mod dynamic;
mod elixir;
mod go;
mod manifest;
mod packages;
mod paths;
mod php;
mod python;
mod ruby;
mod rust;
mod script;
mod swift;
mod tsconfig;

use crate::import::{FileImports, Import};
use paths::Paths;

/// The index of a file in [`SourceTree::files`].
pub type FileId = u32;

/// A tree that imports are resolved in.
pub trait SourceTree {
    /// Paths relative to the root, with `/`, sorted.
    fn files(&self) -> &[String];
    /// The text of a manifest such as `Cargo.toml`.
    fn read(&self, path: &str) -> Option<String>;
}

/// A source file with its imports.
pub struct SourceFile<'a> {
    pub path: &'a str,
    pub lang: &'a str,
    pub imports: &'a FileImports,
}

/// The target of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Files(Vec<FileId>),
    /// The name of a package outside of the tree.
    External(String),
    Unresolved,
}

impl Resolved {
    fn from_files(mut files: Vec<FileId>) -> Self {
        files.sort_unstable();
        files.dedup();
        if files.is_empty() { Self::Unresolved } else { Self::Files(files) }
    }
}

/// Resolves imports; it is built once for a state of the tree.
pub struct Resolver {
    paths: Paths,
    rust: rust::Crates,
    python: python::Modules,
    script: script::Packages,
    go: go::Modules,
    c: c::Includes,
    dynamic: dynamic::LoadPaths,
    ruby: ruby::Constants,
    elixir: elixir::Modules,
    jvm: packages::Packages,
    csharp: csharp::Projects,
    php: php::Autoload,
    swift: swift::Targets,
}

impl Resolver {
    /// `sources` are the files with imports; they declare the packages that others import.
    pub fn new(tree: &dyn SourceTree, sources: &[SourceFile<'_>]) -> Self {
        let paths = Paths::new(tree.files());
        let of = |langs: &[&str]| {
            let is_of = |s: &&SourceFile<'_>| langs.contains(&s.lang);
            let ids = |s: &SourceFile<'_>| Some((paths.id(s.path)?, s.imports.clone()));
            sources.iter().filter(is_of).filter_map(ids).collect::<Vec<_>>()
        };
        Self {
            rust: rust::Crates::new(tree, &paths, of(&["rust"])),
            python: python::Modules::new(&paths),
            script: script::Packages::new(tree, &paths),
            go: go::Modules::new(tree, &paths),
            c: c::Includes::new(tree, &paths),
            dynamic: dynamic::LoadPaths::new(&paths),
            ruby: ruby::Constants::new(&paths, of(&["ruby"])),
            elixir: elixir::Modules::new(of(&["elixir"])),
            jvm: packages::Packages::new('.', of(&["java", "kotlin", "groovy", "scala"])),
            csharp: csharp::Projects::new(tree, &paths, of(&["csharp"])),
            php: php::Autoload::new(tree, &paths, of(&["php"])),
            swift: swift::Targets::new(tree, &paths, of(&["swift"])),
            paths,
        }
    }

    /// The path of a file that an answer names.
    pub fn path(&self, file: FileId) -> &str {
        self.paths.path(file)
    }

    /// The target of one import of `importer`, whose imports are `file`.
    pub fn resolve(
        &self,
        importer: &str,
        lang: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let paths = &self.paths;
        match lang {
            "rust" => self.rust.resolve(paths, importer, import),
            "python" => self.python.resolve(paths, importer, import),
            "javascript" | "typescript" | "tsx" | "vue" | "svelte" => {
                self.script.resolve(paths, importer, import)
            }
            "go" => self.go.resolve(paths, importer, import),
            "java" | "kotlin" | "groovy" | "scala" => {
                self.jvm.resolve_jvm(paths, importer, file, import)
            }
            "c" | "cpp" | "objc" => self.c.resolve(paths, importer, import),
            "ruby" => self.dynamic.resolve_ruby(paths, importer, import),
            "lua" => self.dynamic.resolve_lua(paths, importer, import),
            "elixir" => self.elixir.resolve(paths, importer, file, import),
            "csharp" => self.csharp.resolve(paths, importer, file, import),
            "php" => self.php.resolve(paths, importer, import),
            "swift" => self.swift.resolve(paths, importer, file, import),
            _ => Resolved::Unresolved,
        }
    }

    /// Files of the same package whose types `importer` names without an import.
    pub fn same_package(&self, importer: &str, lang: &str, file: &FileImports) -> Vec<FileId> {
        match lang {
            "java" | "kotlin" | "groovy" | "scala" => {
                self.jvm.same_package(&self.paths, importer, file)
            }
            "csharp" => self.csharp.same_package(&self.paths, importer, file),
            "ruby" => self.ruby.named(&self.paths, importer, file),
            "swift" => self.swift.same_module(&self.paths, importer, file),
            "php" => self.php.same_package(&self.paths, importer, file),
            _ => Vec::new(),
        }
    }
}
