//! The search engine on real files.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed step fails the test; notices go to people"
)]

mod calls;
mod fixture;
mod golden;
mod graph;
mod grep_peer;
mod indexing;
mod maps;
mod rebuilds;
mod references;
mod rescore;
mod scripts;
mod sharing;
mod symbol_queries;
mod unusual_trees;
mod updates;
