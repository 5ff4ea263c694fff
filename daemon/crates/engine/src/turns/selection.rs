//! The tools that a model is offered: those that the run may use, as far as they fit into the
//! model's context, without rarely used ones and those of large MCP servers, which the model looks
//! up first.

use std::collections::BTreeMap;

use cairn_harness::{DomainUse, ToolSpec, described_by};
use cairn_llm::ToolOffer;
use cairn_protocol::{
    model::{Message, ToolUse},
    tool::ToolsMode,
    turn::ExecutionMode,
};

use super::{
    TurnContext,
    context::{DomainAccess, locked},
    tier,
};

/// Name of the tool that describes tools.
const LOOKUP: &str = "tool_lookup";

/// Tools of the daemon that few turns use.
const RARE: &[&str] = &[
    "edit_notebook",
    "git_branch",
    "git_checkout",
    "git_diff",
    "git_stash",
    "git_stash_list",
    "index_add_root",
    "index_build",
    "search_sessions",
];

/// The tools of a turn.
#[derive(Default)]
struct Selection {
    offered: Vec<ToolSpec>,
    /// Number of tools that do not fit into the model's context.
    omitted: usize,
    /// Tools that can be looked up.
    unlisted: Vec<ToolSpec>,
}

impl TurnContext {
    /// Returns the tools that a model is offered: those that the run may use and that its policy
    /// does not rule out, as far as they fit into the model's context.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.selection().offered
    }

    /// Returns the number of tools that are not offered because the model's context is small.
    pub fn omitted_tools(&self) -> usize {
        self.selection().omitted
    }

    /// Returns the tools that the model is offered after it has looked them up.
    pub fn unlisted_tools(&self) -> Vec<ToolSpec> {
        self.selection().unlisted
    }

    /// Returns the tools in the form that models receive.
    pub fn offers(&self) -> Vec<ToolOffer> {
        let tier = self.tier();
        // The registry refuses the names for which there is no offer.
        self.tools().into_iter().filter_map(|spec| tier::offer(spec, tier)).collect()
    }

    fn selection(&self) -> Selection {
        let usable = self.usable_tools();
        let (usable, unlisted) = self.split(usable, self.settings().listed_mcp_tools);
        let provider = self.provider().ok();
        let (offered, omitted) = tier::select(usable, self.tier(), provider.as_deref());
        Selection { offered, omitted, unlisted }
    }

    /// Separates the tools that must be looked up and have not been.
    fn split(&self, usable: Vec<ToolSpec>, limit: usize) -> (Vec<ToolSpec>, Vec<ToolSpec>) {
        let servers = unlisted_servers(&usable, limit);
        let is_unlisted = |spec: &ToolSpec| match spec.server.as_deref() {
            Some(server) => servers.iter().any(|unlisted| unlisted == server),
            None => RARE.contains(&&*spec.name),
        };
        // Without the tool that describes them there is no way to learn of them.
        if !usable.iter().any(|spec| spec.name == LOOKUP) {
            return (usable, vec![]);
        }
        let mut known: Vec<String> = Vec::new();
        for part in locked(&self.inner.lookups).iter() {
            known.extend(described_by(&usable, part).iter().map(|spec| spec.name.to_string()));
        }
        usable
            .into_iter()
            .partition(|spec| !is_unlisted(spec) || known.iter().any(|name| *name == spec.name))
    }

    fn usable_tools(&self) -> Vec<ToolSpec> {
        let ops = self.policy().ops.as_ref();
        let all = self.engine().inner.harness.registry().scoped(self.session()).specs();
        let mode = self.policy().tools_mode;
        let hidden = |s: &ToolSpec| match mode {
            Some(mode) if ToolsMode::governs(&s.name) => mode.hides(&s.name),
            _ => s.hidden,
        };
        let all_domains = self.settings().domains == DomainAccess::All;
        let by_domain = |s: &ToolSpec| all_domains && s.domains != DomainUse::None;
        let reaches = |s: &ToolSpec| !s.network || self.policy().network || by_domain(s);
        let offered = |s: &ToolSpec| match ops {
            Some(ops) => ops.iter().any(|o| *o == s.name) && reaches(s),
            None => !hidden(s) && reaches(s),
        };
        let harness = &self.engine().inner.harness;
        let plans = self.policy().mode == Some(ExecutionMode::Plan);
        let closed = |s: &ToolSpec| {
            (plans && !s.read_only && !s.delegates)
                || harness.rules_out(&s.name, self.inner.core.root.as_ref())
        };
        all.into_iter().filter(|s| offered(s) && !closed(s)).collect()
    }

    /// Takes note of the tools that the calls of a conversation looked up.
    pub(super) fn note_lookups<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) {
        let calls = messages.into_iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            _ => &[],
        });
        let parts = calls.filter_map(looked_up);
        locked(&self.inner.lookups).extend(parts);
    }

    /// Takes note of the tools that calls look up.
    pub(super) fn note_lookup_calls(&self, calls: &[ToolUse]) {
        locked(&self.inner.lookups).extend(calls.iter().filter_map(looked_up));
    }
}

/// Returns the name that a call looks up, if it is such a call.
fn looked_up(call: &ToolUse) -> Option<String> {
    let name = call.arguments.get("name").filter(|_| call.name == LOOKUP)?.as_str()?;
    Some(name.trim().to_lowercase()).filter(|name| !name.is_empty())
}

/// Returns the servers whose tools must be looked up: those with more than `limit` tools, and all
/// of them if the others together have more.
fn unlisted_servers(specs: &[ToolSpec], limit: usize) -> Vec<String> {
    let mut count_by_server: BTreeMap<&str, usize> = BTreeMap::new();
    for server in specs.iter().filter_map(|spec| spec.server.as_deref()) {
        *count_by_server.entry(server).or_default() += 1;
    }
    let others: usize = count_by_server.values().filter(|count| **count <= limit).sum();
    let is_unlisted = |count: usize| count > limit || others > limit;
    let servers = count_by_server.into_iter().filter(|(_, count)| is_unlisted(*count));
    servers.map(|(server, _)| server.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_servers_and_many_small_ones_are_unlisted() {
        let spec = |server: Option<&str>, n: usize| ToolSpec {
            name: format!("{}_{n}", server.unwrap_or("own")).into(),
            server: server.map(|s| s.to_owned().into()),
            ..ToolSpec::reading::<()>("x", "Reads it.")
        };
        let of = |counts: &[(&str, usize)]| -> Vec<String> {
            let servers = counts.iter().flat_map(|(s, n)| (0..*n).map(|n| spec(Some(s), n)));
            let own = (0..50).map(|n| spec(None, n));
            unlisted_servers(&servers.chain(own).collect::<Vec<_>>(), 20)
        };
        assert_eq!(of(&[]), [""; 0]);
        assert_eq!(of(&[("a", 20)]), [""; 0]);
        assert_eq!(of(&[("a", 21), ("b", 20)]), ["a"]);
        assert_eq!(of(&[("a", 11), ("b", 10)]), ["a", "b"]);
        assert_eq!(of(&[("a", 21), ("b", 11), ("c", 10)]), ["a", "b", "c"]);
    }
}
