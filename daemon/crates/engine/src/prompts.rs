//! The system text of a session: what its user replaced or added.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    id::{RunId, SessionId},
    prompt::{PromptAppendParams, PromptSetParams, PromptShown},
    turn::{Compressed, Input, RunStartParams},
};
use cairn_trace::Append;
use serde::{Deserialize, Serialize};

use crate::{Ask, Compaction, Engine, TurnAgent, TurnContext, session::Request, turns::QueuedTurn};

/// Name of the artifact that keeps it.
const KEPT: &str = "prompt.json";
/// Beginning of the names of what [`crate::TurnContext::kept`] keeps for a prompt.
pub(crate) const PARTS: &[&str] = &["prompt-project", "prompt-clock"];
/// Bytes of a replaced base, and of all that is appended.
const MAX: usize = 256 * 1024;

/// What was set for a session's system text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionPrompt {
    /// Stands in place of the base; empty for no base at all.
    pub base: Option<String>,
    /// Goes after the tools' own texts, in this order.
    pub appended: Vec<String>,
}

impl Engine {
    pub(crate) async fn session_prompt(&self, session: &SessionId) -> Result<SessionPrompt, Failure> {
        let kept = self.inner.trace.artifact(session, KEPT).await?;
        Ok(kept.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    async fn keep_prompt(&self, session: &SessionId, prompt: &SessionPrompt) -> Result<(), Failure> {
        let text = serde_json::to_string(prompt).unwrap_or_default();
        self.inner.trace.append(Append::new(session, vec![]).artifact(KEPT, text)).await?;
        Ok(())
    }

    /// The system text that the next turn of a session begins with.
    ///
    /// # Errors
    /// `session_not_found`, `not_supported` without an agent.
    pub async fn show_prompt(&self, session: &SessionId) -> Result<PromptShown, Failure> {
        let cx = self.idle_context(session).await?;
        Ok(PromptShown { system: self.agent()?.system(&cx).await? })
    }

    fn agent(&self) -> Result<Arc<dyn TurnAgent>, Failure> {
        let agent = self.inner.turn_agent.get().cloned();
        agent.ok_or_else(|| Failure::new(Reason::NotSupported, "no agent is registered"))
    }

    /// A turn's view of a session in which no turn is at work.
    async fn idle_context(&self, session: &SessionId) -> Result<TurnContext, Failure> {
        let params = RunStartParams {
            session_id: session.clone(),
            turn_id: String::new(),
            input: Input::Text(String::new()),
            context: None,
            policy: None,
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
            return Err(Failure::new(Reason::SessionBusy, format!("a turn is active in session {session}")));
        }
        // A summary is of the records up to here.
        let head = self.inner.trace.session(session).await?.head_seq;
        let mut cx = self.idle_context(session).await?;
        // The user asked for it: their configuration alone decides whom may be asked.
        cx.allow_external();
        let messages = cx.conversation().await?.messages;
        let ask =
            Ask { system: self.agent()?.system(&cx).await?, messages, tools: cx.offers(), schema: None };
        match cx.condense(&ask).await {
            Ok((evt, Compaction { before, after })) => {
                self.request(session, Request::Compact { head, evt: Box::new(evt) }).await?;
                Ok(Compressed { tokens_before: before, tokens_after: after })
            }
            // There was nothing to condense, and nothing needs it.
            Err(failure) if failure.reason == Reason::ContextOverflow && !cx.is_nearly_full(&ask)? => {
                let tokens = cx.tokens(&ask)?;
                Ok(Compressed { tokens_before: tokens, tokens_after: tokens })
            }
            Err(failure) => Err(failure),
        }
    }

    /// Replaces the base of a session's system text, or brings the built-in one back. The conversation is emptied, since it
    /// was held under another text.
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
            return Err(Failure::new(Reason::TooLarge, format!("system has more than {MAX} bytes")));
        }
        if params.system.is_none() {
            prompt.appended.clear();
        }
        prompt.base = params.system;
        self.clear_conversation(&params.session_id, client).await?;
        self.keep_prompt(&params.session_id, &prompt).await?;
        self.show_prompt(&params.session_id).await
    }

    /// Adds to a session's system text; the conversation goes on.
    ///
    /// # Errors
    /// `session_not_found`, `too_large`.
    pub async fn append_prompt(&self, params: PromptAppendParams) -> Result<PromptShown, Failure> {
        self.inner.trace.session(&params.session_id).await?;
        let mut prompt = self.session_prompt(&params.session_id).await?;
        prompt.appended.push(params.text);
        if prompt.appended.iter().map(String::len).sum::<usize>() > MAX {
            return Err(Failure::new(Reason::TooLarge, format!("more than {MAX} bytes are appended")));
        }
        self.keep_prompt(&params.session_id, &prompt).await?;
        self.show_prompt(&params.session_id).await
    }

    /// Makes what is kept of a session's system text anew: the time, the project, the map. The conversation goes on.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn refresh_prompt(&self, session: &SessionId) -> Result<PromptShown, Failure> {
        self.inner.trace.session(session).await?;
        for part in PARTS {
            self.inner.trace.remove_artifact(session, part).await?;
        }
        self.show_prompt(session).await
    }
}
