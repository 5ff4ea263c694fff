//! `git_status` and `git_log`: reads that run no program a repository names.

use std::sync::Arc;

use cairn_harness::Tool;
use cairn_protocol::git::GitStatusParams;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Deps,
    reading::{reading, wide_place},
};

/// Arguments of `git_log`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GitLogParams {
    /// Commits wanted, at most 1,000.
    #[serde(default = "default_limit")]
    limit: u32,
}

fn default_limit() -> u32 {
    100
}

/// Both tools.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let status = reading(
        deps,
        "git_status",
        "Branch, head and changed files of a repository.",
        "git_status",
        |deps, permit, params: GitStatusParams, _| {
            let (root, rel, parts) = wide_place(deps, permit, &params.path, None)?;
            let mut status = cairn_workspace::git::git_status(&root, &rel)?;
            if parts.is_some() {
                status.changes.retain(|change| permit.need_path(&change.path).is_ok());
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
            let mut commits = cairn_workspace::git::git_log(permit.need_root()?, limit)?;
            if permit.reach(".")?.is_some() {
                for commit in &mut commits {
                    commit.paths.retain(|path| permit.need_path(path).is_ok());
                }
                commits.retain(|commit| !commit.paths.is_empty());
            }
            Ok((serde_json::json!({"commits": commits}), false))
        },
    );
    vec![Arc::new(status.narrowing().offered()), Arc::new(log.offered())]
}
