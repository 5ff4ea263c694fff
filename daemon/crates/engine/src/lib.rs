//! The engine: declared roots, searches, sessions and runs over one log. A library: it opens no
//! socket, reads no home folder and no environment, prints nothing, and contains no JSON-RPC.
//!
//! Hosts use [`Engine`]; agents use [`RunContext`]. The host registers an agent, so the engine
//! depends on none.
//!
//! An agent acts through its context alone, so that each of its operations passes the gate and is
//! logged:
//!
//! ```
//! use cairn_engine::{Agent, RunContext};
//! use cairn_protocol::{error::Failure, explore::ExploreSummary};
//! use serde_json::json;
//!
//! struct ReadmeAgent;
//!
//! #[async_trait::async_trait]
//! impl Agent for ReadmeAgent {
//!     async fn explore(&self, cx: &RunContext, _goals: &[String]) -> Result<ExploreSummary, Failure> {
//!         let lines = json!({"path": "README.md", "start": 1, "end": 20});
//!         let span = cx.call("content_get_span", lines).await?;
//!         let mut summary = ExploreSummary::default();
//!         summary.details.description = span["text"].as_str().map(str::to_owned);
//!         Ok(summary)
//!     }
//! }
//! ```
//!
//! [`Engine::set_explorer`] registers it.
#![warn(missing_docs)]

mod board;
mod clone;
mod command;
mod confined;
mod context;
mod detach_on_drop;
mod direct;
mod engine;
mod explore;
mod extensions;
mod fork;
mod history_tool;
mod index_tools;
mod keyed_locks;
mod llm_call;
mod llm_tool;
pub mod model;
mod notice;
pub mod plugin;
mod prompts;
mod providers;
mod query;
mod queue;
mod recorded;
mod replay;
mod retention;
mod retry;
mod root_settings;
mod roots;
mod run_core;
mod runs;
mod schedules;
mod session;
mod sessions;
mod skill_tool;
pub mod span;
mod spending;
mod state_file;
mod structured;
mod subagent;
mod turns;
mod unattended;
mod undo;
mod worktrees;

/// Log types, for hosts and agents.
pub mod record {
    pub use cairn_trace::{Follower, Line, PAGE, Retention, Step, Trace};
}

/// Tool types, for hosts and agents.
pub mod tool {
    pub use cairn_harness::{Intent, Output, Permit, Registry, Tool, ToolSpec, arguments};
}

pub use cairn_harness::{Approver, Rule, Rules, Verdict};
pub use cairn_harness::{
    background::BackgroundOptions,
    egress::{DomainPattern, EgressOptions},
};
pub use context::RunContext;
pub use direct::DirectCall;
pub use engine::{Engine, EngineDeps, EngineOptions, RuntimeSettings};
pub use extensions::{Knowledge, PluginList, SessionServers, SkillList, Trust};
pub use notice::Notice;
pub use prompts::SessionPrompt;
pub use query::{OnLines, OnPartial, SearchKind, TakeLines};
pub use queue::{Offered, OpQueue};
pub use root_settings::{RootConfig, RootSettings};
pub use runs::Agent;
pub use state_file::rescue_state;
pub use turns::{
    Answer, Ask, Compaction, Conversation, DomainAccess, PromptTier, TurnAgent, TurnContext,
    TurnSettings,
};
pub use unattended::{RunEvent, RunObserver};
