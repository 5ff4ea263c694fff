//! Recent commits and the paths they changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_protocol::{
    error::{Failure, Reason},
    git::GitCommit,
};
use git2::{Commit, DiffOptions, Repository, Sort};

use super::{git_failed, open};
use crate::root::Root;

/// Time limit of one log; the commits read by then are returned.
pub const LOG_LIMIT: Duration = Duration::from_secs(3);

const MAX_COMMITS: usize = 2_000;
const MAX_PATHS: usize = 200;
const MAX_TEXT: usize = 300;

/// Most bytes of texts and paths of the commits that are retained for the next log of a root.
const MAX_RETAINED: usize = 4 * 1024 * 1024;

/// The commits of the last log of a root: the diff of each is most of its cost, and a commit does
/// not change.
#[derive(Debug, Default)]
pub struct KnownCommits(Mutex<Arc<Known>>);

#[derive(Debug, Default)]
struct Known {
    commits: HashMap<String, GitCommit>,
    /// Ids of a complete log, newest first: the history of its first id, as long as the clone is
    /// not shallow.
    order: Vec<String>,
}

impl Known {
    /// The newest `n` commits of a head, if they are known.
    fn log(&self, head: &str, n: usize) -> Option<Vec<&GitCommit>> {
        let is_known = self.order.first().is_some_and(|first| first == head);
        if !is_known || self.order.len() < n {
            return None;
        }
        self.order.iter().take(n).map(|id| self.commits.get(id)).collect()
    }
}

impl KnownCommits {
    fn all(&self) -> Arc<Known> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores the commits of a log, unless those of a longer one are stored.
    fn keep(&self, log: Known) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.commits.len() >= known.commits.len() {
            *known = Arc::new(log);
        }
    }
}

/// Returns the newest `n` commits (at most 2,000) of the repository at the root, newest first, with
/// the paths each changed against its parent; fewer when [`LOG_LIMIT`] expires first. Empty for a
/// folder without git and for a repository without commits. Blocks up to [`LOG_LIMIT`].
///
/// # Errors
/// `GitFailed` for a repository that cannot be read.
pub fn git_log(root: &Root, n: usize) -> Result<Vec<GitCommit>, Failure> {
    let Some(repo_paths) = open::find(root, ".")? else { return Ok(vec![]) };
    let deadline = Instant::now() + LOG_LIMIT;
    let (is_closed, top) = (root.closed(), repo_paths.top.clone());
    let repository = repo_paths.clone();
    let known = root.commits().all();
    let mut reading = open::on_thread(&repository, move |tx| {
        let result = (|| match open::open(&repo_paths)? {
            Some(repo) => {
                let mut give = |commit| tx.send(Ok(commit)).is_ok();
                read(&repo, &known, n.min(MAX_COMMITS), deadline, &mut give)
            }
            None => Ok(()),
        })();
        if let Err(e) = result {
            let _ = tx.send(Err(e));
        }
    })?;
    let mut commits = Vec::new();
    let mut new_log = NewLog { log: Known::default(), bytes: 0, root };
    loop {
        match reading.next(deadline) {
            Ok(Ok(mut commit)) => {
                new_log.add(&commit);
                commit.paths.retain(|path| !is_closed(&top.join(path)));
                commits.push(commit);
            }
            // A shallow or damaged history stops at its last readable commit.
            Ok(Err(e)) if commits.is_empty() => return Err(git_failed("git log", &e)),
            Ok(Err(_)) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Ok(commits);
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if commits.is_empty() => {
                return Err(Failure::new(
                    Reason::GitFailed,
                    format!("git log: no answer within {LOG_LIMIT:?}"),
                ));
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Ok(commits),
        }
    }
}

/// The commits to keep, which replace the known ones when the log ends.
struct NewLog<'a> {
    log: Known,
    bytes: usize,
    root: &'a Root,
}

impl NewLog<'_> {
    fn add(&mut self, commit: &GitCommit) {
        let texts = [&commit.id, &commit.subject, &commit.author];
        let bytes =
            texts.into_iter().chain(&commit.paths).map(|text| text.len() + 24).sum::<usize>();
        self.log.order.push(commit.id.clone());
        if self.bytes + bytes <= MAX_RETAINED {
            self.bytes += bytes;
            self.log.commits.insert(commit.id.clone(), commit.clone());
        }
    }
}

impl Drop for NewLog<'_> {
    fn drop(&mut self) {
        self.root.commits().keep(std::mem::take(&mut self.log));
    }
}

fn read(
    repo: &Repository,
    known: &Known,
    n: usize,
    deadline: Instant,
    give: &mut dyn FnMut(GitCommit) -> bool,
) -> Result<(), git2::Error> {
    let Ok(head) = repo.head() else { return Ok(()) };
    // Commits of a shallow clone get their parents, and so their changes, when it is deepened.
    let is_shallow = repo.is_shallow();
    if let Some(head) = head.target().filter(|_| !is_shallow)
        && let Some(log) = known.log(&head.to_string(), n)
    {
        for commit in log {
            if !give(commit.clone()) {
                break;
            }
        }
        return Ok(());
    }
    let mut walk = repo.revwalk()?;
    walk.set_sorting(Sort::TIME)?;
    walk.push_head()?;
    for id in walk.take(n) {
        let id = id?;
        let one = match known.commits.get(&id.to_string()).filter(|_| !is_shallow) {
            Some(commit) => commit.clone(),
            None => describe(repo, &repo.find_commit(id)?),
        };
        if !give(one) || Instant::now() >= deadline {
            break;
        }
    }
    Ok(())
}

/// Returns a commit as the wire has it.
pub(super) fn describe(repo: &Repository, commit: &Commit<'_>) -> GitCommit {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(MAX_TEXT).collect();
    GitCommit {
        id: commit.id().to_string(),
        subject: text(commit.summary_bytes().unwrap_or_default()),
        author: text(commit.author().name_bytes()),
        time: commit.time().seconds(),
        paths: changed_paths(repo, commit).unwrap_or_default(),
    }
}

fn changed_paths(repo: &Repository, commit: &Commit<'_>) -> Result<Vec<String>, git2::Error> {
    if commit.parent_count() > 1 {
        return Ok(vec![]);
    }
    // A shallow clone lacks the parent of its last commit: the changes of that commit are unknown.
    let parent = match commit.parent_count() {
        0 => None,
        _ => Some(commit.parent(0)?.tree()?),
    };
    let mut options = DiffOptions::new();
    options.ignore_submodules(true).skip_binary_check(true);
    let diff =
        repo.diff_tree_to_tree(parent.as_ref(), Some(&commit.tree()?), Some(&mut options))?;
    let paths = diff.deltas().filter_map(|d| {
        d.new_file().path_bytes().or(d.old_file().path_bytes()).map(<[u8]>::to_vec)
    });
    Ok(paths.take(MAX_PATHS).map(|p| String::from_utf8_lossy(&p).into_owned()).collect())
}
