//! Cloning: one implementation for the method and the tool, and the check of the remote's address.

use std::{
    collections::VecDeque,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    explore::ExploreStartParams,
    git::{CloneParams, CloneReceipt, CloneResult, GitProgress},
    id::SessionId,
};
use cairn_workspace::{
    Roots,
    git::{self, CloneRequest, CloneSource, Credentials, Remote, RemoteLocation},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{DirectCall, Engine, Notice, roots::blocking};

/// Time limit of the look-up of a server's name.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);
/// Most credentials that are stored for calls which have not been made yet.
const MAX_SECRETS: usize = 64;

/// Credentials from the URLs of calls, until the call is made. In memory alone: a client that
/// resumes a run after a restart must send them again.
#[derive(Default)]
pub struct CloneSecrets(Mutex<VecDeque<(SessionId, String, Credentials)>>);

impl CloneSecrets {
    fn put(&self, session: &SessionId, url: &str, credentials: Credentials) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(s, u, _)| s != session || u != url);
        if all.len() >= MAX_SECRETS {
            all.pop_front();
        }
        all.push_back((session.clone(), url.to_owned(), credentials));
    }

    /// Removes and returns the credentials of a session's call.
    pub fn take(&self, session: &SessionId, url: &str) -> Option<Credentials> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(s, u, _)| s == session && u == url)?;
        all.remove(at).map(|(_, _, credentials)| credentials)
    }

    /// Removes the credentials from the URL in a call's arguments and stores them.
    pub fn withhold(&self, session: &SessionId, arguments: &mut Value) {
        let Some(given) = arguments.get_mut("remoteURL") else { return };
        let Some(text) = given.as_str() else { return };
        match Remote::parse(text) {
            Ok(remote) => {
                if let Some(credentials) = remote.credentials() {
                    self.put(session, remote.url(), credentials.clone());
                }
                *given = remote.url().into();
            }
            // The URL will be rejected; its credentials must not be recorded either.
            Err(_) => *given = git::without_credentials(text).into(),
        }
    }
}

/// Final progress of the latest clones, for subscribers that missed the notice.
#[derive(Default)]
pub struct CloneEnds(Mutex<VecDeque<GitProgress>>);

/// Most final notices that are stored.
const MAX_ENDS: usize = 64;

impl CloneEnds {
    fn put(&self, end: GitProgress) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_ENDS {
            all.pop_front();
        }
        all.push_back(end);
    }

    fn all(&self) -> Vec<GitProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Returns the target folder of the clone of `params`: one folder name under the workspaces folder.
///
/// # Errors
/// `bad_url`; `invalid_params` for a `dest` that is more than a name.
pub fn destination(workspaces: &Path, params: &CloneParams) -> Result<PathBuf, Failure> {
    Ok(workspaces.join(git::folder_name(&params.remote_url, params.dest.as_deref())?))
}

/// Reason why a remote needs an approval before it is contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The remote is on this machine or in its network.
    Near(String),
    /// Its address is not known: a name of the user's ssh configuration, or of a proxy.
    Unknown(String),
}

impl Doubt {
    /// Returns the reason as text.
    pub fn text(&self) -> &str {
        match self {
            Self::Near(text) | Self::Unknown(text) => text,
        }
    }
}

/// Checks the location of a remote, after a look-up of its name: a folder must lie in a declared
/// root; a server without a public address is reported as a doubt.
///
/// # Errors
/// Errors of [`CloneSource::folder`].
pub async fn judge(
    roots: &Arc<Roots>,
    remote: Remote,
) -> Result<(CloneSource, Option<Doubt>), Failure> {
    let RemoteLocation::Host { name, port, .. } = remote.location().clone() else {
        let roots = Arc::clone(roots);
        return blocking(move || Ok((CloneSource::folder(&roots, remote)?, None))).await;
    };
    let lookup =
        tokio::time::timeout(LOOKUP_LIMIT, tokio::net::lookup_host((name.as_str(), port))).await;
    let addresses: Vec<IpAddr> = match lookup {
        Ok(Ok(addresses)) => addresses.map(|address| address.ip()).collect(),
        _ => vec![],
    };
    let near = addresses.iter().find(|address| !cairn_harness::is_public(**address));
    let doubt = match near {
        Some(address) => Some(Doubt::Near(format!(
            "'{name}' is at {address}, an address of this machine or its network"
        ))),
        None if addresses.is_empty() => {
            Some(Doubt::Unknown(format!("the address of '{name}' could not be resolved")))
        }
        None => None,
    };
    Ok((CloneSource::host(remote, addresses), doubt))
}

