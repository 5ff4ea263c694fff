//! Tests of imports and their resolution.

mod extraction;
mod graph;
mod hostile;
mod resolution;
mod trees;
