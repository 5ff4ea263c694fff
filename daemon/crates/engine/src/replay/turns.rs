//! Replay of turns.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use cairn_harness::background::end_note;
use cairn_llm::{Provider, Recorded};
use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::{AgentEvt, ModelAnswer, ToolOutcome},
    id::RunId,
    model::Part,
    session::Session,
    time::Timestamp,
    trace::{ReplayDifference, ReplayReport},
    turn::{ExecutionPolicy, Input, Outcome, RunStartParams},
};
use cairn_trace::{Append, NewRecord, NewSession};
use serde_json::{Value, json};

use super::compare::{self, RootMapping};
use crate::{
    Engine, prompts, recorded,
    turns::{QueuedTurn, ReplayParts, ReplaySource},
};

/// One turn of the recorded trace.
struct Turn {
    run: RunId,
    turn_id: String,
    /// Start time; the model's prompt contained the date.
    began: Timestamp,
    input: Vec<Part>,
    policy: Option<ExecutionPolicy>,
    answers: Vec<ModelAnswer>,
    feed: ReplayParts,
    shown_chars: u64,
    status: Option<Outcome>,
    steps: Vec<(u64, String, Value)>,
    /// Results of undoing before the turn started, of which its model was informed.
    undone: Vec<AgentEvt>,
}

impl Engine {
    pub(super) async fn replay_turns(
        &self,
        session: &Session,
        records: &[Envelope],
        root: Option<&str>,
    ) -> Result<ReplayReport, Failure> {
        let turns = self.turns_of(records).await?;
        // Files that are not indexed yet would appear as missing.
        if let Some(root) = root.or(session.root.as_deref()) {
            self.index_is_current(root).await?;
        }
        let title = format!("replay of {}", session.session_id);
        let new = NewSession {
            title,
            root: root.map(str::to_owned).or_else(|| session.root.clone()),
            request: None,
        };
        let replay = self.inner.trace.create_session(new).await?.session_id;
        // The system text must be the recorded one.
        for name in prompts::PARTS.iter().copied().chain(["prompt.json"]) {
            if let Some(text) = self.inner.trace.artifact(&session.session_id, name).await? {
                self.inner.trace.append(Append::new(&replay, vec![]).artifact(name, text)).await?;
            }
        }
        let mut report = ReplayReport {
            trace_id: session.session_id.clone(),
            replay: replay.clone(),
            ..ReplayReport::default()
        };
        let mapping = RootMapping::new(session.root.as_deref(), root);
        for turn in turns {
            if turn.status.is_none_or(|s| s == Outcome::Cancelled) && turn.answers.is_empty() {
                continue;
            }
            let recorded = turn.steps.clone();
            let cancelled = turn.status.is_none_or(|s| s == Outcome::Cancelled);
            self.repeat_undone(&replay, &turn.undone).await?;
            let from = self.inner.trace.session(&replay).await?.head_seq;
            let differs = self.replay_turn(&replay, turn, &mapping).await?;
            let now = self.every_record(&replay).await?;
            let now: Vec<Envelope> = now.into_iter().filter(|r| r.seq > from).collect();
            let steps = steps(&now);
            let count = &mut report.compared;
            report.first =
                first_difference(&recorded, &steps, cancelled, count, &mapping).or(differs);
            if report.first.is_some() {
                break;
            }
        }
        report.identical = report.first.is_none();
        Ok(report)
    }

    /// Records the results of undoing again; no file is touched.
    async fn repeat_undone(
        &self,
        replay: &cairn_protocol::id::SessionId,
        undone: &[AgentEvt],
    ) -> Result<(), Failure> {
        if undone.is_empty() {
            return Ok(());
        }
        let record = |evt: &AgentEvt| NewRecord {
            id: uuid::Uuid::now_v7(),
            parent_id: None,
            origin: None,
            body: Body::Evt { evt: evt.clone() },
        };
        let records = undone.iter().map(record).collect();
        self.inner.trace.append(Append::new(replay, records)).await?;
        Ok(())
    }

