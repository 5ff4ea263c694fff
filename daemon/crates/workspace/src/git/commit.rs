//! Commits of some files, without running anything that a repository names: no hooks, no filters,
//! no signing program.

use std::{
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use git2::{ErrorCode, Index, IndexEntry, IndexTime, Oid, Repository, RepositoryState, Signature};

use super::{git_failed, open, pipes};
use crate::{MAX_WRITTEN_BYTES, root::Root};

/// Time limit of a commit.
const LIMIT: Duration = Duration::from_secs(10);
/// Most files of one commit.
const MAX_FILES: usize = 1000;
/// Author and committer if the user's git has none configured.
pub(super) const DEFAULT_AUTHOR: (&str, &str) = ("cairn", "cairn@localhost");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Commit id, 40 hex digits.
    pub id: String,
    /// Committed paths, relative to the root.
    pub paths: Vec<String>,
}

/// Current state of a file.
struct Now {
    path: String,
    /// Its bytes and true if it is executable; `None` when it does not exist.
    content: Option<(Vec<u8>, bool)>,
}

/// Commits the current state of these files of the repository at the root, on top of its head.
/// Other changed or staged files are not affected. `None` when there is no repository, or none of
/// these files differs from its head, or git ignores them.
///
/// # Errors
/// `git_failed` for a git folder with links in it, during a merge or rebase, or when git cannot
/// write; `too_large`; errors of reading the files.
pub fn git_commit(
    root: &Root,
    paths: &[String],
    message: &str,
) -> Result<Option<Committed>, Failure> {
    if paths.len() > MAX_FILES {
        let text = format!("{} files are to be committed; the limit is {MAX_FILES}", paths.len());
        return Err(Failure::new(Reason::TooLarge, text));
    }
    let Some(repo_paths) = open::find(root, ".")? else { return Ok(None) };
    if repo_paths.top != root.path {
        return Ok(None);
    }
    if let Some(foreign) = repo_paths.git_dirs.iter().find_map(|dir| pipes::find_foreign(dir)) {
        let text = format!(
            "'{}' is not a regular file or folder of the repository: nothing is written there",
            foreign.display()
        );
        return Err(Failure::new(Reason::GitFailed, text));
    }
    let read = |path: &String| -> Result<Now, Failure> {
        let content = root.read_file(path, MAX_WRITTEN_BYTES)?;
        let executable = || {
            let mode = root.open_file(path).ok()?.metadata().ok()?.permissions().mode();
            Some(mode & 0o100 != 0)
        };
        Ok(Now {
            path: path.clone(),
            content: content.map(|bytes| (bytes, executable() == Some(true))),
        })
    };
    let now = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let message = message.to_owned();
    let (deadline, what) = (Instant::now() + LIMIT, "the commit");
    let repository = repo_paths.clone();
    let mut reading: open::Reading<_> = open::on_thread(&repository, move |tx| {
        let result = match open::open(&repo_paths) {
            Ok(Some(repo)) => commit(&repo, &now, &message),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        let _result = tx.send(result);
    })?;
    match reading.next(deadline) {
        Ok(result) => result.map_err(|e| git_failed(what, &e)),
        Err(_) => {
            Err(Failure::new(Reason::GitFailed, format!("{what}: no answer within {LIMIT:?}")))
        }
    }
}

fn commit(
    repo: &Repository,
    files: &[Now],
    message: &str,
) -> Result<Option<Committed>, git2::Error> {
    if repo.state() != RepositoryState::Clean {
        return Err(git2::Error::from_str(
            "a merge, rebase or similar operation is in progress: finish it first",
        ));
    }
    let parent = match repo.head() {
        Ok(head) => Some(head.peel_to_commit()?),
        Err(e) if matches!(e.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => None,
        Err(e) => return Err(e),
    };
    // A separate index, so that the user's staged changes are not committed too.
    let mut tree = Index::new()?;
    if let Some(parent) = &parent {
        tree.read_tree(&parent.tree()?)?;
    }
    let mut own = repo.index()?;
    let mut paths = Vec::new();
    for file in files {
        let known = tree.get_path(file.path.as_ref(), 0);
        match &file.content {
            Some((bytes, executable)) => {
                if known.is_none() && repo.is_path_ignored(&file.path)? {
                    continue;
                }
                let (id, mode) =
                    (repo.blob(bytes)?, if *executable { 0o100_755 } else { 0o100_644 });
                if known.is_some_and(|e| e.id == id && e.mode == mode) {
                    continue;
                }
                tree.add(&entry(&file.path, id, mode))?;
                own.add(&entry(&file.path, id, mode))?;
            }
            None if known.is_some() => {
                tree.remove_path(file.path.as_ref())?;
                own.remove_path(file.path.as_ref())?;
            }
            None => continue,
        }
        paths.push(file.path.clone());
    }
    if paths.is_empty() {
        return Ok(None);
    }
    let tree = repo.find_tree(tree.write_tree_to(repo)?)?;
    let who = repo.signature().or_else(|_| Signature::now(DEFAULT_AUTHOR.0, DEFAULT_AUTHOR.1))?;
    let parents: Vec<_> = parent.iter().collect();
    let id = repo.commit(Some("HEAD"), &who, &who, message, &tree, &parents)?;
    own.write()?;
    Ok(Some(Committed { id: id.to_string(), paths }))
}

/// Returns an entry whose times are zero: git re-examines such a file, which costs it one read.
fn entry(path: &str, id: Oid, mode: u32) -> IndexEntry {
    let never = || IndexTime::new(0, 0);
    IndexEntry {
        ctime: never(),
        mtime: never(),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::Roots;

    /// Returns the output of the user's own git.
    fn git(at: &std::path::Path, args: &[&str]) -> String {
        let out = Command::new("git")
            .args(["-c", "user.name=u", "-c", "user.email=u@x", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    #[test]
    fn only_named_paths_are_committed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        let root = Roots::new(vec![]).declare(&at).unwrap();
        let commit = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|p| (*p).to_owned()).collect();
            git_commit(&root, &paths, "[cairn] test")
        };
        assert_eq!(commit(&["a"]).unwrap(), None, "no repository");
        git(&at, &["init", "-q", "-b", "main"]);
        for (name, text) in
            [("a", "1\n"), ("b", "1\n"), ("gone", "1\n"), (".gitignore", "ignored\n")]
        {
            fs::write(at.join(name), text).unwrap();
        }
        let first = commit(&["a", "b", "gone", ".gitignore"]).unwrap().unwrap();
        assert_eq!(git(&at, &["rev-parse", "HEAD"]).trim(), first.id);
        assert_eq!(git(&at, &["status", "--porcelain"]), "");
        // A hook whose run would be noticed.
        let hook = at.join(".git/hooks/pre-commit");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, "#!/bin/sh\ntouch hooked\nexit 1\n").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in
            [("a", "2\n"), ("b", "staged\n"), ("ignored", "x"), ("new.sh", "x"), ("other", "x")]
        {
            fs::write(at.join(name), text).unwrap();
        }
        fs::set_permissions(at.join("new.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(at.join("gone")).unwrap();
        git(&at, &["add", "b"]);
        let second = commit(&["a", "gone", "ignored", "new.sh", "never"]).unwrap().unwrap();
        assert_eq!(second.paths, ["a", "gone", "new.sh"]);
        assert_eq!(
            git(&at, &["show", "--format=%s", "--name-status", "HEAD"]),
            "[cairn] test\n\nM\ta\nD\tgone\nA\tnew.sh\n"
        );
        assert_eq!(
            git(&at, &["status", "--porcelain"]),
            "M  b\n?? other\n",
            "the user's own work is as it was"
        );
        assert!(git(&at, &["ls-tree", "HEAD", "new.sh"]).starts_with("100755"));
        assert!(!at.join("hooked").exists());
        assert_eq!(commit(&["a"]).unwrap(), None, "nothing changed since");
        fs::write(at.join(".git/MERGE_HEAD"), format!("{}\n", first.id)).unwrap();
        fs::write(at.join("a"), "3\n").unwrap();
        assert!(commit(&["a"]).unwrap_err().message.contains("in progress"));
    }
}
