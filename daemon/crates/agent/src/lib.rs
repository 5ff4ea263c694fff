//! Cairn's own agents, written only against the engine's public API.
//!
//! [`Explorer`] is the deterministic one: it needs no model. [`Coder`] runs turns with one.

mod coder;
mod explorer;
mod loop_guard;
pub mod prompt;

pub use coder::Coder;
pub use explorer::{Explorer, MANIFESTS, longest_manifest_part};
