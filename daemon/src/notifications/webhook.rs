//! Webhooks as Standard Webhooks specifies them: a POST of JSON with an id, a time and an
//! HMAC-SHA256 of both and the body. The address is a secret and in no message.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cairn_engine::RunEvent;
use cairn_llm::Key;
use reqwest::{Client, StatusCode, Url, redirect::Policy};
use ring::hmac;
use serde_json::{Value, json};

use crate::{
    download::{innermost, tls},
    keychain::Keychain,
};

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Waits before the second and later attempts.
const RETRY_AFTER: &[Duration] =
    &[Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];
/// Sizes of a secret that the specification allows, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Source of the secret of the signatures.
pub enum Secret {
    /// The secret as it was read from a file.
    Key(Key),
    /// A command that prints it.
    Keychain(Keychain),
}

/// The receiver of the events.
pub struct Webhook {
    url: Url,
    is_private: bool,
    secret: Secret,
    retry_after: &'static [Duration],
}

/// Failure of one attempt.
struct Refused {
    why: String,
    is_final: bool,
}

impl Webhook {
    /// Creates a receiver at an address that the configuration has checked.
    ///
    /// # Errors
    /// The address is not a URL.
    pub fn new(address: &str, is_private: bool, secret: Secret) -> Result<Self, String> {
        let url = Url::parse(address).map_err(|_| "notifications.webhook is not a URL")?;
        Ok(Self { url, is_private, secret, retry_after: RETRY_AFTER })
    }

    /// Sends an event, with some more attempts after a failure that may pass. Each attempt has the
    /// same id, so that the receiver can recognize a repetition.
    pub async fn deliver(&self, event: &RunEvent) {
        let id = format!("msg_{}", event_id(event));
        let body = payload(event).to_string();
        let mut waits = self.retry_after.iter();
        loop {
            let Err(refused) = self.attempt(&id, &body).await else { return };
            match waits.next().filter(|_| !refused.is_final) {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return tracing::warn!("the webhook is not delivered: {}", refused.why),
            }
        }
    }

    async fn attempt(&self, id: &str, body: &str) -> Result<(), Refused> {
        let passing = |why: String| Refused { why, is_final: false };
        let key = self.key().await.map_err(|why| Refused { why, is_final: true })?;
        let addresses = self.addresses().await?;
        let client = self.client(&addresses).map_err(passing)?;
        let time = timestamp();
        let request = client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", time.to_string())
            .header("webhook-signature", sign(&key, id, time, body))
            .body(body.to_owned());
        let answer =
            request.send().await.map_err(|error| passing(innermost(&error.without_url())))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let may_pass = status.is_server_error()
            || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        Err(Refused { why: format!("it answered {status}"), is_final: !may_pass })
    }

    /// Resolves the address once; the request goes to the checked result alone.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, Refused> {
        let host = self.url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(443);
        let unknown = |_| Refused { why: "its name is not known".to_owned(), is_final: false };
        let found: Vec<_> = tokio::net::lookup_host((host, port)).await.map_err(unknown)?.collect();
        let is_allowed = |at: &SocketAddr| self.is_private || cairn_harness::is_public(at.ip());
        if found.is_empty() || !found.iter().all(is_allowed) {
            let why = "it is not at a public address; notifications.webhookPrivate allows others";
            return Err(Refused { why: why.to_owned(), is_final: true });
        }
        Ok(found)
    }

    fn client(&self, addresses: &[SocketAddr]) -> Result<Client, String> {
        let tls = tls(self.url.scheme() == "https").map_err(|error| error.to_string())?;
        Client::builder()
            // A redirect could lead to an address that was not checked.
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .timeout(TIMEOUT)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .resolve_to_addrs(self.url.host_str().unwrap_or_default(), addresses)
            .build()
            .map_err(|error| innermost(&error.without_url()))
    }

    async fn key(&self) -> Result<hmac::Key, String> {
        let key = match &self.secret {
            Secret::Key(key) => key.clone(),
            Secret::Keychain(keychain) => {
                let keychain = keychain.clone();
                let read = tokio::task::spawn_blocking(move || keychain.key()).await;
                read.map_err(|error| error.to_string())?.map_err(|failure| failure.message)?
            }
        };
        read_secret(key.expose())
    }
}

/// Reads a secret of the form `whsec_` and base64.
fn read_secret(text: &str) -> Result<hmac::Key, String> {
    let wrong = || "its secret must be 24 to 64 bytes as base64, after 'whsec_'".to_owned();
    let encoded = text.strip_prefix("whsec_").ok_or_else(wrong)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| wrong())?;
    if !SECRET_BYTES.contains(&bytes.len()) {
        return Err(wrong());
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Returns the value of the header `webhook-signature`.
fn sign(key: &hmac::Key, id: &str, time: i64, body: &str) -> String {
    let tag = hmac::sign(key, format!("{id}.{time}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(tag.as_ref()))
}

fn timestamp() -> i64 {
    cairn_protocol::time::Timestamp::now().0 / 1000
}

/// Returns an id that is the same for the same event.
fn event_id(event: &RunEvent) -> String {
    let session = event.run.session_id.as_str().replace("ses_", "");
    format!("{session}_{}", event.at.0)
}

fn payload(event: &RunEvent) -> Value {
    let run = &event.run;
    let kind = if run.status.is_final() { "run.finished" } else { "run.waiting" };
    json!({
        "type": kind,
        "timestamp": event.at,
        "data": {
            "session": run.session_id,
            // The viewer's page of the session, on whatever address its user reaches it.
            "page": format!("/viewer#/session/{}", run.session_id),
            "status": run.status,
            "question": event.question,
            "reason": run.reason,
            "request": run.request,
            "turns": run.turns,
            "schedule": run.schedule,
        },
    })
}

#[cfg(test)]
mod tests;
