//! Translation of session events to updates for the editor.

use std::sync::Arc;

use cairn_protocol::{
    approval::Approval,
    error::{Failure, Reason},
    event::AgentEvt,
    rpc,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Inner, PermissionRequest, update};
use crate::in_process::Notification;

/// An interruption of this operation ends a turn.
const TURN_OPERATION: &str = "turn";

/// Maximum number of early replay ends to remember.
const MAX_EARLY_REPLAYS: usize = 64;

/// Forwards events until the connection ends.
pub async fn run(agent: Arc<Inner>, mut notifications: mpsc::Receiver<Notification>) {
    while let Some(Notification { method, params }) = notifications.recv().await {
        match method.as_str() {
            rpc::EVENT => agent.handle_event(params).await,
            rpc::SYNCED => agent.handle_synced(&params),
            rpc::GONE => agent.subscription_removed(&params),
            _ => {}
        }
    }
}

impl Inner {
    async fn handle_event(self: &Arc<Self>, mut params: Value) {
        let Some(session) = params["sessionId"].as_str().map(str::to_owned) else { return };
        // Unknown events of a newer daemon are skipped.
        let Ok(evt) = serde_json::from_value::<AgentEvt>(params["evt"].take()) else { return };
        let updates = {
            let mut state = self.state();
            let turns = &state.turns;
            let mine = matches!(&evt, AgentEvt::TurnAccepted { turn_id, .. } if turns.contains_key(turn_id));
            let Some(open) = state.sessions.get_mut(&session) else { return };
            let past = open.replay_done.is_some();
            // The editor already displays its own user's input.
            if mine && !past {
                Vec::new()
            } else {
                update::updates_for(&evt, &mut open.displayed, &open.folder)
            }
        };
        for update in updates {
            self.update(&session, update).await;
        }
        match evt {
            AgentEvt::RunCompleted { result } => {
                let is_live = {
                    let state = self.state();
                    state.sessions.get(&session).is_some_and(|open| open.replay_done.is_none())
                };
                if is_live {
                    self.report_info(&session).await;
                }
                let turn = self.state().turns.remove(&result.turn_id);
                if let Some(turn) = turn {
                    let _receiver_dropped = turn.done.send(Ok(*result));
                }
            }
            AgentEvt::Interrupted { op } if op == TURN_OPERATION => {
                self.fail(
                    &session,
                    &Failure::new(Reason::ShuttingDown, "the turn was interrupted"),
                );
            }
            AgentEvt::ApprovalRequired { approval } if approval.resolution.is_none() => {
                self.request_permission(&session, *approval);
            }
            AgentEvt::ApprovalResolved { approval_id, .. } => {
                self.withdraw_permission(&session, &approval_id.to_string())
            }
            _ => {}
        }
    }

    fn handle_synced(self: &Arc<Self>, params: &Value) {
        let subscription = params["subscriptionId"].as_str().unwrap_or_default();
        let mut state = self.state();
        let entry = state.sessions.iter_mut().find(|(_, open)| {
            open.subscription.as_ref().is_some_and(|id| id.to_string() == subscription)
        });
        let Some((session, open)) = entry else {
            // The subscribe answer has not reached its caller yet.
            if state.early_replays.len() < MAX_EARLY_REPLAYS {
                state.early_replays.push(subscription.to_owned());
            }
            return;
        };
        let session = session.clone();
        let done = open.replay_done.take();
        drop(state);
        self.replay_finished(session, done);
    }

    /// Handles the end of a session's replay.
    pub fn replay_finished(self: &Arc<Self>, session: String, done: Option<oneshot::Sender<()>>) {
        let _receiver_dropped = done.map(|done| done.send(()));
        let this = Arc::clone(self);
        tokio::spawn(async move { this.request_open_permissions(&session).await });
    }

