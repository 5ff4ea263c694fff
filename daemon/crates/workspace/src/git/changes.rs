//! Changes between a revision and the work tree.

use std::{
    path::Path,
    sync::mpsc::{RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    git::{GitChanges, GitCommit, GitFileChange},
};
use git2::{
    Commit, Delta, Diff, DiffDelta, DiffFindOptions, DiffOptions, ErrorCode, Patch, Repository,
    Sort,
};

use super::{git_failed, log, open};
use crate::{
    guard::{IGNORE_FILES, rules_are_readable},
    root::{Root, display_text},
};

/// Time limit of one report; the part known by then is returned, marked as truncated.
pub const CHANGES_LIMIT: Duration = Duration::from_secs(10);
/// Part of the time limit that commits may use: the files matter more.
const COMMITS_LIMIT: Duration = Duration::from_secs(4);
const MAX_COMMITS: usize = 1_000;
const MAX_FILES: usize = 5_000;
/// Largest file that is compared line by line, in bytes; a larger one counts as binary.
const MAX_COMPARED: i64 = 8 * 1024 * 1024;
/// Most added and deleted files that are compared with each other to find renamed ones.
const RENAME_LIMIT: usize = 400;
const MAX_REVISION: usize = 200;
/// Ignore files, and the file that configures comparisons.
const RULES: [&str; 4] = [IGNORE_FILES[0], IGNORE_FILES[1], IGNORE_FILES[2], ".gitattributes"];

/// Checks the form of a revision: the name or hash of a commit with suffixes such as `~2`,
/// `^{commit}` and `@{upstream}`. Ranges, paths in commits and searches of messages are rejected.
///
/// # Errors
/// `revision_not_found`.
pub fn check_revision(revision: &str) -> Result<(), Failure> {
    let problem = match revision {
        "" => "is empty",
        text if text.len() > MAX_REVISION => "is longer than 200 bytes",
        text if text.starts_with('-') => "begins with '-'",
        text if text.chars().any(|c| c.is_control() || c.is_whitespace()) => "has spaces",
        text if text.contains("..") => "is a range: name its start alone",
        text if text.contains(':') || text.contains("{/") => "is not the name of a commit",
        _ => return Ok(()),
    };
    let text = format!("revision '{}' {problem}", display_text(revision));
    Err(Failure::new(Reason::RevisionNotFound, text))
}

/// Returns the changes between a revision and the work tree of the repository at the root:
/// commits, and files with their numbers of lines, untracked files included and submodules left
/// out. Blocks up to [`CHANGES_LIMIT`].
///
/// # Errors
/// `revision_not_found` for an unknown revision, one that [`check_revision`] rejects, and a folder
/// without git; `git_failed` for a repository that cannot be read.
pub fn git_changes(root: &Root, revision: &str) -> Result<GitChanges, Failure> {
    check_revision(revision)?;
    let quoted = display_text(revision);
    let no_repository = || {
        let folder = display_text(&root.path.to_string_lossy());
        let text = format!(
            "'{folder}' is not the top folder of a git repository, so it has no revision '{quoted}'"
        );
        Failure::new(Reason::RevisionNotFound, text)
    };
    let Some(repo_paths) = open::find(root, ".")? else { return Err(no_repository()) };
    let is_closed = root.closed();
    let deadline = Instant::now() + CHANGES_LIMIT;
    let repository = repo_paths.clone();
    let name = revision.to_owned();
    let mut reading = open::on_thread(&repository, move |tx| {
        let work = || -> Result<(), git2::Error> {
            let Some(repo) = open::open(&repo_paths)? else { return Ok(()) };
            let base = match resolve(&repo, &name) {
                Ok(base) => base,
                Err(error) => {
                    let _receiver_gone = tx.send(Ok(Piece::Unknown(error)));
                    return Ok(());
                }
            };
            let closed = |path: &Path| is_closed(&repo_paths.top.join(path));
            let has_rules = rules_are_readable(&repo_paths.top, &RULES);
            read(&repo, &base, has_rules, &closed, tx)
        };
        if let Err(error) = work() {
            let _receiver_gone = tx.send(Err(error));
        }
    })?;
    let mut answer = GitChanges { truncated: true, ..GitChanges::default() };
    loop {
        match reading.next(deadline) {
            Ok(Ok(Piece::Base(base, ahead, behind))) => {
                answer.base = base;
                answer.ahead = ahead;
                answer.behind = behind;
            }
            Ok(Ok(Piece::Commit(commit))) => answer.commits.push(commit),
            Ok(Ok(Piece::File(file))) => answer.files.push(file),
            Ok(Ok(Piece::End(is_complete))) => answer.truncated = !is_complete,
            Ok(Ok(Piece::Unknown(error))) => return Err(unknown(&quoted, &error)),
            Ok(Err(error)) => {
                return Err(git_failed(&format!("git changes since '{quoted}'"), &error));
            }
            // The thread has finished, or the time is over.
            Err(_) if !answer.base.is_empty() => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => return Err(no_repository()),
            Err(RecvTimeoutError::Timeout) => {
                let text = format!("git changes since '{quoted}': no answer in {CHANGES_LIMIT:?}");
                return Err(Failure::new(Reason::GitFailed, text));
            }
        }
    }
}

fn unknown(quoted: &str, error: &git2::Error) -> Failure {
    let text = match error.code() {
        ErrorCode::Ambiguous => {
            format!("revision '{quoted}' is ambiguous: name it with more characters")
        }
        ErrorCode::Peel | ErrorCode::InvalidSpec
            if error.class() != git2::ErrorClass::Reference =>
        {
            format!("revision '{quoted}' is not a commit")
        }
        _ => format!("this repository has no revision '{quoted}'"),
    };
    Failure::new(Reason::RevisionNotFound, text)
}

fn resolve<'r>(repo: &'r Repository, revision: &str) -> Result<Commit<'r>, git2::Error> {
    repo.revparse_single(revision)?.peel_to_commit()
}

