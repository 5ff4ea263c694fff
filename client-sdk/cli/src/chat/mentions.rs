//! `@path` in a message: the file's content, or the folder's listing, goes to the model with it.
//! Files are read by the daemon, whose rules decide what may be read.

use std::path::{Component, Path};

use cairn_client_sdk::{Client, ClientError};
use cairn_protocol::content::{EntryKind, ListDirParams, MAX_SPAN_LINES, SpanParams};

use crate::{
    exit::Failure,
    render::output::{self, plain},
};

/// Maximum bytes of an attached file; a larger one is attached by its name.
const MAX_FILE: usize = 100 * 1024;
/// Maximum mentions that are resolved in one message.
const MAX_MENTIONS: usize = 20;
/// Maximum entries of an attached listing.
const MAX_ENTRIES: usize = 200;
/// Characters that end a sentence, and are not part of a path at its end.
const PUNCTUATION: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"'];

/// The attachments of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Context for the model, with the path of each attachment.
    pub context: String,
    /// Lines that describe the attachments to the user.
    pub notes: Vec<String>,
    /// Mentioned images that may be read.
    pub images: Vec<String>,
}

/// Lists the paths that a text mentions.
pub fn mentioned(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let opens = c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ','));
        before = c;
        if !opens {
            continue;
        }
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        if !path.is_empty() && !paths.iter().any(|p| p == path) && paths.len() < MAX_MENTIONS {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Reads what a text mentions below `folder`, a declared root of the daemon. A word that is no
/// path there stays plain text. `max` is the number of bytes that the attachments may have.
///
/// # Errors
/// A path outside the folder, or one that rules hide.
pub async fn attach(
    client: &Client,
    folder: &Path,
    text: &str,
    max: usize,
) -> Result<Attached, Failure> {
    let mut attached = Attached::default();
    for path in mentioned(text) {
        let trimmed = path.trim_end_matches(PUNCTUATION);
        if attach_one(client, folder, &path, max, &mut attached).await? || trimmed == path {
            continue;
        }
        if !trimmed.is_empty() {
            attach_one(client, folder, trimmed, max, &mut attached).await?;
        }
    }
    Ok(attached)
}

/// Attaches a path; false if there is no such path.
async fn attach_one(
    client: &Client,
    folder: &Path,
    path: &str,
    max: usize,
    attached: &mut Attached,
) -> Result<bool, Failure> {
    let Some(relative) = inside(folder, path) else {
        return Err(Failure::refused(format!(
            "@{}: only files inside {} can be attached",
            plain(path),
            folder.display()
        ))
        .hint("copy the file into the folder, or write the path without @"));
    };
    let root = folder.to_string_lossy().into_owned();
    let params = SpanParams {
        path: relative.clone(),
        root: Some(root.clone()),
        start: 1,
        end: MAX_SPAN_LINES,
        context: None,
        content_hash: None,
    };
    let name = plain(path);
    let span = match client.content_get_span(&params).await {
        Ok(span) => span,
        Err(error) => match error.reason() {
            Some("path_not_found") => return Ok(false),
            Some("not_a_file") => return listing(client, root, relative, attached).await,
            _ => return Err(refusal(&name, error)),
        },
    };
    if super::images::is_image_name(path) {
        attached.images.push(relative);
        return Ok(true);
    }
    let room = MAX_FILE.min(max).saturating_sub(attached.context.len());
    let is_binary = span.text.contains('\0');
    let is_partial = span.truncated || span.total_lines.is_none_or(|n| n > span.end_line);
    if is_binary || is_partial || span.text.len() > room {
        let why = if is_binary { "it is not text" } else { "it is too large" };
        attached.context.push_str(&format!(
            "<file path=\"{name}\">\nThe user mentions this file. Its content is not attached, \
             because {why}; read the parts that matter with a tool.\n</file>\n"
        ));
        attached.notes.push(format!("{name} is attached by its name, because {why}"));
        return Ok(true);
    }
    let lines = span.text.lines().count();
    attached.context.push_str(&format!("<file path=\"{name}\">\n{}\n</file>\n", span.text));
    let unit = if lines == 1 { "line" } else { "lines" };
    attached.notes.push(format!("attached {name} ({} {unit})", output::number(lines as u64)));
    Ok(true)
}

async fn listing(
    client: &Client,
    root: String,
    path: String,
    attached: &mut Attached,
) -> Result<bool, Failure> {
    let name = plain(&path);
    let params = ListDirParams { path, depth: 1, root: Some(root) };
    let listing = client.fs_list_dir(&params).await.map_err(|e| refusal(&name, e))?;
    let entries: Vec<String> = listing
        .entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|e| {
            let slash = if e.kind == EntryKind::Dir { "/" } else { "" };
            format!("{}{slash}", e.path)
        })
        .collect();
    let omitted = listing.entries.len() - entries.len();
    let more = if omitted > 0 { format!("\n… {omitted} more entries") } else { String::new() };
    attached
        .context
        .push_str(&format!("<folder path=\"{name}\">\n{}{more}\n</folder>\n", entries.join("\n")));
    attached.notes.push(format!("attached the listing of {name} ({} entries)", entries.len()));
    Ok(true)
}

fn refusal(name: &str, error: ClientError) -> Failure {
    let reason = error.reason().unwrap_or("failed").to_owned();
    Failure::with_reason(&reason, format!("@{name} cannot be attached: {error}"))
        .hint("write the path without @ to mention it by name only")
}

/// Returns a path relative to the folder; `None` if it leads out of it.
fn inside(folder: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    let relative = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let mut depth = 0_i32;
    for part in relative.components() {
        match part {
            Component::Normal(name) if depth == 0 && name == "~" => return None,
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    let text = relative.to_str()?;
    Some(if text.is_empty() { ".".to_owned() } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_begin_at_words() {
        for (text, expected) in [
            ("see @src/a.rs and (@b.txt)", vec!["src/a.rs", "b.txt)"]),
            ("mail ada@example.org", vec![]),
            ("@\"two words.md\" @x @x", vec!["two words.md", "x"]),
            ("@ alone, then @", vec![]),
        ] {
            assert_eq!(mentioned(text), expected, "{text}");
        }
        let many: String = (0..50).map(|n| format!("@f{n} ")).collect();
        assert_eq!(mentioned(&many).len(), MAX_MENTIONS);
    }

    #[test]
    fn paths_that_lead_out_are_not_inside() {
        let folder = Path::new("/work/repo");
        for (path, expected) in [
            ("src/a.rs", Some("src/a.rs")),
            ("src/../b", Some("src/../b")),
            ("/work/repo/src", Some("src")),
            ("/work/repo", Some(".")),
            ("../x", None),
            ("src/../../x", None),
            ("/etc/passwd", None),
            ("~/x", None),
        ] {
            assert_eq!(inside(folder, path).as_deref(), expected, "{path}");
        }
    }
}
