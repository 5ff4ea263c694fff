//! Requests to a session's actor, and their results.

use cairn_protocol::{
    approval::{Approval, ApprovalResolveParams},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExploreStartParams, RunReceipt},
    id::RunId,
    session::Session,
    turn::RunStartParams,
};
use tokio::sync::oneshot;

use crate::RunContext;

/// An explore that was validated: its root is declared.
pub(crate) struct ExploreStart {
    pub cx: RunContext,
    pub params: ExploreStartParams,
    /// Scope, key and digest of its receipt.
    pub retry: Option<(String, String, String)>,
}

pub(crate) enum Request {
    Start {
        params: Box<RunStartParams>,
        client: Option<String>,
    },
    StartExplore(Box<ExploreStart>),
    /// Resumes an interrupted run; with the explore to resume, if the interrupted run is one.
    Resume(Option<Box<ExploreStart>>),
    /// Cancels the turn of that id; the active one when `None`.
    Cancel(Option<String>),
    Abort,
    Steer {
        text: String,
        client: Option<String>,
    },
    Answer {
        params: ApprovalResolveParams,
        run: Option<RunId>,
        by: String,
    },
    Fork {
        before: Option<String>,
        title: Option<String>,
    },
    Archive(bool),
    /// Clears the conversation, for the named client.
    Clear(Option<String>),
    /// Replaces the conversation by a summary, provided that it still ends at record `head`.
    Compact {
        head: u64,
        evt: Box<AgentEvt>,
    },
    Delete,
}

/// Result of a request.
#[derive(Debug)]
pub(crate) enum Response {
    Receipt(RunReceipt),
    Approval(Box<Approval>),
    Session(Box<Session>),
    Nothing,
}

pub(super) type Reply = oneshot::Sender<Result<Response, Failure>>;

fn unexpected_response<T>() -> Result<T, Failure> {
    Err(Failure::new(Reason::Internal, "a session's actor answered another request"))
}

impl Response {
    pub fn receipt(self) -> Result<RunReceipt, Failure> {
        if let Response::Receipt(receipt) = self { Ok(receipt) } else { unexpected_response() }
    }

    pub fn approval(self) -> Result<Approval, Failure> {
        if let Response::Approval(approval) = self { Ok(*approval) } else { unexpected_response() }
    }

    pub fn session(self) -> Result<Session, Failure> {
        if let Response::Session(session) = self { Ok(*session) } else { unexpected_response() }
    }
}
