//! The interface of tools.

use std::{borrow::Cow, time::Duration};

use cairn_protocol::{
    approval::{Form, Preview},
    error::{Failure, Reason},
    id::SessionId,
    tool::ToolInfo,
};
use cairn_workspace::{ResolvedPath, Root};
use serde_json::Value;

use crate::{CallPaths, Permit, Rule};

/// Use of the network by a tool whose run reaches only the domains that rules allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DomainUse {
    /// It cannot be called without the complete network.
    #[default]
    None,
    /// Its process in the sandbox reaches them.
    Confined,
    /// It does nothing but requests, each of which is decided by its domain.
    EveryRequest,
}

/// Changes that calls of a tool make, for the modes in which they need no approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolEffect {
    /// A change that no other variant describes.
    #[default]
    Any,
    /// The content of files inside the session's root.
    Edit,
    /// Files inside the session's root cease to exist.
    Remove,
}

/// Specification of a tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: Cow<'static, str>,
    /// One line: all that a model sees unless it requests more.
    pub short: Cow<'static, str>,
    /// The complete description, for models.
    pub description: Cow<'static, str>,
    /// Text that the system prompt adds while the tool is offered; empty for none.
    pub addendum: Cow<'static, str>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// True if it changes nothing outside Cairn's own state.
    pub read_only: bool,
    /// True if it changes only Cairn's own state, nothing of the user's: it runs without an
    /// approval unless a rule requires one.
    pub own_state: bool,
    /// Name of the MCP server that it belongs to.
    pub server: Option<Cow<'static, str>>,
    /// Its changes, unless it is read-only.
    pub effect: ToolEffect,
    /// True if the tool changes nothing by itself: each effect of a call passes the gate as a call
    /// of its own.
    pub delegates: bool,
    pub network: bool,
    /// Its use of the network by domain.
    pub domains: DomainUse,
    /// True if it limits itself to the run's paths ([`Permit::reach`]) when more is requested: a
    /// search of the complete root returns results inside them.
    pub narrows: bool,
    /// True if it is for plans and clients, not for models: another tool does the same for them.
    pub hidden: bool,
    /// Names of the arguments that contain a path.
    pub paths: &'static [&'static str],
    /// Name of the argument that contains a shell command line.
    pub command: Option<&'static str>,
    /// Name of the argument that contains code to run, which the audit stores.
    pub code: Option<&'static str>,
    pub timeout: Duration,
}

impl ToolSpec {
    /// Creates a read-only tool without network, with a path argument `path` and 30 seconds. The
    /// schema is that of `P`; the short description is the first sentence.
    pub fn reading<P: schemars::JsonSchema>(name: &'static str, description: &'static str) -> Self {
        Self {
            name: name.into(),
            short: first_sentence(description).into(),
            description: description.into(),
            addendum: "".into(),
            input_schema: schema::<P>(),
            read_only: true,
            own_state: false,
            server: None,
            effect: ToolEffect::Any,
            delegates: false,
            network: false,
            domains: DomainUse::None,
            narrows: false,
            hidden: false,
            paths: &["path", "pathPrefix"],
            command: None,
            code: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// Creates a tool as [`ToolSpec::reading`] does, but one that changes something.
    pub fn writing<P: schemars::JsonSchema>(name: &'static str, description: &'static str) -> Self {
        Self { read_only: false, ..Self::reading::<P>(name, description) }
    }

    /// Returns the specification as clients see it.
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

/// Returns the schema of arguments without entries that have no meaning for a model: each tool's
/// schema is part of every request.
fn schema<P: schemars::JsonSchema>() -> Value {
    let mut value = schemars::schema_for!(P).to_value();
    if let Some(fields) = value.as_object_mut() {
        for empty in ["$schema", "title", "description"] {
            fields.remove(empty);
        }
    }
    value
}

/// Most tools that a look-up by a part of a name describes completely.
const MAX_DESCRIBED: usize = 8;

/// Returns the tools that a look-up of `part`, in lower case, describes completely: those that have
/// it in their name, unless they are too many, and the one that has it as its name.
pub fn described_by<'a>(specs: &'a [ToolSpec], part: &str) -> Vec<&'a ToolSpec> {
    let named: Vec<&ToolSpec> =
        specs.iter().filter(|spec| spec.name.to_lowercase().contains(part)).collect();
    if named.len() <= MAX_DESCRIBED {
        return named;
    }
    named.into_iter().filter(|spec| spec.name.eq_ignore_ascii_case(part)).collect()
}

fn first_sentence(text: &'static str) -> &'static str {
    text.split_once(". ").map_or(text, |(first, _)| first)
}

/// The caller of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub session: &'a SessionId,
    /// The session's root, if it has one.
    pub root: Option<&'a Root>,
    /// The paths in its arguments.
    pub paths: &'a CallPaths,
}

impl Caller<'_> {
    /// Returns a path in the arguments, in the session's own root.
    ///
    /// # Errors
    /// `no_roots`, `path_outside_roots` and errors of resolving it.
    pub fn own_path(&self, path: &str) -> Result<ResolvedPath, Failure> {
        own_path(self.root, self.paths, path)
    }
}

