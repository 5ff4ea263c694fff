//! Tool calls of an answer: read-only calls in parallel, calls with an effect one after the other.

use std::time::Instant;

use base64::Engine as _;
use cairn_harness::{Call, Changes, Completion, Output, is_final};
use cairn_protocol::{
    error::{Failure, Reason},
    event::{AgentEvt, BlobRef, FileChange, PlanItem, ToolOutcome},
    model::{Message, ToolUse},
    tool::ToolFailure,
    turn::ToolTrace,
};
use cairn_trace::Append;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{ReplaySource, TurnContext, tool_output};
use crate::{context::interrupted_event, subagent};

/// Results with more bytes than this are stored as blobs.
const INLINE: usize = 64 * 1024;
/// Most read-only calls that run at once.
const SIDE_BY_SIDE: usize = 8;

impl TurnContext {
    /// Makes the calls and returns their results, in the order of the calls. A tool's failure is a
    /// result too.
    ///
    /// # Errors
    /// `cancelled`; a denial that no retry changes, which ends the turn; errors of the log.
    pub async fn call_all(&self, calls: Vec<ToolUse>) -> Result<Vec<Message>, Failure> {
        self.note_lookup_calls(&calls);
        let registry = self.engine().inner.harness.registry().scoped(self.session());
        let reads = |call: &ToolUse| {
            call.name == subagent::NAME || registry.is_read_only(&call.name).unwrap_or(true)
        };
        let mut results = Vec::new();
        let mut calls = calls.into_iter().peekable();
        while let Some(first) = calls.next() {
            let mut together = vec![first];
            while reads(&together[0])
                && let Some(next) = calls.next_if(|next| reads(next))
            {
                together.push(next);
            }
            let mut done: Vec<Message> =
                stream::iter(together.into_iter().map(|call| self.call_one(call)))
                    .buffered(SIDE_BY_SIDE)
                    .try_collect()
                    .await?;
            results.append(&mut done);
        }
        Ok(results)
    }

