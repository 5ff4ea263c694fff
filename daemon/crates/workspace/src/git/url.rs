//! URLs of remotes: the forms that git may receive, the name of a clone, and credentials that are
//! removed first.

use std::path::PathBuf;

use cairn_protocol::error::{Failure, Reason};
use percent_encoding::percent_decode_str;

/// Longest URL, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;
const MAX_NAME: usize = 100;

/// Schemes that may be cloned, with their ports.
const SCHEMES: [(&str, u16); 4] = [("https", 443), ("ssh", 22), ("git", 9_418), ("file", 0)];

/// A remote that git may receive: its URL contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    url: String,
    location: RemoteLocation,
    credentials: Option<Credentials>,
}

/// Location of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteLocation {
    /// A folder of this machine, absolute.
    Folder(PathBuf),
    /// A repository on a server.
    Host {
        /// `https`, `ssh` or `git`.
        scheme: &'static str,
        /// Name or address, without brackets.
        name: String,
        /// The port; the scheme's own if the URL names none.
        port: u16,
    },
}

/// A user name, with the password if there was one. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(super) user: String,
    pub(super) password: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

impl Remote {
    /// Parses a URL of `https`, `ssh`, `git`, `file`, or `[user@]host:path`, which contains nothing
    /// that git or ssh could take for an option or a helper program. User and password of `https`
    /// are removed from the URL.
    ///
    /// # Errors
    /// `BadUrl`, with a text that repeats no credentials.
    pub fn parse(url: &str) -> Result<Remote, Failure> {
        parse(url).map_err(|why| {
            let url_text = crate::root::display_text(&printable(url));
            Failure::new(Reason::BadUrl, format!("'{url_text}' {why}"))
        })
    }

    /// Returns the URL without credentials: this may be logged, stored and passed to programs.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the location of the remote.
    pub fn location(&self) -> &RemoteLocation {
        &self.location
    }

    /// Returns the credentials that were in the URL.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the same remote with credentials that were removed from its URL before.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Option<Credentials>) -> Self {
        self.credentials = self.credentials.or(credentials);
        self
    }
}

/// Checks a URL as [`Remote::parse`] does.
///
/// # Errors
/// `BadUrl`.
pub fn check_url(url: &str) -> Result<(), Failure> {
    Remote::parse(url).map(|_| ())
}

/// Returns the name of a clone's folder: `given` when it is a plain name, else derived from the
/// URL's host and path.
///
/// # Errors
/// `BadUrl` for the URL, `InvalidParams` for the name.
pub fn folder_name(url: &str, given: Option<&str>) -> Result<String, Failure> {
    let remote = Remote::parse(url)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(name) = given {
        let good = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.starts_with(['.', '-'])
            && name.chars().all(plain);
        if !good || name.contains(".partial-") {
            let text =
                format!("dest '{}' is not a plain folder name", crate::root::display_text(name));
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        return Ok(name.to_owned());
    }
    let (host, path) = split(&remote.url).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host);
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let full_path = format!("{host}/{path}");
    let words: Vec<String> = full_path
        .split(['/', '\\'])
        .map(|w| w.chars().map(|c| if plain(c) { c } else { '-' }).collect::<String>())
        .map(|w| w.trim_matches(['.', '-']).to_owned())
        .filter(|w| !w.is_empty())
        .collect();
    let name = words.join("-").replace(".partial-", "-");
    // The end of a long path is more specific than its beginning; all characters are ASCII.
    let cut = &name[name.len().saturating_sub(MAX_NAME)..];
    let name = cut.trim_start_matches(['.', '-']);
    Ok(if name.is_empty() { "repository".into() } else { name.into() })
}

/// Returns a URL without user, password, query and fragment, as it may be displayed and stored. A
/// bare user name of ssh stays. For URLs from other sources, such as a repository's configuration.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, _)) if scheme == "ssh" && !user.contains(':') => format!("{scheme}://{rest}"),
        Some((_, host)) => format!("{scheme}://{host}{path}"),
        None => format!("{scheme}://{rest}"),
    }
}

/// Returns the part of a possibly invalid URL that an error may repeat: nothing before an `@` or
/// after a `?` or `#`.
fn printable(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or(text);
    match text.rsplit_once('@') {
        Some((before, after)) => {
            let scheme = before
                .split_once("://")
                .map_or(String::new(), |(scheme, _)| format!("{scheme}://"));
            format!("{scheme}…@{after}")
        }
        None => text.to_owned(),
    }
}

/// Returns true if two URLs name the same remote as far as their text shows.
pub(super) fn same_remote(a: &str, b: &str) -> bool {
    let plain = |url: &str| {
        let url = without_credentials(url);
        let url = url.trim_end_matches('/');
        url.strip_suffix(".git").unwrap_or(url).to_owned()
    };
    plain(a) == plain(b)
}

