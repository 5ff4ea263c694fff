//! Address of a provider: parses a user's URL into a base to which API paths can be appended.

use std::{fmt, net::IpAddr};

use url::{Host, Url};

use crate::LlmError;

/// Address of a server. It is printed without query, and contains no user or password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// URL without version segment and trailing slash.
    root: String,
    /// Segment between the root and an API's path: `/v1`, another version, or empty.
    version: String,
    external: bool,
    distant: bool,
    encrypted: bool,
}

/// Suffixes that users often copy with the address.
const TAILS: &[&str] = &[
    "/chat/completions",
    "/completions",
    "/messages",
    "/models",
    "/api/chat",
    "/api/tags",
    "/api",
];

impl Endpoint {
    /// Parses a URL with or without scheme, version and path. `default_version` is the version of the
    /// API's paths, such as `/v1`, if they have one.
    ///
    /// # Errors
    /// [`LlmError::Rejected`] when it is not an HTTP URL or contains a password.
    pub(crate) fn parse(text: &str, default_version: Option<&str>) -> Result<Self, LlmError> {
        let text = text.trim();
        let full_url =
            if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let refuse = |why: &str| LlmError::Rejected(format!("the model's endpoint {why}"));
        let url =
            Url::parse(&full_url).map_err(|error| refuse(&format!("is not a URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("must start with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse(
                "must not contain a user name or password: configure the key separately",
            ));
        }
        let host = url.host().ok_or_else(|| refuse("has no host"))?;
        let mut path = url.path().trim_end_matches('/');
        // The suffix of an API path is removed, because it is appended to the base later.
        if let Some(shorter) = TAILS.iter().find_map(|tail| path.strip_suffix(tail)) {
            path = shorter.trim_end_matches('/');
        }
        let mut version = default_version.unwrap_or_default();
        let versions = path.match_indices("/v").map(|(at, _)| at);
        if let Some(at) = versions.into_iter().find(|at| has_version(path, *at)) {
            (path, version) = path.split_at(at);
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self {
            root: format!("{}://{host}{port}{path}", url.scheme()),
            version: default_version.map_or_else(String::new, |_| version.to_owned()),
            external: !is_here(&host),
            distant: !is_near(&host),
            encrypted: url.scheme() == "https",
        })
    }

    /// Returns the URL of an API path.
    pub(crate) fn api(&self, path: &str) -> String {
        format!("{}{}{path}", self.root, self.version)
    }

    /// Returns the URL of a path of the server itself.
    pub(crate) fn server(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// True if the endpoint is outside this machine, judged by its address: any name other than
    /// `localhost` counts as outside, as does the private network, which holds machines of other
    /// people.
    pub(crate) fn external(&self) -> bool {
        self.external
    }

    /// True if the endpoint is outside the private network too: it is reached through a proxy, and
    /// receives no key without encryption.
    pub(crate) fn distant(&self) -> bool {
        self.distant
    }

    /// True if the connection is encrypted.
    pub(crate) fn encrypted(&self) -> bool {
        self.encrypted
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.root, self.version)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// True if the segment at `at` is `/v` and a number, as in `/v1` and `/v1beta`.
fn has_version(path: &str, at: usize) -> bool {
    path.as_bytes().get(at + 2).is_some_and(u8::is_ascii_digit)
}

/// True for loopback, as a name or as an address.
fn is_here(host: &Host<&str>) -> bool {
    match address(host) {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(name) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// True for this machine and its private network, but not for the link-local range, which holds
/// metadata services of cloud machines.
fn is_near(host: &Host<&str>) -> bool {
    is_here(host)
        || address(host).is_ok_and(|address| match address {
            IpAddr::V4(v4) => v4.is_private(),
            IpAddr::V6(v6) => v6.is_unique_local(),
        })
}

/// Returns the address of a host, or its name.
fn address<'a>(host: &Host<&'a str>) -> Result<IpAddr, &'a str> {
    match host {
        Host::Domain(name) => Err(name.trim_end_matches('.')),
        Host::Ipv4(address) => Ok(IpAddr::from(*address)),
        Host::Ipv6(address) => Ok(address.to_canonical()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_addresses_yield_the_same_paths() {
        for (text, versioned, chat) in [
            ("http://localhost:8080", true, "http://localhost:8080/v1/chat"),
            ("http://localhost:8080/", true, "http://localhost:8080/v1/chat"),
            ("http://localhost:8080/v1", true, "http://localhost:8080/v1/chat"),
            ("http://localhost:8080/v1/", true, "http://localhost:8080/v1/chat"),
            ("localhost:8080", true, "http://localhost:8080/v1/chat"),
            ("http://h/v1/chat/completions", true, "http://h/v1/chat"),
            ("https://h/v1/messages?x=secret#y", true, "https://h/v1/chat"),
            ("https://h/api/v1", true, "https://h/api/v1/chat"),
            ("https://h/v1beta/openai/", true, "https://h/v1beta/openai/chat"),
            ("https://h/llama", true, "https://h/llama/v1/chat"),
            ("https://h/vault/v2", true, "https://h/vault/v2/chat"),
            ("https://h/vault", true, "https://h/vault/v1/chat"),
            ("http://[::1]:1/v1", true, "http://[::1]:1/v1/chat"),
            ("http://localhost:11434/", false, "http://localhost:11434/chat"),
            ("http://localhost:11434/api", false, "http://localhost:11434/chat"),
            ("http://localhost:11434/api/chat", false, "http://localhost:11434/chat"),
            ("http://localhost:11434/v1", false, "http://localhost:11434/chat"),
        ] {
            assert_eq!(
                Endpoint::parse(text, versioned.then_some("/v1")).unwrap().api("/chat"),
                chat,
                "{text}"
            );
        }
        assert_eq!(
            Endpoint::parse("h/a/v1", Some("/v1")).unwrap().server("/props"),
            "http://h/a/props"
        );
        for bad in ["", "ftp://h", "http://", "http://user:secret@h", "http://user@h", "unix:///x"]
        {
            let error = Endpoint::parse(bad, Some("/v1")).unwrap_err();
            assert!(
                matches!(&error, LlmError::Rejected(text) if !text.contains("secret")),
                "{bad}: {error}"
            );
        }
    }

    // A9
    #[test]
    fn only_loopback_addresses_are_local() {
        for (text, external) in [
            ("http://localhost:1", false),
            ("http://a.localhost", false),
            ("http://127.8.8.8", false),
            ("http://0.0.0.0:1", false),
            ("http://10.1.2.3", true),
            ("http://172.16.0.1", true),
            ("http://192.168.1.9", true),
            ("http://[::1]", false),
            ("http://[fd00::1]", true),
            ("http://[fe80::1]", true),
            ("http://[::ffff:10.1.2.3]", true),
            ("http://[::ffff:127.0.0.1]", false),
            ("http://[::ffff:8.8.8.8]", true),
            ("http://172.32.0.1", true),
            ("http://169.254.169.254", true),
            ("http://100.64.0.1", true),
            ("http://8.8.8.8", true),
            ("http://localhost.example.com", true),
            ("http://127.0.0.1.example.com", true),
            ("http://notlocalhost", true),
            // Integers are addresses too: 127.0.0.1 and 8.8.8.8.
            ("http://2130706433", false),
            ("http://0x08080808", true),
            ("https://api.openai.com/v1", true),
        ] {
            assert_eq!(Endpoint::parse(text, Some("/v1")).unwrap().external(), external, "{text}");
        }
        for (text, distant) in [
            ("http://10.1.2.3", false),
            ("http://[fd00::1]", false),
            ("http://169.254.169.254", true),
        ] {
            assert_eq!(Endpoint::parse(text, Some("/v1")).unwrap().distant(), distant, "{text}");
        }
    }
}