/// Clones off the async threads; cancelling the token kills git.
pub async fn clone(
    source: CloneSource,
    branch: Option<String>,
    dest: PathBuf,
    cancel: CancellationToken,
    progress: impl Fn(&str, f64) + Send + 'static,
) -> Result<CloneResult, Failure> {
    let request = CloneRequest { source, branch, dest, limit: git::CLONE_LIMIT };
    blocking(move || {
        git::git_clone(&request, &mut |stage, percent| progress(stage, percent), &|| {
            cancel.is_cancelled()
        })
    })
    .await
}

/// A clone that was checked and may be made.
struct JudgedClone {
    request_id: String,
    source: CloneSource,
    branch: Option<String>,
    dest: PathBuf,
}

impl Engine {
    /// Clones in the background; completion is published as a [`Notice::Git`] with `done`. A remote
    /// that was cloned before is reused. No approval is possible here, so an address of this
    /// machine or its network is refused. `audit` is closed when the clone finishes.
    ///
    /// # Errors
    /// `bad_url`, `invalid_params`; those of the check of the address; `network_denied`,
    /// `clone_failed` for an address that is not known.
    pub async fn git_clone(
        &self,
        params: CloneParams,
        audit: Option<DirectCall>,
    ) -> Result<CloneReceipt, Failure> {
        match self.judged_clone(params).await {
            Ok(clone) => Ok(self.spawn_clone(clone, audit)),
            Err(failure) => {
                if let Some(audit) = audit {
                    audit.complete(Some(&failure)).await;
                }
                Err(failure)
            }
        }
    }

    async fn judged_clone(&self, params: CloneParams) -> Result<JudgedClone, Failure> {
        self.require_open()?;
        let remote = Remote::parse(&params.remote_url)?;
        let dest = destination(&self.inner.workspaces, &params)?;
        if let RemoteLocation::Host { name, .. } = remote.location() {
            self.inner.harness.require_host(name)?;
        }
        let by_ssh = matches!(remote.location(), RemoteLocation::Host { scheme: "ssh", .. });
        let (source, doubt) = judge(&self.inner.roots, remote).await?;
        match doubt {
            Some(Doubt::Near(why)) => {
                let text = format!(
                    "{why}: clone it with git and declare the folder, or call the tool git_clone in a session"
                );
                return Err(Failure::new(Reason::NetworkDenied, text));
            }
            // The user's ssh configuration may know the name.
            Some(Doubt::Unknown(_)) if by_ssh => {}
            Some(Doubt::Unknown(why)) => return Err(Failure::new(Reason::CloneFailed, why)),
            None => {}
        }
        let request_id = params.request_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        Ok(JudgedClone { request_id, source, branch: params.branch, dest })
    }

