//! Definitions: taken from syntax trees, asked for by name or by file, and ranked by who refers to them.

mod bodies;
mod central;
pub mod extract;
pub mod languages;
pub mod map;
mod mapping;
pub mod names;
mod naming;
mod query;
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
