//! Effects of single calls that take more than the right their method needs. Nothing else decides about them.

use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalResolveParams},
    error::{Failure, Reason},
    explore::ExploreStartParams,
    turn::{ProviderSetParams, RunStartParams, SandboxUse},
};

use crate::{connection::Caller, method::Right};

/// An effect that takes the right `admin`, by whatever method it comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// A folder becomes a root, and so can be read.
    DeclareRoot,
    /// Commands run outside the sandbox.
    LeaveSandbox,
    /// A rule is written that holds for good.
    GrantRule,
    /// A model is called somewhere else than where the configuration says.
    MoveModel,
}

impl Effect {
    fn text(self) -> &'static str {
        match self {
            Self::DeclareRoot => "declaring a folder as a root",
            Self::LeaveSandbox => "policy.sandbox 'off'",
            Self::GrantRule => "an answer that grants a rule for good",
            Self::MoveModel => "an endpoint of its own for a model",
        }
    }
}

fn require(cx: &Caller, effect: Effect) -> Result<(), Failure> {
    if cx.connection.holds(Right::Admin) {
        return Ok(());
    }
    let text = format!("{} needs the right admin, which this connection has not been given", effect.text());
    Err(Failure::new(Reason::RightMissing, text))
}

/// Effects of a call beyond those of its method.
pub(crate) trait Effects {
    /// Refuses the call when its client may not do all of it.
    ///
    /// # Errors
    /// `right_missing`.
    fn require(&self, cx: &Caller) -> Result<(), Failure>;
}

impl Effects for ExploreStartParams {
    fn require(&self, cx: &Caller) -> Result<(), Failure> {
        match &self.root {
            Some(root) if self.remote_url.is_none() && !cx.api().engine.is_declared(root) => {
                require(cx, Effect::DeclareRoot)
            }
            _ => Ok(()),
        }
    }
}

impl Effects for RunStartParams {
    fn require(&self, cx: &Caller) -> Result<(), Failure> {
        let unconfined = self.policy.as_ref().is_some_and(|p| p.sandbox == Some(SandboxUse::Off));
        if unconfined { require(cx, Effect::LeaveSandbox) } else { Ok(()) }
    }
}

impl Effects for ApprovalResolveParams {
    fn require(&self, cx: &Caller) -> Result<(), Failure> {
        if self.decision == ApprovalDecision::Always { require(cx, Effect::GrantRule) } else { Ok(()) }
    }
}

impl Effects for ProviderSetParams {
    fn require(&self, cx: &Caller) -> Result<(), Failure> {
        if self.endpoint.is_some() { require(cx, Effect::MoveModel) } else { Ok(()) }
    }
}
