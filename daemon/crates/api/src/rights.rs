//! The right that each method, and each effect of a call, needs. All decisions about rights are
//! made from this data, as is the table in the reference.

use std::future::Future;

use cairn_engine::Engine;
use cairn_protocol::{
    error::{Failure, Reason},
    explore::ExploreStartParams,
};

pub use cairn_protocol::remote::Right;

use crate::{Method, methods};

/// The rights of one connection. No right implies another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// The rights of a client with the token of the data folder.
    pub const ALL: Self = Self::of(&Right::ALL);

    pub const fn of(rights: &[Right]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < rights.len() {
            bits |= 1 << rights[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// Returns the rights that both have.
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if `right` is included.
    pub fn contains(self, right: Right) -> bool {
        self.0 & (1 << right as u8) != 0
    }

    /// Refuses an action that needs a missing right.
    ///
    /// # Errors
    /// `right_missing`.
    pub fn require(self, right: Right, action: &str) -> Result<(), Failure> {
        if self.contains(right) {
            return Ok(());
        }
        let text = format!(
            "{action} needs the right '{}', which is not granted to this connection",
            right.as_str()
        );
        Err(Failure::new(Reason::RightMissing, text))
    }
}

/// An effect that some calls of a method have, depending on their arguments or their subject. It
/// needs a right in addition to the method's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A folder becomes a root and so becomes readable.
    DeclareRoot,
    /// Commands run outside the sandbox.
    LeaveSandbox,
    /// Text reaches the model of a turn whose commands run outside the sandbox.
    SteerOutsideSandbox,
    /// Commands and tools reach every public domain that no rule denies.
    OpenNetwork,
    /// A repository is cloned to be explored. The rules about its host and the questions about the
    /// clone are those of any clone, so whoever may answer these may begin it.
    CloneToExplore,
    /// Calls need fewer approvals.
    RaiseMode,
    /// Text reaches the model of a turn whose calls need fewer approvals.
    SteerRaised,
    /// A command runs after each turn, in the sandbox and without an approval.
    RunCheck,
    /// A work tree is created, and its set-up command runs.
    CreateWorktree,
    /// A permanent rule is written.
    GrantRule,
    /// A model is called at an address other than the configured one.
    MoveModel,
    /// A device gets this right.
    GiveRight(Right),
}

impl Effect {
    pub fn right(self) -> Right {
        match self {
            Self::DeclareRoot
            | Self::LeaveSandbox
            | Self::OpenNetwork
            | Self::SteerOutsideSandbox
            | Self::CreateWorktree
            | Self::GrantRule
            | Self::MoveModel => Right::Admin,
            Self::CloneToExplore | Self::RaiseMode | Self::SteerRaised | Self::RunCheck => {
                Right::Approve
            }
            // Without this rule a device could grant itself further rights.
            Self::GiveRight(right) => right,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::DeclareRoot => "declaring a folder as a root",
            Self::LeaveSandbox => "policy.sandbox 'off'",
            Self::SteerOutsideSandbox => "steering a turn without sandbox",
            Self::OpenNetwork => "policy.network",
            Self::CloneToExplore => "policy.network of an explore that clones",
            Self::RaiseMode => "policy.mode 'accept-edits' or 'auto'",
            Self::SteerRaised => "steering a turn in the mode 'accept-edits' or 'auto'",
            Self::RunCheck => "a check that ends a run",
            Self::CreateWorktree => "creating a work tree",
            Self::GrantRule => "an answer that grants a permanent rule",
            Self::MoveModel => "a custom endpoint for a model",
            Self::GiveRight(Right::Observe) => "granting the right 'observe'",
            Self::GiveRight(Right::Prompt) => "granting the right 'prompt'",
            Self::GiveRight(Right::Approve) => "granting the right 'approve'",
            Self::GiveRight(Right::Admin) => "granting the right 'admin'",
        }
    }
}

/// The effects of calls with these params. Every params type implements the trait, so no method can
/// be declared without it.
pub trait Effects: Sync {
    /// All effects that a call may have.
    const ALL: &'static [Effect] = &[];

    /// Determines the effects of one call.
    ///
    /// # Errors
    /// The errors of examining its subject.
    fn effects(
        &self,
        engine: &Engine,
    ) -> impl Future<Output = Result<Vec<Effect>, Failure>> + Send {
        let _ = engine;
        std::future::ready(Ok(vec![]))
    }
}

/// Refuses a call if its client lacks a right for one of its effects.
///
/// # Errors
/// `right_missing`, and the errors of examining the call's subject.
pub(crate) async fn require<P: Effects>(
    params: &P,
    rights: Rights,
    engine: &Engine,
) -> Result<(), Failure> {
    if P::ALL.is_empty() {
        return Ok(());
    }
    for effect in params.effects(engine).await? {
        debug_assert!(P::ALL.contains(&effect), "{effect:?} is not in the table");
        rights.require(effect.right(), effect.text())?;
    }
    Ok(())
}

/// A row of the table: a method, or an effect of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub method: &'static str,
    /// `None` for the call itself.
    pub effect: Option<Effect>,
    /// `None` for the handshake, which identifies the client.
    right: Option<Right>,
}

