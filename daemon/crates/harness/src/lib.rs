//! The gate that every tool call of every caller passes: look-up, schema, policy, audit, permit,
//! run, bounds.
//!
//! **Invariant**: [`Tool::run`] needs a [`Permit`], a permit has no public constructor, and the
//! registry never hands a tool out, so nothing acts without having been checked and recorded.

mod approval;
mod autorun;
pub mod background;
mod call;
mod decided_by;
pub mod diff;
pub mod egress;
mod fetch;
mod gate;
mod grants;
mod hook_process;
mod hooks;
mod live_output;
mod off_thread;
mod paths;
mod permit;
mod policy;
mod redact;
mod registry;
mod repair;
mod rule_error;
mod schema;
mod service;
mod snapshot;
pub mod span;
mod tool;
mod user_input;
mod wait_clock;

pub use approval::{Approvals, Approver, RepositoryOf, UnattendedSession};
pub use cairn_command::{self as command, CommandPatternError};
pub use cairn_sandbox::{self as sandbox, Sandbox, WhenMissing};
pub use call::Call;
pub use decided_by::{Answered, DecidedBy, Fallback, RuleList, RunLimit};
pub use fetch::{FetchRequest, Fetched, is_public};
pub use gate::{Completion, Harness, is_final};
pub use grants::Grants as GrantedRules;
pub use hook_process::HookProcess;
pub use hooks::{HookVerdict, Hooks};
pub use live_output::{OutputPiece, OutputSink};
pub use off_thread::off_thread;
pub use paths::{CallPaths, check_run_paths};
pub use permit::{Change, Changes, Grants, Permit};
pub use policy::{CallLimits, CheckedRule, Decision, Rule, Rules, Subject, Verdict};
pub use redact::{may_have_secrets, secrets as redact_secrets};
pub use registry::{Catalogue, Registry};
pub use repair::{parse_partial_json, unfenced};
pub use rule_error::RuleError;
pub use service::{
    ServiceExit, ServiceOutput, ServiceProcess, ServiceRunner, ServiceSpec, ServiceStop,
};
pub use tool::{
    Caller, DomainUse, Intent, MustAsk, Output, Tool, ToolEffect, ToolSpec, arguments, described_by,
};
pub use user_input::{FormAnswer, FormValues, MAX_FIELDS, UserInput};
pub use wait_clock::WaitClock;
