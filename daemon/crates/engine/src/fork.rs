//! The part of a session's history that a fork receives.

use std::collections::HashSet;

use cairn_protocol::{
    envelope::{Body, Envelope, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    id::{RunId, SessionId},
    turn::{Outcome, RunResult},
};
use cairn_trace::{ForkCut, NewRecord, Trace};
use uuid::Uuid;

/// A turn as recorded in the log.
struct LoggedTurn {
    run: RunId,
    turn_id: String,
    started: Option<u64>,
    is_finished: bool,
}

/// Selects the records that a fork copies: the complete session, or all records of the turns that
/// were accepted before the turn `before`, including those recorded while that turn was queued.
///
/// # Errors
/// `run_not_found` when there is no such turn; errors of the log.
pub(crate) async fn cut(
    trace: &Trace,
    session: &SessionId,
    before: Option<&str>,
) -> Result<ForkCut, Failure> {
    let mut turns: Vec<LoggedTurn> = Vec::new();
    let mut records: Vec<(u64, Option<RunId>)> = Vec::new();
    let visit = |record: Envelope| {
        records.push((record.seq, run_of(&record)));
        note(record, &mut turns);
    };
    let head = trace.for_each_record(session, visit).await?;
    let first = match before {
        None => turns.len(),
        Some(name) => turns.iter().position(|turn| turn.turn_id == name).ok_or_else(|| {
            let text = format!("session {session} has no turn '{}'", name.escape_default());
            Failure::new(Reason::RunNotFound, text)
        })?,
    };
    let (earlier, later) = turns.split_at(first);
    // Later turns may have been accepted, and cancelled, while earlier ones ran; records that
    // belong only to them are left out.
    let starts = later.iter().filter_map(|turn| turn.started);
    let upto = match (starts.min(), before) {
        (Some(start), _) => start - 1,
        (None, _) => head,
    };
    // A turn that never started has no content, and its acceptance would have no final record.
    let unstarted = earlier
        .iter()
        .filter(|turn| turn.started.is_none_or(|start| start > upto) && !turn.is_finished);
    let out: HashSet<&RunId> = later.iter().chain(unstarted).map(|turn| &turn.run).collect();
    let left_out = records
        .iter()
        .filter(|(seq, run)| *seq <= upto && run.as_ref().is_some_and(|run| out.contains(run)))
        .map(|(seq, _)| *seq)
        .collect();
    let open = earlier
        .iter()
        .filter(|turn| turn.started.is_some_and(|start| start <= upto) && !turn.is_finished);
    let ends = open.map(|turn| end(session, turn)).collect();
    Ok(ForkCut { upto, omitted: left_out, ends })
}

/// Returns the run that a record belongs to.
fn run_of(record: &Envelope) -> Option<RunId> {
    match record.body.evt() {
        Some(AgentEvt::TurnAccepted { run_id, .. }) => Some(run_id.clone()),
        Some(AgentEvt::RunCompleted { result }) => Some(result.run_id.clone()),
        _ => record.origin.as_ref().and_then(|origin| origin.run_id.clone()),
    }
}

fn note(record: Envelope, turns: &mut Vec<LoggedTurn>) {
    let (seq, Body::Evt { evt }) = (record.seq, record.body) else { return };
    match evt {
        AgentEvt::TurnAccepted { run_id: run, turn_id, .. } => {
            turns.push(LoggedTurn { run, turn_id, started: None, is_finished: false });
        }
        AgentEvt::RunStarted { run_id, .. } => {
            turns
                .iter_mut()
                .filter(|turn| turn.run == run_id)
                .for_each(|turn| turn.started = Some(seq));
        }
        AgentEvt::RunCompleted { result } => {
            turns
                .iter_mut()
                .filter(|turn| turn.run == result.run_id)
                .for_each(|turn| turn.is_finished = true);
        }
        _ => {}
    }
}

/// Returns the final record, in the fork, of an interrupted turn: it continues in the original
/// session.
fn end(session: &SessionId, turn: &LoggedTurn) -> NewRecord {
    let result = RunResult {
        session_id: session.clone(),
        turn_id: turn.turn_id.clone(),
        run_id: turn.run.clone(),
        status: Outcome::Cancelled,
        final_output: None,
        usage: Default::default(),
        tool_trace: vec![],
        error: None,
        metadata: Default::default(),
    };
    let origin = Some(Origin { run_id: Some(turn.run.clone()), ..Origin::default() });
    let evt = AgentEvt::RunCompleted { result: Box::new(result) };
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } }
}
