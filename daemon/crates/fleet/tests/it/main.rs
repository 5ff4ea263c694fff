//! Daemons and a real broker: copies of records, runs of pools, and calls between daemons.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod cluster;
mod mirror;
mod pools;
mod server;
