//! The project section of the prompt: its languages, its build and test commands, and a map of its
//! most important parts.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use cairn_engine::TurnContext;
use cairn_protocol::{
    content::{EntryKind, ListDirParams, SpanParams},
    error::Failure,
    map::MapParams,
};

use crate::explorer;

/// Most manifests that are read.
const MANIFESTS: usize = 8;
/// Most time for the index of a new root.
const INDEX_WAIT: Duration = Duration::from_secs(3);
/// Most lines of a manifest that are read.
const LINES: u32 = 400;

/// Returns a section on the project; empty without a root. It cannot fail the turn: unreadable
/// parts are omitted.
///
/// # Errors
/// None; the type is required by the function that stores the text.
pub async fn describe(cx: &TurnContext) -> Result<String, Failure> {
    let Some(path) = cx.root_path() else { return Ok(String::new()) };
    let root = path.to_string_lossy().into_owned();
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut text =
        format!("# Project\n\nThe workspace is {name} ({root}); paths are relative to it.\n");
    let contents = manifests(cx, &root).await;
    let commands = explorer::commands_of(&contents);
    for (what, list) in
        [("Build", &commands.build), ("Test", &commands.test), ("Run", &commands.run)]
    {
        if !list.is_empty() {
            let _ok = writeln!(text, "{what}: {}", list.join("; "));
        }
    }
    let kinds: Vec<String> = contents.iter().map(|(path, _)| path.clone()).collect();
    if !kinds.is_empty() {
        let _ok = writeln!(text, "Manifests: {}", kinds.join(", "));
    }
    text.push_str(&map(cx, &root).await);
    Ok(text)
}

async fn manifests(cx: &TurnContext, root: &str) -> Vec<(String, String)> {
    let list = ListDirParams { path: ".".into(), depth: 1, root: Some(root.to_owned()) };
    let Ok(listing) = cx.engine().list_dir(list).await else { return vec![] };
    let mut contents = Vec::new();
    let files = listing.entries.iter().filter(|e| e.kind == EntryKind::File);
    for entry in files.filter(|e| explorer::is_manifest(&e.path)).take(MANIFESTS) {
        let span = SpanParams {
            path: entry.path.clone(),
            root: Some(root.to_owned()),
            start: 1,
            end: LINES,
            context: None,
            content_hash: None,
        };
        if let Ok(span) = cx.engine().get_span(span).await {
            contents.push((entry.path.clone(), span.text));
        }
    }
    contents
}

/// Waits until the index of a new root is complete, so that the first session there has a map too.
async fn wait_for_index(cx: &TurnContext, root: &str) {
    let started = Instant::now();
    while started.elapsed() < INDEX_WAIT && !cx.cancel().is_cancelled() {
        let is_complete = cx
            .engine()
            .index_status(Some(root))
            .is_ok_and(|status| status.roots.iter().all(|index| index.complete));
        if is_complete {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the repository map, if the index is ready for it.
async fn map(cx: &TurnContext, root: &str) -> String {
    let tokens = cx.tier().map_tokens(cx.settings().repo_map_tokens);
    if tokens == 0 {
        return String::new();
    }
    wait_for_index(cx, root).await;
    let params = MapParams { roots: vec![root.to_owned()], budget: tokens, ..MapParams::default() };
    match cx.engine().map(params).await {
        Ok(answer) if !answer.text.trim().is_empty() => {
            format!("\nThe most referenced files and definitions:\n\n{}", answer.text)
        }
        _ => String::new(),
    }
}
