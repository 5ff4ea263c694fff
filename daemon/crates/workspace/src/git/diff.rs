//! Changes in a work tree, as a diff.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use git2::{DiffOptions, Patch, Repository};

use super::{git_failed, open};
use crate::{
    WorkspaceError,
    guard::{IGNORE_FILES, rules_are_readable},
    root::{Root, display_text},
};

/// Time limit of one diff; the files compared by then are returned, marked as truncated.
pub const DIFF_LIMIT: Duration = Duration::from_secs(5);
/// Largest file that is compared line by line, in bytes; a larger one counts as binary.
const MAX_COMPARED: i64 = 8 * 1024 * 1024;
/// Ignore files, and the file that configures comparisons.
const RULES: [&str; 4] = [IGNORE_FILES[0], IGNORE_FILES[1], IGNORE_FILES[2], ".gitattributes"];

/// The compared states and files.
#[derive(Debug, Clone, Default)]
pub struct DiffRequest {
    /// True for the staged changes against the last commit; else those of the work tree against
    /// the index.
    pub staged: bool,
    /// Only these files and folders, relative to the root; all of the repository when empty.
    pub parts: Vec<String>,
    /// Most bytes of the diff.
    pub max_bytes: usize,
}

/// A diff of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitDiff {
    /// True if there is a repository.
    pub is_repository: bool,
    /// A unified diff with three lines of context; paths are relative to the root.
    pub diff: String,
    /// The files in it, relative to the root.
    pub files: Vec<String>,
    /// True if the size or the time limit truncated it.
    pub truncated: bool,
}

/// Returns the changes in the repository that contains the file or folder at `rel`, found as
/// [`super::git_status`] does. Untracked files and submodules are left out; no program runs,
/// whatever the repository's configuration is. Blocks up to [`DIFF_LIMIT`].
///
/// # Errors
/// `GitFailed` for a repository that cannot be read, and errors of [`crate::list_dir`] for `rel`.
pub fn git_diff(root: &Root, rel: &str, request: &DiffRequest) -> Result<GitDiff, Failure> {
    // A deleted file is a change too: then its folder leads to the repository.
    let folder = match root.open_dir(rel) {
        Err(e) if e.is_not_found() || matches!(e, WorkspaceError::NotADirectory { .. }) => {
            rel.trim_end_matches('/').rsplit_once('/').map_or(".", |(folder, _)| folder)
        }
        _ => rel,
    };
    let Some(repo_paths) = open::find(root, folder)? else { return Ok(GitDiff::default()) };
    let what = format!("git diff of '{}'", display_text(rel));
    let is_closed = root.closed();
    let parts = inside(&root.path, &repo_paths.top, &request.parts);
    let Some(parts) = parts else {
        return Ok(GitDiff { is_repository: true, ..GitDiff::default() });
    };
    let root_prefix = repo_paths
        .top
        .strip_prefix(&root.path)
        .unwrap_or(Path::new(""))
        .to_string_lossy()
        .into_owned();
    let (staged, most) = (request.staged, request.max_bytes);
    let deadline = Instant::now() + DIFF_LIMIT;
    let repository = repo_paths.clone();
    let mut reading = open::on_thread(&repository, move |tx| {
        let work = || -> Result<(), git2::Error> {
            let Some(repo) = open::open(&repo_paths)? else { return Ok(()) };
            let _result = tx.send(Ok(Piece::Repository));
            if !rules_are_readable(&repo_paths.top, &RULES) {
                return Ok(());
            }
            let closed = |path: &Path| is_closed(&repo_paths.top.join(path));
            read(&repo, staged, &parts, &root_prefix, most, &closed, tx)
        };
        if let Err(error) = work() {
            let _result = tx.send(Err(error));
        }
    })?;
    let mut answer = GitDiff { truncated: true, ..GitDiff::default() };
    loop {
        match reading.next(deadline) {
            Ok(Ok(Piece::Repository)) => answer.is_repository = true,
            Ok(Ok(Piece::File(path, patch))) => {
                answer.files.push(path);
                answer.diff.push_str(&patch);
                if answer.diff.len() > most {
                    cut(&mut answer.diff, most);
                    return Ok(answer);
                }
            }
            Ok(Ok(Piece::End)) => answer.truncated = false,
            Ok(Err(error)) => return Err(git_failed(&what, &error)),
            // The thread has finished, or the time is over.
            Err(_) if answer.is_repository => return Ok(answer),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(GitDiff::default()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                return Err(Failure::new(
                    Reason::GitFailed,
                    format!("{what}: no answer within {DIFF_LIMIT:?}"),
                ));
            }
        }
    }
}

