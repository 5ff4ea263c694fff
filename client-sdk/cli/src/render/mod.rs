//! Rendering of results as text.

pub mod cells;
pub mod event;
pub mod explore_agents;
pub mod explore_facts;
pub mod explore_graph;
pub mod explore_markdown;
pub mod explore_page;
#[cfg(test)]
mod explore_samples;
pub mod explore_summary;
pub mod highlight;
pub mod match_reasons;
pub mod output;
pub mod progress;
pub mod sanitize;
pub mod search_results;
