//! Git: state and history read with libgit2, which runs no program whatever a repository's
//! configuration is, and clones made by the user's own `git`, which alone has their credentials,
//! keys and proxies.

mod branches;
mod changes;
mod clone;
mod commit;
mod diff;
mod fetch;
mod log;
mod open;
mod pipes;
mod progress;
mod run;
mod source;
mod stamps;
mod status;
mod url;
mod worktree;

pub use branches::{
    BranchChange, Stash, branch_paths, files_at, git_branch, git_stashes, stash_pop,
    stash_pop_paths, stash_push, stash_push_paths,
};
pub use changes::{CHANGES_LIMIT, check_revision, git_changes};
pub use clone::{CLONE_LIMIT, CloneRequest, git_clone, remove_partials};
pub use commit::{Committed, git_commit};
pub use diff::{DIFF_LIMIT, DiffRequest, GitDiff, git_diff};
pub(crate) use log::KnownCommits;
pub use log::{LOG_LIMIT, git_log};
pub use open::is_worktree_of;
pub use source::CloneSource;
pub use stamps::{GitStamp, git_stamps};
pub use status::{MAX_CHANGES, STATUS_LIMIT, git_head, git_status};
pub use url::{
    Credentials, MAX_URL_BYTES, Remote, RemoteLocation, check_url, folder_name, without_credentials,
};
pub use worktree::{
    NewWorktree, WorktreeState, add_worktree, apply_patch_to, checked_branch, discard_worktree,
    has_branch, remove_worktree, worktree_patch, worktree_state,
};

use cairn_protocol::error::{Failure, Reason};

fn git_failed(what: &str, error: &git2::Error) -> Failure {
    let text = match error.code() {
        git2::ErrorCode::Owner => {
            "it belongs to another user; name it in git's safe.directory to trust it".to_owned()
        }
        _ => error.message().chars().take(300).collect(),
    };
    Failure::new(Reason::GitFailed, format!("{what}: {text}"))
}
