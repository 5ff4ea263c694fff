//! The keys that a project's own file may set, and in which direction.

use std::path::{Component, Path};

use serde_json::Value;

use crate::{TrustConfig, keys};

/// The freedom of a project's file to change a value of the user's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Any change: the key is irrelevant for safety.
    Free,
    /// Only this value (JSON).
    Only(&'static str),
    /// A list may gain entries; the project's entries are added to the user's.
    Grow,
    /// A list may lose entries.
    Shrink,
    /// A number may decrease; an absent one, which stands for the tool's own limit, cannot be set.
    Lower,
    /// A number may decrease; an absent one is unlimited and can be set.
    Cap,
    /// One of these words, in order; the value may only move to the right, and an absent one only
    /// to the last.
    Right(&'static [&'static str]),
    /// No change.
    Never,
}

/// Pattern of keys, rule, and true if trust in the folder lifts the rule. The first matching row
/// counts.
const PROJECT_RULES: &[(&str, Rule, bool)] = &[
    ("version", Rule::Free, true),
    ("exclusions", Rule::Grow, true),
    // This key makes typed lines run in the user's own shell.
    ("ui.shell", Rule::Only("false"), true),
    ("ui.**", Rule::Free, true),
    // A project can make a chat stricter, even in a trusted folder.
    ("chat.mode", Rule::Right(&["auto", "accept-edits", "ask", "plan"]), false),
    ("chat.**", Rule::Free, true),
    ("context.**", Rule::Free, true),
    ("git.commitMessagePrefix", Rule::Free, true),
    ("git.autoCommit", Rule::Only("false"), true),
    ("resources.threads", Rule::Never, true),
    ("resources.**", Rule::Lower, true),
    ("agent.retryBackoffBaseMs", Rule::Free, true),
    ("agent.**", Rule::Lower, true),
    ("llm.temperature", Rule::Free, true),
    ("llm.maxTokens", Rule::Lower, true),
    ("llm.timeoutSeconds", Rule::Lower, true),
    ("llm.apiKey", Rule::Never, false),
    // A project cannot name a program, even in a trusted folder.
    ("llm.apiKeyCommand", Rule::Never, false),
    ("llm.agents.**", Rule::Never, false),
    ("plugins", Rule::Never, false),
    ("hooks.**", Rule::Never, false),
    ("agentPlugins.**", Rule::Never, false),
    ("models.allowExternal", Rule::Only("false"), true),
    ("models.maxRequestsPerMinute", Rule::Lower, true),
    ("models.maxTokensPerDay", Rule::Cap, true),
    ("models.maxUsdPerDay", Rule::Cap, true),
    ("models.maxUsdPerSession", Rule::Cap, true),
    ("models.maxUsdPerTurn", Rule::Cap, true),
    ("permissions.finalDeny", Rule::Grow, false),
    ("permissions.deny", Rule::Grow, true),
    ("permissions.overrides", Rule::Shrink, true),
    ("permissions.allow", Rule::Shrink, true),
    ("permissions.defaultAction", Rule::Right(&["allow", "ask", "deny"]), true),
    // A project cannot turn the sandbox off, even in a trusted folder.
    ("safety.sandboxEnabled", Rule::Only("true"), false),
    ("safety.sandboxBlockedPaths", Rule::Grow, false),
    ("safety.sandboxAllowedPaths", Rule::Shrink, true),
    ("safety.requireConfirmation", Rule::Grow, true),
    ("safety.blockedCommands", Rule::Grow, true),
    ("sandbox.maxBackground", Rule::Lower, true),
    ("sandbox.backgroundSeconds", Rule::Lower, true),
    // A project cannot open the network, even in a trusted folder.
    ("network.domains", Rule::Shrink, false),
    ("network.presets", Rule::Shrink, false),
    ("network.ports", Rule::Shrink, false),
    ("network.ask", Rule::Only("false"), true),
    ("network.askTimeoutSeconds", Rule::Lower, true),
    ("sandbox.whenMissing", Rule::Right(&["ask", "refuse"]), false),
    ("tools.mode", Rule::Free, true),
    ("tools.builtin.*.enabled", Rule::Only("false"), true),
    ("tools.builtin.*.timeoutSeconds", Rule::Lower, true),
    ("tools.builtin.*.maxOutputChars", Rule::Lower, true),
    ("tools.builtin.*.mode", Rule::Right(&["full", "allowlist", "off"]), true),
    ("tools.builtin.*.allowedPrefixes", Rule::Shrink, true),
    ("tools.builtin.*.cwd", Rule::Right(&["any", "workspace"]), true),
    // A project cannot name a program, even in a trusted folder.
    ("diagnostics.**", Rule::Never, false),
    ("format.**", Rule::Never, false),
    ("discovery", Rule::Only("\"off\""), true),
    ("listen.**", Rule::Never, false),
    ("daemon.**", Rule::Never, false),
    ("trust.**", Rule::Never, false),
    // A project must not remove the sessions of all projects.
    ("retention.**", Rule::Never, false),
    // A project must not receive the events of all projects, or name a program.
    ("notifications.**", Rule::Never, false),
    // A project must not send the records of all projects to a broker.
    ("fleet.**", Rule::Never, false),
    // The command runs in the sandbox, for a user who trusts the folder.
    ("worktrees.setup", Rule::Never, true),
    // A project must not redirect the metrics of all projects.
    ("telemetry.**", Rule::Never, false),
    ("roots", Rule::Never, false),
    // Every other key, including future ones, belongs to the user.
    ("**", Rule::Never, true),
];

