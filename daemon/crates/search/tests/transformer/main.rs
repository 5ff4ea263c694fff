//! Transformers: a tiny one with weights that the test makes, and a real one when it is there.
#![cfg(feature = "transformer")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod folders;
mod index;
mod real;
mod tiny;