/// Returns the resolved form of a path argument that must lie in the session's own root.
pub(crate) fn own_path(
    root: Option<&Root>,
    paths: &CallPaths,
    path: &str,
) -> Result<ResolvedPath, Failure> {
    let own =
        root.ok_or_else(|| Failure::new(Reason::NoRoots, "the session has no root to work in"))?;
    let target = match paths.find(path, None) {
        Some(target) => target.clone(),
        None if path.starts_with('/') => {
            // An absolute path that the gate could not resolve lies outside every root, or in a
            // blocked path.
            let rel = std::path::Path::new(path)
                .strip_prefix(&own.path)
                .ok()
                .and_then(|rel| rel.to_str());
            own.locate(rel.unwrap_or(path))?
        }
        None => own.locate(path)?,
    };
    if target.root().id != own.id {
        let text =
            format!("'{path}' is in a different root than the session's, {}", own.path.display());
        return Err(Failure::new(Reason::PathOutsideRoots, text));
    }
    Ok(target)
}

/// Reason why a call needs an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MustAsk {
    /// No approval suffices: Cairn itself runs or reads the file at this path.
    Closed(String),
    /// Needed regardless of rules and earlier answers.
    Always(String),
    /// Needed regardless of rules, unless the run's mode accepts edits: the content was not read.
    Unread(String),
    /// Needed unless a rule or an earlier answer matches: the default alone does not allow it.
    Unruled(String),
}

impl MustAsk {
    /// Returns the reason as text.
    pub fn why(&self) -> &str {
        match self {
            Self::Closed(why) | Self::Always(why) | Self::Unread(why) | Self::Unruled(why) => why,
        }
    }

    /// Returns the reason that fewer settings can satisfy.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |must: &Self| match must {
            Self::Closed(_) => 3,
            Self::Always(_) => 2,
            Self::Unread(_) => 1,
            Self::Unruled(_) => 0,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}

/// Effect of a call of a tool that changes something, described in advance.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// Preview for the approver.
    pub preview: Preview,
    /// Reason why this particular call needs an approval.
    pub must_ask: Option<MustAsk>,
    /// True if the call edits pieces of content that the session has read: it needs an approval
    /// only where a rule requires one.
    pub edits_read_content: bool,
    /// The rules that an approval for the session or for good stores; empty when such a call cannot
    /// be distinguished from others, so that it can only be approved once.
    pub grants: Vec<Rule>,
    /// Lists of wider rules that an approval may store instead, each verified to allow this same
    /// call.
    pub patterns: Vec<Vec<Rule>>,
    /// Values that the user is asked for, with the call already running.
    pub form: Option<Form>,
}

/// Output of a tool.
#[derive(Debug, Clone)]
pub struct Output {
    /// Type of `value`: `span`, `search_answer`, …
    pub tag: &'static str,
    pub value: Value,
    /// True if a limit truncated it.
    pub truncated: bool,
    /// Exit code of a process that the tool ran.
    pub exit_code: Option<i32>,
}

impl Output {
    /// Stands for the output of a call that was not run.
    pub(crate) fn dry_run(tool: &str) -> Self {
        let value = serde_json::json!({"dryRun": true, "tool": tool});
        Self { tag: "dry_run", value, truncated: false, exit_code: None }
    }

    /// Serialises a value as JSON.
    ///
    /// # Errors
    /// A value without a JSON form.
    pub fn of(
        tag: &'static str,
        value: &impl serde::Serialize,
        truncated: bool,
    ) -> Result<Self, Failure> {
        let value = serde_json::to_value(value).map_err(|error| {
            Failure::new(
                cairn_protocol::error::Reason::Internal,
                format!("{tag} cannot be serialized: {error}"),
            )
        })?;
        Ok(Self { tag, value, truncated, exit_code: None })
    }
}

/// An action. It may access only what its permit grants, returns early when the permit is
/// cancelled, and bounds its own output.
#[async_trait::async_trait]
pub trait Tool: Send + Sync {
    /// Returns name, schema and limits; the same at every call.
    fn spec(&self) -> ToolSpec;

    /// Returns the calls of other tools that this one delegates to, with their arguments: rules
    /// about those also apply to it, so that one name for many tools is no way around them. Empty
    /// for a tool that delegates nothing.
    fn delegated_calls(&self, _arguments: &Value) -> Vec<(&'static str, Value)> {
        vec![]
    }

    /// Removes secrets from the arguments before they are recorded. The tool stores the ones that
    /// its call needs.
    fn withhold_secrets(&self, _session: &SessionId, _arguments: &mut Value) {}

    /// Describes the effect of the call. It is not called for read-only tools, and changes nothing.
    ///
    /// # Errors
    /// A call that could not be done in any case; it fails with this error, and no approval is
    /// requested.
    async fn intent(&self, caller: &Caller<'_>, arguments: &Value) -> Result<Intent, Failure> {
        let spec = self.spec();
        let named = spec.paths.iter().filter_map(|key| arguments.get(*key)?.as_str());
        let real =
            |text: &str| caller.paths.find(text, None).map_or(text, ResolvedPath::real).to_owned();
        let paths: Vec<String> = named.map(real).collect();
        let preview = Preview {
            summary: format!("{} {}", spec.name, paths.join(" ")).trim().to_owned(),
            paths,
            network: spec.network,
            ..Preview::default()
        };
        Ok(Intent { preview, grants: vec![Rule::of_tool(&spec.name)], ..Intent::default() })
    }

    /// Runs the tool. `arguments` match the schema.
    ///
    /// # Errors
    /// Any failure becomes the call's outcome; none is retried.
    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure>;
}

/// Deserialises checked arguments into their type.
///
/// # Errors
/// `invalid_params` where the schema was wider than the type.
pub fn arguments<P: serde::de::DeserializeOwned>(value: Value) -> Result<P, Failure> {
    serde_json::from_value(value).map_err(|error| {
        Failure::new(cairn_protocol::error::Reason::InvalidParams, format!("arguments: {error}"))
    })
}
