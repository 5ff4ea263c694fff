//! Background commands of a session: their ends reach its turns, and they end with it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use cairn_harness::{
    OutputPiece, OutputSink,
    background::{Background, end_note},
};
use cairn_protocol::{
    background::{BackgroundCommand, BackgroundOutput, BackgroundState},
    error::Failure,
    event::AgentEvt,
    id::SessionId,
};
use cairn_trace::Append;

use super::TurnContext;
use crate::{Engine, engine::Inner};

/// Delivers the ends of commands to the active turns of their sessions.
pub(crate) fn listen(background: &Background, inner: &Arc<Inner>) {
    let inner: Weak<Inner> = Arc::downgrade(inner);
    background.set_listener(Box::new(move |session, seq, note| {
        let Some(inner) = inner.upgrade() else { return };
        // Without a turn the next one reads it from the log.
        if let Some(turn) = inner.sessions.view(session).turn {
            super::context::locked(&turn.steering).push((seq, note));
        }
    }));
}

impl TurnContext {
    /// Records the end of commands that an earlier daemon started and that ended with it.
    pub(super) async fn end_lost_commands(
        &self,
        running: BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let background = self.engine().inner.harness.background();
        if self.feed().is_some() {
            return Ok(());
        }
        for (id, command) in running.into_iter().filter(|(id, _)| !background.has_started(id)) {
            let state = BackgroundState::DaemonStopped;
            let note = end_note(&id, &command, state, None, "");
            let tail = String::new();
            let evt = AgentEvt::BackgroundFinished { id, command, state, exit_code: None, tail };
            let append = Append::new(self.session(), vec![self.record(None, None, evt)]);
            let seq = self.engine().inner.trace.append(append).await?.first;
            self.deliver(seq, note);
        }
        Ok(())
    }

    /// Returns a receiver that publishes the output of a call's command.
    pub(super) fn output_sink(&self, call_id: &str) -> OutputSink {
        let (cx, call_id) = (self.clone(), call_id.to_owned());
        OutputSink(Arc::new(move |piece: OutputPiece| {
            let OutputPiece { text, dropped } = piece;
            cx.pass(&AgentEvt::CommandOutput { call_id: call_id.clone(), text, dropped });
        }))
    }
}

impl Engine {
    /// Returns the background commands of a session, oldest first.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn background_commands(
        &self,
        session: &SessionId,
    ) -> Result<Vec<BackgroundCommand>, Failure> {
        self.inner.trace.session(session).await?;
        Ok(self.inner.harness.background().list(session))
    }

    /// Returns the output of a background command from a position on.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for an id that the session does not have.
    pub async fn background_output(
        &self,
        session: &SessionId,
        id: &str,
        cursor: u64,
    ) -> Result<BackgroundOutput, Failure> {
        self.inner.trace.session(session).await?;
        self.inner.harness.background().output(session, id, cursor)
    }

    /// Stops a background command, and waits until it has ended.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for an id that the session does not have;
    /// `tool_timed_out`.
    pub async fn stop_background(
        &self,
        session: &SessionId,
        id: &str,
    ) -> Result<BackgroundCommand, Failure> {
        self.inner.trace.session(session).await?;
        self.inner.harness.background().stop(session, id).await
    }
}
