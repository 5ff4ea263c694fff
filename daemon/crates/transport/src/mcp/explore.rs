//! The tool `explore`: starts an explore, reports its progress, waits, and returns the summary as
//! text.

use cairn_api::{Right, Rights};
use cairn_explore_report::markdown;
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExploreStartParams, ExploreStatus, RunReceipt, SessionRef},
    id::SessionId,
    rpc,
    session::{After, EventNotification, SubscribeParams, SubscribeResult},
};
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken, RequestMetaObject},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{builtin_tools, client::Client};
use crate::in_process::{InProcessClient, Notification};

/// Name of the tool and of the operation whose end is the end of the run.
pub const NAME: &str = "explore";

/// Arguments of the tool `explore`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explore {
    /// Questions about the project.
    #[serde(default)]
    goals: Vec<String>,
    /// A git revision: begins with what changed.
    since: Option<String>,
    root: Option<String>,
}

/// Aborts an explore whose caller is gone.
struct AbortOnDrop {
    api: InProcessClient,
    /// `None` once the explore has ended by itself.
    session: Option<SessionId>,
    runtime: tokio::runtime::Handle,
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let Some(session_id) = self.session.take() else { return };
        let api = self.api.clone();
        self.runtime.spawn(async move {
            let aborted: Result<Value, _> =
                api.request("orchestrate.explore.abort", &SessionRef { session_id }).await;
            if let Err(error) = aborted {
                tracing::debug!(%error, "an abandoned explore cannot be stopped");
            }
        });
    }
}

/// Runs an explore.
///
/// # Errors
/// `root_ambiguous` when the root is unclear, and the errors of the explore.
pub async fn call(
    client: &Client,
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<String, Failure> {
    let args: Explore = builtin_tools::arguments(NAME, arguments)?;
    let Some(root) = client.root(args.root.as_deref()).await? else {
        let text = "several roots are declared: specify one in 'root'; the resource cairn://roots lists them";
        let none = client.roots().await?.is_empty();
        let (reason, text) = if none {
            (Reason::NoRoots, "no root is declared")
        } else {
            (Reason::RootAmbiguous, text)
        };
        return Err(Failure::new(reason, text));
    };
    // A separate connection, so that its events do not delay other messages.
    let (api, events) =
        InProcessClient::open(&client.host.api, Rights::of(&[Right::Observe, Right::Prompt]))?;
    api.initialize(&client.caller.name, &client.caller.version, false).await?;
    let params = ExploreStartParams {
        root: Some(root.path),
        goals: args.goals,
        since: args.since,
        ..ExploreStartParams::default()
    };
    let receipt: RunReceipt = api.request("orchestrate.explore.start", &params).await?;
    let session_id = receipt.session_id.clone();
    let runtime = tokio::runtime::Handle::current();
    let mut abort = AbortOnDrop { api: api.clone(), session: Some(session_id.clone()), runtime };
    let after = Some(After::Seq(receipt.seq.saturating_sub(1)));
    let params = SubscribeParams { session_id: session_id.clone(), after };
    let _followed: SubscribeResult = api.request("orchestrate.subscribe", &params).await?;
    let progress = Progress::of(&context.meta, &context.peer);
    let outcome = follow(events, progress).await;
    abort.session = None;
    outcome?;
    let status: ExploreStatus = client
        .api
        .request("orchestrate.explore.status", &SessionRef { session_id: session_id.clone() })
        .await?;
    let matching = status
        .summary
        .ok_or_else(|| Failure::new(Reason::Internal, "the explore ended without a summary"))?;
    Ok(format!(
        "{}\nsession {session_id}: cairn://session/{session_id}\n",
        markdown::page(&matching)
    ))
}

/// Reports progress to a client that requested it.
pub struct Progress {
    to: Option<(ProgressToken, Peer<RoleServer>)>,
    steps: f64,
}

impl Progress {
    /// Creates a reporter for a call with this metadata.
    pub fn of(meta: &RequestMetaObject, peer: &Peer<RoleServer>) -> Self {
        Self { to: meta.get_progress_token().map(|token| (token, peer.clone())), steps: 0.0 }
    }

    /// Creates a reporter without a receiver.
    pub fn none() -> Self {
        Self { to: None, steps: 0.0 }
    }

    /// Reports one more step.
    pub async fn step(&mut self, message: &str) {
        self.steps += 1.0;
        let Some((token, peer)) = &self.to else { return };
        let message: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
        let notification =
            ProgressNotificationParam::new(token.clone(), self.steps).with_message(message);
        if let Err(error) = peer.notify_progress(notification).await {
            tracing::debug!(%error, "progress cannot be reported");
            self.to = None;
        }
    }
}

/// Reads events until the explore ends.
async fn follow(
    mut events: mpsc::Receiver<Notification>,
    mut progress: Progress,
) -> Result<(), Failure> {
    while let Some(notification) = events.recv().await {
        if notification.method == rpc::GONE {
            return Err(Failure::new(Reason::Gone, "the session of the explore was deleted"));
        }
        if notification.method != rpc::EVENT {
            continue;
        }
        // An unknown kind of record does not end an explore.
        let Ok(event) = serde_json::from_value::<EventNotification>(notification.params) else {
            continue;
        };
        let Some(event) = event.record.body.evt() else { continue };
        match event {
            AgentEvt::Completed { .. } => return Ok(()),
            AgentEvt::Error { op, message, reason, .. } if op == NAME => {
                let known =
                    Reason::ALL.iter().copied().find(|r| Some(r.as_str()) == reason.as_deref());
                return Err(Failure::new(known.unwrap_or(Reason::ToolFailed), message.clone()));
            }
            AgentEvt::Stopped { op, reason } if op == NAME => {
                return Err(Failure::new(
                    Reason::Cancelled,
                    format!("the explore was stopped: {reason}"),
                ));
            }
            AgentEvt::Interrupted { .. } => {
                return Err(Failure::new(
                    Reason::ShuttingDown,
                    "the daemon stopped before the explore finished",
                ));
            }
            AgentEvt::Started { op, details } => {
                let what = details.as_deref().map_or_else(|| op.clone(), |d| format!("{op} {d}"));
                progress.step(&what).await;
            }
            AgentEvt::Progress { op, percent, message } => {
                let what = message.clone().unwrap_or_else(|| format!("{op} {percent:.0} %"));
                progress.step(&what).await;
            }
            _ => {}
        }
    }
    Err(Failure::new(Reason::ShuttingDown, "the connection to the explore has ended"))
}
