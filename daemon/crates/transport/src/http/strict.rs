//! Strict requests: a request that two programs could interpret differently is refused first.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;

/// Headers that may occur at most once.
const SINGLE_HEADERS: [HeaderName; 4] =
    [header::HOST, header::AUTHORIZATION, header::ORIGIN, header::SEC_WEBSOCKET_KEY];
/// Bytes of a WebSocket key (RFC 6455, section 4.1).
const KEY_BYTES: usize = 16;

/// Passes on requests with a single interpretation.
pub async fn check(request: Request, next: Next) -> Response {
    match validate(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    }
}

fn validate(uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
    if let Some(name) =
        SINGLE_HEADERS.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some())
    {
        return Err(format!("the header {name} occurs more than once"));
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if let Some(authority) = uri.authority()
        && !host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_str()))
    {
        return Err("the request line and the host header name different hosts".into());
    }
    let Some(key) = headers.get(header::SEC_WEBSOCKET_KEY) else { return Ok(()) };
    match base64::engine::general_purpose::STANDARD.decode(key.as_bytes()) {
        Ok(bytes) if bytes.len() == KEY_BYTES => Ok(()),
        _ => Err(format!("sec-websocket-key is not {KEY_BYTES} bytes in base64")),
    }
}

/// Splits a `Host` header into name and port: a name, an address, or an IPv6 address in brackets,
/// and nothing else.
pub fn name_and_port(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, port)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_valid_name = !name.is_empty() && (host.starts_with('[') || name.chars().all(plain));
    let port = match port.strip_prefix(':') {
        None => port.is_empty().then_some(None),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok().map(Some),
        Some(_) => None,
    };
    is_valid_name.then_some(())?;
    port.map(|port| (name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_requests_are_refused() {
        let read = |uri: &str, list: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in list {
                headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            validate(&uri.parse().unwrap(), &headers).is_ok()
        };
        let good = "dGhlIHNhbXBsZSBub25jZQ==";
        assert!(read(
            "/rpc",
            &[("host", "h:1"), ("sec-websocket-key", good), ("authorization", "Bearer x")]
        ));
        assert!(read("http://h:1/rpc", &[("host", "H:1")]));
        assert!(!read("http://evil:1/rpc", &[("host", "h:1")]));
        assert!(!read("http://h:1@evil/rpc", &[("host", "h:1")]));
        assert!(!read("http://h:1/rpc", &[]));
        for (name, value) in [("host", "h"), ("authorization", "Bearer x"), ("origin", "http://h")]
        {
            assert!(!read("/rpc", &[(name, value), (name, value)]), "{name}");
        }
        for key in [
            "AAAA",
            "",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZSE=",
            "not base64 at all!!!!!!",
        ] {
            assert!(!read("/rpc", &[("host", "h"), ("sec-websocket-key", key)]), "{key}");
        }
        assert!(!read("/rpc", &[("sec-websocket-key", good), ("sec-websocket-key", good)]));
    }

    #[test]
    fn host_is_parsed_completely() {
        for (host, expected) in [
            ("127.0.0.1:1", Some(("127.0.0.1", Some(1)))),
            ("localhost", Some(("localhost", None))),
            ("[::1]:7433", Some(("::1", Some(7433)))),
            ("[::1]", Some(("::1", None))),
            ("127.0.0.1:1@evil.example", None),
            ("127.0.0.1:1.evil.example", None),
            ("127.0.0.1:", None),
            ("127.0.0.1:99999", None),
            ("127.0.0.1:+1", None),
            ("user@127.0.0.1", None),
            ("127.0.0.1, evil", None),
            ("[::1]evil", None),
            ("[localhost]", None),
            ("::1", None),
            (" 127.0.0.1", None),
            ("", None),
        ] {
            assert_eq!(name_and_port(host), expected, "{host}");
        }
    }
}
