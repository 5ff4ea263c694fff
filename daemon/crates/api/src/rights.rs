//! The rights of a caller: what each method and each effect of a call needs. Nothing else decides about them, and the table of the
//! reference is made from the same data.

use std::future::Future;

use cairn_engine::Engine;
use cairn_protocol::{
    error::{Failure, Reason},
    explore::ExploreStartParams,
};

pub use cairn_protocol::remote::Right;

use crate::{Method, methods};

/// The rights of one connection, none of which brings another with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Those of whoever holds the token of the data folder.
    pub const ALL: Self = Self::of(&Right::ALL);

    /// These and no others.
    pub const fn of(rights: &[Right]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < rights.len() {
            bits |= 1 << rights[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// Those that both have.
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if `right` is among them.
    pub fn hold(self, right: Right) -> bool {
        self.0 & (1 << right as u8) != 0
    }

    /// Refuses what needs a right that is not among them.
    ///
    /// # Errors
    /// `right_missing`.
    pub fn require(self, right: Right, action: &str) -> Result<(), Failure> {
        if self.hold(right) {
            return Ok(());
        }
        let text =
            format!("{action} needs the right '{}', which is not granted to this connection", right.as_str());
        Err(Failure::new(Reason::RightMissing, text))
    }
}

/// An effect that a call has or has not, by its arguments or by what it is about. It needs a right of its own beside that of the
/// method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A folder becomes a root, and so can be read.
    DeclareRoot,
    /// Commands run outside the sandbox.
    LeaveSandbox,
    /// Text reaches the model of a turn whose commands run outside the sandbox.
    SteerOutsideSandbox,
    /// A rule is written that holds for good.
    GrantRule,
    /// A model is called somewhere else than where the configuration says.
    MoveModel,
    /// A device gets this right.
    GiveRight(Right),
}

impl Effect {
    /// The right that it needs.
    pub fn right(self) -> Right {
        match self {
            Self::DeclareRoot
            | Self::LeaveSandbox
            | Self::SteerOutsideSandbox
            | Self::GrantRule
            | Self::MoveModel => Right::Admin,
            // Who gives a right has it, or a device could make itself a better one.
            Self::GiveRight(right) => right,
        }
    }

    /// The effect in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::DeclareRoot => "declaring a folder as a root",
            Self::LeaveSandbox => "policy.sandbox 'off'",
            Self::SteerOutsideSandbox => "steering a turn without sandbox",
            Self::GrantRule => "an answer that grants a rule for good",
            Self::MoveModel => "an endpoint of its own for a model",
            Self::GiveRight(Right::Observe) => "giving the right 'observe'",
            Self::GiveRight(Right::Prompt) => "giving the right 'prompt'",
            Self::GiveRight(Right::Approve) => "giving the right 'approve'",
            Self::GiveRight(Right::Admin) => "giving the right 'admin'",
        }
    }
}

/// Effects of calls with such parameters. Every type of parameters has them, be it none: a method cannot be made without.
pub trait Effects: Sync {
    /// Each effect that a call may have.
    const ALL: &'static [Effect] = &[];

    /// Effects of this very call.
    ///
    /// # Errors
    /// Those of looking at what it is about.
    fn effects(&self, engine: &Engine) -> impl Future<Output = Result<Vec<Effect>, Failure>> + Send {
        let _ = engine;
        std::future::ready(Ok(vec![]))
    }
}

/// Refuses a call when its client may not do all of it.
///
/// # Errors
/// `right_missing`; those of looking at what it is about.
pub(crate) async fn require<P: Effects>(params: &P, rights: Rights, engine: &Engine) -> Result<(), Failure> {
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
    /// The method.
    pub method: &'static str,
    /// The effect; the call itself when `None`.
    pub effect: Option<Effect>,
    /// The right of the method; `None` for the handshake, which tells who a client is.
    right: Option<Right>,
}

impl Row {
    /// The row of a method.
    pub(crate) fn of(method: &Method) -> Self {
        let right = (method.name != methods::INITIALIZE).then_some(method.right);
        Self { method: method.name, effect: None, right }
    }

    /// Rights without which it is refused.
    pub fn needs(self) -> impl Iterator<Item = Right> {
        let effect = self.effect.map(Effect::right).filter(|right| self.right != Some(*right));
        self.right.into_iter().chain(effect)
    }

    /// Refuses it to a caller without the rights that it needs.
    ///
    /// # Errors
    /// `right_missing`.
    pub fn require(self, rights: Rights) -> Result<(), Failure> {
        self.right.map_or(Ok(()), |right| rights.require(right, self.method))?;
        self.effect.map_or(Ok(()), |effect| rights.require(effect.right(), effect.text()))
    }
}

/// The table: each method, followed by the effects of its calls.
pub fn table() -> Vec<Row> {
    let rows = |method: &Method| {
        let row = Row::of(method);
        let effects = method.effects.iter().map(move |effect| Row { effect: Some(*effect), ..row });
        std::iter::once(row).chain(effects).collect::<Vec<_>>()
    };
    methods::table().iter().flat_map(rows).collect()
}

/// What is refused whatever the rights of a caller are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The method.
    pub method: &'static str,
    /// What its arguments must not do.
    pub text: &'static str,
    /// The reason of the refusal.
    pub reason: Reason,
}

const fn bound(method: &'static str, text: &'static str, reason: Reason) -> Bound {
    Bound { method, text, reason }
}

/// The bounds of all callers. What a tool may do is decided by the gate, for each call.
pub const BOUNDS: &[Bound] = &[
    bound("content.getSpan", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("fs.listDir", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("git.status", "reading outside the declared roots", Reason::PathOutsideRoots),
    bound("search.grep", "a root that is not declared", Reason::RootNotFound),
    bound("search.hybrid", "a root that is not declared", Reason::RootNotFound),
    bound("search.symbols", "a root that is not declared", Reason::RootNotFound),
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
    bound("orchestrate.explore.start", "policy.paths that lead out of the root", Reason::PathOutsideRoots),
    bound("orchestrate.run.start", "policy.paths that lead out of the root", Reason::PathOutsideRoots),
];

/// True if a caller may start an explore in a folder that is no root yet.
pub(crate) fn may_declare(rights: Rights) -> bool {
    debug_assert!(ExploreStartParams::ALL.contains(&Effect::DeclareRoot));
    rights.hold(Effect::DeclareRoot.right())
}