    /// Replays one turn; returns the first reading call whose result differs now.
    async fn replay_turn(
        &self,
        replay: &cairn_protocol::id::SessionId,
        turn: Turn,
        mapping: &RootMapping,
    ) -> Result<Option<ReplayDifference>, Failure> {
        let provider = self.recorded_model(&turn.answers).await?;
        let run = RunId::new();
        let params = RunStartParams {
            session_id: replay.clone(),
            turn_id: turn.turn_id,
            input: Input::Parts(turn.input),
            context: None,
            policy: turn.policy,
            metadata: Default::default(),
        };
        let queued = QueuedTurn { run, params, client: Some("replay".into()), resumed: false };
        let feed = Arc::new(ReplaySource::new(turn.feed));
        self.take_recorded(
            replay,
            &queued,
            provider,
            Arc::clone(&feed),
            (turn.shown_chars, turn.began),
        )
        .await?;
        let differs = std::mem::take(&mut feed.parts().differs);
        Ok(differs.into_iter().find_map(|(name, was, is)| {
            compare::difference(0, format!("input of {name}"), &was, &is, mapping)
        }))
    }

    /// Returns a model that replays the recorded bytes.
    async fn recorded_model(&self, answers: &[ModelAnswer]) -> Result<Arc<dyn Provider>, Failure> {
        let mut bytes = Vec::new();
        for answer in answers {
            let blob = answer
                .raw
                .as_ref()
                .ok_or_else(|| missing("an answer's bytes were not recorded"))?;
            let text = self.inner.trace.complete_blob(&blob.sha256).await;
            let text = text.map_err(|_| missing("an answer's bytes are missing"))?;
            bytes.push(text.into_bytes());
        }
        let first = answers.first();
        let (name, model) =
            first.map_or(("scripted", ""), |a| (a.model.provider.as_str(), a.model.model.as_str()));
        let recorded = Recorded::new(name, model, bytes)?;
        Ok(Arc::new(recorded.with_context(first.and_then(|a| a.context_tokens))))
    }

    /// Returns the complete output of a call.
    async fn output_of(&self, outcome: &ToolOutcome) -> Result<Value, Failure> {
        Ok(match &outcome.blob {
            Some(blob) => {
                recorded::read_json_blob(&self.inner.trace, blob).await?.unwrap_or_default()
            }
            None => outcome.output.clone().unwrap_or_default(),
        })
    }

    async fn turns_of(&self, records: &[Envelope]) -> Result<Vec<Turn>, Failure> {
        let mut turns: Vec<Turn> = Vec::new();
        let mut pending_texts: Vec<(u64, String)> = Vec::new();
        let mut undone: Vec<AgentEvt> = Vec::new();
        let mut by_run: HashMap<RunId, Vec<Envelope>> = HashMap::new();
        for record in records {
            let run = record.origin.as_ref().and_then(|o| o.run_id.clone());
            if let Some(run) = &run {
                by_run.entry(run.clone()).or_default().push(record.clone());
            }
            let Body::Evt { evt } = &record.body else { continue };
            let of =
                |turns: &mut Vec<Turn>| turns.iter().position(|t| Some(&t.run) == run.as_ref());
            match evt {
                AgentEvt::TurnAccepted { .. } => turns.extend(accepted(record.ts, evt)),
                AgentEvt::RunStarted { shown_chars, .. } => {
                    if let Some(at) = of(&mut turns) {
                        (turns[at].shown_chars, turns[at].began) = (*shown_chars, record.ts);
                        turns[at].undone.append(&mut undone);
                    }
                }
                AgentEvt::Result { op, .. } if op == crate::undo::NAME => undone.push(evt.clone()),
                AgentEvt::BackgroundFinished { .. } if turns.iter().all(|t| t.status.is_some()) => {
                    undone.push(evt.clone());
                }
                AgentEvt::BackgroundFinished { id, command, state, exit_code, tail } => {
                    let note = end_note(id, command, *state, *exit_code, tail);
                    pending_texts.push((record.seq, note));
                }
                AgentEvt::Steered { text, .. } => pending_texts.push((record.seq, text.clone())),
                AgentEvt::ModelAnswer(answer) => {
                    if let Some(at) = of(&mut turns) {
                        let (received, later) = std::mem::take(&mut pending_texts)
                            .into_iter()
                            .partition(|(seq, _)| *seq <= answer.heard_seq);
                        pending_texts = later;
                        turns[at].feed.steering.push(received);
                        let ids = answer.calls.iter().map(|c| c.id.clone()).collect();
                        turns[at].feed.ids.push(ids);
                        turns[at].answers.push(answer.clone());
                    }
                }
                AgentEvt::Compacted { summary, .. } => {
                    if let Some(at) = of(&mut turns) {
                        turns[at].feed.summaries.push_back(summary.clone());
                    }
                }
                AgentEvt::ToolResult(outcome) => {
                    let value = self.output_of(outcome).await?;
                    if let Some(at) = of(&mut turns) {
                        turns[at]
                            .feed
                            .results
                            .insert(outcome.call_id.clone(), (outcome.clone(), value));
                    }
                }
                AgentEvt::RunCompleted { result } => {
                    if let Some(at) = of(&mut turns) {
                        turns[at].status = Some(result.status);
                    }
                }
                _ => {}
            }
        }
        for turn in &mut turns {
            turn.steps = steps(&by_run.remove(&turn.run).unwrap_or_default());
        }
        Ok(turns)
    }
}

