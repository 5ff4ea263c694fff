//! The gate on a real log, and command lines against rules.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod fixture;
mod gate;
mod order;
mod schedules;
