//! Replay of an explore.

use std::collections::HashMap;

use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::ExploreStartParams,
    id::SessionId,
    session::{After, Session},
    trace::ReplayReport,
};
use serde_json::{Value, json};

use super::compare::{self, RootMapping};
use crate::{Engine, explore, queue, record::Step, recorded};

/// The call that lists the contents of a tree.
const CONTENTS: &str = "list_contents";
/// Most changed files of a report.
const MAX_CHANGED: usize = 50;

/// A call and its outcome.
struct RecordedCall {
    seq: u64,
    name: String,
    outcome: Value,
}

impl Engine {
    pub(super) async fn replay_explore(
        &self,
        session: &Session,
        records: &[Envelope],
        root: Option<&str>,
    ) -> Result<ReplayReport, Failure> {
        let lost = || {
            Failure::new(Reason::BadTrace, "the trace does not record how the explore was started")
        };
        let trace = &self.inner.trace;
        let latest = match trace.latest_run(&session.session_id).await? {
            Some(latest) => Some(latest.params),
            None => trace.artifact(&session.session_id, cairn_trace::RUN_PARAMS).await?,
        };
        let params: Option<ExploreStartParams> =
            latest.and_then(|params| serde_json::from_str(&params).ok());
        let mapping = RootMapping::new(session.root.as_deref(), root);
        let root = root.map(str::to_owned).or_else(|| session.root.clone()).ok_or_else(lost)?;
        // A clone is not repeated: its result is the root.
        let mut params = params.unwrap_or_default();
        params = ExploreStartParams {
            root: Some(root),
            remote_url: None,
            session_id: None,
            request_id: None,
            ..params
        };
        let replay = self.explore_again(params).await?;
        let now = self.every_record(&replay).await?;
        let (was, is) = (self.recorded_calls(records).await?, self.recorded_calls(&now).await?);
        let mut report = ReplayReport {
            trace_id: session.session_id.clone(),
            replay,
            ..ReplayReport::default()
        };
        let known: HashMap<&str, &RecordedCall> =
            is.iter().map(|(key, call)| (key.as_str(), call)).collect();
        // The tree itself comes first: what differs in it explains the rest.
        let of_tree = |(_, call): &&(String, RecordedCall)| call.name == CONTENTS;
        if let Some((key, recorded)) = was.iter().find(of_tree) {
            let current = known.get(key.as_str()).map_or(&Value::Null, |call| &call.outcome);
            let changed = compare::changed_files(&recorded.outcome, current);
            report.changed_file_count = changed.len() as u64;
            report.changed_files = changed;
            report.changed_files.truncate(MAX_CHANGED);
        }
        for (key, recorded) in &was {
            report.compared += 1;
            let what = format!("call {}", recorded.name);
            let current = known.get(key.as_str()).map_or(&Value::Null, |call| &call.outcome);
            if let Some(difference) =
                compare::difference(recorded.seq, what, &recorded.outcome, current, &mapping)
            {
                report.first = Some(difference);
                break;
            }
        }
        if report.first.is_none() {
            report.compared += 1;
            let ((seq, was), (_, is)) = (summary(records), summary(&now));
            report.first = compare::difference(seq, "the summary".into(), &was, &is, &mapping);
        }
        report.identical = report.first.is_none();
        Ok(report)
    }

    /// Explores a root and waits for the end; returns the new session.
    async fn explore_again(&self, params: ExploreStartParams) -> Result<SessionId, Failure> {
        let receipt = self.explore_declared_root(params, Some("replay".into())).await?;
        let replay = receipt.session_id.clone();
        let (mut follower, _) = self.inner.trace.follow(&replay, &After::Seq(0)).await?;
        'follow: loop {
            match follower.step().await? {
                Step::Records(lines) => {
                    for line in lines {
                        let envelope: Option<Envelope> = serde_json::from_str(&line).ok();
                        if envelope
                            .is_some_and(|e| e.body.evt().is_some_and(|evt| evt.ends(explore::OP)))
                        {
                            break 'follow;
                        }
                    }
                }
                Step::Deleted => {
                    return Err(Failure::new(Reason::Gone, "the replay's session was deleted"));
                }
                Step::Synced(_) | Step::Lagged(_) | Step::Ephemeral(_) => {}
            }
        }
        Ok(replay)
    }

    /// Returns calls in the order of the log, by operation. Calls that update the index report its
    /// state, not the tree, and are left out.
    async fn recorded_calls(
        &self,
        records: &[Envelope],
    ) -> Result<Vec<(String, RecordedCall)>, Failure> {
        let mut open = HashMap::new();
        let mut calls = Vec::new();
        for record in records {
            match &record.body {
                Body::Cmd { cmd } => {
                    open.insert(record.id, cmd.clone().into_call());
                }
                Body::Evt { evt } => {
                    let Some(call) = record.parent_id.and_then(|id| open.get(&id)) else {
                        continue;
                    };
                    let outcome = match evt {
                        AgentEvt::Result { data: Some(data), .. } => data.clone(),
                        AgentEvt::Result { blob: Some(blob), .. } => {
                            recorded::read_json_blob(&self.inner.trace, blob)
                                .await?
                                .unwrap_or_default()
                        }
                        AgentEvt::Error { reason, .. } => json!({"error": reason}),
                        _ => continue,
                    };
                    if !call.name.starts_with("index_") && call.name != "git_clone" {
                        let (seq, name) = (record.seq, call.name.clone());
                        calls.push((queue::key(call), RecordedCall { seq, name, outcome }));
                    }
                }
            }
        }
        Ok(calls)
    }
}

fn summary(records: &[Envelope]) -> (u64, Value) {
    let completed = records.iter().rev().find_map(|r| match r.body.evt() {
        Some(AgentEvt::Completed { summary }) => {
            let mut value = serde_json::to_value(summary).unwrap_or_default();
            // The duration and the progress of the index are no part of the result.
            if let Some(details) = value.get_mut("details").and_then(Value::as_object_mut) {
                details.remove("stats");
            }
            Some((r.seq, value))
        }
        _ => None,
    });
    completed.unwrap_or_default()
}
