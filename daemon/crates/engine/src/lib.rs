//! The engine: declared roots, searches, sessions and runs over one log. A library: it opens no socket, reads
//! no home folder and no environment, prints nothing, and knows no JSON-RPC.
//!
//! [`Engine`] is what hosts see; [`RunContext`] is what agents see. An agent is registered by the host, so that
//! the engine imports none.

mod clone;
mod command;
mod context;
mod engine;
mod explore;
mod index_tools;
mod notice;
mod query;
mod queue;
mod recorded;
mod retry;
mod roots;
mod runs;
mod sessions;
mod state_file;

/// The log, as hosts and agents see it.
pub mod record {
    pub use cairn_trace::{Follower, PAGE, Step, Trace};
}

pub use cairn_harness::{Rule, Rules, Verdict};
pub use context::RunContext;
pub use engine::{Engine, EngineOptions, Parts};
pub use notice::Notice;
pub use query::{OnLines, OnPartial, SearchKind};
pub use queue::{Offered, OpQueue};
pub use runs::Agent;
