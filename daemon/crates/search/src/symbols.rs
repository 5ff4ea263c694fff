//! Definitions: extracted from syntax trees, queried by name or by file, and ranked by references.

mod bodies;
mod centrality;
pub mod extract;
pub mod languages;
mod map_query;
pub mod names;
mod naming;
mod query;
pub mod repo_map;
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
