//! `tool_lookup`: the descriptions of the tools.

use std::{fmt::Write as _, sync::Arc};

use cairn_harness::{
    Catalogue, DomainUse, Output, Permit, Registry, Tool, ToolSpec, arguments, described_by,
};
use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Most bytes of one answer.
const MAX_TEXT: usize = 64 * 1024;

/// Arguments of the tool `tool_lookup`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LookupParams {
    /// A tool's name or a part of it; without it all tools are listed, one per line.
    #[serde(default)]
    name: Option<String>,
}

struct Lookup(Catalogue);

/// Creates the tool, over all tools of the registry.
pub fn tools(registry: &Registry) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Lookup(registry.catalogue()))]
}

#[async_trait::async_trait]
impl Tool for Lookup {
    fn spec(&self) -> ToolSpec {
        let text = "Describes the tools. Without a name it lists them, one per line; with one it \
            returns the full description of every tool whose name contains it, or lists them if \
            they are more than eight. A tool that is not offered can be called after it was \
            described.";
        ToolSpec { paths: &[], ..ToolSpec::reading::<LookupParams>("tool_lookup", text) }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: LookupParams = arguments(value)?;
        let network = permit.require_network().is_ok();
        let domains = permit.reaches_domains();
        let reachable =
            |s: &ToolSpec| network || !s.network || (domains && s.domains != DomainUse::None);
        let offered =
            self.0.specs(permit.session()).into_iter().filter(|s| !s.hidden && reachable(s));
        describe(&offered.collect::<Vec<_>>(), params.name.as_deref())
    }
}

fn describe(specs: &[ToolSpec], name: Option<&str>) -> Result<Output, Failure> {
    let name = name.map(|n| n.trim().to_lowercase()).filter(|n| !n.is_empty());
    let name = name.as_deref();
    let described = name.map(|part| described_by(specs, part)).unwrap_or_default();
    let is_described = |spec: &ToolSpec| described.iter().any(|d| d.name == spec.name);
    let mut content = String::new();
    let mut matches = 0;
    let is_match = |s: &&ToolSpec| name.is_none_or(|n| s.name.to_lowercase().contains(n));
    for spec in specs.iter().filter(is_match) {
        matches += 1;
        let entry = if is_described(spec) {
            format!("{}\n{}\narguments: {}\n\n", spec.name, spec.description, spec.input_schema)
        } else {
            format!("{matches}. {}: {}\n", spec.name, spec.short)
        };
        if content.len() + entry.len() > MAX_TEXT {
            let _ok = writeln!(content, "[the rest is omitted: look up a tool by its full name]");
            return Output::of("tools", &json!({"content": content, "truncated": true}), true);
        }
        content.push_str(&entry);
    }
    if let (0, Some(name)) = (matches, name) {
        let escaped: String = name.chars().take(64).flat_map(char::escape_default).collect();
        let text =
            format!("no tool has '{escaped}' in its name: call tool_lookup without a name for all");
        return Err(Failure::new(Reason::UnknownTool, text));
    }
    Output::of("tools", &json!({"content": content.trim_end(), "truncated": false}), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(description: &'static str) -> Vec<ToolSpec> {
        ["read_file", "run_shell"]
            .map(|n| ToolSpec::reading::<LookupParams>(n, description))
            .to_vec()
    }

    #[test]
    fn lists_all_tools_or_describes_one() {
        let all = describe(&specs("Does it. And more"), None).unwrap();
        assert_eq!(all.value["content"], "1. read_file: Does it\n2. run_shell: Does it");
        let one = describe(&specs("Does it. And more"), Some("READ")).unwrap();
        let text = one.value["content"].as_str().unwrap();
        assert!(
            text.starts_with("read_file\nDoes it. And more\narguments: {")
                && !text.contains("run_shell")
        );
        let error = describe(&specs("x"), Some("nothing")).unwrap_err();
        assert_eq!(error.reason, Reason::UnknownTool);
        let long: &'static str = Box::leak("x".repeat(40_000).into_boxed_str());
        let cut = describe(&specs(long), Some("r")).unwrap();
        assert!(cut.truncated && cut.value["content"].as_str().unwrap().contains("omitted"));
    }
}
