//! Exploring a codebase: what is asked, planned and found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{RunId, SessionId};

/// Parameters of `orchestrate.explore.start`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExploreStartParams {
    /// Absolute path of the folder; not needed with `remoteURL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// A repository to clone first; needs `policy.network`.
    #[serde(default, rename = "remoteURL", skip_serializing_if = "Option::is_none")]
    pub remote_url: Option<String>,
    /// The branch to clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What the run may do; nothing beyond reading when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExplorePolicy>,
    /// What to find out. Known goals steer the planner, other text becomes searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// Who plans; the built-in planner when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// An existing session to run in; a fresh one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Retry key, up to 128 bytes: the same again returns the first receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Who plans an explore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// The built-in planner alone: deterministic, without a model.
    Default,
    /// The built-in planner, then the session's model with what was found.
    Model,
}

/// What an explore may do beyond reading inside its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplorePolicy {
    /// Whether external models may be asked.
    #[serde(default, rename = "allowExternalLLMs")]
    pub allow_external_llms: bool,
    /// Whether the network may be used (a clone).
    #[serde(default)]
    pub network: bool,
    /// The only operations that may run, by tool name; all read-only ones when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<String>>,
    /// The only paths that may be read, relative to the root; everything when omitted. What asks for more (a search of the
    /// whole root, its languages) is answered for these paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
}

/// Receipt of a started run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReceipt {
    /// The session to follow.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
    /// Sequence number of the run's `started` record; it is durable.
    pub seq: u64,
}

/// Parameters that name a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionRef {
    /// The session.
    pub session_id: SessionId,
}

/// Answer of `orchestrate.explore.status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreStatus {
    /// The session.
    pub session_id: SessionId,
    /// Its latest explore run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Where the run stands.
    pub state: RunState,
    /// Sequence number of the newest record.
    pub head_seq: u64,
    /// Operations finished.
    pub ops_done: u64,
    /// Operations waiting or running.
    pub ops_pending: u64,
    /// The summary, once completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExploreSummary>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Nothing has run.
    Idle,
    /// At work.
    Running,
    /// Ended with `completed`.
    Completed,
    /// Ended with `stopped`.
    Stopped,
    /// Ended with `error`.
    Failed,
    /// Cut off by the end of the daemon; can be resumed.
    Interrupted,
}

impl RunState {
    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Idle => "idle",
            RunState::Running => "running",
            RunState::Completed => "completed",
            RunState::Stopped => "stopped",
            RunState::Failed => "failed",
            RunState::Interrupted => "interrupted",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<RunState> {
        use RunState::{Completed, Failed, Idle, Interrupted, Running, Stopped};
        [Idle, Running, Completed, Stopped, Failed, Interrupted].into_iter().find(|s| s.as_str() == name)
    }
}

/// A plan: goals and the operations to run next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplorePlan {
    /// What the plan is for.
    pub goals: Vec<String>,
    /// Operations to run, in order of importance.
    pub next_ops: Vec<AgentOp>,
}

/// An operation of a plan. Tags are snake_case; camelCase tags are accepted on input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentOp {
    /// Bring the index up to date.
    #[serde(alias = "indexRepo")]
    IndexRepo {
        /// The root.
        path: String,
    },
    /// List a folder.
    #[serde(alias = "listDir")]
    ListDir {
        /// The folder, relative to the root.
        path: String,
        /// Levels below it.
        depth: u32,
    },
    /// Search lines.
    Grep {
        /// A regular expression.
        pattern: String,
        /// Only under this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path_prefix: Option<String>,
    },
    /// Search by meaning.
    Semantic {
        /// The question.
        query: String,
        /// Results wanted.
        k: u32,
    },
    /// Search by words and meaning.
    Hybrid {
        /// The question.
        query: String,
        /// Results wanted.
        k: u32,
    },
    /// Read lines of a file.
    #[serde(alias = "readSpan")]
    ReadSpan {
        /// The file, relative to the root.
        path: String,
        /// First line.
        start_line: u32,
        /// Last line.
        end_line: u32,
        /// Lines before and after.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u32>,
    },
    /// Summarise files (needs a model).
    Summarize {
        /// The files.
        paths: Vec<String>,
    },
    /// Any other registered tool.
    Tool {
        /// Name in `tool.list`.
        name: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
}

/// What an explore found: the five fields of the plan's schema and `details` with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreSummary {
    /// Name of the repository.
    pub repo_name: String,
    /// Lines by language (code, comments and blanks), as tokei counts them.
    pub languages: BTreeMap<String, u64>,
    /// Paths where execution begins, most important first.
    pub entrypoints: Vec<String>,
    /// Files to read first, by how much the rest of the code refers to them.
    pub top_files: Vec<String>,
    /// What is not known yet and how to find out.
    pub followups: Vec<String>,
    /// Reasons, commands and figures.
    pub details: ExploreDetails,
}

/// The reasons behind a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreDetails {
    /// What the project says it is, in its own words (manifest or readme).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Packages, crates or modules of the repository.
    pub projects: Vec<Project>,
    /// Each entrypoint with its reason.
    pub entrypoints: Vec<Entrypoint>,
    /// Each top file with its reason.
    pub top_files: Vec<TopFile>,
    /// How to build, test and run it.
    pub commands: ProjectCommands,
    /// Top-level folders and what they hold.
    pub layout: Vec<LayoutEntry>,
    /// What the goals' searches found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Git facts, when it is a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFacts>,
    /// Figures.
    pub stats: ExploreStats,
}

/// A package, crate or module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Its name by the manifest.
    pub name: String,
    /// Path of the manifest.
    pub manifest: String,
    /// `cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, …
    pub kind: String,
    /// What its manifest says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A place where execution begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entrypoint {
    /// The file, relative to the root.
    pub path: String,
    /// The line, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// `manifest`, `main`, `server`, `script`, `ci`, `library`, `container`.
    pub kind: String,
    /// Why it is one.
    pub reason: String,
}

/// A file worth reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopFile {
    /// The file, relative to the root.
    pub path: String,
    /// Share of the centrality, 0 to 1.
    pub score: f64,
    /// Files that refer to its definitions.
    pub referring_files: u32,
    /// Its most referred-to definitions.
    pub symbols: Vec<String>,
}

/// Commands of a project, most trusted first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectCommands {
    /// Build it.
    pub build: Vec<String>,
    /// Test it.
    pub test: Vec<String>,
    /// Run it.
    pub run: Vec<String>,
}

/// A top-level folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutEntry {
    /// The folder.
    pub path: String,
    /// Files in it.
    pub files: u64,
    /// Its main language, or what it is for.
    pub role: String,
}

/// An answer to a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The goal.
    pub goal: String,
    /// `path:line` of the best places.
    pub places: Vec<String>,
}

/// Git facts of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitFacts {
    /// Current branch, when on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Files changed and not committed.
    pub changed_files: u64,
    /// Files changed most often in the latest commits.
    pub active_files: Vec<String>,
    /// Subjects of the latest commits.
    pub recent: Vec<String>,
}

/// Figures of an explore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreStats {
    /// Files seen by the index.
    pub files: u64,
    /// Files left out of the index.
    pub skipped: u64,
    /// Chunks.
    pub chunks: u64,
    /// Symbols.
    pub symbols: u64,
    /// Operations run.
    pub ops: u64,
    /// Operations that failed.
    pub failed_ops: u64,
    /// Milliseconds from start to summary.
    pub millis: u64,
}
