//! Sessions that a host builds, on a scripted model.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod builder;
mod commits;
mod files;
mod offers;
mod script;
