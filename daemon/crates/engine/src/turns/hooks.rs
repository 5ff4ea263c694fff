//! Hooks of a turn: its message, its end, and the condensing of its conversation.

use cairn_harness::HookVerdict;
use cairn_protocol::{
    error::{Failure, Reason},
    plugin::HookEvent,
};

use super::{QueuedTurn, TurnContext};

/// Times that hooks may make one turn continue.
const MAX_CONTINUATIONS: u32 = 3;

impl TurnContext {
    /// Notifies hooks of the turn's message, whose texts the model then receives with it.
    ///
    /// # Errors
    /// `plugin_refused`; errors of the log.
    pub(crate) async fn notify_prompt(&self, turn: &QueuedTurn) -> Result<(), Failure> {
        if self.is_resumed() || self.feed().is_some() {
            return Ok(());
        }
        let session_id = self.session().clone();
        let prompt = turn.params.input.text();
        let event = || HookEvent::UserPrompt { session_id, prompt };
        let verdict = self.engine().notify_plugins(event).await;
        self.report(&verdict).await?;
        if let Some(why) = verdict.stop.or(verdict.refuse) {
            let text = format!("the message was not sent to the model: {why}");
            return Err(Failure::new(Reason::PluginRefused, text));
        }
        for text in verdict.context {
            self.note(&text).await?;
        }
        Ok(())
    }

    /// Returns false if a hook makes the turn continue, which is `continued` times so far; the
    /// model then receives the reason as its next message.
    ///
    /// # Errors
    /// `plugin_refused` when a hook ends the turn as failed; errors of the log.
    pub async fn may_stop(&self, text: &str, continued: u32) -> Result<bool, Failure> {
        if self.feed().is_some() {
            return Ok(true);
        }
        let event = || HookEvent::TurnStop {
            session_id: self.session().clone(),
            active: continued > 0,
            text: text.to_owned(),
        };
        let verdict = self.engine().notify_plugins(event).await;
        self.report(&verdict).await?;
        match verdict.refuse {
            None => Ok(true),
            Some(why) if continued >= MAX_CONTINUATIONS => {
                let text = format!(
                    "the turn ends although a hook refuses it: it continued {continued} times \
                    already: {why}"
                );
                self.warn("hooks", text).await?;
                Ok(true)
            }
            Some(why) => {
                self.note(&why).await?;
                Ok(false)
            }
        }
    }

    /// Notifies hooks that the conversation is about to be condensed.
    pub(super) async fn notify_compact(&self) {
        let session_id = self.session().clone();
        self.engine().notify_plugins(|| HookEvent::BeforeCompact { session_id }).await;
    }

    async fn report(&self, verdict: &HookVerdict) -> Result<(), Failure> {
        for notice in &verdict.notices {
            self.warn("hooks", notice.clone()).await?;
        }
        Ok(())
    }
}
