//! The gate that every tool call of every caller passes: look-up, schema, policy, audit, permit, run, bounds.
//!
//! **Invariant**: [`Tool::run`] needs a [`Permit`], a permit has no public constructor, and the registry never
//! hands a tool out, so nothing acts without having been checked and recorded.

pub mod command;
mod gate;
mod permit;
mod policy;
mod registry;
pub mod sandbox;
mod tool;

pub use gate::{Call, Harness};
pub use permit::{Grants, Permit};
pub use policy::{CheckedRule, Decision, Rule, Rules, Subject, Verdict};
pub use registry::Registry;
pub use sandbox::{Sandbox, WhenMissing};
pub use tool::{Output, Tool, ToolSpec, arguments};
