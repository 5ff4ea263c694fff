//! `git_branch`, `git_stash`, `git_stash_list` and `git_checkout`: changes of a repository that run
//! none of its hooks and filters.

use std::sync::Arc;

use cairn_harness::{Caller, Intent, Output, Permit, Rule, Tool, ToolSpec, arguments};
use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
};
use cairn_workspace::{ResolvedPath, Root, git};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Deps,
    edit::{self, Change},
    reading::{off_thread, reading},
};

/// Most paths that an approver sees.
const PREVIEWED: usize = 100;
/// Most bytes of a message or a name.
const MAX_TEXT: usize = 1000;

/// Change of the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BranchAction {
    /// Creates a branch at the head and switches to it.
    Create,
    /// Switches to a local branch.
    Switch,
}

/// Arguments of the tool `git_branch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchParams {
    /// `create` a branch at the head and switch to it, or `switch` to a local one.
    action: BranchAction,
    /// Name of the branch.
    name: String,
}

impl BranchParams {
    fn change(self) -> Result<git::BranchChange, Failure> {
        check_text("the name", &self.name)?;
        Ok(match self.action {
            BranchAction::Create => git::BranchChange::Create(self.name),
            BranchAction::Switch => git::BranchChange::Switch(self.name),
        })
    }
}

/// Change of the stashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StashAction {
    /// Stores uncommitted changes and resets them.
    Push,
    /// Applies the newest stash and removes it.
    Pop,
}

/// Arguments of the tool `git_stash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StashParams {
    /// `push` stores the uncommitted changes and resets them; `pop` applies the newest stash.
    action: StashAction,
    /// For `push`: a message.
    #[serde(default)]
    message: Option<String>,
    /// For `push`: also stores untracked files.
    #[serde(default)]
    include_untracked: bool,
}

/// Arguments of the tool `git_checkout`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckoutParams {
    /// The files to restore, relative to the workspace.
    paths: Vec<String>,
    /// Commit, branch or tag; the staged content when omitted.
    #[serde(default)]
    revision: Option<String>,
}

/// Arguments of the tool `git_stash_list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StashListParams {}

fn check_text(what: &str, text: &str) -> Result<(), Failure> {
    if text.len() <= MAX_TEXT && !text.starts_with('-') && !text.contains('\0') {
        return Ok(());
    }
    let text = format!("{what} must have at most {MAX_TEXT} bytes and not begin with '-'");
    Err(Failure::new(Reason::InvalidParams, text))
}

fn root_of(caller: &Caller<'_>) -> Result<Root, Failure> {
    let missing = || Failure::new(Reason::NoRoots, "the session has no root to work in");
    caller.root.cloned().ok_or_else(missing)
}

/// Returns the intent of an operation that replaces files. Files that can cause programs to run
/// need an approval whatever the rules are; Cairn's own are closed here as everywhere.
fn intent_of(root: &Root, tool: &str, summary: String, paths: Vec<String>) -> Intent {
    let runs_later =
        edit::strictest_autorun(paths.iter().map(|path| (path.as_str(), root.autorun(path))));
    let sensitive = runs_later.map(|(path, autorun)| autorun.reason(path));
    let must_ask = runs_later.and_then(edit::demand);
    let more = paths.len().saturating_sub(PREVIEWED);
    let listed = (more > 0).then(|| format!("{more} further files change"));
    let preview = Preview {
        summary,
        warnings: sensitive.into_iter().chain(listed).collect(),
        paths: paths.into_iter().take(PREVIEWED).collect(),
        ..Preview::default()
    };
    Intent { preview, must_ask, grants: vec![Rule::of_tool(tool)], ..Intent::default() }
}

/// Refuses an operation on files that the rules hide or that are outside the run's paths.
fn require_visible(permit: &Permit, paths: &[String]) -> Result<(), Failure> {
    let Some(hidden) = paths.iter().find(|path| !permit.shows(path)) else { return Ok(()) };
    let text = format!("it would change '{hidden}', which this run may not access");
    Err(Failure::new(Reason::ToolDenied, text))
}

struct Branch;

#[async_trait::async_trait]
impl Tool for Branch {
    fn spec(&self) -> ToolSpec {
        let text = "Creates a branch, or switches to one, without hooks. A switch that would \
            overwrite uncommitted changes is refused.";
        ToolSpec { paths: &[], ..ToolSpec::writing::<BranchParams>("git_branch", text) }
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let params: BranchParams = arguments(value.clone())?;
        let word = if params.action == BranchAction::Create { "create" } else { "switch to" };
        let summary = format!("git_branch {word} {}", params.name);
        let (root, change) = (root_of(caller)?, params.change()?);
        off_thread(move || {
            let paths = git::branch_paths(&root, &change)?;
            Ok(intent_of(&root, "git_branch", summary, paths))
        })
        .await
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: BranchParams = arguments(value)?;
        let (root, name, change) =
            (permit.require_root()?.clone(), params.name.clone(), params.change()?);
        off_thread(move || {
            let paths = git::branch_paths(&root, &change)?;
            require_visible(&permit, &paths)?;
            let head = git::git_branch(&root, change)?;
            let value = json!({"branch": name, "head": head, "changed_files": paths.len()});
            Output::of("git_branch", &value, false)
        })
        .await
    }
}

