//! One login to a server: its metadata, the address for the user's browser, the redirect to this
//! machine, and the exchange of the code for tokens.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use cairn_protocol::{
    error::{Failure, Reason},
    id::McpLoginId,
    mcp::McpLogin,
    time::Timestamp,
};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadataSource, AuthorizationRequest,
    AuthorizationSession,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
};

use super::logins::{LoginStore, Logins};

/// Time for the user to log in.
pub const LOGIN_LIMIT: Duration = Duration::from_secs(300);
/// Time for the requests before that.
const DISCOVERY_LIMIT: Duration = Duration::from_secs(60);
/// Time for the exchange of the code.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(60);
/// Maximum bytes of the head of a request of the browser, and time for it.
const MAX_HEAD: (u64, Duration) = (16 * 1024, Duration::from_secs(5));
/// Maximum number of requests of the browser at once.
const MAX_REQUESTS: usize = 8;
/// Path of the redirect.
const CALLBACK: &str = "/callback";
/// Maximum characters of an authorization server's own text in an error.
const MAX_ERROR_TEXT: usize = 300;

/// Outcome of a login; `None` while the user logs in.
pub type Outcome = watch::Receiver<Option<Result<(), Failure>>>;

/// A login that was started.
pub struct PendingLogin {
    pub server: String,
    pub login: McpLogin,
    pub was_logged_in: bool,
    pub outcome: Outcome,
    /// Receives the address to which the browser was sent, if it cannot reach this machine.
    pub redirected: mpsc::Sender<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for PendingLogin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn failed(server: &str, why: impl std::fmt::Display) -> Failure {
    let why: String =
        why.to_string().chars().filter(|c| !c.is_control()).take(MAX_ERROR_TEXT).collect();
    let text = format!("the login to mcp server '{}' failed: {why}", server.escape_default());
    Failure::new(Reason::LoginFailed, text)
}

/// Returns the way to log in to a server.
pub fn instruction(server: &str) -> String {
    format!("it requires a login: run 'cairn mcp login {}'", server.escape_default())
}

/// Starts a login, which is abandoned after `limit`. `stored` runs after the tokens were stored.
///
/// # Errors
/// `login_failed` when the server offers no login that can be used.
pub async fn start(
    logins: &Arc<Logins>,
    (server, url): (&str, &str),
    limit: Duration,
    stored: impl FnOnce() + Send + 'static,
) -> Result<PendingLogin, Failure> {
    let failed = |why: String| failed(server, why);
    let base = Url::parse(url).map_err(|e| failed(format!("its address is invalid: {e}")))?;
    require_secure(&base, &base).map_err(failed)?;
    // Installs the built-in provider; further calls have no effect.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(|e| failed(format!("no port can be opened: {e}")))?;
    let port = listener.local_addr().map_err(|e| failed(e.to_string()))?.port();
    let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
    let store = logins.of_server(server, url);
    let opening = open(&base, &redirect, store);
    let session = match tokio::time::timeout(DISCOVERY_LIMIT, opening).await {
        Ok(session) => session.map_err(failed)?,
        Err(_) => return Err(failed("the authorization server does not answer".to_owned())),
    };
    let address = session.get_authorization_url().to_owned();
    let state = state_of(&address).ok_or_else(|| failed("the address has no state".to_owned()))?;
    let limit_ms = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    let login = McpLogin {
        login_id: McpLoginId::new(),
        url: address,
        expires_at: Timestamp(Timestamp::now().0.saturating_add(limit_ms)),
    };
    let (outcome_sender, outcome) = watch::channel(None);
    let (redirected, typed) = mpsc::channel(1);
    let waiter = Waiter { listener, redirect, state };
    let name = server.to_owned();
    let task = tokio::spawn(async move {
        let done = finish(&name, session, waiter, typed, limit).await;
        if done.is_ok() {
            stored();
        }
        outcome_sender.send_replace(Some(done));
    });
    Ok(PendingLogin {
        server: server.to_owned(),
        login,
        was_logged_in: logins.has(server, url),
        outcome,
        redirected,
        task,
    })
}

/// Reads the metadata, registers a client and makes the address for the browser.
async fn open(
    base: &Url,
    redirect: &str,
    store: LoginStore,
) -> Result<AuthorizationSession, String> {
    let mut manager = AuthorizationManager::new(base.clone()).await.map_err(describe)?;
    manager.set_credential_store(store);
    let found = manager.resolve_metadata().await.map_err(describe)?;
    if found.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err("the server publishes no metadata about logins".to_owned());
    }
    let endpoints = [
        Some(&found.metadata.authorization_endpoint),
        Some(&found.metadata.token_endpoint),
        found.metadata.registration_endpoint.as_ref(),
    ];
    for endpoint in endpoints.into_iter().flatten() {
        let url = Url::parse(endpoint).map_err(|e| format!("'{endpoint}' is invalid: {e}"))?;
        require_secure(&url, base)?;
    }
    manager.set_metadata(found.metadata);
    let request = AuthorizationRequest::new(redirect)
        .with_client_name("Cairn")
        .with_application_type("native")
        .with_initial_scope_selection();
    let session = AuthorizationSession::new(manager, request).await;
    session.map_err(|(_, error)| describe(error))
}

