//! Authentication: the token, and the `Host` and `Origin` checks that keep web pages out.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};
use cairn_protocol::{
    error::{Failure, Reason},
    rpc::BEARER_SUBPROTOCOL,
};
use subtle::ConstantTimeEq;

use crate::http::strict;

/// The checks of a connection before it is accepted.
#[derive(Clone)]
pub struct Guard {
    pub token: String,
    /// Origins of browsers that may connect (`https://example.org`); requests without an origin are
    /// always allowed.
    pub allowed_origins: Vec<String>,
    /// Names or addresses accepted in `Host`, besides loopback.
    pub allowed_hosts: Vec<String>,
}

/// The subprotocol that is selected if it is offered.
pub const SUBPROTOCOL: &str = "cairn.v1";

impl Guard {
    /// Checks `Host` and `Origin`, neither of which a web page can choose.
    ///
    /// # Errors
    /// `host_denied`, `origin_denied`.
    pub fn check_source(&self, headers: &HeaderMap) -> Result<(), Failure> {
        self.check_host(headers)?;
        self.check_origin(headers)
    }

    /// Checks `Origin` only.
    ///
    /// # Errors
    /// `origin_denied`.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        if self.allowed_origins.iter().any(|o| o.eq_ignore_ascii_case(origin)) {
            return Ok(());
        }
        Err(Failure::new(
            Reason::OriginDenied,
            format!("origin '{}' is not allowed", origin.escape_default()),
        ))
    }

    /// Checks `Host` only and returns it.
    ///
    /// # Errors
    /// `host_denied`.
    pub fn check_host<'a>(&self, headers: &'a HeaderMap) -> Result<&'a str, Failure> {
        let one = headers.get_all(header::HOST).iter().count() == 1;
        let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
        if one && self.host_allowed(host) {
            return Ok(host);
        }
        let text = format!("host '{}' is not allowed", host.escape_default());
        Err(Failure::new(Reason::HostDenied, text))
    }

    /// Checks that a request comes from a page that this daemon served.
    ///
    /// # Errors
    /// `host_denied`, `origin_denied`.
    pub fn check_own_page(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = self.check_host(headers)?;
        check_same_origin(headers, host, &["http://", "https://"])
    }

    fn host_allowed(&self, host: &str) -> bool {
        let Some((name, _)) = strict::name_and_port(host) else { return false };
        let loopback = name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        loopback || self.allowed_hosts.iter().any(|h| h.eq_ignore_ascii_case(name))
    }

    /// Checks the token in `Authorization` or the bearer subprotocol, and returns the subprotocol
    /// to select.
    ///
    /// # Errors
    /// `unauthorized`.
    pub fn check_token(&self, headers: &HeaderMap) -> Result<Option<String>, Failure> {
        let offered: Vec<&str> = offered(headers).collect();
        let bearer = bearer(headers);
        let in_protocol = offered.iter().find_map(|p| p.strip_prefix(BEARER_SUBPROTOCOL));
        let given = bearer.or(in_protocol).unwrap_or_default();
        if given.is_empty() || !bool::from(given.as_bytes().ct_eq(self.token.as_bytes())) {
            let what = if given.is_empty() { "no token was sent" } else { "the token is wrong" };
            return Err(Failure::new(Reason::Unauthorized, what));
        }
        let chosen = offered.iter().find(|p| **p == SUBPROTOCOL).or_else(|| {
            offered.iter().find(|p| bearer.is_none() && p.starts_with(BEARER_SUBPROTOCOL))
        });
        Ok(chosen.map(|p| (*p).to_owned()))
    }
}

/// Checks that a request over TLS comes from a page that this listener served, by whatever name: a
/// page of another origin can neither send its own `Origin` nor read the secret of this one.
///
/// # Errors
/// `origin_denied`.
pub fn check_tls_page(headers: &HeaderMap) -> Result<(), Failure> {
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    check_same_origin(headers, host, &["https://"])
}

fn check_same_origin(headers: &HeaderMap, host: &str, schemes: &[&str]) -> Result<(), Failure> {
    let origin = headers.get(header::ORIGIN).and_then(|o| o.to_str().ok()).unwrap_or_default();
    let from = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme));
    if !host.is_empty() && from.is_some_and(|from| from.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    let text = format!("origin '{}' is not the viewer's own", origin.escape_default());
    Err(Failure::new(Reason::OriginDenied, text))
}

fn offered(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|h| h.to_str().ok());
    all.flat_map(|h| h.split(',')).map(str::trim)
}