/// A message of the reading thread.
enum Piece {
    Repository,
    File(String, String),
    End,
}

/// Returns the parts relative to the repository; `None` when it contains none of them.
fn inside(root: &Path, top: &Path, parts: &[String]) -> Option<Vec<PathBuf>> {
    let mut specs = Vec::new();
    for part in parts {
        let plain: PathBuf = Path::new(part)
            .components()
            .filter(|c| !matches!(c, std::path::Component::CurDir))
            .collect();
        let path = root.join(plain);
        if top.starts_with(&path) {
            return Some(vec![]);
        }
        specs.extend(path.strip_prefix(top).map(Path::to_path_buf));
    }
    (parts.is_empty() || !specs.is_empty()).then_some(specs)
}

fn read(
    repo: &Repository,
    staged: bool,
    parts: &[PathBuf],
    root_prefix: &str,
    most: usize,
    closed: &dyn Fn(&Path) -> bool,
    tx: &Sender<Result<Piece, git2::Error>>,
) -> Result<(), git2::Error> {
    let lead = |side: &str| {
        if root_prefix.is_empty() { side.to_owned() } else { format!("{side}/{root_prefix}") }
    };
    let mut options = DiffOptions::new();
    options
        .ignore_submodules(true)
        .disable_pathspec_match(true)
        .update_index(false)
        .max_size(MAX_COMPARED)
        .old_prefix(lead("a"))
        .new_prefix(lead("b"));
    parts.iter().for_each(|part| {
        options.pathspec(part);
    });
    let diff = if staged {
        let head = repo.head().ok().map(|head| head.peel_to_tree()).transpose()?;
        repo.diff_tree_to_index(head.as_ref(), None, Some(&mut options))?
    } else {
        repo.diff_index_to_workdir(None, Some(&mut options))?
    };
    let mut bytes = 0;
    for at in 0..diff.deltas().len() {
        let delta = diff.get_delta(at);
        let path = delta.as_ref().and_then(|d| d.new_file().path().or(d.old_file().path()));
        let Some(path) = path.filter(|path| !closed(path)).map(Path::to_path_buf) else { continue };
        let Some(mut patch) = Patch::from_diff(&diff, at)? else { continue };
        let text = String::from_utf8_lossy(&patch.to_buf()?).into_owned();
        bytes += text.len();
        let path = Path::new(root_prefix).join(path).to_string_lossy().into_owned();
        if tx.send(Ok(Piece::File(path, text))).is_err() || bytes > most {
            return Ok(());
        }
    }
    let _result = tx.send(Ok(Piece::End));
    Ok(())
}

fn cut(text: &mut String, most: usize) {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // Only complete lines.
    text.truncate(text[..end].rfind('\n').map_or(0, |at| at + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_relative_to_repository() {
        let some = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|p| (*p).to_owned()).collect();
            inside(Path::new("/r"), Path::new("/r/repo"), &parts)
        };
        assert_eq!(some(&[]), Some(vec![]));
        assert_eq!(some(&["repo/src", "other"]), Some(vec!["src".into()]));
        assert_eq!(some(&["./repo"]), Some(vec![]));
        assert_eq!(some(&["."]), Some(vec![]));
        assert_eq!(some(&["other"]), None);
    }

    #[test]
    fn truncation_ends_at_line_boundary() {
        let mut text = "one\ntwö\nthree\n".to_owned();
        cut(&mut text, 7);
        assert_eq!(text, "one\n");
    }
}
