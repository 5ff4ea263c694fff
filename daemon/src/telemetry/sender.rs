//! Requests to the collector. A failure is logged once, and so is the recovery.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::{Client, redirect::Policy};
use tokio::runtime::Handle;

use crate::download::{innermost, tls};

/// Maximum bytes read of an answer.
const MAX_ANSWER: usize = 64 * 1024;

/// A client whose requests run on the daemon's runtime, whichever thread sends them.
#[derive(Debug)]
pub struct Sender {
    client: Client,
    runtime: Handle,
    to: String,
    failing: AtomicBool,
}

impl Sender {
    /// Creates a client for `address` with a `timeout` per request.
    ///
    /// # Errors
    /// TLS is unavailable.
    pub fn new(address: &str, timeout: Duration) -> Result<Self, String> {
        let tls =
            tls(address.starts_with("https://")).map_err(|e| format!("cannot set up TLS: {e}"))?;
        let client = Client::builder()
            // A redirect could lead to a machine that the user did not choose.
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .timeout(timeout)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|e| format!("cannot create an HTTP client: {e}"))?;
        let to = super::address::without_credentials(address);
        Ok(Self { client, runtime: Handle::current(), to, failing: AtomicBool::new(false) })
    }

    fn note(&self, why: Option<&str>) {
        let failed = self.failing.swap(why.is_some(), Ordering::SeqCst);
        match why {
            Some(why) if !failed => {
                tracing::warn!(
                    "telemetry cannot be sent to {}: {why}; retrying, and dropping data above the limit",
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
    let describe = |e: reqwest::Error| innermost(&e.without_url());
    let mut answer =
        client.execute(request.try_into().map_err(describe)?).await.map_err(describe)?;
    let status = answer.status();
    let headers = answer.headers().clone();
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(describe)? {
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
