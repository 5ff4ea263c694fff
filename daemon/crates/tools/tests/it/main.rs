//! The tools through the gate.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test makes the files that tools meet"
)]

#[expect(dead_code, reason = "not all of it is wanted here")]
mod fixture;

mod answers;
mod asking;
mod autorun;
mod code;
mod external;
mod forms;
mod fs;
mod git;
mod git_apply;
mod git_branches;
mod git_commits;
mod memory;
mod patch;
mod unconfined;
mod web;
