//! What a tool is.

use std::time::Duration;

use cairn_protocol::{error::Failure, tool::ToolInfo};
use serde_json::Value;

use crate::Permit;

/// What a tool says of itself.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// One paragraph for whoever chooses a tool.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Changes nothing outside Cairn's own state.
    pub read_only: bool,
    /// Uses the network.
    pub network: bool,
    /// Keeps to the run's paths by itself ([`Permit::reach`]) where it is asked for more than they are: a search of the
    /// whole root finds what lies in them.
    pub narrows: bool,
    /// Names of the arguments that hold a path.
    pub paths: &'static [&'static str],
    /// Name of the argument that holds a shell's command line.
    pub command: Option<&'static str>,
    /// Time it may take.
    pub timeout: Duration,
}

impl ToolSpec {
    /// A read-only tool without network, with a path argument `path` and 30 seconds. The schema is that of `P`.
    pub fn reading<P: schemars::JsonSchema>(name: &'static str, description: &'static str) -> Self {
        let input_schema = schemars::schema_for!(P).to_value();
        let (paths, timeout) = (&["path", "pathPrefix"], Duration::from_secs(30));
        let (read_only, network, narrows) = (true, false, false);
        Self { name, description, input_schema, read_only, network, narrows, paths, command: None, timeout }
    }

    /// The same as clients see it.
    pub fn info(&self) -> ToolInfo {
        ToolInfo {
            name: self.name.into(),
            description: self.description.into(),
            input_schema: self.input_schema.clone(),
            read_only: self.read_only,
            network: self.network,
        }
    }
}

/// What a tool made.
#[derive(Debug, Clone)]
pub struct Output {
    /// What `value` is: `span`, `search_answer`, …
    pub tag: &'static str,
    /// The output.
    pub value: Value,
    /// Whether a limit cut it.
    pub truncated: bool,
    /// Exit code of a process it ran.
    pub exit_code: Option<i32>,
}

impl Output {
    /// A value written as JSON.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn of(tag: &'static str, value: &impl serde::Serialize, truncated: bool) -> Result<Self, Failure> {
        let value = serde_json::to_value(value).map_err(|error| {
            Failure::new(
                cairn_protocol::error::Reason::Internal,
                format!("{tag} cannot be written as json: {error}"),
            )
        })?;
        Ok(Self { tag, value, truncated, exit_code: None })
    }
}

/// An action. It may touch the world only by what its permit grants, ends early when the permit is cancelled,
/// and bounds its own output.
#[async_trait::async_trait]
pub trait Tool: Send + Sync {
    /// Name, schema and limits; the same at every call.
    fn spec(&self) -> ToolSpec;

    /// Acts. `arguments` fit the schema.
    ///
    /// # Errors
    /// Any failure becomes the call's outcome; none is retried.
    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure>;
}

/// Reads checked arguments into their type.
///
/// # Errors
/// `invalid_params` where the schema was wider than the type.
pub fn arguments<P: serde::de::DeserializeOwned>(value: Value) -> Result<P, Failure> {
    serde_json::from_value(value).map_err(|error| {
        Failure::new(cairn_protocol::error::Reason::InvalidParams, format!("arguments: {error}"))
    })
}
