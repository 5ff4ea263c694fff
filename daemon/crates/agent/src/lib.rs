//! Our agents, written only against the engine's public API.
//!
//! [`Explorer`] is the deterministic one: it needs no model.

mod explorer;

pub use explorer::Explorer;
