//! URLs of remotes: which are safe to give to git, what a clone is called, and how they are shown.

use cairn_protocol::error::{Failure, Reason};

/// Longest URL.
pub const MAX_URL_BYTES: usize = 2_048;
const MAX_NAME: usize = 100;
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// Checks that a URL is one of `https`, `http`, `ssh`, `git`, `file`, or `[user@]host:path`, with nothing in it that
/// git or ssh could take for an option or a helper program.
///
/// # Errors
/// `BadUrl`.
pub fn check_url(url: &str) -> Result<(), Failure> {
    parts(url).map(|_| ()).map_err(|why| {
        Failure::new(Reason::BadUrl, format!("'{}' {why}", crate::root::shown(&without_credentials(url))))
    })
}

/// Name of a clone's folder: `given` when it is a plain name, else made of the URL's host and path.
///
/// # Errors
/// `BadUrl` for the URL, `InvalidParams` for the name.
pub fn folder_name(url: &str, given: Option<&str>) -> Result<String, Failure> {
    check_url(url)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(name) = given {
        let good = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.starts_with(['.', '-'])
            && name.chars().all(plain);
        if !good || name.contains(".partial-") {
            let text = format!("dest '{}' is not a plain folder name", crate::root::shown(name));
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        return Ok(name.to_owned());
    }
    let (host, path) = parts(url).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host);
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let whole = format!("{host}/{path}");
    let words: Vec<String> = whole
        .split(['/', '\\'])
        .map(|w| w.chars().map(|c| if plain(c) { c } else { '-' }).collect::<String>())
        .map(|w| w.trim_matches(['.', '-']).to_owned())
        .filter(|w| !w.is_empty())
        .collect();
    let name = words.join("-").replace(".partial-", "-");
    // The end of a long path tells more than its beginning; all characters are ASCII.
    let cut = &name[name.len().saturating_sub(MAX_NAME)..];
    let name = cut.trim_start_matches(['.', '-']);
    Ok(if name.is_empty() { "repository".into() } else { name.into() })
}

/// A URL without user name and password, as it may be shown and stored. A bare user name of ssh stays.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    match scheme == "ssh" && !user.contains(':') {
        true => url.to_owned(),
        false => format!("{scheme}://{host}{path}"),
    }
}

/// Whether two URLs name the same remote as far as their text tells.
pub(super) fn same_remote(a: &str, b: &str) -> bool {
    let plain = |url: &str| {
        let url = without_credentials(url);
        let url = url.trim_end_matches('/');
        url.strip_suffix(".git").unwrap_or(url).to_owned()
    };
    plain(a) == plain(b)
}

/// Host (with user and port) and path of a URL that is safe.
fn parts(url: &str) -> Result<(&str, &str), &'static str> {
    if url.is_empty() || url.len() > MAX_URL_BYTES {
        return Err("is empty or too long");
    }
    if url.starts_with('-') {
        return Err("begins with '-'");
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("holds a space or control character");
    }
    let (host, path) = match url.split_once("://") {
        Some((scheme, rest)) => {
            if !SCHEMES.contains(&scheme) {
                return Err("has a scheme that is not https, http, ssh, git or file");
            }
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match scheme == "file" {
                true if !host.is_empty() => return Err("names a host; file URLs are file:///path"),
                false if host.is_empty() => return Err("names no host"),
                _ => {}
            }
            (host, path)
        }
        None => {
            // `[user@]host:path`; a slash before the colon would be a local path, two colons a helper program.
            let colon = match url.split_once(']') {
                Some((before, after)) if url.contains('[') && after.starts_with(':') => before.len() + 1,
                _ => url.find(':').ok_or("is not a URL")?,
            };
            let (host, path) = (&url[..colon], &url[colon + 1..]);
            if host.is_empty() || host.contains('/') || path.is_empty() || path.starts_with(':') {
                return Err("is not a URL");
            }
            (host, path)
        }
    };
    let bare = host.rsplit('@').next().unwrap_or(host);
    if host.starts_with('-') || bare.starts_with('-') || path.trim_start_matches('/').starts_with('-') {
        return Err("has a part that begins with '-'");
    }
    if path.trim_matches('/').is_empty() {
        return Err("names no repository");
    }
    Ok((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_names() {
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
        assert!(folder_name(&format!("https://h/{}", "a/".repeat(400)), None).unwrap().len() <= MAX_NAME);
    }

    #[test]
    fn credentials_are_not_shown() {
        for (url, want) in [
            ("https://user:pa@ss@h/x", "https://h/x"),
            ("https://token@h/x", "https://h/x"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("ssh://git:pw@h/x", "ssh://h/x"),
            ("git@h:x", "git@h:x"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(without_credentials(url), want, "{url}");
        }
        assert!(same_remote("https://u:p@h/x.git", "https://h/x/"));
        assert!(!same_remote("https://h/x", "https://h/y"));
    }
}
