//! `undo_turn`: restores the files that a turn changed.

use std::{collections::BTreeMap, sync::Arc};

use cairn_harness::{Caller, Intent, Output, Permit, Rule, Tool, ToolSpec, arguments, diff};
use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_trace::Trace;
use cairn_workspace::{MAX_WRITTEN_BYTES, Root};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::turns::changes::{self, NetChange, Turn};

/// Name of the tool.
pub(crate) const NAME: &str = "undo_turn";

/// Arguments of the tool `undo_turn`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UndoTurn {
    /// The turn, by the name its client gave it.
    turn_id: String,
}

struct Undo {
    trace: Trace,
}

/// Creates the tool for a registry.
pub fn tool(trace: &Trace) -> Arc<dyn Tool> {
    Arc::new(Undo { trace: trace.clone() })
}

/// One file to restore.
struct Back {
    path: String,
    now: Option<Vec<u8>>,
    then: Option<Vec<u8>>,
}

impl Undo {
    /// Plans the files to restore. If one of them changed since the turn, no file is touched.
    async fn plan(
        &self,
        session: &SessionId,
        root: Option<&Root>,
        value: Value,
    ) -> Result<Vec<Back>, Failure> {
        let args: UndoTurn = arguments(value)?;
        let root = root
            .ok_or_else(|| Failure::new(Reason::NoRoots, "the session has no root to work in"))?;
        let files: BTreeMap<String, NetChange> =
            changes::of_turn(&self.trace, session, &Turn::Id(&args.turn_id)).await?;
        if files.is_empty() {
            let text = format!("turn '{}' changed no files", args.turn_id.escape_default());
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        let mut all = Vec::new();
        for (path, net) in files {
            if net.lost {
                let text = format!(
                    "'{path}' was changed by a command and its previous content was not saved: nothing \
                    was undone"
                );
                return Err(Failure::new(Reason::ToolFailed, text));
            }
            let now = root.read_file(&path, MAX_WRITTEN_BYTES)?;
            let hash = now.as_ref().map(|bytes| hex::encode(Sha256::digest(bytes)));
            if hash != net.after {
                let text =
                    format!("'{path}' changed since turn '{}': nothing was undone", args.turn_id);
                return Err(Failure::new(Reason::FileChanged, text));
            }
            let then = match &net.before {
                Some(blob) => Some(changes::content(&self.trace, blob).await?),
                None => None,
            };
            all.push(Back { path, now, then });
        }
        Ok(all)
    }
}

#[async_trait::async_trait]
impl Tool for Undo {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::writing::<UndoTurn>(
            NAME,
            "Restores the files that a turn changed to their previous content. Refused if one of them \
            has changed since.",
        );
        ToolSpec { hidden: true, paths: &[], ..spec }
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let back = self.plan(caller.session, caller.root, value.clone()).await?;
        let diffs = back
            .iter()
            .map(|b| diff::unified(&b.path, b.now.as_deref(), b.then.as_deref(), diff::MAX_DIFF))
            .collect::<Vec<_>>();
        let paths: Vec<String> = back.into_iter().map(|b| b.path).collect();
        let preview = Preview {
            summary: format!("undo_turn {}", paths.join(", ")),
            diff: Some(diffs.concat()),
            paths,
            ..Preview::default()
        };
        Ok(Intent { preview, grants: vec![Rule::of_tool("undo_turn")], ..Intent::default() })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let back = self.plan(permit.session(), permit.root(), value).await?;
        let write = move || -> Result<Output, Failure> {
            let mut paths = Vec::new();
            for Back { path, now, then } in back {
                let target = permit.resolve_own(&path)?;
                match (now, then) {
                    (now, Some(then)) => permit.write_file(&target, now, then)?,
                    (Some(now), None) => permit.remove_file(&target, now)?,
                    (None, None) => {}
                }
                paths.push(path);
            }
            Output::of("undone", &json!({"restored": paths}), false)
        };
        tokio::task::spawn_blocking(write)
            .await
            .unwrap_or_else(|e| Err(Failure::new(Reason::Internal, format!("undo failed: {e}"))))
    }
}
