//! Import statements as they are written, before they are resolved.

/// Maximum imports of one file; later ones are dropped.
pub const MAX_IMPORTS: usize = 4_000;
/// Maximum names of one import.
pub const MAX_NAMES: usize = 500;
/// Maximum bytes of a specifier or name; an import with a longer one is dropped.
pub const MAX_NAME: usize = 300;
/// Maximum distinct type names that are recorded as used or declared in one file.
pub const MAX_TYPES: usize = 4_000;

/// The statement that an import comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImportKind {
    /// A statement such as `import`, `use` or `using`.
    Static,
    /// An import whose names are exported again: `export … from`, `pub use`.
    ReExport,
    /// An import that is a call with a literal: `import("x")`, `importlib.import_module("x")`.
    Dynamic,
    /// Ruby's, Lua's, PHP's and CommonJS's `require`.
    Require,
    /// `#include "x"`, and PHP's `include`.
    Include,
    /// `#include <x>` of C and C++.
    SystemInclude,
    /// `mod x;` of Rust.
    Module,
    /// A path in code that no statement imports, such as `crate::a::f()`.
    Path,
    /// Ruby's `autoload`, by constant and optional path.
    Autoload,
    /// A type of the same package or namespace, used without a statement; only on edges.
    SamePackage,
}

impl ImportKind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Static,
        Self::ReExport,
        Self::Dynamic,
        Self::Require,
        Self::Include,
        Self::SystemInclude,
        Self::Module,
        Self::Path,
        Self::Autoload,
        Self::SamePackage,
    ];

    /// The name of the kind on the wire and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "import",
            Self::ReExport => "re-export",
            Self::Dynamic => "dynamic",
            Self::Require => "require",
            Self::Include => "include",
            Self::SystemInclude => "system-include",
            Self::Module => "module",
            Self::Path => "path",
            Self::Autoload => "autoload",
            Self::SamePackage => "same-package",
        }
    }
}

/// A name that an import binds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImportedName {
    /// The name in the imported file; `*` for all of its names, `default` for a default export.
    pub name: String,
    /// The name in the importing file, if it differs.
    pub alias: Option<String>,
}

impl ImportedName {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), alias: None }
    }

    pub fn renamed(name: &str, alias: &str) -> Self {
        Self { name: name.to_owned(), alias: Some(alias.to_owned()) }
    }

    /// The name that code of the importing file uses.
    pub fn local(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// One import as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Module, package, path or header, in the syntax of the language. It is empty for names that a
    /// script exports from its own scope.
    pub specifier: String,
    pub kind: ImportKind,
    /// Names taken from it; empty if the statement binds the module itself.
    pub names: Vec<ImportedName>,
    /// Name under which the module itself is bound, if the statement names one.
    pub alias: Option<String>,
    /// First line of the statement, counted from 1.
    pub line: u32,
    /// True if the import disappears when the program runs: `import type`, `if TYPE_CHECKING`.
    pub is_type_only: bool,
}

impl Import {
    pub fn new(kind: ImportKind, specifier: impl Into<String>, line: u32) -> Self {
        let specifier = specifier.into();
        Self { specifier, kind, names: Vec::new(), alias: None, line, is_type_only: false }
    }
}

/// The imports of one file, with the facts that resolving other files' imports needs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FileImports {
    /// Imports in file order.
    pub imports: Vec<Import>,
    /// The package or namespace that the file declares.
    pub package: Option<String>,
    /// Names declared at the top level, in languages whose imports name a package instead of a
    /// file: Java, Kotlin, C#, Swift, PHP.
    pub declared: Vec<String>,
    /// Sorted hashes ([`cairn_symbols::extract::ident_hash`]) of the capitalised names in the file,
    /// in the same languages.
    pub used: Vec<u32>,
}

impl FileImports {
    /// True if the file uses a type of this name.
    pub fn uses(&self, name: &str) -> bool {
        let hash = cairn_symbols::extract::ident_hash(name.as_bytes());
        self.used.binary_search(&hash).is_ok()
    }
}
