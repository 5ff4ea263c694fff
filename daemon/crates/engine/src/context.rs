//! An agent's view of a run: its session's log, the gate, and cancellation.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use cairn_harness::{Completion, Output};
use cairn_llm::{ChunkStream, ModelRequest};
use cairn_protocol::{
    command::{AgentCmd, ToolCall},
    envelope::Body,
    error::{Failure, Reason},
    event::{AgentEvt, BlobRef},
    id::SessionId,
};
use cairn_trace::{Append, NewRecord};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::{recorded::Recorded, run_core::RunCore, span};

/// Results with more bytes than this are stored as blobs.
const INLINE: usize = 64 * 1024;

/// One run's (or one command's) view of the engine. Clones share it.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) core: RunCore,
    /// True if a client aborted the run.
    pub(crate) aborted: Arc<AtomicBool>,
    pub(crate) recorded: Arc<Recorded>,
    pub(crate) done: Arc<AtomicU64>,
    pub(crate) failed: AtomicU64,
    pub(crate) pending: Arc<AtomicU64>,
    /// `Some` if a model plans; true if it may be an external one.
    pub(crate) model: Option<bool>,
    /// Revision whose changes an explore reports.
    pub(crate) since: Option<String>,
    /// Parent of the spans of its operations.
    pub(crate) span: tracing::Span,
}

impl RunContext {
    /// Returns the session of the run.
    pub fn session(&self) -> &SessionId {
        &self.core().session
    }

    pub(crate) fn core(&self) -> &RunCore {
        &self.inner.core
    }

    /// Returns the absolute path of the root the run works in.
    pub fn root_path(&self) -> Option<&std::path::Path> {
        self.core().root.as_ref().map(|root| root.path.as_path())
    }

    /// Returns the paths the run is limited to, relative to the root; `None` when it may read all
    /// of it.
    pub fn paths(&self) -> Option<&[String]> {
        self.core().grants.paths.as_deref()
    }

    /// Returns the git revision since which an explore reports the changes.
    pub fn since(&self) -> Option<&str> {
        self.inner.since.as_deref()
    }

    /// Returns a token that is cancelled on abort and when the daemon stops.
    pub fn cancel(&self) -> &CancellationToken {
        &self.core().cancel
    }

    /// Returns the number of finished operations, and the number of those that failed.
    pub fn ops(&self) -> (u64, u64) {
        (self.inner.done.load(Ordering::Relaxed), self.inner.failed.load(Ordering::Relaxed))
    }

    /// Returns true if a model is to plan.
    pub fn wants_model(&self) -> bool {
        self.inner.model.is_some()
    }

    /// Sends a request to the session's model, within the limits of the daemon.
    ///
    /// # Errors
    /// `external_llm_denied`, `budget_exceeded`; errors of the model.
    pub async fn open_model(&self, mut request: ModelRequest) -> Result<ChunkStream, Failure> {
        let engine = &self.core().engine;
        let choice = engine.model_choice(self.session()).await?;
        let provider = engine.model_source()?.provider(&choice)?;
        engine.inner.models.admit(&*provider, self.inner.model.unwrap_or(false))?;
        while let Some(wait) = engine.inner.models.wait(std::time::Instant::now())? {
            tokio::select! {
                () = self.cancel().cancelled() => return Err(cancelled("a model request")),
                () = tokio::time::sleep(wait) => {}
            }
        }
        request.session = Some(self.session().clone());
        let span = span::question(&self.inner.span, &*provider);
        let stream = provider.chat(request).instrument(span.clone()).await.map_err(Failure::from);
        span::record_outcome(&span, &stream);
        Ok(span::watched(span, stream?))
    }

    /// Sets the number of pending operations, for `orchestrate.explore.status`.
    pub fn set_pending(&self, waiting: usize) {
        self.inner.pending.store(waiting as u64, Ordering::Relaxed);
    }

    /// Appends an event and returns once it is durable.
    ///
    /// # Errors
    /// An error of the log.
    pub async fn emit(&self, evt: AgentEvt) -> Result<(), Failure> {
        self.core().emit_all(vec![evt]).await
    }

    /// Calls a tool through the gate, with its command, start and outcome in the log. In a resumed
    /// run, a result that is already in the log is returned without another call.
    ///
    /// # Errors
    /// The call's failure, which is in the log too; or that of the log.
    pub async fn call(
        &self,
        name: &str,
        arguments: serde_json::Value,
    ) -> Result<serde_json::Value, Failure> {
        let call = ToolCall { name: name.to_owned(), arguments };
        if let Some(known) =
            self.inner.recorded.find(&self.core().engine.inner.trace, &call).await?
        {
            // The calls that need the current index follow.
            if call.name.starts_with("index_")
                && let Some(root) = &self.core().root
            {
                // The operations that read a broken index report it.
                if let Err(cause) = self.core().engine.index_is_current(&root.id.0).await {
                    tracing::warn!(session = %self.session(), %cause, "the index is not up to date");
                }
            }
            self.inner.done.fetch_add(1, Ordering::Relaxed);
            self.inner.failed.fetch_add(u64::from(known.is_err()), Ordering::Relaxed);
            return known;
        }
        let id = Uuid::now_v7();
        let opening = self.opening(id, None, AgentCmd::from_call(call.clone()));
        let opening = Append::new(self.session(), opening);
        self.perform(id, call, Some(opening)).await?.map(|output| output.value)
    }

