//! Requests to the collector. A failure is told once, and once more when it is over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::{Client, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::runtime::Handle;

/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// A client whose requests are made by the daemon's runtime, whichever thread asks.
#[derive(Debug)]
pub struct Sender {
    client: Client,
    runtime: Handle,
    to: String,
    failing: AtomicBool,
}

impl Sender {
    /// A client for `address`; a request may take `timeout`.
    ///
    /// # Errors
    /// When there is no TLS to be had.
    pub fn new(address: &str, timeout: Duration) -> Result<Self, String> {
        let tls = tls(address.starts_with("https://")).map_err(|e| format!("no TLS: {e}"))?;
        let client = Client::builder()
            // Elsewhere is not where the user said.
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .timeout(timeout)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|e| format!("no HTTP client: {e}"))?;
        let to = super::address::shown(address);
        Ok(Self { client, runtime: Handle::current(), to, failing: AtomicBool::new(false) })
    }

    fn note(&self, why: Option<&str>) {
        let failed = self.failing.swap(why.is_some(), Ordering::SeqCst);
        match why {
            Some(why) if !failed => {
                tracing::warn!(
                    "telemetry cannot be sent to {}: {why}; it is tried on, and what is too much is left out",
                    self.to
                );
            }
            None if failed => tracing::info!("telemetry is sent to {} again", self.to),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { send(client, request).await }).await;
        let sent = sent.map_err(|e| e.to_string()).and_then(|sent| sent);
        let why = match &sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status())),
            Err(why) => Some(why.clone()),
        };
        self.note(why.as_deref());
        Ok(sent?)
    }
}

async fn send(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
    let told = |e: reqwest::Error| innermost(&e.without_url());
    let mut answer = client.execute(request.try_into().map_err(told)?).await.map_err(told)?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(told)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
        }
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// What went wrong, said by what it was caused by.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(cause) = at.source() {
        at = cause;
    }
    at.to_string()
}

/// TLS with the certificates of the system; without any where nothing is encrypted, for reading them takes a while.
fn tls(encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = if encrypted {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