/// Returns the turn of a `TurnAccepted`, without its answers and results.
fn accepted(ts: Timestamp, evt: &AgentEvt) -> Option<Turn> {
    let AgentEvt::TurnAccepted { run_id, turn_id, input, policy, .. } = evt else { return None };
    Some(Turn {
        run: run_id.clone(),
        turn_id: turn_id.clone(),
        began: ts,
        input: input.clone(),
        policy: policy.clone(),
        answers: vec![],
        feed: ReplayParts::default(),
        shown_chars: 0,
        status: None,
        steps: vec![],
        undone: vec![],
    })
}

fn missing(text: &str) -> Failure {
    Failure::new(Reason::BadTrace, format!("{text}: the trace cannot be replayed"))
}

/// Returns the compared steps of a turn: for each answer its request and content, then calls,
/// results and the final record.
fn steps(records: &[Envelope]) -> Vec<(u64, String, Value)> {
    let mut steps = Vec::new();
    let mut text = String::new();
    let mut answers = 0;
    let mut results: VecDeque<(u64, String, Value)> = VecDeque::new();
    for record in records {
        let Body::Evt { evt } = &record.body else { continue };
        match evt {
            AgentEvt::Text { reasoning: false, text: more, .. } => text.push_str(more),
            AgentEvt::ModelAnswer(answer) => {
                flush_sorted(&mut results, &mut steps);
                answers += 1;
                let what = json!({
                    "asked": answer.request_digest, "text": std::mem::take(&mut text), "calls": answer.calls,
                    "finish": answer.finish,
                });
                steps.push((record.seq, format!("answer {answers} of the model"), what));
            }
            AgentEvt::ToolResult(outcome) => {
                let what = json!({
                    "name": outcome.name, "error": outcome.error, "output": outcome.output, "blob": outcome.blob,
                });
                results.push_back((record.seq, format!("result of {}", outcome.call_id), what));
            }
            AgentEvt::Compacted { summary, kept, .. } => {
                steps.push((
                    record.seq,
                    "condensing".into(),
                    json!({"summary": summary, "kept": kept}),
                ));
            }
            AgentEvt::RunCompleted { result } => {
                flush_sorted(&mut results, &mut steps);
                let error = result.error.as_ref().map(|e| e.reason.clone());
                let what =
                    json!({"status": result.status, "output": result.final_output, "error": error});
                steps.push((record.seq, "the end of the turn".into(), what));
            }
            _ => {}
        }
    }
    steps
}

/// Sorts parallel results, which have no order of their own.
fn flush_sorted(
    results: &mut VecDeque<(u64, String, Value)>,
    steps: &mut Vec<(u64, String, Value)>,
) {
    let mut all: Vec<_> = std::mem::take(results).into();
    all.sort_by(|a, b| a.1.cmp(&b.1));
    steps.extend(all);
}

fn first_difference(
    was: &[(u64, String, Value)],
    is: &[(u64, String, Value)],
    cancelled: bool,
    compared: &mut u64,
    mapping: &RootMapping,
) -> Option<ReplayDifference> {
    for (at, (seq, what, recorded)) in was.iter().enumerate() {
        // The point at which a turn was cancelled depends on timing alone.
        if cancelled && at + 1 == was.len() {
            break;
        }
        *compared += 1;
        let (name, now) = is.get(at).map_or(("nothing", &Value::Null), |(_, n, v)| (n.as_str(), v));
        if name != what {
            return Some(ReplayDifference {
                seq: *seq,
                what: what.clone(),
                file: None,
                path: String::new(),
                recorded: what.clone(),
                now: name.to_owned(),
            });
        }
        if let Some(mismatch) = compare::difference(*seq, what.clone(), recorded, now, mapping) {
            return Some(mismatch);
        }
    }
    None
}
