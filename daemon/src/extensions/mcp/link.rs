//! One server's connection: opened, its tools listed again when it says so, its calls, its end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::McpServer;
use cairn_protocol::error::{Failure, Reason};
use cairn_tools::{Remote, RemoteSpec, Said};
use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
        ContentBlock, Implementation, PaginatedRequestParams, ProtocolVersion, ResourceContents, Tool,
    },
    service::{ClientInitializeError, NotificationContext, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::process::{self, Child};

/// Tools that are read from a server's list; more are told of and left out.
const LISTED: usize = 256;
/// Pages of a list.
const PAGES: usize = 32;
/// Characters of a server's own words in an error.
const SHOWN: usize = 300;
/// Bytes of one message of a server.
const MAX_EVENT: usize = 8 * 1024 * 1024;
/// Bytes of a result's text that are kept.
const MAX_TEXT: usize = 1024 * 1024;

/// How a server is.
pub enum State {
    /// It has not answered yet.
    Starting,
    /// It can be called.
    Up(Peer<RoleClient>),
    /// It cannot, and why.
    Down(String),
}

/// The way to a server, whatever its state.
pub struct Link {
    name: String,
    state: Mutex<State>,
}

impl Link {
    /// To the server of that name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: Mutex::new(State::Starting) }
    }

    /// Changes the state.
    pub fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn failed(&self, what: &str) -> Failure {
        Failure::new(Reason::ToolFailed, format!("mcp server '{}' {what}", self.name.escape_default()))
    }

    fn peer(&self) -> Result<Peer<RoleClient>, Failure> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Up(peer) => Ok(peer.clone()),
            State::Starting => Err(self.failed("is still starting: try again in a moment")),
            State::Down(why) => Err(self.failed(&format!("is not running: {why}"))),
        }
    }
}

#[async_trait::async_trait]
impl Remote for Link {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<Said, Failure> {
        let peer = self.peer()?;
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        // Dropped before its answer, it tells the server that it is cancelled.
        match peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(said(result)),
            Ok(_) => {
                Err(self.failed("wants to be told more, or a task to be followed, which is not supported"))
            }
            Err(ServiceError::McpError(error)) => {
                let words: String = error.message.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
                Err(self.failed(&format!("refused the call: {words}")))
            }
            Err(ServiceError::TransportClosed) => Err(self.failed("ended during the call")),
            Err(error) => Err(self.failed(&format!("did not answer: {error}"))),
        }
    }
}