    /// Returns the records of a command and its start.
    pub(crate) fn opening(
        &self,
        id: Uuid,
        parent_id: Option<Uuid>,
        cmd: AgentCmd,
    ) -> Vec<NewRecord> {
        let mut call = cmd.into_call();
        let op = call.name.clone();
        self.core().engine.inner.harness.withhold_secrets(self.session(), &op, &mut call.arguments);
        let cmd = AgentCmd::from_call(call);
        let cmd =
            NewRecord { id, parent_id, origin: self.core().origin(None), body: Body::Cmd { cmd } };
        vec![
            cmd,
            self.record(Some(id), Some(&op), AgentEvt::Started { op: op.clone(), details: None }),
        ]
    }

    /// Runs a call and records its outcome; its command is in the log already, or is appended with
    /// `opening`.
    ///
    /// # Errors
    /// Errors of the log; the inner failure is the call's own.
    pub(crate) async fn perform(
        &self,
        id: Uuid,
        call: ToolCall,
        opening: Option<Append>,
    ) -> Result<Result<Output, Failure>, Failure> {
        let core = self.core();
        let registry = core.engine.inner.harness.registry().scoped(&core.session);
        // A name that is not registered is a client's or a model's text, so it is left out of the
        // span.
        let known = registry.is_read_only(&call.name).is_some();
        let span = span::operation(&self.inner.span, known.then_some(call.name.as_str()));
        let outcome = self.performed(id, call, opening).instrument(span.clone()).await;
        if let Ok(outcome) = &outcome {
            span::record_outcome(&span, outcome);
        }
        outcome
    }

    async fn performed(
        &self,
        id: Uuid,
        call: ToolCall,
        opening: Option<Append>,
    ) -> Result<Result<Output, Failure>, Failure> {
        let inner = &self.inner;
        let op = call.name.clone();
        let call = self.core().call(Some(id), &call.name, call.arguments);
        let closing = |outcome: Result<Output, Failure>| {
            if outcome.is_err() && self.core().is_cut_off() {
                // A resumed run makes the call again.
                let record = self.record(Some(id), Some(&op), interrupted_event(&op));
                return (
                    Completion::Interrupted(Some(Box::new(Append::new(
                        self.session(),
                        vec![record],
                    )))),
                    outcome,
                );
            }
            inner.done.fetch_add(1, Ordering::Relaxed);
            let append = match &outcome {
                Ok(output) => self.result_of(id, &op, output),
                Err(failure) => {
                    inner.failed.fetch_add(1, Ordering::Relaxed);
                    let record = self.record(Some(id), Some(&op), error_event(&op, failure));
                    Append::new(self.session(), vec![record])
                }
            };
            (Completion::Logged(Box::new(append)), outcome)
        };
        self.core().engine.inner.harness.call_logged(call, opening, closing).await
    }

    fn result_of(&self, id: Uuid, op: &str, output: &Output) -> Append {
        let text = output.value.to_string();
        let (tag, mime, truncated) =
            (output.tag.to_owned(), "application/json".to_owned(), output.truncated);
        let large = text.len() > INLINE;
        let sha256 =
            if large { hex::encode(Sha256::digest(text.as_bytes())) } else { String::new() };
        let blob = large.then(|| BlobRef { sha256: sha256.clone(), size: text.len() as u64 });
        let data = (!large).then(|| output.value.clone());
        let evt = AgentEvt::Result { op: op.to_owned(), tag, mime, data, blob, truncated };
        let append = Append::new(self.session(), vec![self.record(Some(id), Some(op), evt)]);
        if large { append.blob(sha256, text.into_bytes()) } else { append }
    }

    pub(crate) fn record(
        &self,
        parent_id: Option<Uuid>,
        tool: Option<&str>,
        evt: AgentEvt,
    ) -> NewRecord {
        self.core().record(parent_id, tool, evt)
    }
}

/// Returns the last event of an operation that a stop of the daemon interrupted.
pub(crate) fn interrupted_event(op: &str) -> AgentEvt {
    AgentEvt::Error {
        op: op.to_owned(),
        message: "the daemon stopped while it was running".to_owned(),
        retryable: true,
        reason: Some(cairn_trace::INTERRUPTED.to_owned()),
    }
}

/// Returns a failure as an event.
pub(crate) fn error_event(op: &str, failure: &Failure) -> AgentEvt {
    AgentEvt::Error {
        op: op.to_owned(),
        message: failure.message.clone(),
        retryable: failure.reason.retryable(),
        reason: Some(failure.reason.as_str().to_owned()),
    }
}

/// Returns the failure of a run that was aborted.
pub(crate) fn cancelled(op: &str) -> Failure {
    Failure::new(Reason::Cancelled, format!("{op} was cancelled"))
}
