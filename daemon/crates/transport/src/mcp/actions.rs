//! Default tools that act. Each is a registered tool with fewer arguments, so that the rules, the
//! approvals and the records of the registered one apply.

use cairn_protocol::error::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::builtin_tools::{BuiltinTool, arguments};

/// Arguments of the tool `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    path: String,
    /// The text to replace, without line numbers.
    old: String,
    new: String,
    /// Replaces every occurrence of `old`.
    #[serde(default)]
    all: bool,
}

/// Arguments of the tool `write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    path: String,
    content: String,
}

/// Arguments of the tool `run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Run {
    command: String,
    folder: Option<String>,
    /// Seconds, 30 by default.
    timeout: Option<u64>,
    max_tokens: Option<u32>,
}

/// A call of a registered tool.
pub struct RegisteredCall {
    pub name: String,
    pub arguments: Value,
    /// Tokens of the answer.
    pub max_tokens: Option<u32>,
}

/// Translates a call of a default tool that acts; `None` for a tool that only reads.
///
/// # Errors
/// `invalid_params`, naming the argument.
pub fn translated(tool: &BuiltinTool, input: &Value) -> Result<Option<RegisteredCall>, Failure> {
    let Some(registered) = tool.registered else { return Ok(None) };
    let mut max_tokens = None;
    let arguments = match tool.name {
        "edit" => {
            let args: Edit = arguments(tool.name, input)?;
            json!({"path": args.path, "old_text": args.old, "new_text": args.new,
                "replace_all": args.all})
        }
        "write" => {
            let args: Write = arguments(tool.name, input)?;
            json!({"path": args.path, "content": args.content})
        }
        _ => {
            let args: Run = arguments(tool.name, input)?;
            max_tokens = args.max_tokens;
            let mut own = json!({"command": args.command});
            if let Some(folder) = args.folder {
                own["working_directory"] = folder.into();
            }
            if let Some(seconds) = args.timeout {
                own["timeout_seconds"] = seconds.into();
            }
            own
        }
    };
    Ok(Some(RegisteredCall { name: registered.to_owned(), arguments, max_tokens }))
}

#[cfg(test)]
mod tests {
    use super::{super::builtin_tools::find, *};

    #[test]
    fn default_tools_become_registered_calls() {
        let of = |name: &str, input: Value| translated(find(name).unwrap(), &input);
        let run = of("run", json!({"command": "ls", "folder": "src", "timeout": 5})).unwrap();
        let run = run.unwrap();
        assert_eq!(run.name, "run_shell");
        let expected = json!({"command": "ls", "working_directory": "src", "timeout_seconds": 5});
        assert_eq!(run.arguments, expected);
        let edit = of("edit", json!({"path": "a", "old": "x", "new": "y"})).unwrap().unwrap();
        assert_eq!((edit.name.as_str(), &edit.arguments["old_text"]), ("edit_file", &json!("x")));
        assert!(of("search", json!({})).unwrap().is_none());
        let wrong = of("run", json!({"command": 1})).err().unwrap();
        assert!(wrong.message.starts_with("run: 'command' must be a text, not 1"), "{wrong}");
    }
}
