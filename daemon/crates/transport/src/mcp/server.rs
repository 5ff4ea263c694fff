//! The MCP request handler.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    tool::ToolInfo,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverResult,
        Implementation, InitializeRequestParams, InitializeResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::Value;

use super::{
    Host,
    actions::{self, RegisteredCall},
    builtin_tools,
    client::{Caller, Client, LazyClient},
    explore, harness,
    offered::OfferedTools,
    resources, schema, turn,
};

/// Maximum bytes of a tool's description.
const MAX_DESCRIPTION: usize = 4096;

/// One MCP connection, or one request where there are no connections.
pub struct Server {
    host: Arc<Host>,
    client: LazyClient,
    /// The root that the connection was opened for.
    root: Option<String>,
    /// True if the client is offered turns of Cairn's own agent.
    turns: bool,
    /// The tools that the connection is offered; those of the configuration when absent.
    offered: Option<OfferedTools>,
    http: bool,
}

impl Server {
    /// Creates a server for a connection with this query: `root=…`, an id or a path in which it
    /// works, `tools=…`, the tools that it is offered, and `turns=1`, which offers turns.
    pub fn for_query(host: Arc<Host>, query: Option<&str>) -> Self {
        let client = LazyClient::default();
        let root = root_of(query);
        let turns = offers_turns(query);
        let offered = OfferedTools::of_query(query);
        Self { host, client, root, turns, offered, http: false }
    }

    /// Creates a server for streamable HTTP, where each request can have its own query.
    pub fn over_http(host: Arc<Host>) -> Self {
        Self { http: true, ..Self::for_query(host, None) }
    }

    async fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, Failure> {
        let info = context.client_info();
        let (name, version) = info.map_or_else(Default::default, |i| (i.name, i.version));
        let requested =
            context.extensions.get::<http::request::Parts>().and_then(|p| root_of(p.uri.query()));
        let caller = Caller { name, version, root: requested.or_else(|| self.root.clone()) };
        let stateless =
            context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
        self.client.get(&self.host, caller, self.http && stateless).await
    }

    fn has_turns(&self, context: &RequestContext<RoleServer>) -> bool {
        let parts = context.extensions.get::<http::request::Parts>();
        self.turns
            || parts.is_some_and(|parts| offers_turns(parts.uri.query()))
            || self.offered(context).names(turn::NAME)
    }

    /// Returns the tools that a request is offered: by its own query, by that of its connection, or
    /// by the configuration.
    fn offered(&self, context: &RequestContext<RoleServer>) -> OfferedTools {
        let parts = context.extensions.get::<http::request::Parts>();
        let by_request = parts.and_then(|parts| OfferedTools::of_query(parts.uri.query()));
        by_request.or_else(|| self.offered.clone()).unwrap_or_else(|| self.host.offered.clone())
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = match self.client(context).await {
            Ok(client) => client,
            Err(failure) => return Ok(failure_result(&failure).into()),
        };
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let offered = self.offered(context);
        let name = &*request.name;
        let outcome = match builtin_tools::find(name) {
            None if name == turn::NAME && self.has_turns(context) => {
                turn::call(&client, &arguments, context).await
            }
            None if offered.has_registered(name) => {
                let name = name.to_owned();
                let call = RegisteredCall { name, arguments, max_tokens: None };
                return harness::call(&client, request, call, context).await;
            }
            Some(tool) if offered.has_builtin(name) => {
                match actions::translated(tool, &arguments) {
                    Ok(Some(call)) => return harness::call(&client, request, call, context).await,
                    Ok(None) if name == explore::NAME => {
                        explore::call(&client, &arguments, context).await
                    }
                    Ok(None) => builtin_tools::call(&client, name, &arguments).await,
                    Err(failure) => Err(failure),
                }
            }
            _ => {
                let failure = harness::unknown(&client, name, Some(&offered)).await;
                return Err(protocol_error(&failure));
            }
        };
        Ok(outcome.map_or_else(|failure| failure_result(&failure), text_result).into())
    }
}

/// Returns the root in a query `root=…`.
pub fn root_of(query: Option<&str>) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query?.as_bytes());
    pairs
        .find(|(name, value)| name == "root" && !value.is_empty())
        .map(|(_, value)| value.into_owned())
}

/// Returns true for a query with `turns=1`.
fn offers_turns(query: Option<&str>) -> bool {
    let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.any(|(name, value)| name == "turns" && value == "1")
}

/// Builds the answer of a tool.
pub fn text_result(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Returns the remedy for a failure, in terms of this protocol.
pub fn hint(reason: Reason) -> &'static str {
    match reason {
        // The message names the argument and its range.
        Reason::InvalidParams => "",
        Reason::RootNotFound => {
            "the resource cairn://roots lists the declared roots; 'cairn mcp --root DIR' declares one"
        }
        Reason::RootAmbiguous => {
            "specify the root, by its id or path; the resource cairn://roots lists them"
        }
        Reason::NoRoots | Reason::PathOutsideRoots => {
            "the user must declare the folder: 'cairn index add DIR', or start this server as 'cairn mcp --root DIR'"
        }
        Reason::UnknownTool => "tools/list lists the tools",
        Reason::BadPattern => "escape it, or set fixedStrings to search for the text itself",
        Reason::NoApprover => {
            "no one can answer now: let the user open 'cairn approvals --watch', 'cairn viewer' or a chat and repeat the call, or allow it by a rule in permissions.allow"
        }
        other => other.hint(),
    }
}