/// A message of the reading thread.
enum Piece {
    Unknown(git2::Error),
    /// Hash of the commit, and the numbers of commits since it and behind it.
    Base(String, u64, u64),
    Commit(GitCommit),
    File(GitFileChange),
    /// True if nothing was left out.
    End(bool),
}

fn read(
    repo: &Repository,
    base: &Commit<'_>,
    has_rules: bool,
    closed: &dyn Fn(&Path) -> bool,
    tx: &Sender<Result<Piece, git2::Error>>,
) -> Result<(), git2::Error> {
    let started = Instant::now();
    let head = repo.head()?.peel_to_commit()?;
    // A shallow history may lack the commits in between.
    let (ahead, behind) = repo.graph_ahead_behind(head.id(), base.id()).unwrap_or((0, 0));
    let (ahead, behind) = (ahead as u64, behind as u64);
    if tx.send(Ok(Piece::Base(base.id().to_string(), ahead, behind))).is_err() {
        return Ok(());
    }
    let mut walk = repo.revwalk()?;
    walk.set_sorting(Sort::TIME)?;
    walk.push(head.id())?;
    walk.hide(base.id())?;
    let mut commits = 0;
    let all = walk.take(MAX_COMMITS).map_while(Result::ok);
    for commit in all.map_while(|id| repo.find_commit(id).ok()) {
        let mut one = log::describe(repo, &commit);
        one.paths.retain(|path| !closed(Path::new(path)));
        commits += 1;
        if tx.send(Ok(Piece::Commit(one))).is_err() {
            return Ok(());
        }
        if started.elapsed() > COMMITS_LIMIT {
            break;
        }
    }
    if !has_rules {
        return Ok(());
    }
    let (diff, has_renames) = compare(repo, base)?;
    let is_complete = send_files(&diff, closed, tx)? && has_renames && commits == ahead;
    let _receiver_gone = tx.send(Ok(Piece::End(is_complete)));
    Ok(())
}

/// Returns the changed files; true if renamed ones were searched. A partial clone lacks the contents
/// for that.
fn compare<'r>(repo: &'r Repository, base: &Commit<'_>) -> Result<(Diff<'r>, bool), git2::Error> {
    let mut options = DiffOptions::new();
    options
        .ignore_submodules(true)
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .show_untracked_content(true)
        .include_typechange(true)
        .update_index(false)
        .context_lines(0)
        .max_size(MAX_COMPARED);
    let mut diff = repo.diff_tree_to_workdir_with_index(Some(&base.tree()?), Some(&mut options))?;
    let mut find = DiffFindOptions::new();
    find.renames(true).for_untracked(true).rename_limit(RENAME_LIMIT);
    let has_renames = diff.find_similar(Some(&mut find)).is_ok();
    Ok((diff, has_renames))
}

/// Sends the changed files; returns true if none was left out.
fn send_files(
    diff: &Diff<'_>,
    closed: &dyn Fn(&Path) -> bool,
    tx: &Sender<Result<Piece, git2::Error>>,
) -> Result<bool, git2::Error> {
    let mut files = 0;
    let mut is_complete = true;
    for (at, delta) in diff.deltas().enumerate() {
        let Some(mut file) = change(&delta, closed) else { continue };
        if files == MAX_FILES {
            return Ok(false);
        }
        files += 1;
        // The content of a conflict is that of the work tree, which has both sides.
        match Patch::from_diff(diff, at) {
            Ok(Some(patch)) => {
                let (_, added, deleted) = patch.line_stats()?;
                file.added_lines = added as u64;
                file.deleted_lines = deleted as u64;
            }
            Ok(None) => {}
            // A partial clone lacks the content.
            Err(_) => is_complete = false,
        }
        if tx.send(Ok(Piece::File(file))).is_err() {
            return Ok(false);
        }
    }
    Ok(is_complete)
}

fn change(delta: &DiffDelta<'_>, closed: &dyn Fn(&Path) -> bool) -> Option<GitFileChange> {
    let status = match delta.status() {
        Delta::Added | Delta::Untracked | Delta::Copied => "added",
        Delta::Deleted => "deleted",
        Delta::Modified => "modified",
        Delta::Renamed => "renamed",
        Delta::Typechange => "type_changed",
        Delta::Conflicted => "conflicted",
        Delta::Unmodified | Delta::Ignored | Delta::Unreadable => return None,
    };
    let path = delta.new_file().path().or(delta.old_file().path())?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let previous = delta.old_file().path().filter(|old| status == "renamed" && !closed(old));
    (!closed(path)).then(|| GitFileChange {
        path: text(path),
        previous_path: previous.map(text),
        status: status.to_owned(),
        added_lines: 0,
        deleted_lines: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_that_are_no_single_commit_are_rejected() {
        for revision in
            ["v1.0", "HEAD~3", "main@{upstream}", "a1b2c3d", "origin/x-y", "v1^{commit}"]
        {
            check_revision(revision).unwrap();
        }
        let long = "a".repeat(201);
        for revision in [
            "",
            "-x",
            "--output=/x",
            "a b",
            "a\nb",
            "a..b",
            "HEAD:x",
            ":/fix",
            "HEAD^{/fix}",
            &long,
        ] {
            let failure = check_revision(revision).unwrap_err();
            assert_eq!(failure.reason, Reason::RevisionNotFound, "{revision}");
        }
    }
}
