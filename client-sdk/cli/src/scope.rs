//! The root of a command: the declared one around the current folder, or a new one.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cairn_client_sdk::Client;
use cairn_protocol::index::{AddRootParams, IndexState, IndexStatusParams, RootStatus};

use crate::{
    app::App,
    exit::Failure,
    render::{output::number, progress::Progress},
};

/// Time limit for the lexical index of a new root before a search.
const LEXICAL_WAIT: Duration = Duration::from_secs(300);
/// Time limit for the definitions and vectors of a new root, and of one that changes, before a
/// search; after it the answer is partial and says so.
const NEW_ROOT_WAIT: Duration = Duration::from_secs(15);
const CHANGE_WAIT: Duration = Duration::from_secs(2);
/// Files from which a folder outside of git is indexed only after a question.
const MANY_FILES: usize = 5_000;
/// Interval of polling an index: first and longest.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(250));

/// The indexing stage to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The text can be searched.
    Lexical,
    /// Everything is up to date.
    Complete,
}

/// The location that a command refers to.
#[derive(Debug, Clone, Copy)]
pub enum Location<'a> {
    /// A root: an id, or a folder that is or becomes a root.
    Root(&'a str),
    /// The project around this location.
    Around(&'a Path),
}

/// Returns the root of a command, declared, and indexed up to `stage`. Stages after the text are
/// waited for within a short time limit.
pub async fn root(
    app: &App<'_>,
    client: &Client,
    at: Location<'_>,
    stage: Stage,
) -> Result<RootStatus, Failure> {
    let (root, limit) = declared(app, client, at).await?;
    let is_late = !root.complete || root.state != IndexState::Ready;
    if stage == Stage::Complete && is_late && root.state != IndexState::Failed {
        return wait(app, client, &root.path, stage, limit).await;
    }
    Ok(root)
}

/// Returns the root of a command with its text indexed, and the time limit for the rest.
async fn declared(
    app: &App<'_>,
    client: &Client,
    at: Location<'_>,
) -> Result<(RootStatus, Duration), Failure> {
    let location = match at {
        Location::Root(id) if id.starts_with("root_") => {
            let params = IndexStatusParams { root: Some(id.to_owned()) };
            let root = client.index_status(&params).await?.roots.into_iter().next();
            let missing =
                || Failure::with_reason("root_not_found", format!("there is no root {id}"));
            let root = wait_for_text(app, client, root.ok_or_else(missing)?).await?;
            return Ok((root, CHANGE_WAIT));
        }
        Location::Root(path) => app.canonical(Path::new(path))?,
        Location::Around(path) => app.canonical(path)?,
    };
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    if let Some(root) = enclosing_root(&roots, &location) {
        return Ok((wait_for_text(app, client, root.clone()).await?, CHANGE_WAIT));
    }
    let folder = match at {
        Location::Root(_) if app.is_remote() => location,
        Location::Around(_) if app.is_remote() => return Err(ambiguous_root(&roots)),
        Location::Root(_) if location.is_dir() => location,
        _ => project_root(&location, app.env.home.as_deref())?,
    };
    let path = declare(app, client, &folder).await?;
    let root = wait(app, client, &path, Stage::Lexical, LEXICAL_WAIT).await?;
    Ok((root, NEW_ROOT_WAIT))
}

/// Declares a folder as a root and returns its path. For a large folder outside of git the user is
/// prompted first.
///
/// # Errors
/// A usage failure for a large folder without a terminal, or after a no.
pub async fn declare(app: &App<'_>, client: &Client, folder: &Path) -> Result<String, Failure> {
    let is_large = !app.is_remote() && !folder.join(".git").exists() && has_many_files(folder);
    if is_large {
        let name = crate::render::output::plain(&folder.to_string_lossy());
        let text = format!("{name} is no git repository and has more than {MANY_FILES} files");
        let question = format!("{text}. Index it? [y/N] ");
        if !crate::confirm::is_possible() || !crate::confirm::prompt(&question)? {
            let hint = format!("'cairn index add {name}' indexes it");
            return Err(Failure::usage(format!("{text}, and was not indexed")).hint(hint));
        }
    }
    app.info(&format!("indexing {} for the first time", folder.display()));
    let params = AddRootParams { path: utf8(folder)?, request_id: None };
    Ok(client.index_add_root(&params).await?.path)
}

/// True if a folder has more files than are indexed without a question. Hidden ones are not
/// counted, since they are not indexed.
fn has_many_files(folder: &Path) -> bool {
    let mut folders = vec![folder.to_owned()];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().first() == Some(&b'.') {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => count += 1,
                _ => {}
            }
            if count > MANY_FILES {
                return true;
            }
        }
    }
    false
}

