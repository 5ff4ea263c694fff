//! The state of a session as recorded in its log.

use std::collections::{HashMap, VecDeque};

use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::{RunId, SessionId},
    turn::{Input, RunStartParams},
};

use super::step::{QueuedRun, State};
use crate::{
    Engine,
    turns::{self, QueuedTurn},
};

/// Returns the rules' state, and the pending turns.
///
/// # Errors
/// `session_not_found`; errors of the log.
pub(super) async fn state(
    engine: &Engine,
    session: &SessionId,
) -> Result<(State<RunId>, HashMap<RunId, QueuedTurn>), Failure> {
    let row = engine.inner.trace.session(session).await?;
    if engine.inner.sessions.is_reserved(session) {
        return Err(Failure::new(
            Reason::SessionBusy,
            format!("session {session} is being replayed"),
        ));
    }
    // `running` without an actor: the end of its run could not be written.
    if !matches!(row.state, RunState::Interrupted | RunState::Running) {
        return Ok(Default::default());
    }
    let latest = engine.inner.trace.latest_run(session).await?;
    let Some(latest) = latest else { return Ok(Default::default()) };
    if latest.op != turns::OP {
        return Ok((State::recovered(VecDeque::new(), Some(latest.run)), HashMap::new()));
    }
    let pending = unfinished(engine, session).await?;
    let queue =
        pending.iter().map(|turn| QueuedRun { run: turn.run.clone(), started: turn.resumed });
    let state = State::recovered(queue.collect(), None);
    Ok((state, pending.into_iter().map(|turn| (turn.run.clone(), turn)).collect()))
}

/// Returns turns of the log that were accepted and have no terminal record, a started one first.
async fn unfinished(engine: &Engine, session: &SessionId) -> Result<Vec<QueuedTurn>, Failure> {
    let mut turns: Vec<QueuedTurn> = Vec::new();
    let visit = |record: Envelope| {
        let client = record.origin.and_then(|o| o.client);
        let Body::Evt { evt } = record.body else { return };
        match evt {
            AgentEvt::TurnAccepted { run_id: run, turn_id, input, policy, metadata } => {
                let params = RunStartParams {
                    session_id: session.clone(),
                    turn_id,
                    input: Input::Parts(input),
                    context: None,
                    policy,
                    metadata,
                };
                turns.push(QueuedTurn { run, params, client, resumed: false });
            }
            AgentEvt::RunStarted { run_id, .. } => {
                for turn in turns.iter_mut().filter(|t| t.run == run_id) {
                    turn.resumed = true;
                }
            }
            AgentEvt::RunCompleted { result } => turns.retain(|t| t.run != result.run_id),
            _ => {}
        }
    };
    engine.inner.trace.for_each_record(session, visit).await?;
    // Logs of earlier versions may contain turns that were accepted before it and never started.
    turns.sort_by_key(|turn| !turn.resumed);
    Ok(turns)
}
