//! HTTP GET of public addresses; redirects are followed within the same bounds.

use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cairn_protocol::error::{Failure, Reason};
use reqwest::{Client, Response, Url, header, redirect::Policy};
use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::egress::{Admitted, DomainGate, Traffic};

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 5;
/// Time limit of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest address, in bytes.
const MAX_URL: usize = 8 * 1024;

#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// An `http` or `https` address.
    pub url: String,
    /// Additional headers. They are sent to this address alone, never to a redirect's target.
    pub headers: Vec<(String, String)>,
    /// Most bytes of the body; the rest is discarded.
    pub max_bytes: usize,
    /// Time limit of the complete request.
    pub timeout: Duration,
    /// True if an address of this machine or a private network is allowed: for a server that the
    /// user configured. Redirects of such a server are not followed.
    pub near: bool,
}

/// Response to a fetch.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Final address, after redirects.
    pub url: String,
    /// Media type, in lower case and without parameters.
    pub kind: String,
    /// The body as text.
    pub text: String,
    /// True if bytes were discarded.
    pub truncated: bool,
}

/// Fetches a page.
///
/// # Errors
/// `invalid_params` for an invalid web address, `network_denied` for one that is not public,
/// `tool_timed_out`, and `tool_failed` for an error status, a broken connection, and a body that is
/// no text.
///
/// `gate` decides about the domain of each request.
pub(crate) async fn fetch(request: &FetchRequest, gate: &DomainGate) -> Result<Fetched, Failure> {
    let late = || {
        let text = format!(
            "'{}' did not answer within {} s",
            escaped(&request.url),
            request.timeout.as_secs()
        );
        Failure::new(Reason::ToolTimedOut, text)
    };
    let clock = Arc::clone(&gate.clock);
    tokio::select! {
        fetched = follow(request, gate) => fetched,
        () = clock.after(request.timeout) => Err(late()),
    }
}

async fn follow(request: &FetchRequest, gate: &DomainGate) -> Result<Fetched, Failure> {
    let mut url = parse(&request.url)?;
    // A server that the user configured was decided about there.
    let gate = (!request.near).then_some(gate);
    for hop in 0..=MAX_REDIRECTS {
        let headers = if hop == 0 { request.headers.as_slice() } else { &[] };
        let (admitted, addresses) = match gate {
            Some(gate) => {
                let (host, port) = host_of(&url)?;
                let admitted = gate.admit(host, port).await.map_err(Failure::from)?;
                let addresses = admitted.addresses.clone();
                (Some((gate, admitted)), addresses)
            }
            None => (None, resolve(&url, request.near).await?),
        };
        let response = get(&url, headers, &addresses).await;
        let fetched = match response {
            Ok(response) if !response.status().is_redirection() => {
                Ok(Step::Page(read(response, request.max_bytes).await))
            }
            Ok(response) => Ok(Step::Redirect(response)),
            Err(failure) => Err(failure),
        };
        if let Some((gate, admitted)) = admitted {
            finish(gate, admitted, &fetched).await;
        }
        let response = match fetched? {
            Step::Page(page) => return page,
            Step::Redirect(response) => response,
        };
        let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
        let to = to.ok_or_else(|| failed(&url, "redirects without a location"))?;
        if request.near {
            return Err(failed(&url, "redirects, which is not followed"));
        }
        let next = url.join(to).map_err(|_| failed(&url, "redirects to an invalid URL"))?;
        url = parse(next.as_str())?;
    }
    Err(failed(&url, &format!("is reached after more than {MAX_REDIRECTS} redirects")))
}

/// Result of one request.
enum Step {
    Page(Result<Fetched, Failure>),
    Redirect(Response),
}

/// Completes the audit of a request.
async fn finish(gate: &DomainGate, admitted: Admitted, fetched: &Result<Step, Failure>) {
    let traffic = Traffic::default();
    let outcome = match fetched {
        Ok(Step::Page(Ok(page))) => {
            traffic.received.store(page.text.len() as u64, Ordering::Relaxed);
            "ok"
        }
        Ok(Step::Redirect(_)) => "ok",
        Ok(Step::Page(Err(failure))) | Err(failure) => failure.reason.as_str(),
    };
    gate.finish(admitted, outcome, &traffic).await;
}

