//! The search engine on real files.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed step fails the test; notices go to people"
)]

mod budget;
mod calls;
mod fixture;
mod golden;
mod graph;
mod grep_peer;
mod hidden;
mod indexing;
mod maps;
mod query_kinds;
mod rebuilds;
mod references;
mod rescore;
mod scripts;
mod sharing;
mod symbol_queries;
mod unusual_trees;
mod updates;
