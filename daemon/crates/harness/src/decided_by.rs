//! The source of a decision, and the single renderer of it for the audit, for approvers and for
//! messages.

use std::fmt;

use cairn_protocol::{approval::ApprovalDecision, turn::ExecutionMode};

use crate::Rule;

/// Most parts that the text of a decision about a command line lists.
const MAX_PARTS: usize = 8;

/// A list of rules, by its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleList {
    /// Rules of the key `finalDeny`.
    FinalDeny,
    /// Approvals given for the session.
    Session,
    /// Rules of the key `overrides`.
    Overrides,
    /// Rules of the key `deny`.
    Deny,
    /// Rules of the key `allow`.
    Allow,
    /// Approvals given for good.
    Granted,
    /// Rules of the key `confirm`.
    Confirm,
}

impl fmt::Display for RuleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FinalDeny => "finalDeny",
            Self::Session => "session",
            Self::Overrides => "overrides",
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::Granted => "granted",
            Self::Confirm => "confirm",
        })
    }
}

/// A limit of the calling run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunLimit {
    /// The tools of `policy.ops`.
    Ops,
    /// The paths of `policy.paths`.
    Paths,
    /// The network, by `policy.network`.
    Network,
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ops => "policy.ops of the run",
            Self::Paths => "policy.paths of the run",
            Self::Network => "policy.network of the run",
        })
    }
}

/// Reason why no rule was needed, or why none was enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The tool only reads.
    ReadOnly,
    /// The run may use the network.
    NetworkGranted,
    /// The tool changes only Cairn's own state.
    OwnState,
    /// The call edits content that the session has read.
    ContentRead,
    /// The tool changes something.
    Acts,
    /// The tool changes something, and its command line is not fully understood, for this reason.
    ActsUnsure(String),
    /// The tool changes something, and this rule allows only the program without arguments.
    ActsWithArguments(Rule),
    /// The tool changes something, and this rule for its command does not cover this argument.
    ActsBeyondRule(Rule, String),
    /// The domain is in no list.
    UnlistedDomain,
    /// The tool may reach the network by domain, and each domain is decided by itself.
    EachDomain,
    /// Denials exist and the command line cannot be compared with them, for this reason.
    Unclear(String),
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("default: read-only inside declared roots"),
            Self::NetworkGranted => f.write_str("default: network granted to this run"),
            Self::OwnState => f.write_str("default: changes only Cairn's own state"),
            Self::ContentRead => {
                f.write_str("default: edits content that was read in this session")
            }
            Self::UnlistedDomain => f.write_str("default: a domain in no list"),
            Self::EachDomain => f.write_str("default: each domain is decided by itself"),
            Self::Acts => f.write_str("default: not read-only"),
            Self::ActsUnsure(why) => write!(f, "default: not read-only ({why})"),
            Self::ActsWithArguments(rule) => {
                write!(f, "default: not read-only ({rule} allows it only without arguments)")
            }
            Self::ActsBeyondRule(rule, argument) => {
                write!(f, "default: not read-only ({rule} does not cover '{argument}')")
            }
            Self::Unclear(why) => write!(f, "default: cannot be parsed ({why})"),
        }
    }
}

/// An approver's answer to the request about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub decision: ApprovalDecision,
    /// The client that answered.
    pub client: String,
    /// Reason for the request.
    pub question: Box<DecidedBy>,
}

/// Source of a decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// A rule of a list, and the part of a command line that it matched.
    Rule {
        list: RuleList,
        rule: Rule,
        /// The part, as displayed.
        part: Option<String>,
    },
    /// Decisions about parts of a command line, each with its part as displayed.
    Parts(Vec<(DecidedBy, String)>),
    /// A limit of the run.
    RunLimit(RunLimit),
    /// The mode of the run.
    Mode(ExecutionMode),
    /// The default: no rule matched.
    Fallback(Fallback),
    /// A configuration that cannot be read: it may contain denials.
    UnreadableRules(String),
    /// A path outside the write paths of tools.
    UnwritablePath(String),
    /// A file that Cairn itself runs or reads.
    OwnFile(String),
    /// The tool itself, which requires an approval for this reason.
    Tool(String),
    /// A plugin, for this reason.
    Plugin(String),
    /// A call that delegates to a tool that does not exist.
    UnknownTool(String),
    /// A call that a stop of the daemon interrupted.
    Interrupted,
    /// A path without any spelling.
    NoPath,
    /// The answer of an approver.
    Answered(Answered),
    /// The same decision for a run without sandbox.
    Unconfined(Box<DecidedBy>),
}

impl DecidedBy {
    /// Returns true if no rule matches the call, or some part of its command line.
    pub fn is_fallback(&self) -> bool {
        match self {
            Self::Fallback(_) => true,
            Self::Parts(parts) => parts.iter().any(|(by, _)| by.is_fallback()),
            Self::Unconfined(by) => by.is_fallback(),
            _ => false,
        }
    }

