//! The connection to one server: handshake, tool list and its updates, calls, end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::McpServer;
use cairn_harness::UserInput;
use cairn_protocol::error::{Failure, Reason};
use cairn_tools::{Remote, RemoteOutput, RemoteSpec};
use futures_util::FutureExt as _;
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
        ContentBlock, ElicitRequestParams, ElicitResult, ElicitationCapability,
        FormElicitationCapability, Implementation, PaginatedRequestParams, ProtocolVersion,
        ResourceContents, Tool,
    },
    service::{
        ClientInitializeError, NotificationContext, RequestContext, RunningService, ServiceError,
    },
};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::{
    elicitation::ActiveCalls,
    http, login,
    logins::Logins,
    process::{Child, Variables},
};

/// Maximum tools per server; further ones are reported and ignored.
const MAX_TOOLS: usize = 256;
/// Maximum pages of a tool list.
const MAX_PAGES: usize = 32;
/// Maximum characters of a server's own text in an error.
const MAX_ERROR_TEXT: usize = 300;
/// Maximum bytes of a result's text.
const MAX_TEXT: usize = 1024 * 1024;

/// The state of a server.
pub enum State {
    /// The server has not answered yet.
    Starting,
    /// The server can be called.
    Up(Peer<RoleClient>),
    /// The server refuses calls without a login.
    LoginRequired,
    /// The server cannot be called, for this reason.
    Down(String),
}

/// The reason why a connection ended.
pub enum End {
    /// The server refuses calls without a login, or with the one that is stored.
    LoginRequired,
    Failed(String),
}

/// The connection to a server, whatever its state.
pub struct Link {
    name: String,
    variables: Variables,
    /// The stored logins, if the server may have one.
    logins: Option<Arc<Logins>>,
    state: Mutex<State>,
    changed: Notify,
    /// Notified when a call was refused because of its login.
    refused: Notify,
    calls: Arc<ActiveCalls>,
}

impl Link {
    pub fn new(name: &str, variables: Variables, logins: Option<Arc<Logins>>) -> Self {
        Self {
            name: name.to_owned(),
            variables,
            logins,
            state: Mutex::new(State::Starting),
            changed: Notify::new(),
            refused: Notify::new(),
            calls: Arc::default(),
        }
    }

    /// Passes the state to `read`, with the lock.
    pub fn state<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_waiters();
    }

    /// Waits until the server can be called, or failed to start; returns the failure.
    pub async fn started(&self) -> Result<(), String> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
                State::Up(_) => return Ok(()),
                State::LoginRequired => return Err(login::instruction(&self.name)),
                State::Down(why) => return Err(why.clone()),
                State::Starting => {}
            }
            changed.await;
        }
    }

    fn failed(&self, what: &str) -> Failure {
        Failure::new(
            Reason::ToolFailed,
            format!("mcp server '{}' {what}", self.name.escape_default()),
        )
    }

    fn peer(&self) -> Result<Peer<RoleClient>, Failure> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Up(peer) => Ok(peer.clone()),
            State::Starting => Err(self.failed("is still starting: try again in a moment")),
            State::LoginRequired => {
                Err(self.failed(&format!("cannot be called: {}", login::instruction(&self.name))))
            }
            State::Down(why) => Err(self.failed(&format!("is not running: {why}"))),
        }
    }
}

#[async_trait::async_trait]
impl Remote for Link {
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        input: &Arc<UserInput>,
    ) -> Result<RemoteOutput, Failure> {
        let peer = self.peer()?;
        let _active = self.calls.start(input);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        // Dropping this future notifies the server of the cancellation.
        match peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(to_text(result)),
            Ok(_) => Err(self.failed("requires task support, which is not available")),
            Err(ServiceError::McpError(error)) => {
                let words: String = error
                    .message
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(MAX_ERROR_TEXT)
                    .collect();
                Err(self.failed(&format!("refused the call: {words}")))
            }
            Err(error) if error.auth_challenge().is_some() => {
                self.refused.notify_one();
                Err(self.failed(&format!("refused the call: {}", login::instruction(&self.name))))
            }
            Err(ServiceError::TransportClosed) => Err(self.failed("exited during the call")),
            Err(error) => Err(self.failed(&format!("did not answer: {error}"))),
        }
    }
}

/// Converts a result to text; other content is only mentioned.
fn to_text(result: CallToolResult) -> RemoteOutput {
    let mut text = String::new();
    for block in result.content {
        if text.len() >= MAX_TEXT {
            break;
        }
        let part = match block {
            ContentBlock::Text(part) => part.text,
            ContentBlock::Image(image) => format!("[an image, {}, omitted]", image.mime_type),
            ContentBlock::Audio(audio) => format!("[audio, {}, omitted]", audio.mime_type),
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("{uri}\n{text}")
                }
                _ => "[a binary resource, omitted]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("{} {}", link.uri, link.name),
            _ => "[content of an unknown kind, omitted]".to_owned(),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    if text.is_empty()
        && let Some(value) = result.structured_content
    {
        text = value.to_string();
    }
    RemoteOutput { text, failed: result.is_error == Some(true) }
}

/// Client handler that receives list changes and passes the server's questions to the user.
#[derive(Clone)]
pub struct Handler {
    name: String,
    changed: Arc<Notify>,
    calls: Arc<ActiveCalls>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("cairn", crate::serve::VERSION);
        let forms = FormElicitationCapability::new().with_schema_validation(true);
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(forms));
        // The last version that starts with a handshake, which every server supports.
        ClientConfig::new(capabilities, about)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.calls.answer(&self.name, question, context.ct).await
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.changed.notify_one();
        std::future::ready(())
    }
}

