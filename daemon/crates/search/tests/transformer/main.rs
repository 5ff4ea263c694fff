//! Transformers: a tiny one with generated weights, and a real one if available.
#![cfg(feature = "transformer")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod folders;
mod index;
mod real;
mod tiny;