/// Returns authority and path, without the scheme.
fn split(url: &str) -> Option<(&str, &str)> {
    match url.split_once("://") {
        Some((_, rest)) => Some(rest.split_at(rest.find('/').unwrap_or(rest.len()))),
        None => {
            // The colons of an address in brackets do not end the host.
            let colon = match url.split_once(']') {
                Some((before, after)) if url.contains('[') && after.starts_with(':') => {
                    before.len() + 1
                }
                _ => url.find(':')?,
            };
            Some((&url[..colon], &url[colon + 1..]))
        }
    }
}

fn parse(url: &str) -> Result<Remote, &'static str> {
    if url.is_empty() || url.len() > MAX_URL_BYTES {
        return Err("is empty or too long");
    }
    if url.starts_with('-') {
        return Err("begins with '-'");
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("contains a space or control character");
    }
    let (authority, path) = split(url).ok_or("is not a URL")?;
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if path.trim_start_matches('/').starts_with('-') {
        return Err("has a part that begins with '-'");
    }
    match scheme {
        Some("file") => folder(url, authority, path),
        Some(scheme) => {
            let known = SCHEMES.iter().find(|(name, _)| *name == scheme);
            let (scheme, port) = known.ok_or("has a scheme that is not https, ssh, git or file")?;
            server(scheme, *port, authority, path)
        }
        None => short(url, authority, path),
    }
}

fn folder(url: &str, authority: &str, path: &str) -> Result<Remote, &'static str> {
    if !authority.is_empty() {
        return Err("contains a host; file URLs have the form file:///path");
    }
    // git decodes it as well: the judged path must be the one that is opened.
    let decoded = percent_decode_str(path).decode_utf8().map_err(|_| "is not valid UTF-8")?;
    if decoded.trim_matches('/').is_empty() || decoded.contains('\0') {
        return Err("does not name a repository");
    }
    let location = RemoteLocation::Folder(PathBuf::from(decoded.into_owned()));
    Ok(Remote { url: url.to_owned(), location, credentials: None })
}

fn server(
    scheme: &'static str,
    default_port: u16,
    authority: &str,
    path: &str,
) -> Result<Remote, &'static str> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    let (name, port) = name_and_port(host, default_port)?;
    if scheme == "https" && path.contains(['?', '#']) {
        return Err(
            "has a query or fragment, which git would expose to every program of this machine; \
            use a user name and password, or store the token in git's credential helper",
        );
    }
    if path.trim_matches('/').is_empty() {
        return Err("does not name a repository");
    }
    let (user_prefix, credentials) = match (scheme, user) {
        (_, None) => (String::new(), None),
        ("https", Some(user)) => (String::new(), Some(credentials(user)?)),
        ("ssh", Some(user)) if is_user(user) => (format!("{user}@"), None),
        ("ssh", Some(_)) => {
            return Err("contains a password or an invalid user name; use SSH keys instead");
        }
        _ => return Err("contains a user name, which git:// does not support"),
    };
    let url = format!("{scheme}://{user_prefix}{host}{path}");
    Ok(Remote { url, location: RemoteLocation::Host { scheme, name, port }, credentials })
}

/// Parses `[user@]host:path`. A slash before the colon would be a local path, two colons a helper
/// program.
fn short(url: &str, authority: &str, path: &str) -> Result<Remote, &'static str> {
    let first = path.split('/').next().unwrap_or(path);
    if authority.is_empty() || authority.contains('/') || path.is_empty() || path.starts_with(':') {
        return Err("is not a URL");
    }
    if first.contains('@') {
        return Err("contains a password or an invalid user name; use SSH keys instead");
    }
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if user.is_some_and(|user| !is_user(user)) {
        return Err("contains an invalid user name");
    }
    if path.trim_matches('/').is_empty() {
        return Err("does not name a repository");
    }
    let (name, port) = name_and_port(host, 22)?;
    let location = RemoteLocation::Host { scheme: "ssh", name, port };
    Ok(Remote { url: url.to_owned(), location, credentials: None })
}

fn is_user(user: &str) -> bool {
    !user.is_empty()
        && !user.starts_with('-')
        && user.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
}

fn credentials(user_info: &str) -> Result<Credentials, &'static str> {
    let decode = |text: &str| match percent_decode_str(text).decode_utf8() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text.into_owned()),
        _ => Err("contains credentials that are not valid UTF-8"),
    };
    let (user, password) =
        user_info.split_once(':').map_or((user_info, None), |(u, p)| (u, Some(p)));
    Ok(Credentials { user: decode(user)?, password: password.map(decode).transpose()? })
}

