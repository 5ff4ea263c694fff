//! The user's texts for agents: `system_prompt.md`, `soul.json` and `user_profile.json` in the
//! context folder of the configuration.

use std::path::{Path, PathBuf};

use cairn_agent::prompt::{Sources, Texts, instructions};
use cairn_memory::Memory;
use serde_json::Value;

/// Maximum bytes read of one file.
const MAX_FILE: u64 = 256 * 1024;

/// Supplies the texts in `folder` and the vocabulary of the project's and the general entries, read
/// again for each turn. A missing file is empty; an unreadable one is logged.
pub fn sources(folder: Option<PathBuf>, memory: Memory) -> Sources {
    Sources::new(move |root, is_trusted| {
        let vocabulary = memory.project(root).vocabulary().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            String::new()
        });
        let outer_instructions = root.filter(|_| is_trusted).map(around).unwrap_or_default();
        let texts = folder.as_deref().map(texts).unwrap_or_default();
        Texts { vocabulary, outer_instructions, ..texts }
    })
}

/// Returns the instructions of the folders around a root, outermost first, up to the top of its
/// repository.
fn around(root: &Path) -> Vec<(PathBuf, String)> {
    if root.join(".git").exists() {
        return vec![];
    }
    let parents = || root.ancestors().skip(1);
    let Some(above) = parents().position(|folder| folder.join(".git").exists()) else {
        return vec![];
    };
    let mut all: Vec<_> = parents().take(above + 1).filter_map(instructions_in).collect();
    all.reverse();
    all
}

/// Returns the instructions of a folder: the first of the known files that is a plain file.
fn instructions_in(folder: &Path) -> Option<(PathBuf, String)> {
    let paths = instructions::NAMES.iter().map(|name| folder.join(name));
    let path = paths.into_iter().find(|p| p.symlink_metadata().is_ok_and(|m| m.is_file()))?;
    Some((path.clone(), read(&path)?))
}

fn texts(folder: &Path) -> Texts {
    Texts {
        base: read(&folder.join("system_prompt.md")),
        soul: read(&folder.join("soul.json")).map(|text| render_object(&text)).unwrap_or_default(),
        profile: read(&folder.join("user_profile.json"))
            .map(|text| render_object(&text))
            .unwrap_or_default(),
        instructions: folder.parent().map(|dir| dir.join("AGENTS.md")).and_then(|path| {
            let text = read(&path)?;
            Some((path, text))
        }),
        ..Texts::default()
    }
}

fn read(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    if meta.len() > MAX_FILE {
        tracing::warn!(path = %path.display(), "context file has more than {MAX_FILE} bytes and is ignored");
        return None;
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "context file cannot be read");
            None
        }
    }
}

/// Renders a JSON object as sorted lines `key: value`, so that equal files give equal bytes. Other
/// text is returned unchanged.
fn render_object(text: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    let line = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}: {text}"),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            format!(
                "{key}: {}",
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
            )
        }
        other => format!("{key}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_texts_and_missing_files_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(texts(dir.path()), Texts::default());
        std::fs::write(
            dir.path().join("soul.json"),
            r#"{"name": "C", "traits": ["calm", "exact"]}"#,
        )
        .unwrap();
        std::fs::write(dir.path().join("user_profile.json"), "not json").unwrap();
        let texts = texts(dir.path());
        assert_eq!(texts.soul, "name: C\ntraits: calm; exact");
        assert_eq!(texts.profile, "not json");
    }
}
