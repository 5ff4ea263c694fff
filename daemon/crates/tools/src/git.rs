//! The tools for git. None of them runs a program that a repository names.

mod branches;

use std::sync::Arc;

use cairn_harness::{Caller, Intent, Output, Permit, Rule, Tool, ToolSpec, arguments};
use cairn_protocol::{
    approval::Preview,
    error::Failure,
    git::{GitChanges, GitStatusParams},
};
use cairn_workspace::git::DiffRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Deps, reading::reading};

/// Arguments of the tool `git_log`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GitLogParams {
    /// Number of commits, at most 1,000.
    #[serde(default = "default_limit")]
    limit: u32,
}

fn default_limit() -> u32 {
    100
}

/// Arguments of the tool `git_changes`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitChangesParams {
    /// Name or hash of a commit.
    since: String,
}

fn changes(
    _: &Deps,
    permit: &Permit,
    params: GitChangesParams,
) -> Result<(GitChanges, bool), Failure> {
    let mut answer = cairn_workspace::git::git_changes(permit.require_root()?, &params.since)?;
    if !permit.shows_all() {
        answer.files.retain(|file| permit.shows(&file.path));
        for file in &mut answer.files {
            file.previous_path = file.previous_path.take().filter(|path| permit.shows(path));
        }
        for commit in &mut answer.commits {
            commit.paths.retain(|path| permit.shows(path));
        }
        answer.commits.retain(|commit| !commit.paths.is_empty());
        answer.ahead = answer.commits.len() as u64;
    }
    let is_cut = answer.truncated;
    Ok((answer, is_cut))
}

/// Default size of a diff and the largest that can be requested, in bytes.
const DIFF_BYTES: (usize, usize) = (64 * 1024, 1024 * 1024);

/// Arguments of the tool `git_diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitDiffParams {
    /// Only this file or folder, relative to the workspace.
    #[serde(default)]
    path: Option<String>,
    /// The staged changes against the last commit; else the unstaged ones.
    #[serde(default)]
    staged: bool,
    /// Maximum bytes of the diff: 65,536 by default, at most 1,048,576.
    #[serde(default)]
    max_bytes: Option<usize>,
}

fn diff(_: &Deps, permit: &Permit, params: GitDiffParams) -> Result<(Value, bool), Failure> {
    let requested = params.path.as_deref().unwrap_or(".");
    let (resolved, parts) = permit.resolve_with_parts(requested, None)?;
    let (root, rel) = (resolved.root(), resolved.real());
    let request = DiffRequest {
        staged: params.staged,
        parts: parts.unwrap_or_else(|| vec![rel.to_owned()]),
        max_bytes: params.max_bytes.unwrap_or(DIFF_BYTES.0).clamp(1, DIFF_BYTES.1),
    };
    let answer = cairn_workspace::git::git_diff(root, rel, &request)?;
    let value = json!({
        "is_repository": answer.is_repository,
        "diff": answer.diff,
        "files": answer.files,
        "truncated": answer.truncated,
    });
    Ok((value, answer.truncated))
}

/// Arguments of the tool `git_commit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitCommitParams {
    /// The files to commit, relative to the workspace; other changes stay as they are.
    paths: Vec<String>,
    /// The message of the commit.
    message: String,
}

/// `git_commit`: the sandbox lets no command write to `.git`.
struct Commit;

#[async_trait::async_trait]
impl Tool for Commit {
    fn spec(&self) -> ToolSpec {
        let text =
            "Commits the named files of the workspace's repository, without hooks or signing.";
        ToolSpec { paths: &["paths"], ..ToolSpec::writing::<GitCommitParams>("git_commit", text) }
    }

    async fn intent(&self, _: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let GitCommitParams { paths, message } = arguments(value.clone())?;
        let first = message.lines().next().unwrap_or_default();
        let preview =
            Preview { summary: format!("git_commit {first}"), paths, ..Preview::default() };
        Ok(Intent { preview, grants: vec![Rule::of_tool("git_commit")], ..Intent::default() })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let GitCommitParams { paths, message } = arguments(value)?;
        let entry = |path: &String| Ok(permit.resolve_own(path)?.entry().to_owned());
        let paths = paths.iter().map(entry).collect::<Result<Vec<_>, Failure>>()?;
        let root = permit.require_root()?.clone();
        let work = move || cairn_workspace::git::git_commit(&root, &paths, &message);
        let created = crate::reading::off_thread(work).await?;
        let value = created.map(|c| json!({"commit": c.id, "paths": c.paths}));
        Output::of(
            "git_commit",
            &value.unwrap_or_else(|| json!({"commit": null, "paths": []})),
            false,
        )
    }
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let status = reading(
        deps,
        "git_status",
        "Branch, head and changed files of a repository.",
        "git_status",
        |_, permit, params: GitStatusParams, _| {
            let (resolved, parts) = permit.resolve_with_parts(&params.path, None)?;
            let (root, rel) = (resolved.root(), resolved.real());
            let mut status = cairn_workspace::git::git_status(root, rel)?;
            if parts.is_some() {
                let top = status.top.clone();
                // Changes are reported relative to the repository, a run's paths relative to the
                // root.
                let within = |path: &str| {
                    let path =
                        if top.is_empty() { path.to_owned() } else { format!("{top}/{path}") };
                    permit.shows(&path)
                };
                status.changes.retain(|change| within(&change.path));
            }
            let cut = status.truncated;
            Ok((status, cut))
        },
    );
    let log = reading(
        deps,
        "git_log",
        "The latest commits of the root's repository with the paths they changed.",
        "git_log",
        |_, permit, params: GitLogParams, _| {
            let limit = params.limit.clamp(1, 1000) as usize;
            let mut commits = cairn_workspace::git::git_log(permit.require_root()?, limit)?;
            if !permit.shows_all() {
                for commit in &mut commits {
                    commit.paths.retain(|path| permit.shows(path));
                }
                commits.retain(|commit| !commit.paths.is_empty());
            }
            Ok((serde_json::json!({"commits": commits}), false))
        },
    );
    let since = reading(
        deps,
        "git_changes",
        "The commits and changed files between a revision and the work tree.",
        "git_changes",
        |deps, permit, params: GitChangesParams, _| changes(deps, permit, params),
    );
    let uncommitted = reading(
        deps,
        "git_diff",
        "The uncommitted changes as a unified diff: the unstaged ones, or with `staged` the staged \
        ones. Untracked files are not included: git_status lists them.",
        "git_diff",
        |deps, permit, params: GitDiffParams, _| diff(deps, permit, params),
    );
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(status.narrowing().offered()),
        Arc::new(uncommitted.narrowing().offered()),
        Arc::new(log.offered()),
        Arc::new(since),
        Arc::new(Commit),
    ];
    tools.extend(branches::tools(deps));
    tools
}