/// Returns the subprotocol to select for a client that needs no token.
pub fn subprotocol(headers: &HeaderMap) -> Option<String> {
    offered(headers).find(|p| *p == SUBPROTOCOL).map(str::to_owned)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (only, None) = (all.next()?, all.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Returns the token of an admitted request; empty when it was sent as a subprotocol.
pub fn token(headers: &HeaderMap) -> &str {
    bearer(headers).unwrap_or_default()
}

/// Returns the HTTP status of a refusal.
pub fn status_of(failure: &Failure) -> StatusCode {
    match failure.reason {
        Reason::Unauthorized | Reason::NotPaired | Reason::PairingRefused => {
            StatusCode::UNAUTHORIZED
        }
        Reason::OriginDenied | Reason::HostDenied | Reason::RightMissing => StatusCode::FORBIDDEN,
        Reason::InvalidRequest | Reason::InvalidParams => StatusCode::BAD_REQUEST,
        Reason::Overloaded | Reason::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard {
            token: "secret".into(),
            allowed_origins: vec!["https://good.example".into()],
            allowed_hosts: vec!["10.9.0.1".into()],
        }
    }

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = list.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap()));
        pairs
            .collect::<Vec<(axum::http::HeaderName, axum::http::HeaderValue)>>()
            .into_iter()
            .collect()
    }

    #[test]
    fn host_and_origin_are_checked() {
        for (host, origin, expected) in [
            ("127.0.0.1:7433", None, None),
            ("localhost", None, None),
            ("[::1]:7433", None, None),
            ("10.9.0.1:7433", None, None),
            ("evil.example", None, Some(Reason::HostDenied)),
            ("127.0.0.1.evil.example", None, Some(Reason::HostDenied)),
            ("127.0.0.1:7433@evil.example", None, Some(Reason::HostDenied)),
            ("127.0.0.1:7433.evil.example", None, Some(Reason::HostDenied)),
            ("localhost:", None, Some(Reason::HostDenied)),
            ("[::1]x", None, Some(Reason::HostDenied)),
            ("", None, Some(Reason::HostDenied)),
            ("localhost", Some("https://evil.example"), Some(Reason::OriginDenied)),
            ("localhost", Some("null"), Some(Reason::OriginDenied)),
            ("localhost", Some("https://good.example"), None),
        ] {
            let mut list = vec![("host", host)];
            list.extend(origin.map(|o| ("origin", o)));
            let got = guard().check_source(&headers(&list)).err().map(|f| f.reason);
            assert_eq!(got, expected, "{host} {origin:?}");
        }
    }

    #[test]
    fn own_page_origin_must_match_host() {
        for (host, origin, expected) in [
            ("127.0.0.1:7433", "http://127.0.0.1:7433", None),
            ("localhost:7433", "http://LOCALHOST:7433", None),
            ("127.0.0.1:7433", "", Some(Reason::OriginDenied)),
            ("127.0.0.1:7433", "null", Some(Reason::OriginDenied)),
            ("127.0.0.1:7433", "http://127.0.0.1:8000", Some(Reason::OriginDenied)),
            ("127.0.0.1:7433", "http://localhost:7433", Some(Reason::OriginDenied)),
            ("127.0.0.1:7433", "https://good.example", Some(Reason::OriginDenied)),
            ("evil.example", "http://evil.example", Some(Reason::HostDenied)),
        ] {
            let got = guard().check_own_page(&headers(&[("host", host), ("origin", origin)])).err();
            assert_eq!(got.map(|f| f.reason), expected, "{host} {origin}");
        }
    }

    #[test]
    fn token_is_required_in_header_or_subprotocol() {
        let check = |list: &[(&'static str, &str)]| {
            guard().check_token(&headers(list)).map_err(|f| f.reason)
        };
        assert_eq!(check(&[("authorization", "Bearer secret")]), Ok(None));
        assert_eq!(check(&[("authorization", "bearer secret")]), Ok(None));
        assert_eq!(check(&[]), Err(Reason::Unauthorized));
        assert_eq!(check(&[("authorization", "Bearer secrets")]), Err(Reason::Unauthorized));
        assert_eq!(check(&[("authorization", "Bearer ")]), Err(Reason::Unauthorized));
        let mut two = headers(&[("authorization", "Bearer secret")]);
        two.append(header::AUTHORIZATION, "Bearer secret".parse().unwrap());
        assert_eq!(guard().check_token(&two).map_err(|f| f.reason), Err(Reason::Unauthorized));
        assert_eq!(
            check(&[("sec-websocket-protocol", "bearer.secret")]),
            Ok(Some("bearer.secret".into()))
        );
        assert_eq!(
            check(&[("sec-websocket-protocol", "cairn.v1, bearer.secret")]),
            Ok(Some("cairn.v1".into()))
        );
        assert_eq!(check(&[("sec-websocket-protocol", "bearer.wrong")]), Err(Reason::Unauthorized));
    }
}
