//! The tools through the gate.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

mod asking;
mod git;