/// Opens the connection and runs it until it ends, returning the reason. `set` registers the tools
/// and returns problems with some of them.
pub async fn run(
    link: &Link,
    config: &McpServer,
    set: impl Fn(Vec<RemoteSpec>) -> Vec<String>,
) -> End {
    link.set(State::Starting);
    // A refusal of the connection before says nothing about this one.
    let _stale = link.refused.notified().now_or_never();
    let handler = Handler {
        name: link.name.clone(),
        changed: Arc::default(),
        calls: Arc::clone(&link.calls),
    };
    let within = Duration::from_secs(config.start_timeout_seconds.clamp(1, 600));
    let opened = match (&config.command, &config.url) {
        (Some(_), None) => program(config, link.variables, handler.clone(), within).await,
        (None, Some(url)) => {
            let store = link.logins.as_ref().map(|logins| logins.of_server(&link.name, url));
            let opening = http::open((url, config, link.variables), store, handler.clone());
            match tokio::time::timeout(within, opening).await {
                Ok(opened) => opened.map(|service| (service, None)),
                Err(_) => Err(not_in_time(within)),
            }
        }
        _ => Err(End::Failed("its configuration needs either 'command' or 'url'".to_owned())),
    };
    let (service, mut child) = match opened {
        Ok(opened) => opened,
        Err(End::LoginRequired) if link.logins.is_none() => {
            return End::Failed(
                "it requires a login, which is stored only for servers of the configuration"
                    .to_owned(),
            );
        }
        Err(end) => return end,
    };
    let peer = service.peer().clone();
    let end = match tokio::time::timeout(within, list(&peer)).await {
        Err(_) => End::Failed(format!("it did not list its tools within {} s", within.as_secs())),
        Ok(Err(why)) => End::Failed(why),
        Ok(Ok(specs)) => {
            log_problems(link, set(specs));
            link.set(State::Up(peer.clone()));
            tracing::info!("mcp server {} is connected", link.name);
            run_connection(link, service, &peer, &handler, within, &set).await
        }
    };
    match (&mut child, end) {
        (Some(child), End::Failed(why)) => End::Failed(child.terminate(why).await),
        (_, end) => end,
    }
}

fn not_in_time(within: Duration) -> End {
    End::Failed(format!("it did not answer within {} s", within.as_secs()))
}

fn log_problems(link: &Link, wrong: Vec<String>) {
    wrong.iter().take(8).for_each(|text| tracing::warn!("{text}"));
    if wrong.len() > 8 {
        tracing::warn!(
            "mcp server {}: {} more of its tools are ignored",
            link.name,
            wrong.len() - 8
        );
    }
}

/// Runs an open connection to its end.
async fn run_connection(
    link: &Link,
    service: RunningService<RoleClient, Handler>,
    peer: &Peer<RoleClient>,
    handler: &Handler,
    within: Duration,
    set: &impl Fn(Vec<RemoteSpec>) -> Vec<String>,
) -> End {
    let closed = service.waiting();
    tokio::pin!(closed);
    loop {
        tokio::select! {
            _ = &mut closed => return End::Failed("the connection ended".to_owned()),
            () = link.refused.notified() => return End::LoginRequired,
            () = handler.changed.notified() => {}
        }
        match tokio::time::timeout(within, list(peer)).await {
            Ok(Ok(specs)) => log_problems(link, set(specs)),
            Ok(Err(why)) => tracing::warn!("mcp server {}: {why}", link.name),
            Err(_) => {
                tracing::warn!("mcp server {}: its new list of tools was not received", link.name)
            }
        }
    }
}

/// Lists the tools of a server, up to a limit.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<RemoteSpec>, String> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer
            .list_tools(Some(page))
            .await
            .map_err(|e| format!("it does not list its tools: {e}"))?;
        all.extend(page.tools.into_iter().map(spec));
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= MAX_TOOLS {
            break;
        }
    }
    all.truncate(MAX_TOOLS);
    Ok(all)
}

fn spec(tool: Tool) -> RemoteSpec {
    RemoteSpec {
        name: tool.name.into_owned(),
        description: tool.description.map(|d| d.into_owned()).unwrap_or_default(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        read_only: tool.annotations.is_some_and(|a| a.read_only_hint == Some(true)),
    }
}

/// Describes why a connection could not be opened, without type names.
pub fn describe_error(error: &ClientInitializeError) -> String {
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it exited, or printed invalid messages".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => {
            let mut cause: &dyn std::error::Error = &*error.error;
            while let Some(next) = cause.source() {
                cause = next;
            }
            format!("communication failed: {cause}")
        }
        other => other.to_string(),
    };
    format!(
        "it cannot be started: {}",
        why.chars().filter(|c| !c.is_control()).take(MAX_ERROR_TEXT).collect::<String>()
    )
}

type Opened = (RunningService<RoleClient, Handler>, Option<Child>);

async fn program(
    config: &McpServer,
    variables: Variables,
    handler: Handler,
    within: Duration,
) -> Result<Opened, End> {
    let mut child = Child::start(config, variables).map_err(End::Failed)?;
    let transport = child.transport().map_err(End::Failed)?;
    let why = match tokio::time::timeout(within, rmcp::serve_client(handler, transport)).await {
        Ok(Ok(service)) => return Ok((service, Some(child))),
        Ok(Err(error)) => describe_error(&error),
        Err(_) => format!("it did not answer within {} s", within.as_secs()),
    };
    Err(End::Failed(child.terminate(why).await))
}
