//! Downloads of releases.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for a part of the answer to arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum redirects: release pages forward to their storage.
const MAX_REDIRECTS: usize = 5;

/// Reads the file at `url`, of at most `max_bytes`. Proxies of the environment are used.
///
/// # Errors
/// A message that names the address.
pub fn download(url: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start a runtime: {e}"))?;
    runtime.block_on(read(url, max_bytes)).map_err(|why| format!("{url}: {why}"))
}

async fn read(url: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
    let describe = |e: reqwest::Error| innermost(&e.without_url());
    let client = Client::builder()
        .redirect(Policy::limited(MAX_REDIRECTS))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(true).map_err(|e| e.to_string())?)
        .build()
        .map_err(describe)?;
    let mut answer = client.get(url).send().await.map_err(describe)?;
    if !answer.status().is_success() {
        return Err(format!("the server answered {}", answer.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(describe)? {
        body.extend_from_slice(&chunk);
        if body.len() as u64 > max_bytes {
            return Err(format!("it has more than {max_bytes} bytes"));
        }
    }
    Ok(body)
}

/// Describes an error by its innermost cause.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(cause) = at.source() {
        at = cause;
    }
    at.to_string()
}

/// Builds the TLS configuration with the system's certificates; without any for plain connections,
/// because reading them takes a while.
pub fn tls(encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = if encrypted {
        builder.with_platform_verifier()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}
