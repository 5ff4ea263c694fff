//! The commands of `cairn`, one module each.

pub mod audit;
pub mod clients;
pub mod completions;
pub mod config;
pub mod discover;
pub mod eval;
pub mod explore;
pub mod grep;
pub mod host;
pub mod index;
pub mod man;
pub mod map;
pub mod mcp;
pub mod memory;
pub mod models;
pub mod overview;
pub mod pair;
pub mod search;
pub mod skills;
pub mod status;
pub mod stdio;
pub mod stop;
pub mod symbols;
pub mod tools;
pub mod trace;
pub mod viewer;
