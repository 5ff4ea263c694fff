//! Source of a clone, as it was judged: a folder that stays open, or a server at addresses that
//! were checked.

use std::{fs::File, net::IpAddr, os::fd::AsRawFd as _, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use super::{
    open,
    url::{Remote, RemoteLocation},
};
use crate::{Roots, root::display_text};

/// A remote that may be cloned.
#[derive(Debug)]
pub struct CloneSource {
    pub(super) remote: Remote,
    pub(super) reached: Reached,
}

/// Location that the clone reads.
#[derive(Debug)]
pub(super) enum Reached {
    /// A folder of this machine and its path: it is open, so that it stays the same even if its
    /// path is replaced.
    Folder { folder: File, path: PathBuf },
    /// Only these addresses, where git can be bound to them; any when there are none.
    Host(Vec<IpAddr>),
}

impl CloneSource {
    /// Returns the source for a folder of this machine, which must lie in a declared root.
    ///
    /// # Errors
    /// `InvalidParams` for a URL that names no folder; errors of [`Roots::resolve`]; `PathBlocked`
    /// also if a blocked path lies beneath it; `GitFailed` for a repository that leads out of the
    /// roots or cannot be read without blocking.
    pub fn folder(roots: &Roots, remote: Remote) -> Result<CloneSource, Failure> {
        let RemoteLocation::Folder(path) = remote.location() else {
            return Err(Failure::new(
                Reason::InvalidParams,
                format!("'{}' is not a folder", display_text(remote.url())),
            ));
        };
        let text = path.to_str().unwrap_or_default();
        let target = roots.resolve(text, None)?;
        let root = target.root();
        let (folder, real) = root.open_dir(target.real())?;
        if root.closed_below(&real) {
            let text = format!(
                "'{}' contains a path that may not be read: a clone would expose it",
                display_text(text)
            );
            return Err(Failure::new(Reason::PathBlocked, text));
        }
        open::find_here(root, &real)?;
        Ok(CloneSource {
            remote,
            reached: Reached::Folder { folder: folder.into_std_file(), path: real },
        })
    }

    /// Returns the source for a server; `addresses` are those that its name resolved to when it was
    /// judged.
    pub fn host(remote: Remote, addresses: Vec<IpAddr>) -> CloneSource {
        CloneSource { remote, reached: Reached::Host(addresses) }
    }

    /// Returns the URL without credentials.
    pub fn url(&self) -> &str {
        self.remote.url()
    }

    /// Returns the settings by which git reaches only this source.
    pub(super) fn settings(&self) -> Settings {
        let (mut config, mut environment, mut ssh) = (Vec::new(), Vec::new(), None);
        let url = self.remote.url();
        let mut instead =
            |base: String, of: String| config.push((format!("url.{base}.insteadOf"), of));
        match (&self.reached, self.remote.location()) {
            (Reached::Folder { folder, path }, _) => {
                let base = if cfg!(target_os = "linux") {
                    format!("file:///proc/{}/fd/{}", std::process::id(), folder.as_raw_fd())
                } else {
                    format!("file://{}", path.display())
                };
                instead(base, url.to_owned());
            }
            (Reached::Host(addresses), RemoteLocation::Host { scheme: "https", name, port }) => {
                if !addresses.is_empty() && name.parse::<IpAddr>().is_err() {
                    let list: Vec<String> = addresses.iter().map(bracketed).collect();
                    config.push((
                        "http.curloptResolve".into(),
                        format!("{name}:{port}:{}", list.join(",")),
                    ));
                }
            }
            (Reached::Host(addresses), RemoteLocation::Host { scheme: "git", .. }) => {
                // git:// can be bound to an address in no other way.
                let server = url.split('/').nth(2).unwrap_or_default();
                let port = server.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
                let port = port.map_or(String::new(), |(_, port)| format!(":{port}"));
                if let Some(address) = addresses.first() {
                    instead(
                        format!("git://{}{port}/", bracketed(address)),
                        format!("git://{server}/"),
                    );
                }
            }
            (Reached::Host(addresses), RemoteLocation::Host { scheme: "ssh", name, .. }) => {
                let address = addresses.first().filter(|_| name.parse::<IpAddr>().is_err());
                ssh = address.map(|address| PinnedHost { name: name.clone(), address: *address });
            }
            (Reached::Host(_), _) => {}
        }
        if let (Some(given), Some(server)) = (self.remote.credentials(), url.split('/').nth(2)) {
            let key = |name: &str| format!("credential.https://{server}.{name}");
            environment.push(("CAIRN_GIT_USER", given.user.clone()));
            environment.push(("CAIRN_GIT_PASSWORD", given.password.clone().unwrap_or_default()));
            if given.password.is_some() {
                // The user's helpers have other credentials, and would store these.
                config.push((key("helper"), String::new()));
                config.push((key("helper"), FULL_HELPER.to_owned()));
            } else {
                config.push((key("username"), given.user.clone()));
                config.push((key("helper"), EMPTY_HELPER.to_owned()));
            }
        }
        Settings { config, environment, ssh }
    }
}

/// Settings of git and variables of its environment. Credentials are in the environment, never in
/// arguments.
pub(super) struct Settings {
    pub(super) config: Vec<(String, String)>,
    pub(super) environment: Vec<(&'static str, String)>,
    /// Server that ssh must connect to.
    pub(super) ssh: Option<PinnedHost>,
}

/// A server by name, and the address that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PinnedHost {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

impl PinnedHost {
    /// Returns options of ssh: it connects to the address, and looks the host's key up under its
    /// name. Both have been checked to be no more than a host and an address, so a shell takes them
    /// as words.
    pub(super) fn options(&self) -> String {
        format!("-o HostName={} -o HostKeyAlias={}", self.address, self.name)
    }
}

/// A credential helper that reads its environment. `printf` is a shell builtin: no program gets the
/// password as an argument.
const FULL_HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \
                           \"$CAIRN_GIT_USER\" \"$CAIRN_GIT_PASSWORD\"; }; f";
/// Credential helper for a token in place of a user name, which needs no password.
const EMPTY_HELPER: &str = "!f() { test \"$1\" = get && echo password=; }; f";

fn bracketed(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}