/// Renders a failure with its remedy for a model.
pub fn error_result(reason: &str, message: &str, hint: &str) -> CallToolResult {
    let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
    CallToolResult::error(vec![ContentBlock::text(format!("{reason}: {message}{hint}"))])
}

/// Renders a failure of the API.
pub fn failure_result(failure: &Failure) -> CallToolResult {
    error_result(failure.reason.as_str(), &failure.message, hint(failure.reason))
}

/// Builds the protocol error for a failed request.
pub fn protocol_error(failure: &Failure) -> ErrorData {
    let data =
        Some(serde_json::json!({"reason": failure.reason.as_str(), "hint": hint(failure.reason)}));
    match failure.reason {
        Reason::UnknownTool | Reason::InvalidParams | Reason::RootNotFound => {
            ErrorData::invalid_params(failure.message.clone(), data)
        }
        Reason::PathNotFound | Reason::SessionNotFound | Reason::NotAFile => {
            ErrorData::resource_not_found(failure.message.clone(), data)
        }
        _ => ErrorData::internal_error(failure.message.clone(), data),
    }
}

/// Renders a registered tool as MCP defines it.
fn to_mcp_tool(info: ToolInfo) -> Tool {
    let mut text = info.description;
    if text.len() > MAX_DESCRIPTION {
        let end = (0..=MAX_DESCRIPTION).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    let hints = ToolAnnotations::new()
        .read_only(info.read_only)
        .destructive(!info.read_only)
        .open_world(info.network);
    Tool::new(info.name, text, schema::simplified(info.input_schema)).with_annotations(hints)
}

/// When each tool is better than an agent's own, as lines that follow the tools that are offered.
const INSTRUCTIONS: &[(&[&str], &str)] = &[
    (&["search"], "`search`: you know the idea, not the words. One question beats several greps."),
    (
        &["grep", "symbols"],
        "`grep`: exact text, every occurrence. `symbols`: where a name is defined.",
    ),
    (&["references"], "`references`: before you change a definition or a file."),
    (&["map", "explore"], "`map`, `explore`: once, in an unknown project."),
    (&["read"], "`read`: the lines that a result names, not the file."),
    (
        &["edit", "write", "run"],
        "`edit`, `write`, `run` follow the user's rules and may wait for an approval. A denial is \
            final: do not work around it.",
    ),
];

fn instructions(offered: &OfferedTools) -> String {
    let first = "Cairn answers from an index of the declared folders that follows every change. \
        Answers are path:line with text, then notes in brackets: what was left out and how to get \
        it. `maxTokens` limits an answer (200 to 8,000; 3,000 by default); `root` names one of \
        several roots (cairn://roots).";
    let lines = INSTRUCTIONS
        .iter()
        .filter(|(tools, _)| tools.iter().any(|tool| offered.has_builtin(tool)))
        .map(|(_, text)| format!("\n* {text}"));
    std::iter::once(first.to_owned()).chain(lines).collect()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let about =
            Implementation::new("cairn", self.host.api.host().version.clone()).with_title("Cairn");
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(instructions(self.offered.as_ref().unwrap_or(&self.host.offered)))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.instructions = Some(instructions(&self.offered(&context)));
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let info = self.get_info().with_instructions(instructions(&self.offered(&context)));
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context).await.map_err(|f| protocol_error(&f))?;
        let offered = self.offered(&context);
        let registered = client.tools().await.map_err(|f| protocol_error(&f))?;
        let is_registered = |name: &str| registered.iter().any(|tool| tool.name == name);
        let mut tools: Vec<Tool> = builtin_tools::tools()
            .filter(|(tool, _)| offered.has_builtin(tool.name))
            .filter(|(tool, _)| tool.registered.is_none_or(is_registered))
            .map(|(_, listed)| listed)
            .collect();
        tools.extend(self.has_turns(&context).then(turn::tool));
        let others = registered.into_iter().filter(|tool| {
            builtin_tools::find(&tool.name).is_none()
                && offered.has_registered(&tool.name)
                && (!tool.hidden || offered.names(&tool.name))
        });
        tools.extend(others.map(to_mcp_tool));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancelled = context.ct.clone();
        tokio::select! {
            answer = self.call(request, &context) => answer,
            // Dropping the call cancels the underlying request.
            () = cancelled.cancelled() => Ok(failure_result(&Failure::new(Reason::Cancelled, "the call was cancelled")).into()),
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context).await.map_err(|f| protocol_error(&f))?;
        resources::list(&client)
            .await
            .map(ListResourcesResult::with_all_items)
            .map_err(|f| protocol_error(&f))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context).await.map_err(|f| protocol_error(&f))?;
        resources::read(&client, &request.uri).await.map(Into::into).map_err(|f| protocol_error(&f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_parsed_from_a_query() {
        for (query, expected) in [
            (None, None),
            (Some("root=/a/b"), Some("/a/b")),
            (Some("x=1&root=%2Fa%20b"), Some("/a b")),
            (Some("root="), None),
        ] {
            assert_eq!(root_of(query).as_deref(), expected, "{query:?}");
        }
    }
}
