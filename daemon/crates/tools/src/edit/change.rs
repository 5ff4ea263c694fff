//! A change of one file, computed and not applied yet.

use cairn_harness::{Permit, diff};
use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{MAX_WRITTEN_BYTES, ResolvedPath};
use serde_json::{Value, json};

use crate::seen::Seen;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Current content; `None` when there is no file.
    pub before: Option<Vec<u8>>,
    /// New content; `None` when the file is deleted.
    pub after: Option<Vec<u8>>,
    replacements: Option<usize>,
}

/// Most nearly matching lines that an error shows.
const NEAR: usize = 3;

impl Change {
    /// Replaces the complete content.
    pub fn replace(path: &str, before: Option<Vec<u8>>, after: Vec<u8>) -> Self {
        Self { path: path.to_owned(), before, after: Some(after), replacements: None }
    }

    /// Creates a change that deletes the file.
    pub fn delete(path: &str, before: Vec<u8>) -> Self {
        Self { path: path.to_owned(), before: Some(before), after: None, replacements: None }
    }

    /// Replaces a piece of text. A file with CRLF line ends is matched by text with plain ones, and
    /// keeps its own.
    ///
    /// # Errors
    /// `invalid_params` that describes the file's text: no match, or several.
    pub fn edit(
        path: &str,
        before: Vec<u8>,
        old: &str,
        new: &str,
        all: bool,
    ) -> Result<Self, Failure> {
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        if old.is_empty() {
            return Err(bad(format!("old_text is empty; to write all of '{path}' use write_file")));
        }
        if old == new {
            return Err(bad("old_text and new_text are the same".into()));
        }
        let Ok(text) = std::str::from_utf8(&before) else {
            return Err(bad(format!("'{path}' is not UTF-8 text")));
        };
        let windows = text.contains("\r\n") && !old.contains('\r');
        let ends = |s: &str| if windows { s.replace('\n', "\r\n") } else { s.to_owned() };
        let (old, new) = (ends(old), ends(new));
        let count = text.matches(&old).count();
        match count {
            0 => return Err(bad(format!("old_text is not in '{path}'{}", nearly(text, &old)))),
            1 => {}
            _ if all => {}
            _ => {
                let lines: Vec<String> = text
                    .match_indices(&old)
                    .take(8)
                    .map(|(at, _)| (text[..at].matches('\n').count() + 1).to_string())
                    .collect();
                let text = format!(
                    "old_text occurs {count} times in '{path}' (lines {}): include more of the \
                    surrounding text, or set replace_all",
                    lines.join(", ")
                );
                return Err(bad(text));
            }
        }
        let grown = text.len() + count * new.len().saturating_sub(old.len());
        if grown as u64 > MAX_WRITTEN_BYTES {
            return Err(Failure::new(
                Reason::TooLarge,
                format!("'{path}' would have {grown} bytes"),
            ));
        }
        let after = text.replace(&old, &new).into_bytes();
        let (path, replacements) = (path.to_owned(), Some(count));
        Ok(Self { path, before: Some(before), after: Some(after), replacements })
    }

    /// Returns the number of replacements.
    pub fn replacements(&self) -> usize {
        self.replacements.unwrap_or(0)
    }

    /// Returns the change as a diff.
    pub fn diff(&self, limit: usize) -> String {
        diff::unified(&self.path, self.before.as_deref(), self.after.as_deref(), limit)
    }

    /// Returns the result of the tool.
    pub fn result(&self) -> Value {
        match &self.after {
            Some(after) => super::done(&self.path, after.len(), self.replacements),
            None => json!({"success": true, "path": self.path, "deleted": true}),
        }
    }

    /// Applies the change if the file is still unchanged.
    ///
    /// # Errors
    /// Errors of [`Permit::write_file`].
    pub fn apply(self, permit: &Permit, target: &ResolvedPath, seen: &Seen) -> Result<(), Failure> {
        match self.after {
            Some(after) => {
                permit.write_file(target, self.before, after.clone())?;
                // The writer knows the content.
                seen.note(permit.session(), target.real(), &after);
                Ok(())
            }
            None => permit.remove_file(target, self.before.unwrap_or_default()),
        }
    }
}

/// Describes a near match of a text: with other white space, or its first line alone.
fn nearly(text: &str, old: &str) -> String {
    let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    if !squeeze(old).is_empty() && squeeze(text).contains(&squeeze(old)) {
        return "; it occurs with different white space: copy it exactly as read_file shows it, without \
            the line numbers"
            .into();
    }
    let first = old.lines().map(str::trim).find(|l| l.len() > 3);
    let Some(first) = first else { return String::new() };
    let near: Vec<String> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(first))
        .take(NEAR)
        .map(|(at, line)| format!("{}|{}", at + 1, line.chars().take(120).collect::<String>()))
        .collect();
    if near.is_empty() {
        return "; its first line is not there either: read the file again".into();
    }
    format!("; its first line is there, but the following lines differ: {}", near.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        Change::edit("f", text.into(), old, new, all)
            .map(|c| String::from_utf8(c.after.unwrap()).unwrap())
            .map_err(|e| e.message)
    }

    #[test]
    fn edit_requires_exact_match_and_error_shows_nearest_lines() {
        assert_eq!(edit("a b a", "b", "c", false).unwrap(), "a c a");
        assert_eq!(edit("a b a", "a", "c", true).unwrap(), "c b c");
        assert!(
            edit("a\nb\na", "a", "c", false).unwrap_err().contains("2 times in 'f' (lines 1, 3)")
        );
        assert!(
            edit("fn  main() {", "fn main() {", "x", false)
                .unwrap_err()
                .contains("different white space")
        );
        assert!(
            edit("let x = 1;\nlet y = 2;", "let x = 1;\nlet z", "x", false)
                .unwrap_err()
                .contains("1|let x = 1;")
        );
        assert!(edit("abc", "nothing", "x", false).unwrap_err().contains("read the file again"));
        assert!(edit("abc", "", "x", false).is_err() && edit("abc", "b", "b", false).is_err());
    }

    #[test]
    fn edit_preserves_line_endings() {
        assert_eq!(
            edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false).unwrap(),
            "x\r\ny\r\nz\r\nc\r\n"
        );
    }
}
