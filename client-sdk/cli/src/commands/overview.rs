//! `cairn` without a command: the program, the project around the current folder, and the commands
//! to try next.

use std::{fmt::Write as _, time::Duration};

use cairn_protocol::index::{AddRootParams, IndexState, IndexStatusParams, RootStatus};
use console::style;

use crate::{
    app::{self, App},
    exit::{Failure, OK},
    render::output::{self, bytes, number, plain},
    scope::{self, Stage},
    version,
};

/// Time to wait for the index of a new root; its state is shown in any case.
const INDEX_WAIT: Duration = Duration::from_secs(2);
/// Number of languages that are listed.
const MAX_LANGUAGES: usize = 5;

const NEXT: &[(&str, &str)] = &[
    (
        "cairn explore .",
        "what this repository is, where to begin reading, how to build and test it",
    ),
    ("cairn search \"...\"", "passages by words and meaning"),
    ("cairn grep -i PATTERN", "lines by regular expression"),
    ("cairn chat", "a model of yours works in the folder, under your rules"),
    (
        "cairn mcp install",
        "the same tools for an agent that speaks MCP; 'cairn --help' lists the rest",
    ),
];

pub async fn run(app: &App<'_>) -> Result<u8, Failure> {
    let root = project(app).await?;
    if app.globals.json {
        output::json(&serde_json::json!({"version": version::OWN, "root": root}))?;
        return Ok(OK);
    }
    output::print(&text(root.as_ref()))?;
    Ok(OK)
}

/// Returns the root around the current folder. A git working tree is declared if necessary; any
/// other folder is left alone, and no daemon is started for it.
async fn project(app: &App<'_>) -> Result<Option<RootStatus>, Failure> {
    if app.is_remote() {
        let (client, here) = app.connect_here().await?;
        let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
        return Ok(scope::enclosing_root(&roots, &here).cloned());
    }
    let here = scope::canonical(&app::current_dir()?)?;
    let Some(top) = here.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Ok(None);
    };
    let client = app.connect().await?;
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    let path = match scope::enclosing_root(&roots, &here) {
        Some(root) => root.path.clone(),
        None => {
            let path = scope::utf8(top)?;
            client.index_add_root(&AddRootParams { path, request_id: None }).await?.path
        }
    };
    scope::wait(app, &client, &path, Stage::Complete, INDEX_WAIT).await.map(Some)
}

fn text(root: Option<&RootStatus>) -> String {
    let title = format!("Cairn {}", version::OWN);
    let mut out = format!(
        "{}: search, exploration and guarded tools for coding agents, on this machine\n",
        style(title).bold()
    );
    let mut row = |name: &str, value: &str| {
        let _infallible = writeln!(out, "  {}  {value}", style(format!("{name:<9}")).dim());
    };
    match root {
        None => row("project", "none here: go to a git repository, or name a folder to explore"),
        Some(root) => {
            row("project", &plain(&root.path));
            row("languages", &languages(root));
            let size = format!(
                "{} files, {} of text, {} definitions",
                number(root.files),
                bytes(root.bytes),
                number(root.symbols)
            );
            row("size", &size);
            row("index", &index_state(root));
        }
    }
    for (command, purpose) in NEXT {
        let _infallible = writeln!(out, "{}  {purpose}", style(format!("{command:<22}")).cyan());
    }
    out
}

fn languages(root: &RootStatus) -> String {
    let mut all: Vec<(&String, &u64)> = root.languages.iter().collect();
    all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let named: Vec<String> = all
        .iter()
        .take(MAX_LANGUAGES)
        .map(|(name, files)| format!("{} {}", plain(name), number(**files)))
        .collect();
    match (named.is_empty(), all.len() > MAX_LANGUAGES) {
        (true, _) if root.state != IndexState::Ready => "being counted".to_owned(),
        (true, _) => "none known".to_owned(),
        (false, true) => format!("{}, … (files)", named.join(", ")),
        (false, false) => format!("{} (files)", named.join(", ")),
    }
}

fn index_state(root: &RootStatus) -> String {
    match root.state {
        IndexState::Ready => "ready".to_owned(),
        IndexState::Enriching => "ready for words; vectors and definitions follow".to_owned(),
        _ => scope::progress_line(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overview_has_ten_lines_and_no_control_characters() {
        let mut root: RootStatus = serde_json::from_value(serde_json::json!({
            "root": "root_0", "path": "/r\u{1b}[31m", "state": "ready", "complete": true, "clock": 1,
            "files": 1243, "bytes": 9_000_000, "chunks": 10, "vectors": 10, "symbolFiles": 9,
            "symbols": 14_201, "pending": 0, "skipped": {}, "languages": {"rust": 631, "markdown": 62},
            "watch": "watching", "embedder": "builtin"
        }))
        .unwrap();
        let rendered = console::strip_ansi_codes(&text(Some(&root))).into_owned();
        assert_eq!(rendered.lines().count(), 10, "{rendered}");
        assert!(rendered.contains("rust 631, markdown 62 (files)") && !rendered.contains('\u{1b}'));
        root.languages.clear();
        assert!(text(Some(&root)).contains("none known"));
        root.state = IndexState::Enriching;
        assert!(text(Some(&root)).contains("being counted"));
        assert!(text(None).contains("none here"));
    }
}