struct StashTool;

/// Returns the files that an operation on the stashes changes, and the id of the stash for a pop.
fn stash_paths(root: &Root, params: &StashParams) -> Result<(String, Vec<String>), Failure> {
    match params.action {
        StashAction::Push => {
            Ok((String::new(), git::stash_push_paths(root, params.include_untracked)?))
        }
        StashAction::Pop => git::stash_pop_paths(root),
    }
}

#[async_trait::async_trait]
impl Tool for StashTool {
    fn spec(&self) -> ToolSpec {
        let text = "Stores the uncommitted changes in a stash and resets them, or applies the newest \
            stash and removes it; without hooks and filters.";
        ToolSpec { paths: &[], ..ToolSpec::writing::<StashParams>("git_stash", text) }
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let params: StashParams = arguments(value.clone())?;
        let word = if params.action == StashAction::Push { "push" } else { "pop" };
        let root = root_of(caller)?;
        off_thread(move || {
            let (id, paths) = stash_paths(&root, &params)?;
            let summary = format!("git_stash {word} {id}").trim_end().to_owned();
            Ok(intent_of(&root, "git_stash", summary, paths))
        })
        .await
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: StashParams = arguments(value)?;
        check_text("the message", params.message.as_deref().unwrap_or_default())?;
        let root = permit.require_root()?.clone();
        off_thread(move || {
            let (id, paths) = stash_paths(&root, &params)?;
            require_visible(&permit, &paths)?;
            let id = match params.action {
                StashAction::Push => {
                    git::stash_push(&root, params.message, params.include_untracked)?
                }
                StashAction::Pop => {
                    git::stash_pop(&root, id.clone())?;
                    id
                }
            };
            let value = json!({"stash": id, "changed_files": paths.len(), "paths": paths});
            Output::of("git_stash", &value, false)
        })
        .await
    }
}

struct Checkout(Deps);

impl Checkout {
    /// Returns the changes that restore the files; unchanged files have none.
    fn plan(
        root: &Root,
        targets: Vec<ResolvedPath>,
        revision: Option<&str>,
    ) -> Result<Vec<(ResolvedPath, Change)>, Failure> {
        let paths: Vec<String> = targets.iter().map(|t| t.real().to_owned()).collect();
        let contents = git::files_at(root, revision, &paths)?;
        let mut changes = Vec::new();
        for (target, content) in targets.into_iter().zip(contents) {
            let rel = target.real().to_owned();
            let Some(content) = content else {
                let text = format!("'{rel}' is not in the repository at that point");
                return Err(Failure::new(Reason::PathNotFound, text));
            };
            let before = root.read_file(&rel, cairn_workspace::MAX_WRITTEN_BYTES)?;
            if before.as_ref() != Some(&content) {
                changes.push((target, Change::replace(&rel, before, content)));
            }
        }
        Ok(changes)
    }
}

#[async_trait::async_trait]
impl Tool for Checkout {
    fn spec(&self) -> ToolSpec {
        let text = "Restores files to their staged content, or to that of a revision; their \
            uncommitted changes are lost.";
        ToolSpec { paths: &["paths"], ..ToolSpec::writing::<CheckoutParams>("git_checkout", text) }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        let paths = value.get("paths").and_then(Value::as_array).into_iter().flatten();
        paths.map(|path| ("write_file", json!({"path": path}))).collect()
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let CheckoutParams { paths, revision } = arguments(value.clone())?;
        let targets = paths.iter().map(|path| caller.own_path(path)).collect::<Result<_, _>>()?;
        let root = root_of(caller)?;
        let changes = off_thread(move || Self::plan(&root, targets, revision.as_deref())).await?;
        Ok(edit::intent_of(&changes, "git_checkout", None))
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let CheckoutParams { paths, revision } = arguments(value)?;
        let targets =
            paths.iter().map(|path| permit.resolve_own(path)).collect::<Result<_, _>>()?;
        let (root, deps) = (permit.require_root()?.clone(), self.0.clone());
        off_thread(move || {
            let changes = Self::plan(&root, targets, revision.as_deref())?;
            edit::require_same(&permit, &changes)?;
            let restored: Vec<String> = changes.iter().map(|(_, c)| c.path.clone()).collect();
            edit::apply_all(&permit, changes, &deps.seen)?;
            Output::of("git_checkout", &json!({"restored": restored}), false)
        })
        .await
    }
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let stashes = reading(
        deps,
        "git_stash_list",
        "The stashes of the root's repository, newest first.",
        "git_stash_list",
        |_, permit, _: StashListParams, _| {
            let stashes = git::git_stashes(permit.require_root()?)?;
            let value = stashes
                .into_iter()
                .map(|s| json!({"index": s.index, "message": s.message, "id": s.id}));
            Ok((json!({"stashes": value.collect::<Vec<_>>()}), false))
        },
    );
    vec![
        Arc::new(stashes.offered()),
        Arc::new(Branch),
        Arc::new(StashTool),
        Arc::new(Checkout(deps.clone())),
    ]
}