    async fn call_one(&self, call: ToolUse) -> Result<Message, Failure> {
        let command = Uuid::now_v7();
        let ToolUse { id, name, mut arguments } = call;
        self.engine().inner.harness.withhold_secrets(self.session(), &name, &mut arguments);
        let evt = AgentEvt::ToolCall {
            call_id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let mut record = self.record(None, Some(&name), evt);
        record.id = command;
        let opening = Append::new(self.session(), vec![record]);
        let began = Instant::now();
        if let Some(feed) = self.feed() {
            self.engine().inner.trace.append(opening).await?;
            return self.replay_call(feed, command, id, name, arguments).await;
        }
        let changes = Changes::watched();
        let call = Call {
            call_id: Some(id.clone()),
            resumed: self.is_resumed(),
            dry_run: self.policy().dry_run,
            changes: changes.clone(),
            clock: self.clock(),
            sink: Some(self.output_sink(&id)),
            ..self.core().call(Some(command), &name, arguments)
        };
        let closing = |outcome: Result<Output, Failure>| {
            if self.core().is_cut_off() && outcome.is_err() {
                // It has no result, so a resumed turn makes the call again.
                let record = self.record(Some(command), Some(&name), interrupted_event(&name));
                let append = Append::new(self.session(), vec![record]);
                return (
                    Completion::Interrupted(Some(Box::new(append))),
                    Err(super::drive::cancelled()),
                );
            }
            let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let ends = outcome.as_ref().err().filter(|failure| is_final(failure)).cloned();
            let (completed, append) = self.result(command, id, name, outcome, millis, changes);
            (Completion::Logged(Box::new(append)), Ok((completed, ends)))
        };
        let (completed, ends) =
            self.engine().inner.harness.call_logged(call, Some(opening), closing).await??;
        let millis = completed.millis;
        self.emit_plan(&completed).await?;
        let result = self.message(&completed);
        let error = completed.error.as_ref().map(|e| e.reason.clone());
        self.trace_tool(ToolTrace {
            call_id: completed.outcome.call_id,
            tool: completed.outcome.name,
            outcome: error.unwrap_or_else(|| "ok".into()),
            millis,
        });
        match ends {
            Some(failure) => Err(failure),
            None if self.cancel().is_cancelled() => Err(super::drive::cancelled()),
            None => Ok(result),
        }
    }

    /// Makes a call of a replayed turn: answered from the record. A read-only call is also made
    /// again, and a different result is recorded.
    async fn replay_call(
        &self,
        feed: &ReplaySource,
        command: Uuid,
        id: String,
        name: String,
        arguments: Value,
    ) -> Result<Message, Failure> {
        let recorded = feed.parts().results.get(&id).cloned();
        let Some((outcome, output_value)) = recorded else {
            return Err(super::drive::cancelled());
        };
        let harness = &self.engine().inner.harness;
        if harness.registry().is_read_only(&name) == Some(true) && outcome.error.is_none() {
            let call = self.core().call(None, &name, arguments);
            let now = match harness.call(call).await {
                Ok(output) => output.value,
                Err(failure) => {
                    serde_json::json!({"error": failure.reason.as_str(), "message": failure.message})
                }
            };
            if now != output_value {
                feed.parts().differs.push((name.clone(), output_value.clone(), now));
            }
        }
        let completed = CompletedCall { outcome, output_value };
        let record = self.record(
            Some(command),
            Some(&name),
            AgentEvt::ToolResult(completed.outcome.clone()),
        );
        self.engine().inner.trace.append(Append::new(self.session(), vec![record])).await?;
        self.emit_plan(&completed).await?;
        let is_denied = completed
            .outcome
            .error
            .as_ref()
            .is_some_and(|e| e.reason == Reason::NoApprover.as_str());
        if is_denied {
            return Err(Failure::new(Reason::NoApprover, "as recorded"));
        }
        Ok(self.message(&completed))
    }

    /// Emits an event for a to-do list that the model has just written.
    async fn emit_plan(&self, completed: &CompletedCall) -> Result<(), Failure> {
        let output = completed
            .output
            .as_ref()
            .filter(|_| completed.name == "plan" && completed.tag == "plan");
        let items = output
            .and_then(|o| serde_json::from_value::<Vec<PlanItem>>(o.get("items")?.clone()).ok());
        match items {
            Some(items) => self.plan(items).await,
            None => Ok(()),
        }
    }

    /// Returns the outcome and the append that records it, with blobs for content that is too large
    /// for a record.
    fn result(
        &self,
        command: Uuid,
        call_id: String,
        name: String,
        outcome: Result<Output, Failure>,
        millis: u64,
        changes: Changes,
    ) -> (CompletedCall, Append) {
        let mut blobs: Vec<(String, Vec<u8>)> = Vec::new();
        let mut store = |bytes: Vec<u8>| {
            let blob =
                BlobRef { sha256: hex::encode(Sha256::digest(&bytes)), size: bytes.len() as u64 };
            blobs.push((blob.sha256.clone(), bytes));
            blob
        };
        let mut completed = ToolOutcome {
            call_id,
            name: name.clone(),
            tag: String::new(),
            output: None,
            blob: None,
            error: None,
            truncated: false,
            millis,
            changes: vec![],
        };
        let mut output_value = Value::Null;
        match outcome {
            Ok(output) => {
                let text = output.value.to_string();
                completed.tag = output.tag.to_owned();
                completed.truncated = output.truncated;
                if text.len() > INLINE {
                    completed.blob = Some(store(text.into_bytes()));
                    output_value = output.value;
                } else {
                    completed.output = Some(output.value);
                }
            }
            Err(failure) => {
                let (reason, retryable) =
                    (failure.reason.as_str().to_owned(), failure.reason.retryable());
                completed.error = Some(ToolFailure { reason, message: failure.message, retryable });
            }
        }
        for change in changes.take() {
            let encode = |bytes: Vec<u8>| {
                base64::engine::general_purpose::STANDARD.encode(bytes).into_bytes()
            };
            let before = change.before.map(|bytes| store(encode(bytes)));
            let after = change.after.map(|bytes| hex::encode(Sha256::digest(bytes)));
            completed.changes.push(FileChange {
                path: change.path,
                before,
                after,
                lost: change.lost,
            });
        }
        let mut records =
            vec![self.record(Some(command), Some(&name), AgentEvt::ToolResult(completed.clone()))];
        if let Some(why) = changes.incomplete_reason() {
            let message = format!("the file changes of {name} are unknown: {why}");
            let warning = AgentEvt::Warning { op: name.clone(), message };
            records.push(self.record(Some(command), Some(&name), warning));
        }
        let append = Append::new(self.session(), records);
        let append = blobs.into_iter().fold(append, |append, (sha, bytes)| append.blob(sha, bytes));
        (CompletedCall { outcome: completed, output_value }, append)
    }

    fn message(&self, completed: &CompletedCall) -> Message {
        let chars = self.settings().shown_chars;
        let content = match &completed.outcome.blob {
            Some(_) => tool_output::value(&completed.output_value, chars),
            None => tool_output::of(&completed.outcome, chars),
        };
        let failed = completed.outcome.error.is_some();
        let (call_id, name) = (completed.outcome.call_id.clone(), completed.outcome.name.clone());
        Message::Tool { call_id, name, content, failed }
    }
}

/// An outcome with the complete content of its blob.
struct CompletedCall {
    outcome: ToolOutcome,
    output_value: Value,
}

impl std::ops::Deref for CompletedCall {
    type Target = ToolOutcome;
    fn deref(&self) -> &ToolOutcome {
        &self.outcome
    }
}