impl Row {
    pub(crate) fn of(method: &Method) -> Self {
        let right = (method.name != methods::INITIALIZE).then_some(method.right);
        Self { method: method.name, effect: None, right }
    }

    /// Returns the rights that the row needs.
    pub fn required_rights(self) -> impl Iterator<Item = Right> {
        let effect = self.effect.map(Effect::right).filter(|right| self.right != Some(*right));
        self.right.into_iter().chain(effect)
    }

    /// Refuses callers without the rights that the row needs.
    ///
    /// # Errors
    /// `right_missing`.
    pub fn require(self, rights: Rights) -> Result<(), Failure> {
        self.right.map_or(Ok(()), |right| rights.require(right, self.method))?;
        self.effect.map_or(Ok(()), |effect| rights.require(effect.right(), effect.text()))
    }
}

/// Lists each method, followed by the effects of its calls.
pub fn table() -> Vec<Row> {
    let rows = |method: &Method| {
        let row = Row::of(method);
        let effects = method.effects.iter().map(move |effect| Row { effect: Some(*effect), ..row });
        std::iter::once(row).chain(effects).collect::<Vec<_>>()
    };
    methods::table().iter().flat_map(rows).collect()
}

/// A refusal that applies whatever the rights of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub method: &'static str,
    /// The refused arguments, as the reference names them.
    pub text: &'static str,
    pub reason: Reason,
}

const fn bound(method: &'static str, text: &'static str, reason: Reason) -> Bound {
    Bound { method, text, reason }
}

/// The bounds of all callers. The gate decides about tool calls separately.
pub const BOUNDS: &[Bound] = &[
    bound("content.getSpan", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("fs.listDir", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("git.status", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("search.grep", "a root that is not declared", Reason::RootNotFound),
    bound("search.hybrid", "a root that is not declared", Reason::RootNotFound),
    bound("search.symbols", "a root that is not declared", Reason::RootNotFound),
    bound("search.references", "a root that is not declared", Reason::RootNotFound),
    bound("search.callers", "a root that is not declared", Reason::RootNotFound),
    bound("search.callees", "a root that is not declared", Reason::RootNotFound),
    bound("search.impact", "a root that is not declared", Reason::RootNotFound),
    bound("search.map", "a root that is not declared", Reason::RootNotFound),
    bound("index.status", "a root that is not declared", Reason::RootNotFound),
    bound("session.create", "a root that is not declared", Reason::RootNotFound),
    bound("trace.replay", "a root that is not declared", Reason::RootNotFound),
    bound("git.clone", "a folder outside the declared roots", Reason::PathOutsideRoots),
    bound(
        "orchestrate.explore.start",
        "cloning a folder outside the declared roots",
        Reason::PathOutsideRoots,
    ),
    bound(
        "orchestrate.explore.start",
        "policy.paths that lead outside the root",
        Reason::PathOutsideRoots,
    ),
    bound(
        "orchestrate.run.start",
        "policy.paths that lead outside the root",
        Reason::PathOutsideRoots,
    ),
];

/// Returns true if a caller may start an explore in a folder that is not a root yet.
pub(crate) fn can_declare_roots(rights: Rights) -> bool {
    debug_assert!(ExploreStartParams::ALL.contains(&Effect::DeclareRoot));
    rights.contains(Effect::DeclareRoot.right())
}