/// Builds the failure for an ambiguous root of another machine.
pub fn ambiguous_root(roots: &[RootStatus]) -> Failure {
    let all: Vec<String> = roots.iter().map(|r| crate::render::output::plain(&r.path)).collect();
    match all.as_slice() {
        [] => Failure::with_reason("no_roots", "that machine has no root".into())
            .hint("declare one there with 'cairn index add DIR'"),
        all => Failure::with_reason(
            "root_ambiguous",
            format!("that machine has the roots {}", all.join(", ")),
        )
        .hint("specify one"),
    }
}

/// Waits for the first indexing of a root.
async fn wait_for_text(
    app: &App<'_>,
    client: &Client,
    root: RootStatus,
) -> Result<RootStatus, Failure> {
    if root.state != IndexState::Indexing || root.files > 0 {
        return Ok(root);
    }
    wait(app, client, &root.path, Stage::Lexical, LEXICAL_WAIT).await
}

/// Waits until the index of `root` reaches a stage, or the time is over, and returns its state.
pub async fn wait(
    app: &App<'_>,
    client: &Client,
    root: &str,
    until: Stage,
    within: Duration,
) -> Result<RootStatus, Failure> {
    let progress = Progress::new(!app.globals.quiet);
    let deadline = Instant::now() + within;
    let mut pause = POLL_INTERVAL.0;
    loop {
        let params = IndexStatusParams { root: Some(root.to_owned()) };
        let status = client.index_status(&params).await?.roots.into_iter().next();
        let status = status.ok_or_else(|| {
            Failure::with_reason("root_not_found", format!("there is no root {root}"))
        })?;
        if status.state == IndexState::Failed {
            let why = status.error.clone().unwrap_or_else(|| "the reason is unknown".into());
            return Err(Failure::with_reason(
                "index_failed",
                format!("{root} cannot be indexed: {why}"),
            ));
        }
        let enough = match until {
            Stage::Lexical => status.state != IndexState::Indexing,
            Stage::Complete => status.complete && status.state == IndexState::Ready,
        };
        if enough || Instant::now() >= deadline {
            return Ok(status);
        }
        progress.set_text(progress_line(&status));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(POLL_INTERVAL.1);
    }
}

/// Describes a running index in one line.
pub fn progress_line(status: &RootStatus) -> String {
    let figures = format!("{} files, {} chunks", number(status.files), number(status.chunks));
    match status.state {
        IndexState::Indexing if status.pending > 0 => {
            format!("indexing: {figures}, {} waiting", number(status.pending))
        }
        IndexState::Indexing => format!("indexing: {figures}"),
        IndexState::Enriching => {
            let share =
                |part: u64, total: u64| (part.min(total) * 100).checked_div(total).unwrap_or(100);
            let vectors = share(status.vectors, status.chunks);
            format!(
                "enriching: {figures}; vectors {vectors} %, symbols {} %",
                share(status.symbol_files, status.files)
            )
        }
        IndexState::Ready => format!("ready: {figures}"),
        IndexState::Failed => {
            format!("failed: {}", status.error.as_deref().unwrap_or("the reason is unknown"))
        }
    }
}

