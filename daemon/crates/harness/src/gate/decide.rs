//! What the rules say of a call, and of the calls that it stands for.

use super::Harness;
use crate::{Call, Decision, Grants, Rule, Subject, Verdict, command::CommandLine, registry::Entry};

impl Harness {
    pub(super) fn decide(&self, entry: &Entry, call: &Call, memory: &[(Rule, Verdict)]) -> Decision {
        let granted = self.approvals.grants().rules();
        let rules = self.rules();
        let one = |entry: &Entry, call: &Call, paths: &[String], narrows: bool| {
            let command = command_line(entry, call, paths);
            let decision = rules.decide(&Subject {
                tool: &entry.spec.name,
                paths,
                command: command.as_ref(),
                read_only: entry.spec.read_only,
                network: entry.spec.network,
                narrows,
                grants: &call.grants,
                memory,
                granted: &granted,
            });
            if entry.spec.own_state && decision.verdict == Verdict::Ask && by_default(&decision) {
                let rule = "default: changes Cairn's own state alone".to_owned();
                return Decision { verdict: Verdict::Allow, rule };
            }
            decision
        };
        let parts = entry.tool.stands_for(&call.arguments);
        if parts.is_empty() {
            return one(entry, call, &named_paths(entry, call), entry.spec.narrows);
        }
        let (mut all, mut decisions) = (Vec::new(), Vec::new());
        for (name, arguments) in parts {
            // Which tools a run may call is said of the name that is called.
            let grants = Grants { ops: None, ..call.grants.clone() };
            let part = Call { name: name.to_owned(), arguments, grants, ..call.clone() };
            let Ok(entry) = self.registry.find(name) else {
                return Decision { verdict: Verdict::Deny, rule: format!("tools: {name} is not there") };
            };
            let paths = named_paths(&entry, &part);
            decisions.push(one(&entry, &part, &paths, entry.spec.narrows));
            all.extend(paths);
        }
        // How far its paths reach is decided part by part.
        strictest(one(entry, call, &all, true), decisions)
    }
}

fn by_default(decision: &Decision) -> bool {
    decision.rule.starts_with("default:")
}

/// The strictest of what is said of a call and of the calls it stands for. The default speaks only where no rule does, and
/// of the call's own name only when its parts say nothing.
fn strictest(own: Decision, parts: Vec<Decision>) -> Decision {
    let allowed = own.verdict == Verdict::Allow && !by_default(&own);
    let parts = parts.into_iter().filter(|part| !(allowed && by_default(part)));
    let said = (!by_default(&own)).then(|| own.clone());
    let rank = |d: &Decision| match d.verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny => 2,
    };
    said.into_iter().chain(parts).max_by_key(rank).unwrap_or(own)
}

/// Paths in the arguments, relative to the session's root where they lie in it.
fn named_paths(entry: &Entry, call: &Call) -> Vec<String> {
    let base = call.root.as_ref().map(|root| root.path.to_string_lossy().into_owned());
    let relative = |text: &str| match &base {
        Some(base) if crate::policy::beneath(text, base) && text.starts_with('/') => {
            text.get(base.len()..).unwrap_or("").trim_start_matches('/').to_owned()
        }
        _ => text.to_owned(),
    };
    entry.spec.paths.iter().filter_map(|key| call.arguments.get(*key)?.as_str().map(relative)).collect()
}

/// The command line in the arguments, read once for all rules.
fn command_line(entry: &Entry, call: &Call, paths: &[String]) -> Option<CommandLine> {
    let text = call.arguments.get(entry.spec.command?)?.as_str()?;
    Some(CommandLine::parse(text).within(paths.first().map_or("", String::as_str)))
}
