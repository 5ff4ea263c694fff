//! The MCP request handler.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    prompt::{KNOWLEDGE_LOOP, WRITING},
    tool::ToolInfo,
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Map, Value};

use super::{
    Host, builtin_tools,
    client::{Caller, Client, LazyClient},
    explore, harness, resources, turn,
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
    http: bool,
}

impl Server {
    /// Creates a server for a connection with this query: `root=…`, an id or a path in which it
    /// works, and `turns=1`, which offers turns.
    pub fn for_query(host: Arc<Host>, query: Option<&str>) -> Self {
        let root = root_of(query);
        Self { host, client: LazyClient::default(), root, turns: offers_turns(query), http: false }
    }

    /// Creates a server for streamable HTTP, where each request can name a root (`/mcp?root=…`).
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
        self.turns || parts.is_some_and(|parts| offers_turns(parts.uri.query()))
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
        let outcome = match &*request.name {
            turn::NAME if self.has_turns(context) => turn::call(&client, arguments, context).await,
            explore::NAME => explore::call(&client, arguments, context).await,
            name if builtin_tools::find(name).is_some() => {
                builtin_tools::call(&client, name, arguments).await
            }
            _ => return harness::call(&client, request, context).await,
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
        Reason::InvalidParams => "see the tool's input schema",
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
        Reason::NoApprover => {
            "the user must allow it: in a client that can ask (cairn chat, cairn tools call), or by a rule in permissions.allow"
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

/// Reduces a parameter schema for models: it removes what they do not need and what some clients
/// cannot read, such as a type union with `null` and integer formats.
pub fn simplify_schema(schema: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = schema else { return Map::new() };
    fields.remove("$schema");
    fields.remove("title");
    // Clients may reject a schema without a type.
    fields.entry("type").or_insert_with(|| "object".into());
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(simplify);
    }
    fields
}

fn simplify(field: &mut Map<String, Value>) {
    let types = field.get("type").and_then(Value::as_array);
    let mut named = types.into_iter().flatten().filter(|t| *t != "null");
    if let (Some(only), None) = (named.next().cloned(), named.next()) {
        field.insert("type".into(), only);
    }
    if field.get("default").is_some_and(Value::is_null) {
        field.remove("default");
    }
    let width =
        |f: &Value| f.as_str().is_some_and(|f| f.starts_with("uint") || f.starts_with("int"));
    if field.get("format").is_some_and(width) {
        field.remove("format");
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
    Tool::new(info.name, text, simplify_schema(info.input_schema)).with_annotations(hints)
}

const INSTRUCTIONS: &str = "Cairn searches the declared folders (roots) of this machine from an index that \
follows every change, and runs tools under the user's rules.\n\
\n\
To find code, call `search` with a question or names first; `search_lines` is for exact text and regular \
expressions, `symbols` for definitions and the outline of a file. Results are ranked `path:line` \
locations: read them with `read_span`, and get more with `k` or the cursor at the end of a result. \
`references` gives the uses, callers and callees of a definition, `impact` the files that depend on one. \
`repo_map` and `explore` describe the structure of a project.\n\
\n\
A tool that changes something may need permission: if the user must be asked, the call waits. A denial \
is final: do not try another way around it. Edit a file only after reading it.";

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let about =
            Implementation::new("cairn", self.host.api.host().version.clone()).with_title("Cairn");
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(format!("{INSTRUCTIONS}\n\n{WRITING}\n\n{KNOWLEDGE_LOOP}"))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context).await.map_err(|f| protocol_error(&f))?;
        let mut tools: Vec<Tool> = builtin_tools::tools();
        let registered = client.tools().await.map_err(|f| protocol_error(&f))?;
        let is_builtin = |name: &str| name == explore::NAME || builtin_tools::find(name).is_some();
        tools.extend(self.has_turns(&context).then(turn::tool));
        tools.extend(registered.into_iter().filter(|t| !is_builtin(&t.name)).map(to_mcp_tool));
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
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_is_simplified() {
        let input = json!({"$schema": "x", "title": "T", "properties": {
            "k": {"type": ["integer", "null"], "format": "uint32", "default": null, "minimum": 0},
            "either": {"type": ["integer", "string"]},
            "type": {"type": "string", "format": "uri"},
        }});
        let expected = json!({"type": "object", "properties": {
            "k": {"type": "integer", "minimum": 0},
            "either": {"type": ["integer", "string"]},
            "type": {"type": "string", "format": "uri"},
        }});
        assert_eq!(Value::Object(simplify_schema(input)), expected);
    }

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
