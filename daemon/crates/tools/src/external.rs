//! Tools that are programs of the user's: called with one JSON argument, they print JSON.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_harness::{
    DomainUse, Output, Permit, Registry, Tool, ToolSpec, sandbox::Confined, sandbox::ProcessOutput,
};
use cairn_protocol::error::{Failure, Reason};
use serde_json::{Map, Value, json};

/// Default time limit of a call, and the longest that can be configured.
const TIMEOUT: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Time that the gate waits beyond the program's own limit, so that its timeout can be reported.
const MARGIN: Duration = Duration::from_secs(10);
/// Most bytes of the argument: the system accepts no longer one.
const MAX_ARGUMENT: usize = 120 * 1024;
/// Most bytes of output; a longer one is an error.
const MAX_OUTPUT: usize = 1024 * 1024;
/// Most characters of a description.
const MAX_DESCRIPTION: usize = 4096;
/// Most characters of a program's line that an error shows.
const MAX_LINE: usize = 200;
/// Names that no program may use: rules and other tools rely on the behaviour of these.
const RESERVED: &[&str] = &[
    "read_file",
    "write_file",
    "edit_file",
    "delete_file",
    "list_files",
    "search_files",
    "fs",
    "run_shell",
    "bash",
    "evaluate",
    "python3",
    "tool_lookup",
    "network",
];

/// Specification of such a tool.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalSpec {
    /// Tool name: 1 to 64 of `a-z`, `0-9`, `_` and `-`.
    pub name: String,
    pub description: String,
    /// Parameters by name with `type`, `required`, `default` and `description`, or a JSON Schema.
    pub parameters: Value,
    /// The program: one file. It cannot read anything beside it.
    pub program: PathBuf,
    /// Time limit of a call; 30 seconds when absent, at most 600.
    pub timeout: Option<Duration>,
    /// True if it uses the network.
    pub network: bool,
    /// Variables of its environment; the values are never printed.
    pub env: Vec<(String, String)>,
    /// True if it may replace a built-in tool.
    pub replaces_builtin: bool,
}

impl fmt::Debug for ExternalSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ExternalSpec")
            .field("name", &self.name)
            .field("program", &self.program)
            .field("network", &self.network)
            .field("env", &env)
            .finish_non_exhaustive()
    }
}

/// The programs that are registered as tools.
#[derive(Default)]
pub struct Externals(Mutex<BTreeMap<String, ExternalSpec>>);

