//! From the events of sessions to what an editor is told.

use std::sync::Arc;

use cairn_protocol::{
    approval::Approval,
    error::{Failure, Reason},
    event::AgentEvt,
    rpc,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Asked, Inner, update};
use crate::queue::Notification;

/// The operation whose interruption ends a turn.
const TURN: &str = "turn";

/// Subscriptions of which that is remembered at most.
const EARLY: usize = 64;

/// Tells what comes until the connection ends.
pub async fn run(agent: Arc<Inner>, mut notifications: mpsc::Receiver<Notification>) {
    while let Some(Notification { method, params }) = notifications.recv().await {
        match method.as_str() {
            rpc::EVENT => agent.event(params).await,
            rpc::SYNCED => agent.synced(&params),
            rpc::GONE => agent.gone(&params),
            _ => {}
        }
    }
}

impl Inner {
    async fn event(self: &Arc<Self>, mut params: Value) {
        let Some(session) = params["sessionId"].as_str().map(str::to_owned) else { return };
        // What a newer daemon tells is left alone.
        let Ok(evt) = serde_json::from_value::<AgentEvt>(params["evt"].take()) else { return };
        let updates = {
            let mut state = self.state();
            let turns = &state.turns;
            let mine = matches!(&evt, AgentEvt::TurnAccepted { turn_id, .. } if turns.contains_key(turn_id));
            let Some(open) = state.sessions.get_mut(&session) else { return };
            let past = open.replayed.is_some();
            // The editor shows what its own user has typed.
            if mine && !past { Vec::new() } else { update::of(&evt, &mut open.shown, &open.folder) }
        };
        for update in updates {
            self.update(&session, update).await;
        }
        match evt {
            AgentEvt::RunCompleted { result } => {
                let turn = self.state().turns.remove(&result.turn_id);
                if let Some(turn) = turn {
                    let _left = turn.ended.send(Ok(*result));
                }
            }
            AgentEvt::Interrupted { op } if op == TURN => {
                self.fail(&session, &Failure::new(Reason::ShuttingDown, "the turn was interrupted"));
            }
            AgentEvt::ApprovalRequired { approval } if approval.resolution.is_none() => {
                self.ask(&session, *approval);
            }
            AgentEvt::ApprovalResolved { approval_id, .. } => {
                self.resolved(&session, &approval_id.to_string())
            }
            _ => {}
        }
    }

    fn synced(self: &Arc<Self>, params: &Value) {
        let subscription = params["subscriptionId"].as_str().unwrap_or_default();
        let mut state = self.state();
        let found = state
            .sessions
            .iter_mut()
            .find(|(_, open)| open.subscription.as_ref().is_some_and(|id| id.to_string() == subscription));
        let Some((session, open)) = found else {
            // The answer to the subscribing is on its way to whoever waits for it.
            if state.early.len() < EARLY {
                state.early.push(subscription.to_owned());
            }
            return;
        };
        let (session, told) = (session.clone(), open.replayed.take());
        drop(state);
        self.told(session, told);
    }

    /// The past of a session was told.
    pub fn told(self: &Arc<Self>, session: String, told: Option<oneshot::Sender<()>>) {
        let _left = told.map(|told| told.send(()));
        let this = Arc::clone(self);
        tokio::spawn(async move { this.ask_again(&session).await });
    }

    fn gone(&self, params: &Value) {
        let subscription = params["subscriptionId"].as_str().unwrap_or_default();
        let session = {
            let state = self.state();
            let found = state.sessions.iter().find(|(_, open)| {
                open.subscription.as_ref().is_some_and(|id| id.to_string() == subscription)
            });
            found.map(|(session, _)| session.clone())
        };
        let Some(session) = session else { return };
        self.state().sessions.remove(&session);
        self.fail(&session, &Failure::new(Reason::Gone, "the session was deleted"));
    }

    /// Ends the prompts of a session with an error.
    fn fail(&self, session: &str, failure: &Failure) {
        let mut state = self.state();
        let of: Vec<String> =
            state.turns.iter().filter(|(_, t)| t.session == session).map(|(id, _)| id.clone()).collect();
        for turn in of.iter().filter_map(|id| state.turns.remove(id)) {
            let _left = turn.ended.send(Err(failure.clone()));
        }
    }

    /// Asks about what was open before the editor came.
    async fn ask_again(self: &Arc<Self>, session: &str) {
        let params = json!({"sessionId": session});
        let Ok(list) = self.queue.call("approval.list", &params).await else { return };
        for approval in list["data"].as_array().map_or(&[][..], Vec::as_slice) {
            if let Ok(approval) = serde_json::from_value::<Approval>(approval.clone()) {
                self.ask(session, approval);
            }
        }
    }

    /// Asks the editor's user, once for each approval.
    fn ask(self: &Arc<Self>, session: &str, approval: Approval) {
        let (answer, answered) = oneshot::channel();
        let (id, name) = (self.next_id(), approval.approval_id.to_string());
        let call = {
            let mut state = self.state();
            let Some(open) = state.sessions.get(session) else { return };
            // The past holds questions that were answered long ago; those still open are asked when it is told.
            if open.replayed.is_some() || state.asked.values().any(|asked| asked.approval == name) {
                return;
            }
            let call = update::asked(&approval, &open.shown, &open.folder);
            state.asked.insert(id, Asked { approval: name, answer });
            call
        };
        let params = json!({"sessionId": session, "toolCall": call, "options": update::options(&approval)});
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        let (this, session) = (Arc::clone(self), session.to_owned());
        tokio::spawn(async move {
            this.say(request.to_string()).await;
            // Dropped when somebody else has answered.
            let Ok(said) = answered.await else { return };
            this.resolve(&session, &approval, &said).await;
        });
    }

    async fn resolve(&self, session: &str, approval: &Approval, said: &Value) {
        let outcome = &said["outcome"];
        let chosen = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let params = match chosen {
            Some(decision) => json!({"approvalId": approval.approval_id, "decision": decision}),
            // A prompt that is being cancelled takes its questions with it; else nobody is there to decide.
            None => json!({
                "approvalId": approval.approval_id, "decision": "deny", "reason": "the editor gave no answer",
            }),
        };
        // Refused when another was faster; the record of that answer is on the way.
        if let Err(failure) = self.queue.call("approval.resolve", &params).await {
            tracing::debug!(%session, %failure, "an answer came too late");
        }
    }

    /// Somebody has answered: the editor need not.
    fn resolved(self: &Arc<Self>, session: &str, approval: &str) {
        let mut state = self.state();
        let found = state.asked.iter().find(|(_, asked)| asked.approval == approval).map(|(id, _)| *id);
        let Some(id) = found else { return };
        state.asked.remove(&id);
        if state.cancelled.contains(session) {
            return;
        }
        drop(state);
        let note = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
        let this = Arc::clone(self);
        tokio::spawn(async move { this.say(note.to_string()).await });
    }
}
