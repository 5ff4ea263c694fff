//! Single commands: `orchestrate.command` and `tool.call`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use cairn_harness::Grants;
use cairn_protocol::{
    command::{AgentCmd, ToolCall},
    error::{Failure, Reason},
    id::SessionId,
    session::{CommandParams, CommandReceipt},
    tool::{ToolCallParams, ToolFailure, ToolMeta, ToolResult},
};
use cairn_trace::Append;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::{
    Engine, RunContext, context::Inner, detach_on_drop::DetachOnDrop, retry::Retry,
    run_core::RunCore,
};

impl Engine {
    /// Starts a command: its record is durable when the receipt is returned, its events follow.
    ///
    /// # Errors
    /// `session_not_found`, `request_conflict`, `overloaded`.
    pub async fn command(
        &self,
        mut params: CommandParams,
        client: Option<String>,
    ) -> Result<CommandReceipt, Failure> {
        self.require_open()?;
        if let Some(kind) = params.cmd.kind.as_deref().filter(|kind| *kind != "Cmd") {
            let text =
                format!("kind '{}' is invalid: it must be 'Cmd' or omitted", kind.escape_default());
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        // Before the digest of the request is computed, which is stored.
        let mut call = params.cmd.payload.into_call();
        self.inner.harness.withhold_secrets(&params.session_id, &call.name, &mut call.arguments);
        params.cmd.payload = AgentCmd::from_call(call);
        let slot = self.command_slot()?;
        // An envelope's id identifies the command: a repeated id is the same command.
        let key = params.request_id.clone().or_else(|| params.cmd.id.map(|id| id.to_string()));
        let retry = Retry::new(params.session_id.as_str(), key.as_ref(), &params);
        let _retries = self.lock_retries(&retry).await;
        if let Some(receipt) = self.answered(&retry).await? {
            return Ok(receipt);
        }
        let root = self.inner.trace.session_root(&params.session_id).await?;
        let cx =
            self.command_context(&params.session_id, root.as_deref(), client, Grants::default())?;
        let id = params.cmd.id.unwrap_or_else(Uuid::now_v7);
        let receipt =
            CommandReceipt { session_id: params.session_id.clone(), command_id: id, seq: 0 };
        let mut append = Append::new(
            cx.session(),
            cx.opening(id, params.cmd.parent_id, params.cmd.payload.clone()),
        );
        if let Some((scope, key, digest)) = retry.stored() {
            append = append.receipt(&scope, &key, digest, serde_json::json!(receipt));
        }
        let seq = self.inner.trace.append(append).await?.first;
        let call = params.cmd.payload.into_call();
        self.inner.tasks.spawn(async move {
            let _slot = slot;
            // A failure is already recorded as an event.
            let _outcome = cx.perform(id, call, None).await;
        });
        Ok(CommandReceipt { seq, ..receipt })
    }

    /// Calls a tool and waits for its result; command and outcome are recorded in the session's log
    /// too.
    ///
    /// # Errors
    /// `session_not_found`, `overloaded`, or errors of the log. A failure of the tool is a result
    /// with `ok: false`.
    pub async fn call_tool(
        &self,
        params: ToolCallParams,
        client: Option<String>,
    ) -> Result<ToolResult, Failure> {
        self.require_open()?;
        let slot = self.command_slot()?;
        let root = self.inner.trace.session_root(&params.session_id).await?;
        let cx =
            self.command_context(&params.session_id, root.as_deref(), client, Grants::default())?;
        let call = ToolCall { name: params.name, arguments: params.arguments };
        let id = Uuid::now_v7();
        let opening = cx.opening(id, None, AgentCmd::from_call(call.clone()));
        let opening = Append::new(cx.session(), opening);
        let started = std::time::Instant::now();
        // When the caller disconnects, the tool is cancelled and its outcome is still recorded.
        let _stop = cx.cancel().clone().drop_guard();
        let work = DetachOnDrop::new(&self.inner.tasks, async move {
            let _slot = slot;
            cx.perform(id, call, Some(opening)).await
        });
        let outcome = work.await?;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(match outcome {
            Ok(output) => {
                let meta = ToolMeta { tag: output.tag.into(), truncated: output.truncated, millis };
                ToolResult { ok: true, output: output.value, error: None, meta }
            }
            Err(failure) => {
                let (reason, retryable) =
                    (failure.reason.as_str().to_owned(), failure.reason.retryable());
                let error = Some(ToolFailure { reason, message: failure.message, retryable });
                let meta = ToolMeta { tag: "error".into(), truncated: false, millis };
                ToolResult { ok: false, output: serde_json::Value::Null, error, meta }
            }
        })
    }

    pub(crate) fn command_slot(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let full = |_| Failure::new(Reason::Overloaded, "too many commands are running");
        Arc::clone(&self.inner.commands).try_acquire_owned().map_err(full)
    }

    pub(crate) fn command_context(
        &self,
        session: &SessionId,
        root: Option<&str>,
        client: Option<String>,
        grants: Grants,
    ) -> Result<RunContext, Failure> {
        let core = RunCore {
            engine: self.clone(),
            session: session.clone(),
            run: None,
            root: self.root_of(root)?,
            grants,
            cancel: self.inner.shutdown.child_token(),
            client,
        };
        let inner = Inner {
            core,
            aborted: Arc::default(),
            recorded: Arc::default(),
            done: Arc::new(AtomicU64::new(0)),
            failed: AtomicU64::new(0),
            pending: Arc::new(AtomicU64::new(0)),
            model: None,
            since: None,
            span: tracing::Span::current(),
        };
        inner.pending.store(1, Ordering::Relaxed);
        Ok(RunContext { inner: Arc::new(inner) })
    }
}
