//! Exploring a codebase: requests, plans and results.

mod overview;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    changes::ExploreChanges,
    id::{RunId, SessionId},
};
pub use overview::{Citation, Overview, Statement};

/// Parameters of the method `orchestrate.explore.start`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExploreStartParams {
    /// Absolute path of the folder; not needed with `remoteURL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// URL of a repository to clone first; requires `policy.network`.
    #[serde(default, rename = "remoteURL", skip_serializing_if = "Option::is_none")]
    pub remote_url: Option<String>,
    /// Name of the branch to clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Permissions of the run; read-only when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExplorePolicy>,
    /// Goals of the explore. Known goals steer the planner; other text becomes searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// Planner to use; the built-in one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// Id of an existing session to run in; a new session when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Git revision: the summary then has the changes between it and the work tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Retry key, up to 128 bytes: a repeated key returns the first receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Planner of an explore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// The built-in planner alone: deterministic, without a model.
    Default,
    /// The built-in planner, followed by the session's model with the results so far.
    Model,
}

/// Permissions of an explore beyond reading inside its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplorePolicy {
    /// True if external models may be used.
    #[serde(default, rename = "allowExternalLLMs")]
    pub allow_external_llms: bool,
    /// True if the network may be used (for a clone).
    #[serde(default)]
    pub network: bool,
    /// Names of the only tools that may run; all read-only ones when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<String>>,
    /// The only paths that may be read, relative to the root; all when omitted. A request that
    /// covers more (a search of the complete root, its languages) is answered for these paths
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
}

/// Receipt of a started run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReceipt {
    /// Id of the session to follow.
    pub session_id: SessionId,
    /// Id of the run.
    pub run_id: RunId,
    /// Sequence number of the run's durable `started` record.
    pub seq: u64,
}

/// Parameters that name a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionRef {
    /// Id of the session.
    pub session_id: SessionId,
}

/// Answer of the method `orchestrate.explore.status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreStatus {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of its latest explore run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// State of the latest run.
    pub state: RunState,
    /// Sequence number of the newest record.
    pub head_seq: u64,
    /// Number of finished operations.
    pub ops_done: u64,
    /// Number of pending or running operations.
    pub ops_pending: u64,
    /// Summary of the explore, once completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ExploreSummary>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No run has started yet.
    Idle,
    /// The run is active.
    Running,
    /// The run finished with `completed`.
    Completed,
    /// The run finished with `stopped`.
    Stopped,
    /// The run finished with `error`.
    Failed,
    /// The daemon stopped during the run, which can be resumed.
    Interrupted,
}

impl RunState {
    /// Returns the name used on the wire and in the database.
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

    /// Parses a name; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<RunState> {
        use RunState::{Completed, Failed, Idle, Interrupted, Running, Stopped};
        [Idle, Running, Completed, Stopped, Failed, Interrupted]
            .into_iter()
            .find(|s| s.as_str() == name)
    }
}

/// A plan: goals and the operations to run next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplorePlan {
    /// Goals of the plan.
    pub goals: Vec<String>,
    /// Operations to run, in order of importance.
    pub next_ops: Vec<AgentOp>,
}

/// An operation of a plan. Tags are snake_case; camelCase tags are accepted on input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentOp {
    /// Updates the index of a root.
    #[serde(alias = "indexRepo")]
    IndexRepo {
        /// Path of the root.
        path: String,
    },
    /// Lists the entries of a folder.
    #[serde(alias = "listDir")]
    ListDir {
        /// Path of the folder, relative to the root.
        path: String,
        /// Levels below the folder.
        depth: u32,
    },
    /// Searches lines of text.
    Grep {
        /// Regular expression to search for.
        pattern: String,
        /// Restricts the search to files under this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path_prefix: Option<String>,
    },
    /// Searches by meaning (dense vectors).
    Semantic {
        /// Text of the query.
        query: String,
        /// Maximum number of results.
        k: u32,
    },
    /// Searches by words and by meaning.
    Hybrid {
        /// Text of the query.
        query: String,
        /// Maximum number of results.
        k: u32,
    },
    /// Reads lines of a file.
    #[serde(alias = "readSpan")]
    ReadSpan {
        /// Path of the file, relative to the root.
        path: String,
        /// First line, starting at 1.
        start_line: u32,
        /// Last line of the range, inclusive.
        end_line: u32,
        /// Lines of context before and after.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u32>,
    },
    /// Reads the beginnings of files.
    Summarize {
        /// Paths of the files.
        paths: Vec<String>,
    },
    /// Calls any other registered tool.
    Tool {
        /// Name of the tool, as in `tool.list`.
        name: String,
        /// Arguments of the tool.
        arguments: serde_json::Value,
    },
}

