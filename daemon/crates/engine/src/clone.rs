//! Cloning: one implementation for the method and the tool.

use std::path::{Path, PathBuf};

use cairn_protocol::{
    error::Failure,
    git::{CloneParams, CloneReceipt, CloneResult, GitProgress},
};
use cairn_workspace::git::{self, CloneRequest};
use tokio_util::sync::CancellationToken;

use crate::{Engine, Notice, roots::blocking};

/// Where the clone of `params` goes: one folder name under the workspaces folder.
///
/// # Errors
/// `bad_url`; `invalid_params` for a `dest` that is more than a name.
pub fn destination(workspaces: &Path, params: &CloneParams) -> Result<PathBuf, Failure> {
    Ok(workspaces.join(git::folder_name(&params.remote_url, params.dest.as_deref())?))
}

/// Clones off the async threads; cancelling the token kills git.
pub async fn clone(
    params: CloneParams,
    dest: PathBuf,
    cancel: CancellationToken,
    progress: impl Fn(&str, f64) + Send + 'static,
) -> Result<CloneResult, Failure> {
    let request =
        CloneRequest { url: params.remote_url, branch: params.branch, dest, limit: git::CLONE_LIMIT };
    blocking(move || {
        git::git_clone(&request, &mut |stage, percent| progress(stage, percent), &|| cancel.is_cancelled())
    })
    .await
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
        let receipt =
            CloneReceipt { request_id: request_id.clone(), path: dest.to_string_lossy().into_owned() };
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            let news = engine.inner.notices.clone();
            let id = request_id.clone();
            let tell = move |stage: &str, percent: f64| {
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
                let _listeners = news.send(Notice::Git(progress));
            };
            let remote = params.remote_url.clone();
            let outcome = clone(params, dest, engine.inner.shutdown.child_token(), tell).await;
            let outcome = outcome.and_then(|result| engine.remember_clone(&remote, result));
            let (result, error, reason) = match outcome {
                Ok(result) => (Some(result), None, None),
                Err(failure) => (None, Some(failure.message), Some(failure.reason.as_str().to_owned())),
            };
            let stage = "done".to_owned();
            let last = GitProgress { request_id, stage, percent: 100.0, done: true, result, error, reason };
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
