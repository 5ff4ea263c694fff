//! The user's texts for agents: `system_prompt.md`, `soul.json` and `user_profile.json` in the
//! context folder of the configuration.

use std::path::{Path, PathBuf};

use cairn_agent::prompt::{Sources, Texts};
use cairn_memory::Store;
use serde_json::Value;

/// Maximum bytes read of one file.
const MAX_FILE: u64 = 256 * 1024;

/// Supplies the texts in `folder` and the vocabulary of the knowledge store, read again for each
/// turn. A missing file is empty; an unreadable one is logged.
pub fn sources(folder: Option<PathBuf>, memory: Store) -> Sources {
    Sources::new(move || {
        let vocabulary = memory.vocabulary().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            String::new()
        });
        Texts { vocabulary, ..folder.as_deref().map(texts).unwrap_or_default() }
    })
}

fn texts(folder: &Path) -> Texts {
    Texts {
        base: read(&folder.join("system_prompt.md")),
        soul: read(&folder.join("soul.json")).map(|text| render_object(&text)).unwrap_or_default(),
        profile: read(&folder.join("user_profile.json"))
            .map(|text| render_object(&text))
            .unwrap_or_default(),
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
