//! Instructions for agents in files: `AGENTS.md`, or `CLAUDE.md` in a folder without one. They are
//! used only if the user trusts the folder. Those of the root and of the folders around it are in
//! the system text; those of a folder below the root follow when a file there is first read or
//! changed.

use std::{collections::BTreeSet, path::PathBuf};

use cairn_engine::{PromptTier, TurnContext};
use cairn_protocol::{
    content::SpanParams,
    error::Failure,
    model::{Message, Part, ToolUse},
};
use serde_json::Value;

/// Names of the files, the first one that exists in a folder is used.
pub const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md"];
/// Name of the stored text.
pub const ARTIFACT: &str = "prompt-instructions";
/// Most lines of a file that are read.
const MAX_LINES: u32 = 4000;
/// Most folders below the root whose files are looked for in one step.
const MAX_FOLDERS: usize = 32;
/// Start of a message with the instructions of a folder below the root.
const NOTE: &str = "Instructions from ";

/// Returns the instructions that hold for the complete turn, outermost first. The text is stored
/// with the session until the conversation is condensed.
///
/// # Errors
/// An error of the log.
pub async fn text(
    cx: &TurnContext,
    user: Option<(PathBuf, String)>,
    outer: Vec<(PathBuf, String)>,
) -> Result<String, Failure> {
    let mut all: Vec<(PathBuf, String)> = user.into_iter().collect();
    // A text that was stored while the folder was trusted is not used any longer.
    if cx.root_path().is_some() && !cx.is_trusted() {
        return Ok(joined(&all, None, cx.tier()));
    }
    let trusted = |(path, _): &(PathBuf, String)| {
        path.parent().is_some_and(|folder| cx.engine().is_trusted(folder))
    };
    all.extend(outer.into_iter().filter(trusted));
    let make = async { Ok(joined(&all, in_folder(cx, "").await, cx.tier())) };
    cx.artifact_or_create(ARTIFACT, make).await
}

/// Returns the name of the root's own file if it is not used because the folder is not trusted.
pub async fn ignored(cx: &TurnContext) -> Option<String> {
    if cx.is_trusted() {
        return None;
    }
    in_folder(cx, "").await.map(|(name, _)| name)
}

/// Joins the texts. The nearest file has the first claim on the bytes, because it wins.
fn joined(outer: &[(PathBuf, String)], own: Option<(String, String)>, tier: PromptTier) -> String {
    let named = outer.iter().map(|(path, text)| (path.display().to_string(), text.clone()));
    let all: Vec<(String, String)> = named.chain(own).collect();
    let mut room = tier.instruction_bytes();
    let mut blocks: Vec<String> = Vec::new();
    for (name, text) in all.iter().rev() {
        if text.trim().is_empty() {
            continue;
        }
        blocks.push(format!("## {name}\n\n{}", bounded(text, room)));
        room = room.saturating_sub(text.len());
    }
    if blocks.is_empty() {
        return String::new();
    }
    blocks.reverse();
    let head = "These files of the user and the project hold for this work; where they contradict \
        each other, the later one wins, and what the user asks wins over all of them.";
    format!("{head}\n\n{}", blocks.join("\n\n"))
}

/// Returns at most `bytes` of a text, in complete lines, with a line that gives the omitted part.
fn bounded(text: &str, bytes: usize) -> String {
    let text = text.trim_end();
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').unwrap_or(0);
    let part = text[..end].trim_end();
    format!("{part}\n[{} of {} bytes are given: the limit is reached]", part.len(), text.len())
}

/// Returns the path and the text of the instructions in a folder of the root; `""` is the root
/// itself.
async fn in_folder(cx: &TurnContext, folder: &str) -> Option<(String, String)> {
    let root = cx.root_path()?.to_string_lossy().into_owned();
    for name in NAMES {
        let path = if folder.is_empty() { (*name).to_owned() } else { format!("{folder}/{name}") };
        let params = SpanParams {
            path: path.clone(),
            root: Some(root.clone()),
            start: 1,
            end: MAX_LINES,
            context: None,
            content_hash: None,
        };
        if let Ok(span) = cx.engine().get_span(params).await {
            return Some((path, span.text));
        }
    }
    None
}

/// Sends the instructions of the folders of the files that `calls` named, unless `messages` has
/// them already.
///
/// # Errors
/// An error of the log.
pub async fn give_nested(
    cx: &TurnContext,
    calls: &[ToolUse],
    messages: &[Message],
) -> Result<(), Failure> {
    if !cx.is_trusted() {
        return Ok(());
    }
    let Some(root) = cx.root_path() else { return Ok(()) };
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for path in calls.iter().flat_map(|call| paths(&call.name, &call.arguments)) {
        let inner = PathBuf::from(&path);
        let inner = inner.strip_prefix(root).unwrap_or(&inner);
        let parents = inner.ancestors().skip(1).filter_map(|p| p.to_str());
        folders.extend(parents.filter(|p| is_below(p)).map(str::to_owned));
    }
    // A set of paths is sorted: the outer folder comes before those in it.
    for folder in folders.iter().take(MAX_FOLDERS) {
        let head = |name: &str| format!("{NOTE}{folder}/{name}, ");
        if NAMES.iter().any(|name| has_note(messages, &head(name))) {
            continue;
        }
        let Some((path, text)) = in_folder(cx, folder).await else { continue };
        let text = bounded(&text, cx.tier().instruction_bytes() / 2);
        if !text.is_empty() {
            let note = format!("{NOTE}{path}, for the files below {folder}/:\n\n{text}");
            cx.note(&note).await?;
        }
    }
    Ok(())
}

fn is_below(folder: &str) -> bool {
    let path = std::path::Path::new(folder);
    !folder.is_empty()
        && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn has_note(messages: &[Message], head: &str) -> bool {
    messages.iter().any(|message| match message {
        Message::User { parts } => {
            parts.iter().any(|p| matches!(p, Part::Text { text } if text.starts_with(head)))
        }
        _ => false,
    })
}

/// Returns the files that a call reads or changes.
fn paths(tool: &str, arguments: &Value) -> Vec<String> {
    let path = |value: &Value| Some(value.get("path")?.as_str()?.to_owned());
    match tool {
        "read_file" | "write_file" | "edit_file" | "delete_file" => {
            path(arguments).into_iter().collect()
        }
        "fs" => {
            let ops = arguments.get("ops").and_then(Value::as_array).into_iter().flatten();
            path(arguments).into_iter().chain(ops.filter_map(path)).collect()
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_file_has_priority_and_cut_is_reported() {
        let outer = vec![(PathBuf::from("/home/me/AGENTS.md"), "be brief\n".repeat(300))];
        let own = Some(("AGENTS.md".to_owned(), "run the tests\n".repeat(100)));
        let text = joined(&outer, own, PromptTier::Small);
        assert!(text.matches("run the tests").count() == 100, "{text}");
        assert!(text.find("/home/me/AGENTS.md").unwrap() < text.find("## AGENTS.md").unwrap());
        assert!(text.contains("of 2699 bytes are given: the limit is reached]"), "{text}");
        assert!(text.len() < PromptTier::Small.instruction_bytes() + 400);
        assert_eq!(joined(&[], None, PromptTier::Large), "");
    }
}
