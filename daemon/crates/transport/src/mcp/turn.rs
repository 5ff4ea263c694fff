//! The tool `run_turn`: a turn of Cairn's own agent in the client's session, for clients whose user
//! offers it.

use cairn_api::{Right, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunReceipt,
    id::RunId,
    rpc,
    session::{After, EventNotification, SubscribeParams, SubscribeResult},
    turn::{ExecutionPolicy, Input, RunResult, RunStartParams, TurnRef},
};
use rmcp::{
    RoleServer,
    model::{Tool, ToolAnnotations},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    builtin_tools, client::Client, explore::Progress, format, pending, schema::simplified,
};
use crate::in_process::{InProcessClient, Notification};

/// Name of the tool.
pub const NAME: &str = cairn_protocol::mcp::TURN_TOOL;

/// Arguments of the tool `run_turn`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunTurn {
    /// The task or question; the agent knows the earlier turns of this connection.
    prompt: String,
    /// True to describe changes without making them.
    #[serde(default)]
    dry_run: bool,
}

/// Returns the tool as clients list it.
pub fn tool() -> Tool {
    let text = "Gives a task to Cairn's agent, which works in the root of this connection with the \
        model and under the rules of the user's configuration, and returns its answer. What needs \
        an approval is asked in the user's other clients of Cairn, and denied if there is none.";
    let hints = ToolAnnotations::new().read_only(false).destructive(true).open_world(true);
    let schema = schemars::schema_for!(RunTurn).to_value();
    Tool::new(NAME, text, simplified(schema)).with_annotations(hints)
}

/// Cancels a turn whose caller is gone.
struct CancelOnDrop {
    api: InProcessClient,
    /// `None` once the turn has ended by itself.
    turn: Option<TurnRef>,
    runtime: tokio::runtime::Handle,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let api = self.api.clone();
        self.runtime.spawn(async move {
            let cancelled: Result<Value, _> = api.request("orchestrate.run.cancel", &turn).await;
            if let Err(error) = cancelled {
                tracing::debug!(%error, "an abandoned turn cannot be cancelled");
            }
        });
    }
}

/// Runs a turn.
///
/// # Errors
/// `invalid_params`, and the reason why the turn did not complete.
pub async fn call(
    client: &Client,
    arguments: &Value,
    context: &RequestContext<RoleServer>,
) -> Result<String, Failure> {
    let args: RunTurn = builtin_tools::arguments(NAME, arguments)?;
    let session_id = client.session().await?;
    // A separate connection, so that its events do not delay other messages.
    let (api, events) =
        InProcessClient::open(&client.host.api, Rights::of(&[Right::Observe, Right::Prompt]))?;
    api.initialize(&client.caller.name, &client.caller.version, false).await?;
    let turn_id = RunId::new().to_string();
    let params = RunStartParams {
        session_id: session_id.clone(),
        turn_id: turn_id.clone(),
        input: Input::Text(args.prompt),
        context: None,
        // The user chose the model in the configuration, which must allow external models as well.
        policy: Some(ExecutionPolicy {
            allow_external_llms: true,
            dry_run: args.dry_run,
            ..ExecutionPolicy::default()
        }),
        metadata: Default::default(),
    };
    let receipt: RunReceipt = api.request("orchestrate.run.start", &params).await?;
    let turn = TurnRef { session_id: session_id.clone(), turn_id: Some(turn_id.clone()) };
    let runtime = tokio::runtime::Handle::current();
    let mut cancel = CancelOnDrop { api: api.clone(), turn: Some(turn), runtime };
    let after = Some(After::Seq(receipt.seq.saturating_sub(1)));
    let params = SubscribeParams { session_id: session_id.clone(), after };
    let _followed: SubscribeResult = api.request("orchestrate.subscribe", &params).await?;
    let progress = Progress::of(&context.meta, &context.peer);
    let result = follow(events, &turn_id, progress).await;
    cancel.turn = None;
    rendered(result?)
}

fn rendered(result: RunResult) -> Result<String, Failure> {
    if let Some(error) = result.error {
        let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == error.reason);
        return Err(Failure::new(reason.unwrap_or(Reason::ToolFailed), error.message));
    }
    let text = result.final_output.unwrap_or_default();
    let text = format::bounded(text, format::MAX_ANSWER, "read the session's resource");
    let session = result.session_id;
    Ok(format!("{text}\n\nsession {session}: cairn://session/{session}\n"))
}

/// Reads events until the turn ends.
async fn follow(
    mut events: mpsc::Receiver<Notification>,
    turn_id: &str,
    mut progress: Progress,
) -> Result<RunResult, Failure> {
    while let Some(notification) = events.recv().await {
        if notification.method == rpc::GONE {
            return Err(Failure::new(Reason::Gone, "the session of the turn was deleted"));
        }
        if notification.method != rpc::EVENT {
            continue;
        }
        // An unknown kind of record does not end a turn.
        let Ok(event) = serde_json::from_value::<EventNotification>(notification.params) else {
            continue;
        };
        match event.record.body.evt() {
            Some(AgentEvt::RunCompleted { result }) if result.turn_id == turn_id => {
                return Ok((**result).clone());
            }
            Some(AgentEvt::ToolCall { name, .. }) => progress.step(name).await,
            Some(AgentEvt::ApprovalRequired { approval }) => {
                progress.step(&pending::text(approval)).await
            }
            Some(AgentEvt::Interrupted { op }) if op == "turn" => {
                let text = "the daemon stopped before the turn finished";
                return Err(Failure::new(Reason::ShuttingDown, text));
            }
            _ => {}
        }
    }
    Err(Failure::new(Reason::ShuttingDown, "the connection to the turn has ended"))
}