    /// Returns true for an approval that is required only because nothing allows the call: by the
    /// default, or by a confirmation of its tool as such.
    pub fn is_general(&self) -> bool {
        match self {
            Self::Fallback(_) => true,
            Self::Rule { list: RuleList::Confirm, rule, .. } => rule.is_of_tool(),
            Self::Parts(parts) => parts.iter().all(|(by, _)| by.is_general()),
            Self::Unconfined(by) => by.is_general(),
            _ => false,
        }
    }

    /// Returns true for a denial that neither a retry nor an approver can change.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Rule { list, .. } => *list == RuleList::FinalDeny,
            Self::Unconfined(by) => by.is_final(),
            _ => false,
        }
    }

    /// Returns true if the run has no network and the call needs it.
    pub fn is_network_limit(&self) -> bool {
        match self {
            Self::RunLimit(limit) => *limit == RunLimit::Network,
            Self::Unconfined(by) => by.is_network_limit(),
            _ => false,
        }
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { list, rule, part: None } => write!(f, "{list}: {rule}"),
            Self::Rule { list, rule, part: Some(part) } => write!(f, "{list}: {rule} in '{part}'"),
            Self::Parts(parts) => {
                for (at, (by, part)) in parts.iter().take(MAX_PARTS).enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{by} for '{part}'")?;
                }
                Ok(())
            }
            Self::RunLimit(limit) => limit.fmt(f),
            Self::Mode(mode) => write!(f, "mode {}", mode.as_str()),
            Self::Fallback(fallback) => fallback.fmt(f),
            Self::UnreadableRules(why) | Self::Tool(why) => f.write_str(why),
            Self::UnwritablePath(path) => {
                write!(f, "safety.sandboxAllowedPaths does not include '{path}'")
            }
            Self::OwnFile(path) => {
                write!(
                    f,
                    "any rule: Cairn itself runs or reads '{path}', so only the user changes it"
                )
            }
            Self::Plugin(why) => write!(f, "plugin: {why}"),
            Self::UnknownTool(name) => write!(f, "tools: {name} does not exist"),
            Self::Interrupted => {
                f.write_str("the daemon stopped during the call: it may have taken effect")
            }
            Self::NoPath => f.write_str("no path"),
            Self::Answered(Answered { decision: ApprovalDecision::Deny, client, question }) => {
                write!(f, "denied by {client}: {question}")
            }
            Self::Answered(Answered { decision, client, question }) => {
                write!(f, "approved {} by {client}: {question}", decision.as_str())
            }
            Self::Unconfined(by) => write!(f, "{by} (the run has no sandbox)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(list: RuleList) -> DecidedBy {
        DecidedBy::Rule { list, rule: "run_shell(git push)".parse().unwrap(), part: None }
    }

    #[test]
    fn properties_are_derived_from_variant() {
        let looks_final = DecidedBy::Plugin("finalDeny: default: policy.network of the run".into());
        let quotes = DecidedBy::Tool("default: not read-only".into());
        for by in [&looks_final, &quotes] {
            assert!(!by.is_final() && !by.is_fallback() && !by.is_network_limit(), "{by}");
        }
        let unconfined = |by| DecidedBy::Unconfined(Box::new(by));
        assert!(unconfined(rule(RuleList::FinalDeny)).is_final());
        assert!(unconfined(DecidedBy::RunLimit(RunLimit::Network)).is_network_limit());
        assert!(unconfined(DecidedBy::Fallback(Fallback::Acts)).is_fallback());
        assert!(!rule(RuleList::Deny).is_final());
    }

    #[test]
    fn confirmation_of_a_tool_is_general_and_of_a_command_is_not() {
        let confirm = |text: &str| DecidedBy::Rule {
            list: RuleList::Confirm,
            rule: text.parse().unwrap(),
            part: None,
        };
        assert!(confirm("run_shell").is_general() && !confirm("run_shell(git push)").is_general());
        assert!(DecidedBy::Fallback(Fallback::Acts).is_general());
        assert!(!rule(RuleList::Deny).is_general());
        let part = |text: &str| (confirm(text), "x".to_owned());
        assert!(DecidedBy::Parts(vec![part("run_shell")]).is_general());
        let both = vec![part("run_shell"), part("run_shell(git push)")];
        assert!(!DecidedBy::Parts(both).is_general());
    }

    #[test]
    fn command_line_is_ruled_only_if_every_part_is() {
        let ruled = (rule(RuleList::Allow), "git push".to_owned());
        let unruled = (DecidedBy::Fallback(Fallback::Acts), "id".to_owned());
        assert!(!DecidedBy::Parts(vec![ruled.clone(), ruled.clone()]).is_fallback());
        assert!(DecidedBy::Parts(vec![ruled.clone(), unruled.clone()]).is_fallback());
        assert!(DecidedBy::Parts(vec![unruled.clone(), ruled.clone()]).is_fallback());
        assert_eq!(
            DecidedBy::Parts(vec![ruled, unruled]).to_string(),
            "allow: run_shell(git push) for 'git push', default: not read-only for 'id'"
        );
    }
}
