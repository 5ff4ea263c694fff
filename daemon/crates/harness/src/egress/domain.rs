//! Names of hosts, and the patterns of rules about them.

use std::fmt;

use reqwest::Url;

/// Longest name in bytes (RFC 1035).
const MAX_NAME: usize = 253;

/// Most characters of a host in a message.
const MAX_DISPLAYED: usize = 300;
/// The name of this machine, which is judged like any other.
const LOCALHOST: &str = "localhost";

/// The name of a host in its canonical form: ASCII, lower case, never an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Domain(String);

impl Domain {
    /// Parses a name as browsers do; `None` for an address in any notation, for a name without a
    /// dot besides `localhost`, which is one of the private network, and for anything that is no
    /// name.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() || text.len() > MAX_NAME || text.contains(['/', '@', ':', '?', '#']) {
            return None;
        }
        let url = Url::parse(&format!("http://{text}/")).ok()?;
        // The parser has recognised addresses such as `0x7f.1`.
        let name = url.domain()?.to_owned();
        let is_label = |label: &str| {
            !label.is_empty()
                && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        let is_name = name == LOCALHOST || name.contains('.');
        (is_name && name.split('.').all(is_label)).then_some(Self(name))
    }

    /// Returns true for this machine's own name: only a rule or an answer that names it opens it.
    pub fn is_loopback(&self) -> bool {
        self.0 == LOCALHOST || self.0.ends_with(".localhost")
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the pattern of all names beside this one, if that is not a complete registry of
    /// names such as `co.uk`.
    pub fn siblings(&self) -> Option<DomainPattern> {
        let parent = self.0.split_once('.')?.1;
        let (second, top) = parent.split_once('.')?;
        let is_registry = !top.contains('.') && second.len() <= 3 && top.len() <= 3;
        (!is_registry).then(|| DomainPattern { beneath: true, name: parent.to_owned() })
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a host as messages name it: bounded, without control characters.
pub(crate) fn displayed_host(host: &str) -> String {
    host.chars().take(MAX_DISPLAYED).flat_map(char::escape_debug).collect()
}

/// A name, or `*.` and a name for all names beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPattern {
    /// True if only names beneath `name` are covered.
    beneath: bool,
    name: String,
}

impl DomainPattern {
    /// Parses a pattern; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (beneath, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        Some(Self { beneath, name: Domain::parse(name)?.0 })
    }

    /// Returns true if it covers `domain`.
    pub fn covers(&self, domain: &Domain) -> bool {
        if self.beneath {
            return domain.0.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'));
        }
        domain.0 == self.name
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead = if self.beneath { "*." } else { "" };
        write!(f, "{lead}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_the_private_network_are_no_domains() {
        for (text, want) in [
            ("crates.io", Some("crates.io")),
            ("Crates.IO.", Some("crates.io")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("127.0.0.1", None),
            ("0x7f.1", None),
            ("2130706433", None),
            ("017700000001", None),
            ("[::1]", None),
            ("::1", None),
            ("localhost", Some("localhost")),
            ("intranet", None),
            ("a@crates.io", None),
            ("crates.io:80", None),
            ("crates.io/x", None),
            ("a..b", None),
            ("", None),
        ] {
            assert_eq!(Domain::parse(text).as_ref().map(Domain::as_str), want, "{text}");
        }
    }

    #[test]
    fn patterns_cover_complete_labels() {
        for (pattern, name, want) in [
            ("crates.io", "crates.io", true),
            ("crates.io", "static.crates.io", false),
            ("crates.io", "evilcrates.io", false),
            ("*.crates.io", "static.crates.io", true),
            ("*.crates.io", "a.b.crates.io", true),
            ("*.crates.io", "crates.io", false),
            ("*.crates.io", "evilcrates.io", false),
            ("*.crates.io", "crates.io.evil.example", false),
        ] {
            let covers =
                DomainPattern::parse(pattern).unwrap().covers(&Domain::parse(name).unwrap());
            assert_eq!(covers, want, "{pattern} {name}");
        }
        for wrong in ["*", "*.", "*.io", "a.*.b", "10.0.0.1", "*.10.0.0.1", "http://a.b"] {
            assert!(DomainPattern::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn siblings_are_no_registry() {
        let siblings = |name: &str| Domain::parse(name).unwrap().siblings().map(|p| p.to_string());
        assert_eq!(siblings("static.crates.io").as_deref(), Some("*.crates.io"));
        assert_eq!(siblings("crates.io"), None);
        assert_eq!(siblings("example.co.uk"), None);
    }
}
