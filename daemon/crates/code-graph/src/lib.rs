//! Imports of source files resolved to files of the repository, and references to a definition.
//!
//! [`extract_imports`] reads one file and is cheap enough for every file of an index. [`Resolver`]
//! maps the result to files, [`ImportGraph`] stores the edges. No function reads the disk: texts of
//! manifests come from a [`SourceTree`].

mod codec;
mod graph;
mod import;
mod references;
mod resolve;
mod scan;

pub use graph::{Direction, Edge, Group, ImportGraph};
pub use import::{FileImports, Import, ImportKind, ImportedName};
pub use references::{
    Callee, Confidence, Enclosing, Reference, ReferenceKind, Sight, Target, TargetUse, View, Views,
    calls_in, is_default_export, references_in, subclasses_in, target_uses_in,
};
pub use resolve::{FileId, Resolved, Resolver, SourceFile, SourceTree};
pub use scan::{extract_imports, has_imports};