/// A result as text: what is no text is told of.
fn said(result: CallToolResult) -> Said {
    let mut text = String::new();
    for block in result.content {
        if text.len() >= MAX_TEXT {
            break;
        }
        let part = match block {
            ContentBlock::Text(part) => part.text,
            ContentBlock::Image(image) => format!("[an image, {}, left out]", image.mime_type),
            ContentBlock::Audio(audio) => format!("[sound, {}, left out]", audio.mime_type),
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
                _ => "[a binary resource, left out]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("{} {}", link.uri, link.name),
            _ => "[content of an unknown kind, left out]".to_owned(),
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
    Said { text, failed: result.is_error == Some(true) }
}

/// Hears that the list of tools is another, and answers no questions of the server's.
#[derive(Clone)]
struct Ear {
    changed: Arc<Notify>,
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("cairn", crate::serve::VERSION);
        // The last version that begins with a handshake, which every server has.
        ClientConfig::new(ClientCapabilities::default(), about)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.changed.notify_one();
        std::future::ready(())
    }
}

/// Opens the connection and keeps it until it ends; the answer says why. `set` takes the tools and tells what is wrong with
/// some.
pub async fn run(link: &Link, config: &McpServer, set: impl Fn(Vec<RemoteSpec>) -> Vec<String>) -> String {
    link.set(State::Starting);
    let ear = Ear { changed: Arc::default() };
    let within = Duration::from_secs(config.start_timeout_seconds.clamp(1, 600));
    let opened = match (&config.command, &config.url) {
        (Some(_), None) => program(config, ear.clone(), within).await,
        (None, Some(url)) => address(url, config, ear.clone(), within).await.map(|service| (service, None)),
        _ => Err("its configuration needs either 'command' or 'url'".to_owned()),
    };
    let (service, mut child) = match opened {
        Ok(opened) => opened,
        Err(why) => return why,
    };
    let peer = service.peer().clone();
    let why = match tokio::time::timeout(within, list(&peer)).await {
        Err(_) => format!("it did not list its tools within {} s", within.as_secs()),
        Ok(Err(why)) => why,
        Ok(Ok(specs)) => {
            told(link, set(specs));
            link.set(State::Up(peer.clone()));
            tracing::info!("mcp server {} is connected", link.name);
            keep(link, service, &peer, &ear, within, &set).await
        }
    };
    match &mut child {
        Some(child) => child.end(why).await,
        None => why,
    }
}

fn told(link: &Link, wrong: Vec<String>) {
    wrong.iter().take(8).for_each(|text| tracing::warn!("{text}"));
    if wrong.len() > 8 {
        tracing::warn!("mcp server {}: {} more of its tools are left out", link.name, wrong.len() - 8);
    }
}

/// Follows a connection to its end.
async fn keep(
    link: &Link,
    service: RunningService<RoleClient, Ear>,
    peer: &Peer<RoleClient>,
    ear: &Ear,
    within: Duration,
    set: &impl Fn(Vec<RemoteSpec>) -> Vec<String>,
) -> String {
    let ended = service.waiting();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => return "the connection ended".to_owned(),
            () = ear.changed.notified() => {}
        }
        match tokio::time::timeout(within, list(peer)).await {
            Ok(Ok(specs)) => told(link, set(specs)),
            Ok(Err(why)) => tracing::warn!("mcp server {}: {why}", link.name),
            Err(_) => tracing::warn!("mcp server {}: its new list of tools did not come", link.name),
        }
    }
}

/// Every tool of a server, up to a number.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<RemoteSpec>, String> {
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page =
            peer.list_tools(Some(page)).await.map_err(|e| format!("it does not list its tools: {e}"))?;
        all.extend(page.tools.into_iter().map(spec));
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= LISTED {
            break;
        }
    }
    all.truncate(LISTED);
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

/// Why a connection did not begin, without the names of types.
fn begun(error: &ClientInitializeError) -> String {
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended, or printed what is no protocol".to_owned(),
        ClientInitializeError::TransportError { error, .. } => {
            let mut cause: &dyn std::error::Error = &*error.error;
            while let Some(next) = cause.source() {
                cause = next;
            }
            format!("it cannot be talked with: {cause}")
        }
        other => other.to_string(),
    };
    format!("it does not begin: {}", why.chars().filter(|c| !c.is_control()).take(SHOWN).collect::<String>())
}

type Opened = (RunningService<RoleClient, Ear>, Option<Child>);

async fn program(config: &McpServer, ear: Ear, within: Duration) -> Result<Opened, String> {
    let mut child = Child::start(config)?;
    let transport = child.transport()?;
    let why = match tokio::time::timeout(within, rmcp::serve_client(ear, transport)).await {
        Ok(Ok(service)) => return Ok((service, Some(child))),
        Ok(Err(error)) => begun(&error),
        Err(_) => format!("it did not answer within {} s", within.as_secs()),
    };
    Err(child.end(why).await)
}

async fn address(
    url: &str,
    config: &McpServer,
    ear: Ear,
    within: Duration,
) -> Result<RunningService<RoleClient, Ear>, String> {
    let mut wanted = StreamableHttpClientTransportConfig::with_uri(url);
    wanted.max_sse_event_size = MAX_EVENT;
    for (name, value) in &config.headers {
        let bad = || format!("its header '{}' cannot be sent", name.escape_default());
        let value = process::expanded(value)?;
        let mut value = http::HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        let name = http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        wanted.custom_headers.insert(name, value);
    }
    // The one that is built in; a second call changes nothing.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let transport = StreamableHttpClientTransport::from_config(wanted);
    match tokio::time::timeout(within, rmcp::serve_client(ear, transport)).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(begun(&error)),
        Err(_) => Err(format!("it did not answer within {} s", within.as_secs())),
    }
}
