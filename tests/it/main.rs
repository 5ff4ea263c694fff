//! One binary of integration tests: the house rules, and the daemon as a stranger meets it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contents;
mod crash;
mod follow;
mod foreign;
mod fresh;
mod home;
mod kinds;
mod network;
mod paths;
mod sealed;
mod policy;
mod tidy;
mod wire;
mod traces;
