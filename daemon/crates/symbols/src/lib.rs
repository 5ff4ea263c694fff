//! Definitions and identifiers of source files, extracted from syntax trees.

mod bodies;
mod embedded;
pub mod extract;
pub mod languages;
mod naming;
mod outline;
mod sections;
mod shell;
mod tables;
mod walk;

/// All kinds of definitions.
pub const KINDS: &[&str] = &[
    "actor",
    "class",
    "constant",
    "constructor",
    "enum",
    "function",
    "interface",
    "macro",
    "method",
    "module",
    "property",
    "protocol",
    "record",
    "section",
    "struct",
    "trait",
    "type",
    "union",
    "variable",
];
