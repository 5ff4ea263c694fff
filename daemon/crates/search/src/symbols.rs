//! Definitions: taken from syntax trees, asked for by name or by file, and ranked by who refers to them.

pub mod bodies;
pub mod central;
pub mod extract;
pub mod languages;
pub mod query;