/// Returns the host without brackets, and the port. This and git, curl or ssh must read it alike.
fn name_and_port(host: &str, default_port: u16) -> Result<(String, u16), &'static str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or("has no valid host")?;
            name.parse::<std::net::Ipv6Addr>().map_err(|_| "has no valid host")?;
            (name, port)
        }
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        return Err("has no host");
    }
    if name.starts_with('-') || (!host.starts_with('[') && !name.chars().all(plain)) {
        return Err("has no valid host");
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).ok_or("has no valid port")?
        }
        _ => return Err("has no valid port"),
    };
    Ok((name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls_and_names() {
        for (url, name) in [
            ("https://github.com/tokio-rs/axum.git", "github.com-tokio-rs-axum"),
            ("https://u:p@h.org:8443/a/b/", "h.org-8443-a-b"),
            ("git@github.com:a/b.git", "github.com-a-b"),
            ("ssh://git@h/x/~y", "h-x-y"),
            ("git@[::1]:a/b", "1-a-b"),
            ("file:///srv/r.git", "srv-r"),
            ("git://h/../../etc", "h-etc"),
        ] {
            assert_eq!(folder_name(url, None).unwrap(), name, "{url}");
        }
        for bad in [
            "",
            "-u",
            "--upload-pack=x",
            "ext::sh -c x",
            "ext::x",
            "fd::3/x",
            "/local/path",
            "./x",
            "ftp://h/x",
            "javascript://h/x",
            "https://",
            "https:///x",
            "ssh://-oProxyCommand=x/y",
            "-h:x",
            "u@-h:x",
            "h:-x",
            "https://h/\nx",
            "https://h/a b",
            "file://host/x",
            // G4: forms that only the reference lists.
            "http://h/x",
            "https://h:0/x",
            "https://h:x/y",
            "https://u:p/w@h/x",
            "https://h\\evil/x",
            "https://h%2eorg/x",
            "https://[::1/x",
            "https://[1.2.3.4]/x",
            "git://u@h/x",
            "ssh://u:p@h/x",
            "ssh://-u@h/x",
            "u:pw@h:x",
            "https://h/x?private_token=s",
            "https://h/x#s",
            "C:\u{7}x",
            "host::x",
            "https://h",
            "https://h/-x",
        ] {
            assert_eq!(check_url(bad).unwrap_err().reason, Reason::BadUrl, "{bad}");
        }
        assert!(check_url(&format!("https://h/{}", "a".repeat(3000))).is_err());
        for bad in ["", "..", ".x", "-x", "a/b", "a b", "x.partial-1", &"x".repeat(101)] {
            assert!(folder_name("https://h/x", Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(folder_name("https://h/x", Some("mine")).unwrap(), "mine");
        assert!(
            folder_name(&format!("https://h/{}", "a/".repeat(400)), None).unwrap().len()
                <= MAX_NAME
        );
    }

    #[test]
    fn credentials_are_not_displayed() {
        for (url, want) in [
            ("https://user:pa@ss@h/x", "https://h/x"),
            ("https://token@h/x", "https://h/x"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("ssh://git:pw@h/x", "ssh://h/x"),
            ("https://h/x?private_token=s#f", "https://h/x"),
            ("git@h:x", "git@h:x"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(without_credentials(url), want, "{url}");
        }
        assert!(same_remote("https://u:p@h/x.git", "https://h/x/"));
        assert!(!same_remote("https://h/x", "https://h/y"));
    }

    #[test]
    fn credentials_are_removed_from_url_and_errors() {
        let of = |url: &str| Remote::parse(url).unwrap();
        let full = of("https://me:hunter%402@h.org:8443/a/b.git");
        assert_eq!(full.url(), "https://h.org:8443/a/b.git");
        let secret = full.credentials().unwrap();
        assert_eq!((secret.user.as_str(), secret.password.as_deref()), ("me", Some("hunter@2")));
        assert!(!format!("{full:?}").contains("hunter"));
        let token = of("https://ghp_token@h/a");
        assert_eq!(
            (token.url(), token.credentials().unwrap().user.as_str()),
            ("https://h/a", "ghp_token")
        );
        assert_eq!(of("ssh://git@h/a").url(), "ssh://git@h/a");
        for bad in [
            "https://me:hunter2@h",
            "https://me:hunter2@h/x?y",
            "https://h/x?token=hunter2",
            "ssh://git:hunter2@h/x",
            "git:hunter2@h:x",
            "http://me:hunter2@h/x",
            "https://me:hunter2/@h/x",
            "https:me:hunter2@h/x",
            "hunter2@@h:x",
        ] {
            let failure = Remote::parse(bad).unwrap_err();
            assert!(!failure.message.contains("hunter2"), "{bad}: {failure}");
        }
    }

    #[test]
    fn hosts_are_parsed_as_git_parses_them() {
        let host = |url: &str| match Remote::parse(url).unwrap().location {
            RemoteLocation::Host { scheme, name, port } => (scheme, name, port),
            RemoteLocation::Folder(folder) => ("file", folder.display().to_string(), 0),
        };
        for (url, want) in [
            ("https://h/x", ("https", "h", 443)),
            ("https://[::1]:8/x", ("https", "::1", 8)),
            ("https://0x7f000001/x", ("https", "0x7f000001", 443)),
            ("ssh://u@h:23/x", ("ssh", "h", 23)),
            ("u@h:x", ("ssh", "h", 22)),
            ("u@[::1]:x", ("ssh", "::1", 22)),
            ("git://h/x", ("git", "h", 9418)),
            ("file:///a%2e%2e/b", ("file", "/a../b", 0)),
        ] {
            assert_eq!(host(url), (want.0, want.1.to_owned(), want.2), "{url}");
        }
    }
}
