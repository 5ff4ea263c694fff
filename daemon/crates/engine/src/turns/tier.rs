//! The fixed part of a prompt, by the size of the model's context: a small model must have room for
//! the question and the answer.

use cairn_harness::ToolSpec;
use cairn_llm::{Provider, ToolOffer};
use serde_json::Value;

/// Size of the fixed part of a prompt: system text and tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptTier {
    /// Contexts below 16,384 tokens: a short base, the tools for reading, searching and editing.
    Small,
    /// Contexts below 32,000 tokens: the complete base, the tools that fit.
    Medium,
    /// Larger contexts: every tool, the complete repository map.
    Large,
}

/// Tools in the order in which they get a place in a small prompt.
const FIRST: &[&str] = &[
    "fs",
    "read_file",
    "search_code",
    "edit_file",
    "run_shell",
    "shell",
    "write_file",
    "search_files",
    "list_files",
    "read_skill",
    "tool_lookup",
    "plan",
    "find_references",
    "memory",
    "memory_search",
    "web",
    "web_search",
    "web_fetch",
    "delete_file",
];

impl PromptTier {
    /// Returns the tier of a context of so many tokens.
    pub fn of(window: u64) -> Self {
        match window {
            0..16_384 => Self::Small,
            16_384..32_000 => Self::Medium,
            _ => Self::Large,
        }
    }

    /// Returns the most tokens of the offered tools; `None` for no limit.
    fn tool_tokens(self) -> Option<u64> {
        match self {
            Self::Small => Some(900),
            Self::Medium => Some(1600),
            Self::Large => None,
        }
    }

    /// Returns the most tokens of the repository map, given the configured number.
    pub fn map_tokens(self, configured: u32) -> u32 {
        match self {
            Self::Small => 0,
            Self::Medium => configured.min(256),
            Self::Large => configured,
        }
    }

    /// Returns the most bytes of instructions from the folder's files and the user's own.
    pub fn instruction_bytes(self) -> usize {
        match self {
            Self::Small => 2 * 1024,
            Self::Medium => 8 * 1024,
            Self::Large => 32 * 1024,
        }
    }
}

/// Returns a tool as a model receives it; `None` for a name that providers refuse. A small prompt
/// has no descriptions of arguments.
pub(super) fn offer(spec: ToolSpec, tier: PromptTier) -> Option<ToolOffer> {
    let mut input_schema = spec.input_schema;
    if tier < PromptTier::Large {
        remove_descriptions(&mut input_schema);
    }
    ToolOffer::new(&spec.name, &spec.short, &input_schema)
}

/// Removes what explains a schema and keeps what checks a value: a field that is named
/// `description` stays.
fn remove_descriptions(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for key in ["description", "default", "format"] {
        fields.remove(key);
    }
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(inner)) => {
                inner.values_mut().for_each(remove_descriptions);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                all.iter_mut().for_each(remove_descriptions);
            }
            ("items", value) => remove_descriptions(value),
            _ => {}
        }
    }
}

/// Returns the tools that fit into the tier, in their order, and the number of those that do not.
pub(super) fn select(
    all: Vec<ToolSpec>,
    tier: PromptTier,
    provider: Option<&dyn Provider>,
) -> (Vec<ToolSpec>, usize) {
    let (Some(limit), Some(provider)) = (tier.tool_tokens(), provider) else { return (all, 0) };
    let rank = |spec: &ToolSpec| FIRST.iter().position(|n| *n == spec.name).unwrap_or(FIRST.len());
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| rank(&all[*at]));
    let mut is_selected = vec![false; all.len()];
    let mut sum = 0;
    for at in order {
        let Some(offer) = offer(all[at].clone(), tier) else { continue };
        let tokens = super::compact::offer_tokens(provider, &offer);
        if sum + tokens <= limit {
            sum += tokens;
            is_selected[at] = true;
        }
    }
    let count = all.len();
    let tools: Vec<ToolSpec> =
        all.into_iter().zip(is_selected).filter_map(|(spec, yes)| yes.then_some(spec)).collect();
    let omitted = count - tools.len();
    (tools, omitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_removed_and_constraints_stay() {
        let mut schema = serde_json::json!({
            "type": "object", "required": ["description"],
            "properties": {
                "description": {"type": "string", "description": "A text."},
                "n": {"type": "integer", "format": "uint32", "minimum": 0, "default": 5},
                "list": {"type": "array", "items": {"enum": ["a"], "description": "x"}},
            },
        });
        remove_descriptions(&mut schema);
        let expected = serde_json::json!({
            "type": "object", "required": ["description"],
            "properties": {
                "description": {"type": "string"},
                "n": {"type": "integer", "minimum": 0},
                "list": {"type": "array", "items": {"enum": ["a"]}},
            },
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn tier_follows_the_context() {
        let tiers = [4096, 8192, 16_384, 31_999, 32_000, 200_000].map(PromptTier::of);
        use PromptTier::{Large, Medium, Small};
        assert_eq!(tiers, [Small, Small, Medium, Medium, Large, Large]);
    }
}