impl Externals {
    /// Replaces the registered programs by `specs`; the first of a name counts. Returns the errors
    /// of those that are left out.
    pub fn set(&self, registry: &Registry, specs: Vec<ExternalSpec>) -> Vec<String> {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wrong = Vec::new();
        let mut next: BTreeMap<String, ExternalSpec> = BTreeMap::new();
        for spec in specs {
            let own = now.contains_key(&spec.name) && !registry.covers(&spec.name);
            let builtin = registry.has(&spec.name) && !own;
            let why = if !is_name(&spec.name) {
                Some("a name has 1 to 64 characters of a-z, 0-9, _ and -".to_owned())
            } else if RESERVED.contains(&spec.name.as_str()) {
                Some("this built-in tool cannot be replaced".to_owned())
            } else if next.contains_key(&spec.name) {
                Some("the name is already used by another program".to_owned())
            } else if builtin && !spec.replaces_builtin {
                Some(
                    "it is a built-in tool: set replaces_builtin in the user's config to replace it"
                        .to_owned(),
                )
            } else if now.get(&spec.name) == Some(&spec) {
                None
            } else {
                External::of(&spec)
                    .and_then(|tool| registry.cover(Arc::new(tool)))
                    .err()
                    .map(|e| e.message)
            };
            match why {
                None => drop(next.insert(spec.name.clone(), spec)),
                Some(why) => wrong.push(format!("external tool {}: {why}", line(&spec.name))),
            }
        }
        now.keys().filter(|name| !next.contains_key(*name)).for_each(|name| registry.remove(name));
        *now = next;
        wrong
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

struct External {
    name: String,
    description: String,
    schema: Value,
    program: PathBuf,
    timeout: Duration,
    network: bool,
    env: Vec<(String, String)>,
}

impl External {
    fn of(spec: &ExternalSpec) -> Result<Self, Failure> {
        let is_printable = |c: &char| !c.is_control() || *c == '\n';
        let description: String =
            spec.description.chars().filter(is_printable).take(MAX_DESCRIPTION).collect();
        if description.trim().is_empty() {
            return Err(Failure::new(Reason::InvalidParams, "it has no description"));
        }
        Ok(Self {
            name: spec.name.clone(),
            description: description.trim().to_owned(),
            schema: schema(&spec.parameters)?,
            program: spec.program.clone(),
            timeout: spec.timeout.unwrap_or(TIMEOUT.0).clamp(Duration::from_secs(1), TIMEOUT.1),
            network: spec.network,
            env: spec.env.clone(),
        })
    }

    fn failed(&self, reason: Reason, what: &str, output: &ProcessOutput) -> Failure {
        let stderr_line = output.stderr.text.lines().map(line).find(|l| !l.is_empty());
        let detail = stderr_line.map_or_else(String::new, |line| format!(": {line}"));
        Failure::new(reason, format!("tool {} {what}{detail}", self.name))
    }

    /// Returns the result for the program's exit.
    fn answer(&self, output: &ProcessOutput) -> Result<Output, Failure> {
        let failed = |what: &str| Err(self.failed(Reason::ToolFailed, what, output));
        if output.cancelled {
            return Err(self.failed(Reason::Cancelled, "was cancelled", output));
        }
        if output.timed_out {
            let what = format!("took longer than {} s", self.timeout.as_secs());
            return Err(self.failed(Reason::ToolTimedOut, &what, output));
        }
        if output.exit_code != 0 {
            return failed(&format!("exited with {}", output.exit_code));
        }
        if output.stdout.truncated {
            return failed(&format!("printed more than {MAX_OUTPUT} bytes"));
        }
        let text = output.stdout.text.trim();
        match serde_json::from_str(text) {
            Ok(value) => {
                Ok(Output { tag: "external", value, truncated: false, exit_code: Some(0) })
            }
            Err(_) if text.is_empty() => failed("printed nothing; one JSON value is expected"),
            Err(_) => failed(&format!("printed '{}', which is not JSON", line(text))),
        }
    }
}

/// Converts parameters in the simple form to a JSON Schema; returns a schema unchanged.
fn schema(parameters: &Value) -> Result<Value, Failure> {
    let bad = |text: String| Failure::new(Reason::InvalidParams, text);
    let fields = match parameters {
        Value::Null => &Map::new(),
        Value::Object(fields) => fields,
        _ => return Err(bad("its parameters are not an object".into())),
    };
    // In the simple form a parameter of this name is an object.
    if let Some(kind) = fields.get("type").and_then(Value::as_str) {
        if kind != "object" {
            return Err(bad(format!(
                "the schema of its parameters is of type '{}', not object",
                line(kind)
            )));
        }
        return Ok(parameters.clone());
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, field) in fields {
        let mut field = field.as_object().cloned().ok_or_else(|| {
            bad(format!("its parameter '{}' is not an object with a type", line(name)))
        })?;
        if field.remove("required") == Some(Value::Bool(true)) {
            required.push(name.clone());
        }
        properties.insert(name.clone(), field.into());
    }
    Ok(
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    )
}

/// Returns the first line of a text, short and without control characters.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect::<String>().trim().to_owned()
}

#[async_trait::async_trait]
impl Tool for External {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone().into(),
            short: line(&self.description).into(),
            description: self.description.clone().into(),
            addendum: "".into(),
            input_schema: self.schema.clone(),
            read_only: false,
            own_state: false,
            server: None,
            effect: cairn_harness::ToolEffect::Any,
            delegates: false,
            network: self.network,
            domains: if self.network { DomainUse::Confined } else { DomainUse::None },
            narrows: false,
            hidden: false,
            paths: &[],
            command: None,
            code: None,
            timeout: self.timeout + MARGIN,
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let argument = value.to_string();
        if argument.len() > MAX_ARGUMENT {
            let text = format!(
                "tool {}: arguments have {} bytes; the limit is {MAX_ARGUMENT}",
                self.name,
                argument.len()
            );
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let root = permit.require_root()?.path.clone();
        // A run with paths of its own starts in the first of them.
        let folder = permit
            .reach(".")?
            .and_then(|p| p.first().cloned())
            .map_or(root.clone(), |part| root.join(part));
        let mut confined =
            Confined::program(vec![self.program.to_string_lossy().into_owned(), argument], folder);
        confined.readable =
            vec![self.program.parent().map_or_else(|| self.program.clone(), PathBuf::from)];
        confined.network = self.network && permit.require_network().is_ok();
        confined.domains = self.network;
        confined.env.clone_from(&self.env);
        confined.limits.wall = self.timeout;
        confined.limits.output = MAX_OUTPUT;
        let output = permit.run(confined, |_, _| {}).await?;
        self.answer(&output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_built_from_both_parameter_forms() {
        let simple = json!({"query": {"type": "string", "required": true}, "type": {"type": "string", "default": "x"}});
        let want = json!({
            "type": "object", "required": ["query"], "additionalProperties": false,
            "properties": {"query": {"type": "string"}, "type": {"type": "string", "default": "x"}},
        });
        assert_eq!(schema(&simple).unwrap(), want);
        assert_eq!(schema(&want).unwrap(), want);
        assert_eq!(schema(&Value::Null).unwrap()["properties"], json!({}));
        for wrong in [json!([]), json!({"type": "string"}), json!({"query": "string"})] {
            assert!(schema(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        assert!(is_name("web-search_2") && is_name(&"x".repeat(64)));
        for wrong in ["", "Web", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