    fn subscription_removed(&self, params: &Value) {
        let subscription = params["subscriptionId"].as_str().unwrap_or_default();
        let session = {
            let state = self.state();
            let entry = state.sessions.iter().find(|(_, open)| {
                open.subscription.as_ref().is_some_and(|id| id.to_string() == subscription)
            });
            entry.map(|(session, _)| session.clone())
        };
        let Some(session) = session else { return };
        self.state().sessions.remove(&session);
        self.fail(&session, &Failure::new(Reason::Gone, "the session was deleted"));
    }

    /// Fails the pending prompts of a session.
    fn fail(&self, session: &str, failure: &Failure) {
        let mut state = self.state();
        let of: Vec<String> = state
            .turns
            .iter()
            .filter(|(_, t)| t.session == session)
            .map(|(id, _)| id.clone())
            .collect();
        for turn in of.iter().filter_map(|id| state.turns.remove(id)) {
            let _receiver_dropped = turn.done.send(Err(failure.clone()));
        }
    }

    /// Requests permission for approvals that were open before the editor connected.
    async fn request_open_permissions(self: &Arc<Self>, session: &str) {
        let params = json!({"sessionId": session});
        let Ok(list) = self.client.call("approval.list", &params).await else { return };
        for approval in list["data"].as_array().map_or(&[][..], Vec::as_slice) {
            let Ok(mut approval) = serde_json::from_value::<Approval>(approval.clone()) else {
                continue;
            };
            if approval.shortened {
                let params = json!({"approvalId": approval.approval_id});
                match self.client.request::<Approval>("approval.get", &params).await {
                    Ok(complete) => approval = complete,
                    Err(_) => continue,
                }
            }
            self.request_permission(session, approval);
        }
    }

    /// Requests permission from the editor's user, once per approval.
    fn request_permission(self: &Arc<Self>, session: &str, approval: Approval) {
        let (answer, answered) = oneshot::channel();
        let id = self.next_id();
        let name = approval.approval_id.to_string();
        let call = {
            let mut state = self.state();
            let Some(open) = state.sessions.get(session) else { return };
            // The replay contains approvals that were resolved long ago; those still open are
            // requested after it.
            if open.replay_done.is_some()
                || state.permission_requests.values().any(|request| request.approval == name)
            {
                return;
            }
            let call = update::permission_call(&approval, &open.displayed, &open.folder);
            state.permission_requests.insert(id, PermissionRequest { approval: name, answer });
            call
        };
        let params =
            json!({"sessionId": session, "toolCall": call, "options": update::options(&approval)});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        let this = Arc::clone(self);
        let session = session.to_owned();
        tokio::spawn(async move {
            this.send(request.to_string()).await;
            // The sender is dropped when another client resolves the approval.
            let Ok(response) = answered.await else { return };
            this.resolve(&session, &approval, &response).await;
        });
    }

    async fn resolve(&self, session: &str, approval: &Approval, response: &Value) {
        let outcome = &response["outcome"];
        let chosen = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let params = match chosen {
            Some(decision) => json!({"approvalId": approval.approval_id, "decision": decision}),
            // A prompt that is being cancelled dismisses its permission requests; otherwise no
            // approver is available.
            None => json!({
                "approvalId": approval.approval_id, "decision": "deny", "reason": "the editor did not answer",
            }),
        };
        // Fails if another client was faster; the record of that answer will follow.
        if let Err(failure) = self.client.call("approval.resolve", &params).await {
            tracing::debug!(%session, %failure, "an answer arrived too late");
        }
    }

    /// Withdraws a permission request that another client has resolved.
    fn withdraw_permission(self: &Arc<Self>, session: &str, approval: &str) {
        let mut state = self.state();
        let entry = state
            .permission_requests
            .iter()
            .find(|(_, request)| request.approval == approval)
            .map(|(id, _)| *id);
        let Some(id) = entry else { return };
        state.permission_requests.remove(&id);
        if state.cancelled.contains(session) {
            return;
        }
        drop(state);
        let note =
            json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
        let this = Arc::clone(self);
        tokio::spawn(async move { this.send(note.to_string()).await });
    }
}
