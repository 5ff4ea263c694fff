//! Which root a command is about: the declared one around the current folder, or a new one.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cairn_client_sdk::Client;
use cairn_protocol::index::{AddRootParams, IndexState, IndexStatusParams, RootStatus};

use crate::{app::App, exit::Failure, output::number, progress::Progress};

/// How long a search waits until the text of a new root is indexed.
const LEXICAL_WAIT: Duration = Duration::from_secs(300);
/// Pauses between looks at an index, first and longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(250));

/// What an index is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Its text can be searched.
    Lexical,
    /// Everything is up to date.
    Complete,
}

/// How a command says where it works.
#[derive(Debug, Clone, Copy)]
pub enum Where<'a> {
    /// In this root: an id, or a folder that is one or is to be one.
    Root(&'a str),
    /// In whatever project this place is part of.
    Around(&'a Path),
}

/// The root that a command works in, declared and with its text indexed.
pub async fn root(app: &App<'_>, client: &Client, at: Where<'_>) -> Result<RootStatus, Failure> {
    let place = match at {
        Where::Root(id) if id.starts_with("root_") => {
            let params = IndexStatusParams { root: Some(id.to_owned()) };
            let found = client.index_status(&params).await?.roots.into_iter().next();
            let missing = || Failure::told("root_not_found", format!("there is no root {id}"));
            return ready(app, client, found.ok_or_else(missing)?).await;
        }
        Where::Root(path) => app.canonical(Path::new(path))?,
        Where::Around(path) => app.canonical(path)?,
    };
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    if let Some(found) = around(&roots, &place) {
        return ready(app, client, found.clone()).await;
    }
    let folder = match at {
        Where::Root(_) if app.is_remote() => place,
        Where::Around(_) if app.is_remote() => return Err(unclear(&roots)),
        Where::Root(_) if place.is_dir() => place,
        _ => project_of(&place, app.env.home.as_deref())?,
    };
    app.remark(&format!("{} is not indexed yet: declaring it as a root", folder.display()));
    let path = utf8(&folder)?;
    let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
    wait(app, client, &receipt.path, Until::Lexical, LEXICAL_WAIT).await
}

/// It is not clear which root of another machine is meant.
pub fn unclear(roots: &[RootStatus]) -> Failure {
    let all: Vec<String> = roots.iter().map(|r| crate::output::plain(&r.path)).collect();
    match all.as_slice() {
        [] => Failure::told("no_roots", "that machine has no root".into())
            .hint("declare one there with 'cairn index add DIR'"),
        all => Failure::told("root_ambiguous", format!("that machine has the roots {}", all.join(", ")))
            .hint("name one"),
    }
}

/// Waits for the first indexing of a declared root.
async fn ready(app: &App<'_>, client: &Client, root: RootStatus) -> Result<RootStatus, Failure> {
    if root.state != IndexState::Indexing || root.files > 0 {
        return Ok(root);
    }
    wait(app, client, &root.path, Until::Lexical, LEXICAL_WAIT).await
}

/// Waits until the index of `root` is as far as wanted, or the time is over; the answer is its state then.
pub async fn wait(
    app: &App<'_>,
    client: &Client,
    root: &str,
    until: Until,
    within: Duration,
) -> Result<RootStatus, Failure> {
    let progress = Progress::new(!app.globals.quiet);
    let deadline = Instant::now() + within;
    let mut pause = LOOK.0;
    loop {
        let params = IndexStatusParams { root: Some(root.to_owned()) };
        let status = client.index_status(&params).await?.roots.into_iter().next();
        let status =
            status.ok_or_else(|| Failure::told("root_not_found", format!("there is no root {root}")))?;
        if status.state == IndexState::Failed {
            let why = status.error.clone().unwrap_or_else(|| "the reason is not known".into());
            return Err(Failure::told("index_failed", format!("{root} cannot be indexed: {why}")));
        }
        let enough = match until {
            Until::Lexical => status.state != IndexState::Indexing,
            Until::Complete => status.complete && status.state == IndexState::Ready,
        };
        if enough || Instant::now() >= deadline {
            return Ok(status);
        }
        progress.say(line(&status));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK.1);
    }
}

