//! The summary of an explore as Markdown, and its facts in the form that every rendering needs: for
//! the commands of the terminal and for the daemon's MCP server.

pub mod agents;
pub mod facts;
pub mod graph;
pub mod markdown;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod sanitize;