/// Refuses an address that others on the way could read, or that a browser would not open as a
/// page. Servers on this machine may name others on it.
fn require_secure(url: &Url, base: &Url) -> Result<(), String> {
    let is_local = |url: &Url| super::is_local(url.as_str());
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_local(url) && is_local(base) => Ok(()),
        _ => {
            let text: String = url.as_str().chars().take(100).collect();
            Err(format!("'{text}' is refused: a login needs https"))
        }
    }
}

fn describe(error: AuthError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

fn state_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned())
}

/// The redirect that a login waits for.
struct Waiter {
    listener: TcpListener,
    redirect: String,
    state: String,
}

async fn finish(
    server: &str,
    session: AuthorizationSession,
    waiter: Waiter,
    mut typed: mpsc::Receiver<String>,
    limit: Duration,
) -> Result<(), Failure> {
    let waiting = async {
        tokio::select! {
            url = waiter.redirected() => url,
            url = waiter.typed(&mut typed) => url,
        }
    };
    let url = match tokio::time::timeout(limit, waiting).await {
        Ok(url) => url.map_err(|why| failed(server, why))?,
        Err(_) => {
            let text = format!("nobody logged in within {} s", limit.as_secs());
            return Err(failed(server, text));
        }
    };
    let exchange = session.handle_callback_url(&url);
    match tokio::time::timeout(EXCHANGE_LIMIT, exchange).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed(server, describe(error))),
        Err(_) => Err(failed(server, "the authorization server does not answer")),
    }
}

impl Waiter {
    /// Returns the redirect's address if it answers this login: with its state, which no other page
    /// knows.
    ///
    /// # Errors
    /// The authorization server's refusal.
    fn check(&self, target: &str) -> Option<Result<String, String>> {
        let base = Url::parse(&self.redirect).ok()?;
        let url = base.join(target).ok()?;
        let is_own = url.scheme() == "http"
            && url.host_str() == base.host_str()
            && url.port() == base.port()
            && url.path() == CALLBACK;
        let value = |name: &str| {
            url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        if !is_own || value("state").as_deref() != Some(&self.state) {
            return None;
        }
        if let Some(error) = value("error") {
            let more = value("error_description").map(|text| format!(": {text}"));
            return Some(Err(format!("{error}{}", more.unwrap_or_default())));
        }
        value("code").map(|_| Ok(url.into()))
    }

    /// Waits for an address that the user types.
    async fn typed(&self, typed: &mut mpsc::Receiver<String>) -> Result<String, String> {
        match typed.recv().await {
            Some(url) => self
                .check(url.trim())
                .unwrap_or_else(|| Err("the address does not belong to this login".to_owned())),
            None => std::future::pending().await,
        }
    }

    /// Waits for the redirect of a browser. Requests that do not belong to the login are refused
    /// and change nothing.
    async fn redirected(&self) -> Result<String, String> {
        let (found, mut receiver) = mpsc::channel(1);
        let slots = Semaphore::new(MAX_REQUESTS);
        let accepting = async {
            let mut serving = futures_util::stream::FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = self.listener.accept() => {
                        let Ok((stream, _)) = accepted else { continue };
                        // More requests at once than a browser makes are dropped.
                        if let Ok(slot) = slots.try_acquire() {
                            let found = found.clone();
                            serving.push(async move {
                                let _slot = slot;
                                self.serve(stream, &found).await;
                            });
                        }
                    }
                    Some(()) = futures_util::StreamExt::next(&mut serving) => {}
                }
            }
        };
        tokio::select! {
            url = receiver.recv() => url.unwrap_or_else(|| Err("the port was closed".to_owned())),
            () = accepting => Err("the port was closed".to_owned()),
        }
    }

    async fn serve(&self, stream: TcpStream, found: &mpsc::Sender<Result<String, String>>) {
        let mut reader = BufReader::new(stream);
        let head = tokio::time::timeout(MAX_HEAD.1, target(&mut reader)).await;
        let outcome = head.ok().flatten().and_then(|target| self.check(&target));
        let (status, text) = match &outcome {
            Some(Ok(_)) => ("200 OK", "Cairn has received the login. You can close this page."),
            Some(Err(_)) => ("200 OK", "The login was refused. You can close this page."),
            None => ("400 Bad Request", "This is no answer to the login that Cairn waits for."),
        };
        let body = format!("<!doctype html><meta charset=utf-8><title>Cairn</title><p>{text}");
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
            Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
            Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let writing = async {
            let _closed = reader.get_mut().write_all(answer.as_bytes()).await;
            let _closed = reader.get_mut().shutdown().await;
        };
        // A browser that does not read the answer loses it.
        let _slow = tokio::time::timeout(MAX_HEAD.1, writing).await;
        if let Some(outcome) = outcome {
            let _first_counts = found.try_send(outcome);
        }
    }
}

/// Reads the head of a request and returns its target, if it is a `GET`.
async fn target(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = reader.take(MAX_HEAD.0);
    let mut first = String::new();
    head.read_line(&mut first).await.ok()?;
    let mut line = String::new();
    loop {
        line.clear();
        if head.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut words = first.split_whitespace();
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}