/// Returns the rule for a key, and true if trust in the folder lifts it.
pub fn rule_of(key: &str) -> (Rule, bool) {
    let row = PROJECT_RULES.iter().find(|(pattern, ..)| keys::matches(pattern, key));
    row.map_or((Rule::Never, false), |(_, rule, lifted)| (*rule, *lifted))
}

/// Applies the project's value `wish` to the current value, or explains the refusal.
pub(crate) fn tighten(rule: Rule, now: Option<&Value>, wish: &Value) -> Result<Value, String> {
    if now == Some(wish) {
        return Ok(wish.clone());
    }
    let entries =
        |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    match rule {
        Rule::Free => Ok(wish.clone()),
        Rule::Only(text) if serde_json::from_str::<Value>(text).is_ok_and(|v| v == *wish) => {
            Ok(wish.clone())
        }
        Rule::Only(text) => Err(format!("a project may only set it to {text}")),
        Rule::Grow => {
            let mut all = entries(now);
            for entry in entries(Some(wish)) {
                if !all.contains(&entry) {
                    all.push(entry);
                }
            }
            Ok(Value::Array(all))
        }
        Rule::Shrink => {
            let mine = entries(now);
            match entries(Some(wish)).iter().find(|e| !mine.contains(e)) {
                None => Ok(wish.clone()),
                Some(entry) => Err(format!("a project may not add {entry} to it")),
            }
        }
        Rule::Lower | Rule::Cap => {
            let number = |value: Option<&Value>| value.and_then(Value::as_f64);
            match (number(now), number(Some(wish))) {
                (None, Some(_)) if rule == Rule::Cap => Ok(wish.clone()),
                (Some(now), Some(requested)) if requested <= now => Ok(wish.clone()),
                _ => Err("a project may only lower it".into()),
            }
        }
        Rule::Right(order) => {
            let rank = |value: Option<&Value>| {
                order.iter().position(|o| value.and_then(Value::as_str) == Some(o))
            };
            match (rank(now), rank(Some(wish))) {
                (now, Some(requested)) if requested >= now.unwrap_or(order.len() - 1) => {
                    Ok(wish.clone())
                }
                _ => Err(format!(
                    "a project may only change it towards {}",
                    order.last().copied().unwrap_or_default()
                )),
            }
        }
        Rule::Never => Err("a project may not set it".into()),
    }
}
impl TrustConfig {
    /// Returns true if a folder is trusted: it is named, or lies in one that is. Paths are absolute
    /// and compared by their components.
    pub fn covers(&self, folder: &Path) -> bool {
        let is_normalised = !folder.components().any(|part| part == Component::ParentDir);
        is_normalised
            && self.folders.iter().any(|named| named.is_absolute() && folder.starts_with(named))
    }
}