/// One line about an index at work.
pub fn line(status: &RootStatus) -> String {
    let figures = format!("{} files, {} chunks", number(status.files), number(status.chunks));
    match status.state {
        IndexState::Indexing if status.pending > 0 => {
            format!("indexing: {figures}, {} waiting", number(status.pending))
        }
        IndexState::Indexing => format!("indexing: {figures}"),
        IndexState::Enriching => {
            let share = |part: u64, whole: u64| (part.min(whole) * 100).checked_div(whole).unwrap_or(100);
            let vectors = share(status.vectors, status.chunks);
            format!(
                "enriching: {figures}; vectors {vectors} %, symbols {} %",
                share(status.symbol_files, status.files)
            )
        }
        IndexState::Ready => format!("ready: {figures}"),
        IndexState::Failed => {
            format!("failed: {}", status.error.as_deref().unwrap_or("the reason is not known"))
        }
    }
}

/// The innermost root around a place.
pub fn around<'r>(roots: &'r [RootStatus], place: &Path) -> Option<&'r RootStatus> {
    roots.iter().filter(|r| place.starts_with(&r.path)).max_by_key(|r| r.path.len())
}

/// The top of the git working tree around a place, or the folder itself.
pub fn project_of(place: &Path, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = if place.is_dir() { place } else { place.parent().unwrap_or(place) };
    let top = folder.ancestors().find(|dir| dir.join(".git").exists());
    let chosen = top.unwrap_or(folder);
    if chosen.parent().is_none() || (top.is_none() && home.is_some_and(|h| h == chosen)) {
        let text = format!("{} is no project, and indexing all of it would take long", chosen.display());
        return Err(
            Failure::usage(text).hint("go to a project's folder, or declare this one with 'cairn index add'")
        );
    }
    Ok(chosen.to_path_buf())
}

/// A path as the daemon knows it.
pub fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|e| Failure::path(path, &e))
}

/// A path for the wire.
pub fn utf8(path: &Path) -> Result<String, Failure> {
    let bad = || Failure::usage(format!("{} is not UTF-8, which the protocol needs", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(bad)
}

/// A path of an answer as it is seen from the current folder.
pub fn shown(root: &str, path: &str, here: &Path) -> String {
    let whole = Path::new(root).join(path);
    let short = whole.strip_prefix(here).unwrap_or(&whole);
    crate::output::plain(&short.to_string_lossy())
}

/// A place inside a root as a path prefix; `None` for the root itself.
pub fn prefix(root: &str, place: &Path) -> Result<Option<String>, Failure> {
    match place.strip_prefix(root) {
        Ok(rest) if !rest.as_os_str().is_empty() => utf8(rest).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_and_paths() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("repo");
        let inner = top.join("src/deep");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("a.rs"), "").unwrap();
        // A folder without git stands for itself, unless it is the home folder or the whole disk.
        assert_eq!(project_of(&inner.join("a.rs"), None).unwrap(), inner);
        assert!(project_of(&inner, Some(&inner)).is_err());
        assert!(project_of(Path::new("/"), None).is_err());
        // A worktree has a file of that name.
        std::fs::write(top.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(project_of(&inner.join("a.rs"), Some(&top)).unwrap(), top);

        for (path, here, want) in [
            ("src/a.rs", "/r", "src/a.rs"),
            ("src/a.rs", "/r/src", "a.rs"),
            ("src/a.rs", "/elsewhere", "/r/src/a.rs"),
            ("a\u{1b}.rs", "/r", "a\\u{1b}.rs"),
        ] {
            assert_eq!(shown("/r", path, Path::new(here)), want);
        }
        assert_eq!(prefix("/r", Path::new("/r")).unwrap(), None);
        assert_eq!(prefix("/r", Path::new("/r/src/x")).unwrap().as_deref(), Some("src/x"));
    }
}