/// Returns the innermost root around a location.
pub fn enclosing_root<'r>(roots: &'r [RootStatus], location: &Path) -> Option<&'r RootStatus> {
    roots.iter().filter(|r| location.starts_with(&r.path)).max_by_key(|r| r.path.len())
}

/// Returns the folder of the project around the current folder, as a session there would have it:
/// its declared root, or the top of its repository. Nothing is declared.
///
/// # Errors
/// A usage failure for a folder that is not a project, and on another machine with several roots.
pub async fn project(app: &App<'_>, client: &Client) -> Result<String, Failure> {
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    if app.is_remote() {
        return match roots.as_slice() {
            [only] => Ok(only.path.clone()),
            roots => Err(ambiguous_root(roots)),
        };
    }
    let here = app.canonical(Path::new("."))?;
    if let Some(root) = enclosing_root(&roots, &here) {
        return Ok(root.path.clone());
    }
    utf8(&project_root(&here, app.env.home.as_deref())?)
}

/// Returns the top of the git working tree around a location, or the folder itself.
pub fn project_root(location: &Path, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = if location.is_dir() { location } else { location.parent().unwrap_or(location) };
    let top = folder.ancestors().find(|dir| dir.join(".git").exists());
    let chosen = top.unwrap_or(folder);
    if chosen.parent().is_none() || (top.is_none() && home.is_some_and(|h| h == chosen)) {
        let text = format!(
            "{} is not a project, and indexing all of it would take long",
            chosen.display()
        );
        return Err(Failure::usage(text)
            .hint("go to a project's folder, or declare this one with 'cairn index add'"));
    }
    Ok(chosen.to_path_buf())
}

/// Returns a path as the daemon knows it.
pub fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|e| Failure::path(path, &e))
}

/// Converts a path for the wire.
pub fn utf8(path: &Path) -> Result<String, Failure> {
    let bad =
        || Failure::usage(format!("{} is not UTF-8, which the protocol needs", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(bad)
}

/// Renders a path of an answer relative to the current folder.
pub fn relative_display(root: &str, path: &str, here: &Path) -> String {
    let absolute = Path::new(root).join(path);
    let short = absolute.strip_prefix(here).unwrap_or(&absolute);
    crate::render::output::plain(&short.to_string_lossy())
}

/// Returns a location inside a root as a path prefix; `None` for the root itself.
pub fn prefix(root: &str, location: &Path) -> Result<Option<String>, Failure> {
    match location.strip_prefix(root) {
        Ok(rest) if !rest.as_os_str().is_empty() => utf8(rest).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_and_paths_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("repo");
        let inner = top.join("src/deep");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("a.rs"), "").unwrap();
        // A folder without git is its own project, except the home folder and the root of the file
        // system.
        assert_eq!(project_root(&inner.join("a.rs"), None).unwrap(), inner);
        assert!(project_root(&inner, Some(&inner)).is_err());
        assert!(project_root(Path::new("/"), None).is_err());
        assert!(!has_many_files(dir.path()));
        for n in 0..=MANY_FILES {
            std::fs::write(inner.join(format!("{n}.txt")), "").unwrap();
        }
        assert!(has_many_files(dir.path()));
        // In a worktree `.git` is a file.
        std::fs::write(top.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(project_root(&inner.join("a.rs"), Some(&top)).unwrap(), top);

        for (path, here, expected) in [
            ("src/a.rs", "/r", "src/a.rs"),
            ("src/a.rs", "/r/src", "a.rs"),
            ("src/a.rs", "/elsewhere", "/r/src/a.rs"),
            ("a\u{1b}.rs", "/r", "a\\u{1b}.rs"),
        ] {
            assert_eq!(relative_display("/r", path, Path::new(here)), expected);
        }
        assert_eq!(prefix("/r", Path::new("/r")).unwrap(), None);
        assert_eq!(prefix("/r", Path::new("/r/src/x")).unwrap().as_deref(), Some("src/x"));
    }
}
