//! Cloning: one implementation for the method and the tool.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cairn_protocol::{
    error::{Failure, Reason},
    git::{CloneParams, CloneReceipt, CloneResult, GitProgress},
};
use cairn_workspace::git;
use tokio_util::sync::CancellationToken;

use crate::{Engine, Notice, roots::blocking};

/// Where the clone of `params` goes: one folder name under the workspaces folder.
///
/// # Errors
/// `bad_url`; `invalid_params` for a `dest` that is more than a name.
pub fn destination(workspaces: &Path, params: &CloneParams) -> Result<PathBuf, Failure> {
    git::check_url(&params.remote_url)?;
    let name = params.dest.clone().unwrap_or_else(|| git::slug(&params.remote_url));
    let plain = !name.is_empty()
        && name.len() <= 128
        && !name.starts_with(['.', '-'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if !plain {
        let text = format!("dest '{}' is not a plain folder name", name.escape_default());
        return Err(Failure::new(Reason::InvalidParams, text));
    }
    Ok(workspaces.join(name))
}

/// Clones off the async threads; dropping the token's owner or cancelling it kills git.
pub async fn clone(
    params: CloneParams,
    dest: PathBuf,
    cancel: CancellationToken,
    progress: impl Fn(&str, f64) + Send + Sync + 'static,
) -> Result<CloneResult, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let watch = tokio::spawn(async move {
        cancel.cancelled().await;
        flag.store(true, Ordering::SeqCst);
    });
    let outcome = blocking(move || {
        git::git_clone(&params.remote_url, params.branch.as_deref(), &dest, &progress, &stop)
    })
    .await;
    watch.abort();
    outcome
}

impl Engine {
    /// Clones in the background; the end comes as a [`Notice::Git`] with `done`. A remote that was cloned before
    /// is reused.
    ///
    /// # Errors
    /// `bad_url`, `invalid_params`.
    pub fn git_clone(&self, params: CloneParams) -> Result<CloneReceipt, Failure> {
        self.need_open()?;
        let dest = destination(&self.inner.workspaces, &params)?;
        let request_id = params.request_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let receipt = CloneReceipt { request_id: request_id.clone(), path: dest.to_string_lossy().into_owned() };
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            let news = engine.inner.notices.clone();
            let id = request_id.clone();
            let tell = move |stage: &str, percent: f64| {
                let (request_id, stage) = (id.clone(), stage.to_owned());
                let progress = GitProgress { request_id, stage, percent, done: false, result: None, error: None };
                let _listeners = news.send(Notice::Git(progress));
            };
            let remote = params.remote_url.clone();
            let outcome = clone(params, dest, engine.inner.shutdown.child_token(), tell).await;
            let outcome = outcome.and_then(|result| engine.remember_clone(&remote, result));
            let (result, error) = match outcome {
                Ok(result) => (Some(result), None),
                Err(failure) => (None, Some(failure.message)),
            };
            let stage = "done".to_owned();
            let last = GitProgress { request_id, stage, percent: 100.0, done: true, result, error };
            let _listeners = engine.inner.notices.send(Notice::Git(last));
        });
        Ok(receipt)
    }

    fn remember_clone(&self, remote: &str, result: CloneResult) -> Result<CloneResult, Failure> {
        let remote = git::without_credentials(remote);
        self.inner.state.change(|state| {
            state.remotes.insert(result.path.clone(), remote);
        })?;
        Ok(result)
    }
}