    fn spawn_clone(&self, judged: JudgedClone, audit: Option<DirectCall>) -> CloneReceipt {
        let JudgedClone { request_id, source, branch, dest } = judged;
        let receipt = CloneReceipt {
            request_id: request_id.clone(),
            path: dest.to_string_lossy().into_owned(),
        };
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            let url = source.url().to_owned();
            let on_progress = engine.clone_progress(&request_id);
            let cancel = engine.inner.shutdown.child_token();
            let outcome = clone(source, branch, dest, cancel, on_progress).await;
            let outcome = outcome.and_then(|result| engine.remember_clone(&url, result));
            if let Some(audit) = audit {
                audit.complete(outcome.as_ref().err()).await;
            }
            let (result, error, reason) = match outcome {
                Ok(result) => (Some(result), None, None),
                Err(failure) => {
                    (None, Some(failure.message), Some(failure.reason.as_str().to_owned()))
                }
            };
            let stage = "done".to_owned();
            let last = GitProgress {
                request_id,
                stage,
                percent: 100.0,
                done: true,
                result,
                error,
                reason,
            };
            engine.inner.clone_ends.put(last.clone());
            let _listeners = engine.inner.notices.send(Notice::Git(last));
        });
        receipt
    }

    /// Returns a callback that publishes the progress of a clone.
    fn clone_progress(&self, request_id: &str) -> impl Fn(&str, f64) + Send + 'static {
        let (notices, id) = (self.inner.notices.clone(), request_id.to_owned());
        move |stage, percent| {
            let (request_id, stage) = (id.clone(), stage.to_owned());
            let progress = GitProgress {
                request_id,
                stage,
                percent,
                done: false,
                result: None,
                error: None,
                reason: None,
            };
            let _listeners = notices.send(Notice::Git(progress));
        }
    }

    fn remember_clone(&self, url: &str, result: CloneResult) -> Result<CloneResult, Failure> {
        self.inner.state.change(|state| {
            state.remotes.insert(result.path.clone(), url.to_owned());
        })?;
        Ok(result)
    }

    /// Returns the notices of finished work, for a subscriber that missed some because it was too
    /// slow.
    pub fn finished_work(&self) -> Vec<Notice> {
        let clones = self.inner.clone_ends.all().into_iter().map(Notice::Git);
        clones.chain(self.inner.indexes.finished().into_iter().map(Notice::Index)).collect()
    }

    /// Removes the credentials from an explore's URL, before anything is recorded.
    ///
    /// # Errors
    /// `bad_url`.
    pub(crate) fn withhold_credentials(
        params: &mut ExploreStartParams,
    ) -> Result<Option<Credentials>, Failure> {
        let Some(url) = &mut params.remote_url else { return Ok(None) };
        let remote = Remote::parse(url)?;
        remote.url().clone_into(url);
        Ok(remote.credentials().cloned())
    }

    /// Stores the credentials for the clone of a session.
    pub(crate) fn put_credentials(
        &self,
        session: &SessionId,
        url: &str,
        credentials: Option<Credentials>,
    ) {
        if let Some(credentials) = credentials {
            self.inner.clone_secrets.put(session, url, credentials);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Remote {
        Remote::parse(url).unwrap()
    }

    // G4
    #[tokio::test]
    async fn local_addresses_are_rejected_in_every_notation() {
        let roots = Arc::new(Roots::new(vec![]));
        for url in [
            "https://127.0.0.1/x",
            "https://0x7f000001/x",
            "https://2130706433/x",
            "https://017700000001/x",
            "https://127.1/x",
            "https://[::1]/x",
            "https://[::ffff:127.0.0.1]/x",
            "https://[::ffff:a9fe:a9fe]/x",
            "https://169.254.169.254/x",
            "https://10.1.2.3/x",
            "https://192.168.1.1:8443/x",
            "https://0.0.0.0/x",
            "https://localhost/x",
            "ssh://git@127.0.0.1/x",
            "git@10.0.0.1:x",
            "git@[::1]:x",
            "git://172.16.0.1/x",
        ] {
            let (_, doubt) = judge(&roots, of(url)).await.unwrap();
            assert!(matches!(doubt, Some(Doubt::Near(_))), "{url}: {doubt:?}");
        }
        // Control: a public address raises no doubt. It is not contacted either.
        let (_, doubt) = judge(&roots, of("https://1.1.1.1/x")).await.unwrap();
        assert_eq!(doubt, None);
        let (_, doubt) = judge(&roots, of("ssh://git@name.invalid/x")).await.unwrap();
        assert!(matches!(doubt, Some(Doubt::Unknown(_))), "{doubt:?}");
    }

    // G1
    #[tokio::test]
    async fn clone_destination_must_be_beneath_declared_root_and_not_blocked() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["in/repo/.git", "out/.git", "in/blocked/.git", "in/holds/.git/blocked"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("out"), base.join("in/link")).unwrap();
        std::fs::create_dir(base.join("in/linked")).unwrap();
        std::os::unix::fs::symlink(base.join("out/.git"), base.join("in/linked/.git")).unwrap();
        let blocked = vec![base.join("in/blocked"), base.join("in/holds/.git/blocked")];
        let roots = Arc::new(Roots::new(blocked));
        let reason = async |path: &str| {
            let url = format!("file://{}", base.join(path).display());
            judge(&roots, of(&url)).await.err().map(|failure| failure.reason)
        };
        assert_eq!(reason("in/repo").await, Some(Reason::NoRoots));
        roots.declare(&base.join("in")).unwrap();
        assert_eq!(reason("in/repo").await, None, "the control");
        assert_eq!(reason("in/../in/%72epo").await, None, "decoded as git does");
        assert_eq!(reason("out").await, Some(Reason::PathOutsideRoots));
        assert_eq!(reason("in/../out").await, Some(Reason::PathOutsideRoots));
        assert_eq!(reason("in/link").await, Some(Reason::PathOutsideRoots));
        assert_eq!(reason("in/blocked").await, Some(Reason::PathBlocked));
        assert_eq!(reason("in/%62locked").await, Some(Reason::PathBlocked));
        assert_eq!(reason("in/holds").await, Some(Reason::PathBlocked));
        assert_eq!(reason("in/linked").await, Some(Reason::GitFailed));
        assert_eq!(reason("in/none").await, Some(Reason::PathNotFound));
    }
}
