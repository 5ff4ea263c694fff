//! One HTTP server: requests to it, and errors when no answer arrives.

use std::{
    error::Error,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use reqwest::{Client, Method, Response, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::{
    LlmError,
    endpoint::Endpoint,
    refusal::{self, RequestContext},
    retry::Failed,
};

/// Maximum bytes of an error's body that are read.
const MAX_ERROR: usize = 64 * 1024;
/// Maximum bytes of an answer that is not a stream, such as a list of models.
const MAX_DOCUMENT: usize = 4 * 1024 * 1024;
/// Time after which unused connections are closed.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);

/// A request without its body.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub url: String,
}

impl Query {
    pub(crate) fn get(url: String) -> Self {
        Self { url }
    }
}

/// A server with the properties shared by all requests to it.
pub(crate) struct Server {
    pub client: Client,
    /// Headers of every request, including the key.
    pub headers: HeaderMap,
    /// Provider and its address, for error messages.
    pub who: String,
    pub provider: &'static str,
    pub key_variable: Option<&'static str>,
    /// True once it has sent an event of easyai, which knows an option about them.
    pub is_easyai: AtomicBool,
}

impl Server {
    pub(crate) fn request_context<'a>(&'a self, model: &'a str) -> RequestContext<'a> {
        RequestContext {
            provider: self.provider,
            who: &self.who,
            model,
            key_variable: self.key_variable,
        }
    }

    /// Sends a request, and returns the answer with status 200 before its body is read. A `body`
    /// makes it a POST.
    pub(crate) async fn send(
        &self,
        query: &Query,
        body: Option<Bytes>,
        model: &str,
        until: Instant,
    ) -> Result<Response, Failed> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let mut request = self.client.request(method, &query.url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let silent = || LlmError::TimedOut(format!("{} did not answer in time", self.who));
        let response = timeout_at(until, request.send()).await.map_err(|_| silent())?;
        let mut response = response.map_err(|error| self.failure(&error))?;
        let status = response.status();
        tracing::debug!(who = %self.who, %status, "model server answered");
        if status == StatusCode::OK {
            return Ok(response);
        }
        // A truncated body still has a status.
        let body = timeout_at(until, beginning(&mut response, MAX_ERROR)).await.unwrap_or_default();
        Err(refusal::classify(&self.request_context(model), status, response.headers(), &body))
    }

    /// Requests one JSON value.
    pub(crate) async fn json(
        &self,
        query: &Query,
        model: &str,
        until: Instant,
    ) -> Result<Value, Failed> {
        let mut response = self.send(query, None, model, until).await?;
        let silent = |_| LlmError::TimedOut(format!("{} did not answer in time", self.who));
        let body =
            timeout_at(until, beginning(&mut response, MAX_DOCUMENT)).await.map_err(silent)?;
        let wrong = |_| {
            LlmError::Malformed(format!(
                "{} did not answer with JSON: check the endpoint",
                self.who
            ))
        };
        Ok(serde_json::from_slice(&body).map_err(wrong)?)
    }

    /// Refuses an answer whose content type is not a stream.
    pub(crate) async fn check_stream(
        &self,
        response: &mut Response,
        until: Instant,
    ) -> Result<(), LlmError> {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_lowercase();
        if kind.starts_with("text/html") || kind.starts_with("application/xhtml") {
            let text = format!("{} answered with a web page: check the endpoint", self.who);
            return Err(LlmError::Malformed(text));
        }
        // Ollama streams JSON under either type.
        if kind.starts_with("application/json") && self.provider != "ollama" {
            let body = timeout_at(until, beginning(response, MAX_ERROR)).await.unwrap_or_default();
            let value: Value = serde_json::from_slice(&body).unwrap_or_default();
            if value.get("error").is_some_and(|error| !error.is_null()) {
                return Err(refusal::reported(&self.who, &value));
            }
            return Err(LlmError::Malformed(format!("{} did not stream its answer", self.who)));
        }
        Ok(())
    }

    /// Returns the error of a request without an answer.
    pub(crate) fn failure(&self, error: &reqwest::Error) -> LlmError {
        let (who, cause) = (&self.who, root_cause(error));
        if error.is_connect() || error.is_timeout() {
            LlmError::Unavailable(format!(
                "cannot connect to {who} ({cause}): start the server or check the endpoint"
            ))
        } else if error.is_builder() {
            LlmError::Rejected(format!("cannot send a request to {who} ({cause})"))
        } else {
            LlmError::Cut(format!("the connection to {who} was lost ({cause})"))
        }
    }
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Reads the first bytes of a body, at most `limit`; returns the bytes so far if it breaks off.
async fn beginning(response: &mut Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        let room = limit - body.len();
        body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
        if body.len() == limit {
            break;
        }
    }
    body
}

/// Creates a client for one server. It follows no redirects (these would send the key elsewhere),
/// does not retry by itself and uses no proxy except `proxy`.
pub(crate) fn client(
    endpoint: &Endpoint,
    connect: Duration,
    proxy: Option<&str>,
) -> Result<Client, LlmError> {
    let refuse = |what: &str, error: &dyn Error| {
        LlmError::Rejected(format!("{what} for {endpoint}: {error}"))
    };
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(connect)
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .tcp_nodelay(true)
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(endpoint).map_err(|error| refuse("no TLS", &error))?);
    // A proxy is for outside addresses; those in the private network are reached directly.
    if let Some(proxy) = proxy.filter(|_| endpoint.distant()) {
        let proxy =
            reqwest::Proxy::all(proxy).map_err(|error| refuse("no proxy", &error.without_url()))?;
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| refuse("no HTTP client", &error))
}

/// Creates a TLS configuration with the system's certificates; without certificates for unencrypted
/// endpoints, because reading them takes a while.
fn tls(endpoint: &Endpoint) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = if endpoint.encrypted() {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