/// Results of an explore: the five fields of the plan's schema, and `details` with the reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreSummary {
    /// Name of the repository.
    pub repo_name: String,
    /// Lines per language (code, comments and blanks), as tokei counts them.
    pub languages: BTreeMap<String, u64>,
    /// Paths of the entrypoints, most important first.
    pub entrypoints: Vec<String>,
    /// Files to read first, ordered by how much other code refers to them.
    pub top_files: Vec<String>,
    /// Open questions and how to answer them.
    pub followups: Vec<String>,
    /// Reasons, commands and statistics.
    pub details: ExploreDetails,
}

/// Reasons behind a summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreDetails {
    /// Description of the project from its manifest or readme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One or two sentences: the purpose of the project, from manifests and the readme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Overview of the findings by a model, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<Overview>,
    /// Parts of the system, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// Folders that are no part of the system: tests, examples, documents, vendored and generated
    /// code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secondary: Vec<Component>,
    /// Paths of the first request or command through the components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// Rules of the project for its contributors, each with the file that states it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conventions: Vec<Convention>,
    /// Names that a newcomer meets in many files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<Concept>,
    /// Files that changed most often in the latest commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hotspots: Vec<Hotspot>,
    /// Packages, crates or modules of the repository.
    pub projects: Vec<Project>,
    /// Entrypoints, each with its reason.
    pub entrypoints: Vec<Entrypoint>,
    /// Top files, each with its reason.
    pub top_files: Vec<TopFile>,
    /// Commands that build, test and run the project.
    pub commands: ProjectCommands,
    /// Top-level folders and their roles.
    pub layout: Vec<LayoutEntry>,
    /// Results of the searches for the goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Git facts, when the root is a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFacts>,
    /// Changes since the requested revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ExploreChanges>,
    /// Statistics of the explore.
    pub stats: ExploreStats,
}

/// A part of a system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Name for people: that of its manifest, else of its folder or file.
    pub name: String,
    /// Path of its folder, or of the file that represents it, relative to the root.
    pub path: String,
    /// Kind: `program`, `library`, `module`, or for secondary folders `tests`, `examples`,
    /// `documents`, `vendored`, `generated` or `tools`.
    pub kind: String,
    /// Role in a few words.
    pub role: String,
    /// Source of the role, as `path:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Number of its files.
    #[serde(default)]
    pub files: u64,
    /// Lines of its files.
    #[serde(default)]
    pub lines: u64,
    /// Paths of its files that most others depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_files: Vec<String>,
    /// Paths of the components that its files import.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

/// Imports between files, resolved; answer of the tool `code_graph`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeGraph {
    /// Files by the number of files that import them, most first.
    pub files: Vec<GraphFile>,
    /// Requested folders and files with the imports between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GraphGroup>,
    /// Packages from elsewhere by the number of files that import them, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<GraphEdge>,
}

/// File of a code graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphFile {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of files outside of tests and examples that import it.
    pub dependents: u32,
    /// Number of files that it imports.
    pub dependencies: u32,
}

/// Folder or file of a code graph with the files in it, without those of a longer requested path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphGroup {
    /// Path of the folder or file, relative to the root.
    pub path: String,
    /// Number of its source files.
    pub files: u64,
    /// Lines of these files.
    pub lines: u64,
    /// Paths of its files that most other files import.
    pub key_files: Vec<String>,
    /// Groups that its files import, most imports first.
    pub depends_on: Vec<GraphEdge>,
}

