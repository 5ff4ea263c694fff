//! Queries for definitions by name or by file, repository maps, and the centrality of files.

mod centrality;
mod map_query;
pub mod names;
mod query;
pub mod repo_map;
mod signature;

pub(crate) use query::{by_name, of_file, relative};
