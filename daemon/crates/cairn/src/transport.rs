//! A transport of the host's own: it delivers requests to a session and takes its events, in
//! whatever form its other side has.
//!
//! ```
//! use std::sync::Mutex;
//!
//! use cairn::{AgentEvent, AgentRequest, AgentTransport, Failure, Scripted, ScriptedAnswer, Step};
//!
//! /// Requests from a list, events into another.
//! struct Lists {
//!     requests: Mutex<Vec<AgentRequest>>,
//!     texts: Mutex<Vec<String>>,
//! }
//!
//! #[async_trait::async_trait]
//! impl AgentTransport for Lists {
//!     async fn receive(&self) -> Result<Option<AgentRequest>, Failure> {
//!         Ok(self.requests.lock().unwrap().pop())
//!     }
//!
//!     async fn send(&self, event: AgentEvent) -> Result<(), Failure> {
//!         if let AgentEvent::Finished(result) = event {
//!             self.texts.lock().unwrap().extend(result.final_output);
//!         }
//!         Ok(())
//!     }
//!
//!     async fn close(&self) {}
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Failure> {
//! let answer = ScriptedAnswer::new(vec![Step::Text("hello".into())]);
//! let model = std::sync::Arc::new(Scripted::new(vec![answer]));
//! let session = cairn::Session::provider(model).init().await?;
//! let requests = vec![AgentRequest::Run { text: "hi".into(), context: None }];
//! let lists = Lists { requests: Mutex::new(requests), texts: Mutex::default() };
//! session.serve(&lists).await?;
//! assert_eq!(*lists.texts.lock().unwrap(), ["hello"]);
//! # Ok(())
//! # }
//! ```

use cairn_engine::record::Step;
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalResolveParams},
    error::{Failure, Reason},
    event::AgentEvt,
    id::ApprovalId,
    session::{After, LiveWord},
    tool::{ToolCallParams, ToolResult},
    turn::{RunResult, TurnContext, TurnRef},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::Session;

/// A request that a transport delivers.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRequest {
    /// Starts a turn, or queues it behind the running one.
    Run {
        /// Text of the message.
        text: String,
        /// Context that precedes the message.
        context: Option<TurnContext>,
    },
    /// Cancels the running turn.
    Cancel,
    /// Answers an approval request.
    Approve {
        /// Id of the approval.
        approval: ApprovalId,
        /// The decision about it.
        decision: ApprovalDecision,
    },
}

/// An event that a transport takes.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// An event of the session.
    Event(Box<AgentEvt>),
    /// The end of a turn with its result.
    Finished(Box<RunResult>),
    /// A request that was refused.
    Refused(Failure),
}

/// A transport between a session and its client. Framing and serialisation are its own; a slow
/// `send` holds back the events behind it, and nothing else.
#[async_trait::async_trait]
pub trait AgentTransport: Send + Sync {
    /// Returns the next request; `None` at the end of the input, after which running turns still
    /// send their events.
    ///
    /// # Errors
    /// A failure ends the service; running turns continue.
    async fn receive(&self) -> Result<Option<AgentRequest>, Failure>;

    /// Sends an event.
    ///
    /// # Errors
    /// A failure ends the service; running turns continue.
    async fn send(&self, event: AgentEvent) -> Result<(), Failure>;

    /// Closes the transport, after the last event.
    async fn close(&self);
}

/// Executes tool calls. A [`Session`] is one: each call passes its gate.
#[async_trait::async_trait]
pub trait ToolHarness: Send + Sync {
    /// Executes a call. The result contains the failure of a call that was refused or failed.
    ///
    /// # Errors
    /// The call could not be recorded.
    async fn execute(&self, tool: &str, arguments: Value) -> Result<ToolResult, Failure>;
}

#[async_trait::async_trait]
impl ToolHarness for Session {
    async fn execute(&self, tool: &str, arguments: Value) -> Result<ToolResult, Failure> {
        let session_id = self.id().clone();
        let params = ToolCallParams { session_id, name: tool.to_owned(), arguments };
        self.engine().call_tool(params, None).await
    }
}

impl Session {
    /// Serves a transport until its input has ended and all of its turns have, or it fails. The
    /// other side answers approvals.
    ///
    /// # Errors
    /// The failure of the transport or of the log.
    pub async fn serve(&self, transport: &(impl AgentTransport + ?Sized)) -> Result<(), Failure> {
        let _approver = self.engine().approver();
        let open = watch::Sender::new(0_i64);
        let outcome = tokio::select! {
            outcome = self.forward_events(transport, &open) => outcome,
            outcome = self.take_requests(transport, &open) => outcome,
        };
        transport.close().await;
        outcome
    }

    /// Handles requests until the input has ended and no turn is open.
    async fn take_requests(
        &self,
        transport: &(impl AgentTransport + ?Sized),
        open: &watch::Sender<i64>,
    ) -> Result<(), Failure> {
        while let Some(request) = transport.receive().await? {
            let outcome = match request {
                AgentRequest::Run { text, context } => {
                    let params = self.turn(text, context);
                    // Counted before its end can be received.
                    open.send_modify(|count| *count += 1);
                    let started = self.engine().start_run(params, None).await.map(drop);
                    if started.is_err() {
                        open.send_modify(|count| *count -= 1);
                    }
                    started
                }
                AgentRequest::Cancel => {
                    let turn = TurnRef { session_id: self.id().clone(), turn_id: None };
                    self.engine().cancel_run(turn).await.map(drop)
                }
                AgentRequest::Approve { approval, decision } => {
                    let params = ApprovalResolveParams {
                        approval_id: approval,
                        decision,
                        reason: None,
                        pattern: None,
                        values: Default::default(),
                    };
                    self.engine().resolve_approval(params, "transport").await.map(drop)
                }
            };
            if let Err(refused) = outcome {
                transport.send(AgentEvent::Refused(refused)).await?;
            }
        }
        // The sender lives as long as this function's caller.
        let mut count = open.subscribe();
        let _finished = count.wait_for(|count| *count <= 0).await;
        Ok(())
    }

    async fn forward_events(
        &self,
        transport: &(impl AgentTransport + ?Sized),
        open: &watch::Sender<i64>,
    ) -> Result<(), Failure> {
        let (mut follower, _) =
            self.engine().trace().follow(self.id(), &After::Word(LiveWord::Live)).await?;
        loop {
            let lines = match follower.step().await? {
                Step::Ephemeral(lines) | Step::Records(lines) => lines,
                Step::Synced(_) | Step::Lagged(_) => continue,
                Step::Deleted => return Err(Failure::new(Reason::Gone, "the session was deleted")),
            };
            for line in lines.iter() {
                self.forward(line, transport, open).await?;
            }
        }
    }

    async fn forward(
        &self,
        line: &str,
        transport: &(impl AgentTransport + ?Sized),
        open: &watch::Sender<i64>,
    ) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Line {
            evt: Option<AgentEvt>,
        }
        let Ok(Line { evt: Some(evt) }) = serde_json::from_str(line) else { return Ok(()) };
        if let AgentEvt::RunCompleted { result } = evt {
            transport.send(AgentEvent::Finished(result)).await?;
            open.send_modify(|count| *count -= 1);
            return Ok(());
        }
        transport.send(AgentEvent::Event(Box::new(evt))).await
    }
}
