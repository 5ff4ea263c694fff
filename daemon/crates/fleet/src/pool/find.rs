//! The folder of this daemon in which a run works.

use std::time::Duration;

use cairn_api::Rights;
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::FleetRepository,
    git::{CloneParams, CloneReceipt, GitProgress},
    index::{AddRootParams, IndexReceipt},
};
use cairn_transport::in_process::InProcessClient;
use cairn_workspace::{Root, git};

use super::{Worker, add::Job};

/// Longest duration of a clone.
const CLONE_LIMIT: Duration = Duration::from_secs(900);

/// Returns the root in which a job works, which is cloned if the configuration allows it.
///
/// # Errors
/// The reason why this daemon cannot do the job.
pub async fn root(worker: &Worker, job: &Job) -> Result<String, Failure> {
    let Some(repository) = &job.repository else {
        let root = job.root.as_deref().unwrap_or_default();
        if worker.engine.is_declared(root) {
            return Ok(root.to_owned());
        }
        let root = root.escape_default();
        return Err(Failure::new(Reason::RootNotFound, format!("'{root}' is not a root here")));
    };
    let sought = repository.clone();
    let roots = worker.engine.roots();
    let found = cairn_harness::off_thread("remotes of the roots", move || {
        Ok(roots.iter().find(|root| is_clone_of(root, &sought)).map(path_of))
    });
    if let Some(path) = found.await? {
        return Ok(path);
    }
    let url = &repository.remote_url;
    if worker.settings.clone_from.iter().any(|prefix| is_below(url, prefix)) {
        return clone(worker, url).await;
    }
    let text = format!(
        "no root here is a clone of {}, and fleet.cloneFrom does not allow to clone it",
        git::without_credentials(url)
    );
    Err(Failure::new(Reason::RootNotFound, text))
}

/// True for an address that begins with all parts of `prefix`, so that neither another host nor
/// another folder has the same beginning.
fn is_below(url: &str, prefix: &str) -> bool {
    let Some(rest) = url.strip_prefix(prefix) else { return false };
    let at_boundary = prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/');
    !prefix.is_empty() && at_boundary && !url.split('/').any(|part| part == "..")
}

fn path_of(root: &Root) -> String {
    root.path.to_string_lossy().into_owned()
}

fn is_clone_of(root: &Root, repository: &FleetRepository) -> bool {
    let remote = git::git_head(root).ok().and_then(|head| head.remote);
    remote.is_some_and(|url| same_repository(&url, &repository.remote_url))
}

/// True for two addresses of one repository, whatever the protocol and the user.
pub fn same_repository(a: &str, b: &str) -> bool {
    let (a, b) = (location(a), location(b));
    !a.starts_with('/') && a == b
}

/// Host and path of a repository's address.
fn location(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // `user@host:path` has no protocol.
    let rest = if url.contains("://") { rest.to_owned() } else { rest.replacen(':', "/", 1) };
    let slash = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(slash);
    let host = host.rsplit('@').next().unwrap_or(host).to_ascii_lowercase();
    let path = path.trim_matches('/');
    format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path))
}

async fn clone(worker: &Worker, url: &str) -> Result<String, Failure> {
    // The user's own configuration allows the clone, and with it the new root.
    let (client, mut notifications) = InProcessClient::open(&worker.api, Rights::ALL)?;
    client.initialize("fleet", env!("CARGO_PKG_VERSION"), false).await?;
    let request_id = uuid::Uuid::now_v7().to_string();
    let params = CloneParams {
        remote_url: url.to_owned(),
        branch: None,
        dest: None,
        request_id: Some(request_id.clone()),
    };
    let receipt: CloneReceipt = client.request("git.clone", &params).await?;
    let finished = async {
        while let Some(notification) = notifications.recv().await {
            let Ok(progress) = serde_json::from_value::<GitProgress>(notification.params) else {
                continue;
            };
            if progress.request_id == request_id && progress.done {
                return progress.error;
            }
        }
        Some("the daemon stops".to_owned())
    };
    let late = |_| Failure::new(Reason::CloneFailed, "the clone takes too long");
    if let Some(error) = tokio::time::timeout(CLONE_LIMIT, finished).await.map_err(late)? {
        return Err(Failure::new(Reason::CloneFailed, error));
    }
    let params = AddRootParams { path: receipt.path, request_id: None };
    let added: IndexReceipt = client.request("index.addRoot", &params).await?;
    Ok(added.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_repository_are_equal() {
        let all = [
            "https://example.com/org/app.git",
            "https://example.com/org/app",
            "git@example.com:org/app.git",
            "ssh://git@EXAMPLE.com/org/app/",
        ];
        for (a, b) in all.iter().zip(all.iter().skip(1)) {
            assert!(same_repository(a, b), "{a} {b}");
        }
        assert!(!same_repository("https://example.com/org/app", "https://example.com/org/other"));
        assert!(!same_repository("", ""));
    }

    #[test]
    fn prefixes_end_at_a_part() {
        let org = "https://example.com/org";
        assert!(is_below("https://example.com/org/app", org));
        assert!(is_below("https://example.com/org/app", "https://example.com/org/"));
        for bad in ["https://example.com/organised/app", "https://example.com/org/../x/app"] {
            assert!(!is_below(bad, org), "{bad}");
        }
        assert!(!is_below("https://example.com.other/org", "https://example.com"));
        assert!(!is_below("anything", ""));
    }
}