/// Edge to a group or package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphEdge {
    /// Path of the group, or name of the package.
    pub name: String,
    /// Number of pairs of files with an import.
    pub imports: u32,
}

/// Path of the first request or command of an entrypoint through the components.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Flow {
    /// Path of the entrypoint.
    pub entrypoint: String,
    /// Steps in order, up to eight.
    pub steps: Vec<FlowStep>,
}

/// Step of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowStep {
    /// Name of the definition.
    pub name: String,
    /// Path of its file, relative to the root.
    pub path: String,
    /// Line of the definition, starting at 1.
    pub line: u32,
    /// Path of the component that contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
}

/// Rule of a project for its contributors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Convention {
    /// Statement of the rule, as `formatted with rustfmt`.
    pub text: String,
    /// Path of the file that states it, as `path` or `path:line`.
    pub source: String,
}

/// Name that a newcomer meets in many files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Concept {
    /// Name of the definition.
    pub name: String,
    /// Kind of the definition, as in `search.symbols`.
    pub kind: String,
    /// Path of its file, relative to the root.
    pub path: String,
    /// Line of the definition, starting at 1.
    pub line: u32,
    /// Number of other files that use it.
    pub files: u32,
}

/// File that changed often lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hotspot {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Number of the latest commits that changed it.
    pub commits: u32,
    /// Subjects of some of these commits, newest first.
    pub subjects: Vec<String>,
}

/// A package, crate or module of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project {
    /// Name in the manifest.
    pub name: String,
    /// Path of the manifest.
    pub manifest: String,
    /// Kind of project: `cargo`, `npm`, `python`, `go`, `maven`, `gradle`, `cmake`, `make`, …
    pub kind: String,
    /// Description in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A location where execution starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entrypoint {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Line of the entrypoint, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Kind of entrypoint: `manifest`, `main`, `server`, `script`, `library` or `container`.
    pub kind: String,
    /// Reason why it is an entrypoint.
    pub reason: String,
}

/// A file that is worth reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopFile {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Share of the total centrality, 0 to 1.
    pub score: f64,
    /// Number of files that refer to its definitions.
    pub referring_files: u32,
    /// Names of its most referenced definitions.
    pub symbols: Vec<String>,
    /// Reason to read it, as `event loop; 41 files depend on it`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Commands of a project, most trusted first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectCommands {
    /// Commands that build the project.
    pub build: Vec<String>,
    /// Commands that test the project.
    pub test: Vec<String>,
    /// Commands that run the project.
    pub run: Vec<String>,
    /// Commands that check the style or types of the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lint: Vec<String>,
    /// Commands that format the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub format: Vec<String>,
    /// The file that states each command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// A top-level folder of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LayoutEntry {
    /// Path of the folder.
    pub path: String,
    /// Number of files in the folder.
    pub files: u64,
    /// Its main language, or its purpose.
    pub role: String,
}

/// Search results for a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Text of the goal.
    pub goal: String,
    /// The best locations, as `path:line`.
    pub places: Vec<String>,
}

/// Git facts of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitFacts {
    /// Current branch; absent when HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Hash of the checked-out commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Number of files with uncommitted changes.
    pub changed_files: u64,
    /// Files changed most often in the latest commits.
    pub active_files: Vec<String>,
    /// Subjects of the latest commits.
    pub recent: Vec<String>,
}

/// Statistics of an explore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreStats {
    /// Number of indexed files.
    pub files: u64,
    /// Number of files left out of the index.
    pub skipped: u64,
    /// Number of indexed chunks.
    pub chunks: u64,
    /// Number of indexed symbols.
    pub symbols: u64,
    /// Number of operations run.
    pub ops: u64,
    /// Number of operations that failed.
    pub failed_ops: u64,
    /// Milliseconds from start to summary.
    pub millis: u64,
}
