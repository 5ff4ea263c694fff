//! Rendering of results as text.

pub mod cells;
pub mod event;
pub mod explore_page;
pub mod explore_summary;
pub mod highlight;
pub mod match_reasons;
pub mod output;
pub mod progress;
pub mod search_results;
pub mod theme;
pub mod when;
