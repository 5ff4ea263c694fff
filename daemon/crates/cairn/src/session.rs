//! A session in the host's own process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_engine::{Approver, Engine, record::Step, tool::Tool};
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalResolveParams},
    envelope::Envelope,
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    prompt::PromptShowParams,
    session::After,
    turn::{ExecutionPolicy, Input, RunResult, RunStartParams, TurnContext},
};
use serde::Deserialize;

use crate::build::{OnApproval, OnToken, Shared};

/// One conversation with one model, with its tools, its log and its rules.
pub struct Session {
    engine: Engine,
    id: SessionId,
    shared: Arc<Mutex<Shared>>,
    on_token: Option<OnToken>,
    on_approval: Option<OnApproval>,
    external: bool,
    _approver: Option<Approver>,
    _folder: Option<tempfile::TempDir>,
}

impl Session {
    pub(crate) fn opened(
        engine: Engine,
        id: SessionId,
        shared: Arc<Mutex<Shared>>,
        on_token: Option<OnToken>,
        on_approval: Option<OnApproval>,
        external: bool,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let approver = on_approval.is_some().then(|| engine.approver());
        Self {
            engine,
            id,
            shared,
            on_token,
            on_approval,
            external,
            _approver: approver,
            _folder: folder,
        }
    }

    /// Returns the engine, for operations beyond one session.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the id of the session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message and waits for the answer, including all tool calls.
    ///
    /// # Errors
    /// Fails with the reason why the turn did not complete.
    pub async fn chat(&self, text: impl Into<String>) -> Result<String, Failure> {
        let result = self.run(text).await?;
        match result.error {
            None => Ok(result.final_output.unwrap_or_default()),
            Some(error) => {
                let known = Reason::ALL.iter().find(|r| r.as_str() == error.reason);
                Err(Failure::new(known.copied().unwrap_or(Reason::Internal), error.message))
            }
        }
    }

    /// Sends a message and returns the complete result of the turn.
    ///
    /// # Errors
    /// Fails when the turn could not be started, or the log cannot be read.
    pub async fn run(&self, text: impl Into<String>) -> Result<RunResult, Failure> {
        let params = self.turn(text.into(), None);
        let receipt = self.engine.start_run(params, None).await?;
        let after = After::Seq(receipt.seq.saturating_sub(1));
        let (mut follower, _) = self.engine.trace().follow(&self.id, &after).await?;
        let mut delivered = 0;
        loop {
            match follower.step().await? {
                Step::Ephemeral(lines) => {
                    lines.iter().for_each(|line| delivered = self.deliver(line, delivered))
                }
                Step::Records(lines) => {
                    for line in lines {
                        delivered = self.deliver(&line, delivered);
                        if let Some(result) = self.record(&line).await? {
                            return Ok(result);
                        }
                    }
                }
                Step::Synced(_) | Step::Lagged(_) => {}
                Step::Deleted => return Err(Failure::new(Reason::Gone, "the session was deleted")),
            }
        }
    }

    /// Returns the parameters of a new turn.
    pub(crate) fn turn(&self, text: String, context: Option<TurnContext>) -> RunStartParams {
        RunStartParams {
            session_id: self.id.clone(),
            turn_id: uuid::Uuid::now_v7().to_string(),
            input: Input::Text(text),
            context,
            policy: Some(self.policy()),
            metadata: Default::default(),
        }
    }

    /// Passes the new part of a text to the token callback; returns the number of bytes passed for
    /// this answer.
    fn deliver(&self, line: &str, delivered: u64) -> u64 {
        #[derive(Deserialize)]
        struct Line {
            evt: Option<AgentEvt>,
        }
        let Ok(Line { evt: Some(evt) }) = serde_json::from_str(line) else { return delivered };
        match evt {
            AgentEvt::TokenDelta { reasoning: false, offset, text, .. }
            | AgentEvt::Text { reasoning: false, offset, text, .. } => {
                let end = offset + text.len() as u64;
                let fresh = usize::try_from(delivered.saturating_sub(offset)).unwrap_or(usize::MAX);
                if let (Some(callback), Some(text)) =
                    (&self.on_token, text.get(fresh..).filter(|t| !t.is_empty()))
                {
                    callback(text);
                }
                delivered.max(end)
            }
            AgentEvt::ModelAnswer(_) => 0,
            _ => delivered,
        }
    }

    async fn record(&self, line: &str) -> Result<Option<RunResult>, Failure> {
        let Ok(envelope) = serde_json::from_str::<Envelope>(line) else { return Ok(None) };
        match envelope.body.evt() {
            Some(AgentEvt::RunCompleted { result }) => Ok(Some((**result).clone())),
            Some(AgentEvt::ApprovalRequired { approval }) => {
                if let Some(answer) = &self.on_approval {
                    // The host has no values for a question of an MCP server.
                    let decision = match &approval.form {
                        Some(_) => ApprovalDecision::Deny,
                        None => answer(approval),
                    };
                    let (approval_id, reason) = (approval.approval_id.clone(), None);
                    let params = ApprovalResolveParams {
                        approval_id,
                        decision,
                        reason,
                        pattern: None,
                        values: Default::default(),
                    };
                    match self.engine.resolve_approval(params, "host").await {
                        Err(failure) if failure.reason != Reason::ApprovalResolved => {
                            return Err(failure);
                        }
                        _ => {}
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Adds a tool; the conversation continues, and the next turn can use it.
    ///
    /// # Errors
    /// Fails when its name is taken or its schema is invalid.
    pub fn add_tool(&self, tool: impl Tool + 'static) -> Result<(), Failure> {
        self.engine.add_tool(Arc::new(tool))
    }

    /// Appends to the system text; takes effect with the next turn.
    pub fn system_append(&self, text: impl Into<String>) {
        let text = text.into();
        self.shared().appendices.push(Box::new(move || text.clone()));
    }

    /// Renders the system text again, with the current time and project; the conversation
    /// continues.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn refresh_system(&self) -> Result<String, Failure> {
        Ok(self.engine.refresh_prompt(&self.id).await?.system)
    }

    /// Replaces the base of the system text, and clears the conversation.
    ///
    /// # Errors
    /// `session_busy` while a turn is running.
    pub async fn set_system(&self, text: impl Into<String>) -> Result<(), Failure> {
        self.engine.clear_conversation(&self.id, None).await?;
        self.shared().base = Some(text.into());
        Ok(())
    }

    /// Clears the conversation of the session.
    ///
    /// # Errors
    /// `session_busy` while a turn is running.
    pub async fn reset(&self) -> Result<(), Failure> {
        self.engine.clear_conversation(&self.id, None).await
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy { allow_external_llms: self.external, ..ExecutionPolicy::default() }
    }

    /// Returns the system text of the next turn.
    ///
    /// # Errors
    /// Fails when the log cannot be read.
    pub async fn render_system(&self) -> Result<String, Failure> {
        let params = PromptShowParams { session_id: self.id.clone(), policy: Some(self.policy()) };
        Ok(self.engine.show_prompt(params).await?.system)
    }

    /// Closes the session gracefully.
    pub async fn close(self) {
        self.engine.close().await;
    }
}
