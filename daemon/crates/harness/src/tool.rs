//! What a tool is.

use std::{borrow::Cow, time::Duration};

use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
    tool::ToolInfo,
};
use cairn_workspace::{ResolvedPath, Root};
use serde_json::Value;

use crate::{CallPaths, Permit};

/// What a tool says of itself.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// One line: all that a model is told unless it asks for more.
    pub short: Cow<'static, str>,
    /// The whole description.
    pub description: Cow<'static, str>,
    /// What the system text says about it while it is offered; empty for nothing.
    pub addendum: Cow<'static, str>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Changes nothing outside Cairn's own state.
    pub read_only: bool,
    /// Changes Cairn's own state alone, nothing of the user's: done without asking where no rule says otherwise.
    pub own_state: bool,
    /// Uses the network.
    pub network: bool,
    /// Keeps to the run's paths by itself ([`Permit::reach`]) where it is asked for more than they are: a search of the
    /// whole root finds what lies in them.
    pub narrows: bool,
    /// Is there for plans and clients, not for models: another tool does the same for them.
    pub hidden: bool,
    /// Names of the arguments that hold a path.
    pub paths: &'static [&'static str],
    /// Name of the argument that holds a shell's command line.
    pub command: Option<&'static str>,
    /// Name of the argument that holds code which is run: the audit keeps it.
    pub code: Option<&'static str>,
    /// Time it may take.
    pub timeout: Duration,
}

impl ToolSpec {
    /// A read-only tool without network, with a path argument `path` and 30 seconds. The schema is that of `P`; the short
    /// description is the first sentence.
    pub fn reading<P: schemars::JsonSchema>(name: &'static str, description: &'static str) -> Self {
        Self {
            name: name.into(),
            short: first_sentence(description).into(),
            description: description.into(),
            addendum: "".into(),
            input_schema: schema::<P>(),
            read_only: true,
            own_state: false,
            network: false,
            narrows: false,
            hidden: false,
            paths: &["path", "pathPrefix"],
            command: None,
            code: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// The same for a tool that changes something.
    pub fn writing<P: schemars::JsonSchema>(name: &'static str, description: &'static str) -> Self {
        Self { read_only: false, ..Self::reading::<P>(name, description) }
    }

    /// The same as clients see it.
    pub fn info(&self) -> ToolInfo {
        ToolInfo {
            name: self.name.clone().into_owned(),
            short: self.short.clone().into_owned(),
            description: self.description.clone().into_owned(),
            input_schema: self.input_schema.clone(),
            read_only: self.read_only,
            network: self.network,
            hidden: self.hidden,
        }
    }
}

/// The schema of arguments without what tells a model nothing: each tool's is part of every request.
fn schema<P: schemars::JsonSchema>() -> Value {
    let mut value = schemars::schema_for!(P).to_value();
    if let Some(fields) = value.as_object_mut() {
        for empty in ["$schema", "title", "description"] {
            fields.remove(empty);
        }
    }
    value
}

fn first_sentence(text: &'static str) -> &'static str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// Who wants to call a tool.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The root it works in.
    pub root: Option<&'a Root>,
    /// The paths in its arguments.
    pub paths: &'a CallPaths,
}

impl Caller<'_> {
    /// A path in the arguments, in the session's own root.
    ///
    /// # Errors
    /// `no_roots`, `path_outside_roots` and those of resolving it.
    pub fn own_path(&self, path: &str) -> Result<ResolvedPath, Failure> {
        own_path(self.root, self.paths, path)
    }
}

/// The resolved form of a path argument that must lie in the session's own root.
pub(crate) fn own_path(root: Option<&Root>, paths: &CallPaths, path: &str) -> Result<ResolvedPath, Failure> {
    let own = root.ok_or_else(|| Failure::new(Reason::NoRoots, "the session has no root to work in"))?;
    let found = match paths.find(path, None) {
        Some(found) => found.clone(),
        None if path.starts_with('/') => {
            // An absolute path that the gate could not place lies in no root at all, or in a blocked path.
            let rel = std::path::Path::new(path).strip_prefix(&own.path).ok().and_then(|rel| rel.to_str());
            own.locate(rel.unwrap_or(path))?
        }
        None => own.locate(path)?,
    };
    if found.root().id != own.id {
        let text = format!("'{path}' lies in another root than the session's, {}", own.path.display());
        return Err(Failure::new(Reason::PathOutsideRoots, text));
    }
    Ok(found)
}

/// Why a call must be asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MustAsk {
    /// Whatever rules and earlier answers allow.
    Always(String),
    /// Unless a rule or an earlier answer speaks of it: the default alone does not let it through.
    Unruled(String),
}

impl MustAsk {
    /// The reason in words.
    pub fn why(&self) -> &str {
        match self {
            Self::Always(why) | Self::Unruled(why) => why,
        }
    }
}

/// What a call of a tool that changes something would do, told before it does it.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// For whoever is asked.
    pub preview: Preview,
    /// Why this very call must be asked about.
    pub must_ask: Option<MustAsk>,
    /// The rules that an approval for the session or for good writes, one a line; none when such a call cannot be told from
    /// others, and then it is approved once.
    pub grants: String,
    /// Wider rules that an approval may write instead, each verified to allow this very call.
    pub patterns: Vec<String>,
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
    /// Stands for the output of a call that was not made.
    pub(crate) fn dry_run(tool: &str) -> Self {
        let value = serde_json::json!({"dryRun": true, "tool": tool});
        Self { tag: "dry_run", value, truncated: false, exit_code: None }
    }

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

    /// The calls of other tools that this one stands for, with their arguments: whatever rules say of those binds it, so
    /// that one name for many tools is no way around them. None for a tool that stands for itself.
    fn delegated_calls(&self, _arguments: &Value) -> Vec<(&'static str, Value)> {
        vec![]
    }

    /// Takes secrets out of the arguments before anything records them. The tool remembers what its call needs of them.
    fn withhold_secrets(&self, _session: &SessionId, _arguments: &mut Value) {}

    /// What the call would do. Read-only tools are not asked. Touches nothing.
    ///
    /// # Errors
    /// When the call could not be done in any case; it fails with this then, and nobody is asked.
    async fn intent(&self, caller: &Caller<'_>, arguments: &Value) -> Result<Intent, Failure> {
        let spec = self.spec();
        let named = spec.paths.iter().filter_map(|key| arguments.get(*key)?.as_str());
        let real = |text: &str| caller.paths.find(text, None).map_or(text, ResolvedPath::real).to_owned();
        let paths: Vec<String> = named.map(real).collect();
        let preview = Preview {
            summary: format!("{} {}", spec.name, paths.join(" ")).trim().to_owned(),
            paths,
            network: spec.network,
            ..Preview::default()
        };
        Ok(Intent { preview, grants: spec.name.into_owned(), ..Intent::default() })
    }

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