fn parse(text: &str) -> Result<Url, Failure> {
    let bad = |why: &str| Failure::new(Reason::InvalidParams, format!("'{}' {why}", escaped(text)));
    if text.len() > MAX_URL {
        return Err(bad("is too long for a URL"));
    }
    let url = Url::parse(text).map_err(|_| bad("is not a URL: start it with https://"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("is not a web URL: only http and https are supported"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user name or password, which is not sent"));
    }
    Ok(url)
}

fn host_of(url: &Url) -> Result<(&str, u16), Failure> {
    let host = url.host_str().ok_or_else(|| failed(url, "has no host"))?;
    Ok((host, url.port_or_known_default().unwrap_or(443)))
}

/// Resolves the host of an address; every result must be public unless `near`.
async fn resolve(url: &Url, near: bool) -> Result<Vec<SocketAddr>, Failure> {
    let (host, port) = host_of(url)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let socket_addrs = tokio::net::lookup_host((bare, port))
        .await
        .map_err(|e| failed(url, &format!("cannot be resolved: {e}")))?;
    let socket_addrs: Vec<SocketAddr> = socket_addrs.collect();
    if let Some(closed) = socket_addrs.iter().find(|a| !near && !is_public(a.ip())) {
        let text = format!(
            "'{}' is at {}, which is not a public address",
            escaped(url.as_str()),
            closed.ip()
        );
        return Err(Failure::new(Reason::NetworkDenied, text));
    }
    Ok(socket_addrs)
}

/// Sends one request, only to addresses that were checked: the connection goes to no other.
async fn get(
    url: &Url,
    headers: &[(String, String)],
    addresses: &[SocketAddr],
) -> Result<Response, Failure> {
    let (host, _) = host_of(url)?;
    let client =
        client(host, addresses).map_err(|e| failed(url, &format!("cannot be requested: {e}")))?;
    let mut request =
        client.get(url.clone()).header(header::ACCEPT, "text/html, application/json, text/*;q=0.9");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.send().await.map_err(|e| failed(url, &format!("cannot be read: {}", root_cause(&e))))
}

fn client(host: &str, addresses: &[SocketAddr]) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // A proxy would resolve the name a second time.
        .no_proxy()
        .connect_timeout(CONNECT)
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls)
        .resolve_to_addrs(host, addresses);
    Ok(builder.build()?)
}

async fn read(mut response: Response, most: usize) -> Result<Fetched, Failure> {
    let url = response.url().clone();
    if !response.status().is_success() {
        return Err(failed(&url, &format!("answered {}", response.status())));
    }
    let kind = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|k| k.to_str().ok())
        .unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or_default().trim().to_lowercase();
    if !is_text(&kind) {
        return Err(failed(&url, &format!("is {}, not text", escaped(&kind))));
    }
    let (mut body, mut truncated) = (Vec::new(), false);
    let broken = |e: reqwest::Error| failed(&url, &format!("was interrupted: {}", root_cause(&e)));
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        let room = most - body.len();
        body.extend_from_slice(&piece[..room.min(piece.len())]);
        if piece.len() > room {
            truncated = true;
            break;
        }
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Fetched { url: url.to_string(), kind, text, truncated })
}

fn is_text(kind: &str) -> bool {
    let also =
        ["application/json", "application/xml", "application/javascript", "application/xhtml+xml"];
    kind.starts_with("text/")
        || also.contains(&kind)
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
}

/// Returns true if an address is reachable from the public internet: not of this machine, of a
/// private network, or of a service that a provider offers to its machines alone.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let closed = ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || a == 0
        // Multicast, reserved and broadcast.
        || a >= 224
        // Carrier-grade NAT.
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments and benchmarks.
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b));
    !closed
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let part = ip.segments();
    // Addresses that embed an IPv4 address are judged by that.
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match part {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(v4(high, low))
        }
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Tunnels, documentation and assignments.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        // Only 2000::/3 is allocated.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn failed(url: &Url, what: &str) -> Failure {
    Failure::new(Reason::ToolFailed, format!("'{}' {what}", escaped(url.as_str())))
}

fn escaped(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_public_addresses_are_recognized() {
        for (ip, public) in [
            ("1.1.1.1", true),
            ("93.184.216.34", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("192.0.0.8", false),
            ("198.18.0.1", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
            ("2001:0:1::", false),
            ("::7f00:1", false),
        ] {
            assert_eq!(is_public(ip.parse().unwrap()), public, "{ip}");
        }
    }

    #[test]
    fn only_http_urls_are_accepted() {
        assert!(parse("https://example.org/a?b#c").is_ok());
        for wrong in
            ["example.org", "file:///etc/passwd", "ftp://a", "http://user:pw@a", "javascript:1", ""]
        {
            assert_eq!(parse(wrong).unwrap_err().reason, Reason::InvalidParams, "{wrong}");
        }
    }

    #[test]
    fn only_text_is_accepted() {
        for (kind, text) in [
            ("text/html", true),
            ("application/ld+json", true),
            ("image/svg+xml", true),
            ("image/png", false),
            ("application/pdf", false),
        ] {
            assert_eq!(is_text(kind), text, "{kind}");
        }
    }
}
