//! Cairn as a library: an agent of your own in a few lines, with no daemon.
//!
//! ```no_run
//! # async fn own() -> Result<(), cairn::Failure> {
//! let session = cairn::Session::remote("http://localhost:8080/v1", "")
//!     .root(".")
//!     .system_append("Answer in one sentence.")
//!     .init()
//!     .await?;
//! println!("{}", session.chat("what is this project?").await?);
//! # Ok(())
//! # }
//! ```
//!
//! Every action passes the same gate, log and approvals as under the daemon.
#![warn(missing_docs)]

mod build;
mod func;
mod session;
mod source;
pub mod transport;

pub use build::{PreambleOptions, SessionBuilder};
pub use cairn_engine::{
    Engine, Rule, Rules, TurnSettings, Verdict, record,
    tool::{Output, Permit, Tool, ToolSpec},
};
pub use cairn_harness::sandbox::{HELPER_WORD, sandbox_main};
pub use cairn_llm::{Key, Provider, Scripted, ScriptedAnswer, ScriptedCall, Step};
pub use cairn_protocol as protocol;
pub use cairn_protocol::{
    approval::{Approval, ApprovalDecision},
    error::{Failure, Reason},
    event::AgentEvt,
    turn::RunResult,
};
pub use func::FnTool;
pub use session::Session;
pub use transport::{AgentEvent, AgentRequest, AgentTransport, ToolHarness};
