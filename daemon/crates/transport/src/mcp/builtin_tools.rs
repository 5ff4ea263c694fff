//! The tools that every client is offered by default. Those for searching and reading call methods
//! of the API; those that act are registered tools under shorter names.

use std::sync::Arc;

use cairn_protocol::error::{Failure, Reason};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{actions, client::Client, explore, lookups, references, schema::simplified};

pub struct BuiltinTool {
    pub name: &'static str,
    text: &'static str,
    schema: fn() -> Value,
    /// The registered tool that acts; `None` for a tool that only reads.
    pub registered: Option<&'static str>,
}

fn schema<P: JsonSchema>() -> Value {
    schemars::schema_for!(P).to_value()
}

const BUILTIN_TOOLS: &[BuiltinTool] = &[
    BuiltinTool {
        name: "search",
        text: "Passages that answer a question or define a name, best first. Better than grep \
            when you know the idea but not the words.",
        schema: schema::<lookups::Search>,
        registered: None,
    },
    BuiltinTool {
        name: "grep",
        text: "Every line that matches, from an index: faster than your own grep in a large \
            tree.",
        schema: schema::<lookups::Grep>,
        registered: None,
    },
    BuiltinTool {
        name: "read",
        text: "Numbered lines of a file. Read the range that a result names.",
        schema: schema::<lookups::Read>,
        registered: None,
    },
    BuiltinTool {
        name: "symbols",
        text: "Definitions by name, or with `path` alone the outline of a file. No uses, \
            comments or strings, unlike grep.",
        schema: schema::<lookups::Symbols>,
        registered: None,
    },
    BuiltinTool {
        name: "references",
        text: "Uses, callers or callees of a definition by scope and imports, without \
            namesakes; files that depend on a file.",
        schema: schema::<references::References>,
        registered: None,
    },
    BuiltinTool {
        name: "map",
        text: "The most relevant files of a repository with their definitions. Better than \
            listing folders.",
        schema: schema::<lookups::Map>,
        registered: None,
    },
    BuiltinTool {
        name: explore::NAME,
        text: "A page about an unknown project: purpose, entry points, commands, what to read \
            first. Takes up to a minute.",
        schema: schema::<explore::Explore>,
        registered: None,
    },
    BuiltinTool {
        name: "edit",
        text: "Replaces a text that occurs once in a file that you have read.",
        schema: schema::<actions::Edit>,
        registered: Some("edit_file"),
    },
    BuiltinTool {
        name: "write",
        text: "Creates a file or replaces its content.",
        schema: schema::<actions::Write>,
        registered: Some("write_file"),
    },
    BuiltinTool {
        name: "run",
        text: "Runs a command line in a sandbox.",
        schema: schema::<actions::Run>,
        registered: Some("run_shell"),
    },
];

pub fn find(name: &str) -> Option<&'static BuiltinTool> {
    BUILTIN_TOOLS.iter().find(|tool| tool.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN_TOOLS.iter().map(|tool| tool.name)
}

/// Renders the tools as MCP defines them.
pub fn tools() -> impl Iterator<Item = (&'static BuiltinTool, Tool)> {
    BUILTIN_TOOLS.iter().map(|tool| {
        // Without a hint, a tool counts as one that may change something in an open world.
        let hints = match tool.registered {
            Some(_) => ToolAnnotations::new().destructive(true),
            None => ToolAnnotations::new().read_only(true),
        };
        let mut schema = simplified((tool.schema)());
        // The server refuses other arguments by itself, with a better message.
        schema.remove("additionalProperties");
        schema.remove("description");
        let rendered = Tool::new(tool.name, tool.text, schema).with_annotations(hints);
        (tool, rendered)
    })
}

/// Parses the arguments of a tool.
///
/// # Errors
/// `invalid_params`, naming the argument and its range.
pub fn arguments<P: DeserializeOwned + JsonSchema>(
    tool: &str,
    value: &Value,
) -> Result<P, Failure> {
    cairn_api::params::read_value(tool, value)
}

/// Calls a tool that only reads.
///
/// # Errors
/// The errors of the underlying call.
pub async fn call(client: &Arc<Client>, name: &str, input: &Value) -> Result<String, Failure> {
    match name {
        "search" => lookups::search(client, arguments(name, input)?).await,
        "grep" => lookups::grep(client, arguments(name, input)?).await,
        "symbols" => lookups::symbols(client, arguments(name, input)?).await,
        "read" => lookups::read(client, arguments(name, input)?).await,
        "references" => references::references(client, arguments(name, input)?).await,
        "map" => lookups::map(client, arguments(name, input)?).await,
        _ => Err(Failure::new(
            Reason::UnknownTool,
            format!("there is no tool '{}'", name.escape_default()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The subset that OpenAI's functions, Gemini's declarations and Anthropic's names share.
    #[test]
    fn every_client_accepts_the_schemas() {
        assert!(names().count() <= 12);
        assert!(names().eq(cairn_protocol::mcp::DEFAULT_TOOLS), "clients check the names");
        for (tool, listed) in tools() {
            let name_is_plain = tool.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            assert!(name_is_plain && tool.name.len() <= 64, "{}", tool.name);
            assert_eq!(listed.input_schema["type"], "object", "{}", tool.name);
            let known = ["type", "properties", "required"];
            for key in listed.input_schema.keys() {
                assert!(known.contains(&key.as_str()), "{}: {key}", tool.name);
            }
            for (field, schema) in listed.input_schema["properties"].as_object().unwrap() {
                let known = ["type", "description", "items", "enum"];
                let schema = schema.as_object().unwrap();
                assert!(schema["type"].is_string(), "{}.{field}", tool.name);
                for key in schema.keys() {
                    assert!(known.contains(&key.as_str()), "{}.{field}: {key}", tool.name);
                }
            }
        }
    }

    #[test]
    fn descriptions_are_one_or_two_sentences() {
        for (tool, listed) in tools() {
            let text = listed.description.as_deref().unwrap_or_default();
            let sentences = text.matches(". ").count() + 1;
            assert!(sentences <= 2 && text.len() <= 130, "{}: {text}", tool.name);
        }
    }
}
