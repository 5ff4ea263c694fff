//! The system text of a session: the parts that its user replaced or added.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    id::{RunId, SessionId},
    prompt::{PromptAppendParams, PromptSetParams, PromptShowParams, PromptShown},
    turn::{Compressed, ExecutionPolicy, Input, RunStartParams},
};
use cairn_trace::Append;
use serde::{Deserialize, Serialize};

use crate::{
    Ask, Compaction, Engine, TurnAgent, TurnContext,
    session::Request,
    turns::{QueuedTurn, check_overrides},
};

/// Name of the artifact that stores it.
const PROMPT_ARTIFACT: &str = "prompt.json";
/// Prefixes of the names that [`crate::TurnContext::artifact_or_create`] uses for a prompt.
pub(crate) const PARTS: &[&str] = &["prompt-project", "prompt-clock", "prompt-instructions"];
/// The one of them that is read again after a compaction.
const INSTRUCTIONS: &str = "prompt-instructions";
/// Most bytes of a replaced base, and of all appended texts together.
const MAX: usize = 256 * 1024;

/// A session's changes to its system text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionPrompt {
    /// Text that replaces the base; empty for no base at all.
    pub base: Option<String>,
    /// Texts after the tools' own texts, in this order.
    pub appended: Vec<String>,
}

impl Engine {
    pub(crate) async fn session_prompt(
        &self,
        session: &SessionId,
    ) -> Result<SessionPrompt, Failure> {
        let stored = self.inner.trace.artifact(session, PROMPT_ARTIFACT).await?;
        Ok(stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    async fn store_prompt(
        &self,
        session: &SessionId,
        prompt: &SessionPrompt,
    ) -> Result<(), Failure> {
        let text = serde_json::to_string(prompt).unwrap_or_default();
        self.inner
            .trace
            .append(Append::new(session, vec![]).artifact(PROMPT_ARTIFACT, text))
            .await?;
        Ok(())
    }

    /// Returns the system text that the next turn of a session starts with, under a policy.
    ///
    /// # Errors
    /// `session_not_found`, `not_supported` without an agent, `invalid_params` for settings out of
    /// range.
    pub async fn show_prompt(&self, params: PromptShowParams) -> Result<PromptShown, Failure> {
        check_overrides(params.policy.as_ref())?;
        // Showing a text reaches no model outside this machine.
        let policy = params.policy.map(|p| ExecutionPolicy { allow_external_llms: false, ..p });
        let cx = self.idle_context(&params.session_id, policy).await?;
        Ok(PromptShown { system: self.agent()?.system(&cx).await? })
    }

    /// Returns the system text of a turn without a policy.
    async fn next_prompt(&self, session: &SessionId) -> Result<PromptShown, Failure> {
        let params = PromptShowParams { session_id: session.clone(), policy: None };
        self.show_prompt(params).await
    }

    fn agent(&self) -> Result<Arc<dyn TurnAgent>, Failure> {
        let agent = self.inner.turn_agent.get().cloned();
        agent.ok_or_else(|| Failure::new(Reason::NotSupported, "no agent is registered"))
    }

    /// Returns a turn's view of a session in which no turn is active.
    async fn idle_context(
        &self,
        session: &SessionId,
        policy: Option<ExecutionPolicy>,
    ) -> Result<TurnContext, Failure> {
        let params = RunStartParams {
            session_id: session.clone(),
            turn_id: String::new(),
            input: Input::Text(String::new()),
            context: None,
            policy,
            metadata: Default::default(),
        };
        let turn = QueuedTurn { run: RunId::new(), params, client: None, resumed: false };
        self.turn_context(session, &turn).await
    }

    /// Condenses the conversation of a session into a summary.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`, `context_overflow` when there is nothing to condense.
    pub async fn compress(&self, session: &SessionId) -> Result<Compressed, Failure> {
        if self.inner.sessions.has_turn(session) {
            return Err(Failure::new(
                Reason::SessionBusy,
                format!("a turn is active in session {session}"),
            ));
        }
        // A summary covers the records up to this one.
        let head = self.inner.trace.session(session).await?.head_seq;
        let mut cx = self.idle_context(session, None).await?;
        // The user requested it: only the configuration decides which models may be used.
        cx.allow_external();
        let messages = cx.conversation().await?.messages;
        let ask = Ask {
            system: self.agent()?.system(&cx).await?,
            messages,
            tools: cx.offers(),
            schema: None,
        };
        match cx.condense(&ask).await {
            Ok((evt, Compaction { before, after })) => {
                self.request(session, Request::Compact { head, evt: Box::new(evt) }).await?;
                self.inner.trace.remove_artifact(session, INSTRUCTIONS).await?;
                Ok(Compressed { tokens_before: before, tokens_after: after })
            }
            // There was nothing to condense, and no need for it.
            Err(failure)
                if failure.reason == Reason::ContextOverflow && !cx.is_nearly_full(&ask)? =>
            {
                let tokens = cx.tokens(&ask)?;
                Ok(Compressed { tokens_before: tokens, tokens_after: tokens })
            }
            Err(failure) => Err(failure),
        }
    }

    /// Replaces the base of a session's system text, or restores the built-in one. The conversation
    /// is cleared, since it was stored under another text.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`, `too_large`.
    pub async fn set_prompt(
        &self,
        params: PromptSetParams,
        client: Option<String>,
    ) -> Result<PromptShown, Failure> {
        let mut prompt = self.session_prompt(&params.session_id).await?;
        if params.system.as_ref().is_some_and(|text| text.len() > MAX) {
            return Err(Failure::new(
                Reason::TooLarge,
                format!("system has more than {MAX} bytes"),
            ));
        }
        if params.system.is_none() {
            prompt.appended.clear();
        }
        prompt.base = params.system;
        self.clear_conversation(&params.session_id, client).await?;
        self.store_prompt(&params.session_id, &prompt).await?;
        self.next_prompt(&params.session_id).await
    }

    /// Appends to a session's system text; the conversation continues.
    ///
    /// # Errors
    /// `session_not_found`, `too_large`.
    pub async fn append_prompt(&self, params: PromptAppendParams) -> Result<PromptShown, Failure> {
        self.inner.trace.session(&params.session_id).await?;
        let mut prompt = self.session_prompt(&params.session_id).await?;
        prompt.appended.push(params.text);
        if prompt.appended.iter().map(String::len).sum::<usize>() > MAX {
            return Err(Failure::new(
                Reason::TooLarge,
                format!("more than {MAX} bytes are appended"),
            ));
        }
        self.store_prompt(&params.session_id, &prompt).await?;
        self.next_prompt(&params.session_id).await
    }

    /// Rebuilds the stored parts of a session's system text: the time, the project, the map. The
    /// conversation continues.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn refresh_prompt(&self, session: &SessionId) -> Result<PromptShown, Failure> {
        self.inner.trace.session(session).await?;
        for part in PARTS {
            self.inner.trace.remove_artifact(session, part).await?;
        }
        self.next_prompt(session).await
    }
}
