//! A change of one file, computed and not applied yet.

use cairn_harness::{Permit, diff};
use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{MAX_WRITTEN_BYTES, ResolvedPath};
use serde_json::{Value, json};

use super::find;
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
    /// Text of the file that was replaced although its white space differs from the given one.
    matched: Vec<String>,
}

/// One replacement of a text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The text to replace.
    pub old_text: String,
    /// Text that replaces it.
    pub new_text: String,
    /// Replaces every occurrence instead of one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Most bytes of replaced text in a result.
const MAX_MATCHED: usize = 2000;

/// Most nearly matching lines that an error shows.
const NEAR: usize = 3;

impl Change {
    /// Replaces the complete content.
    pub fn replace(path: &str, before: Option<Vec<u8>>, after: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            before,
            after: Some(after),
            replacements: None,
            matched: vec![],
        }
    }

    /// Creates a change that deletes the file.
    pub fn delete(path: &str, before: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            before: Some(before),
            after: None,
            replacements: None,
            matched: vec![],
        }
    }

    /// Makes several replacements, each in the result of those before it.
    ///
    /// # Errors
    /// As [`Change::edit`], with the number of the replacement.
    pub fn edit_all(path: &str, before: Vec<u8>, pieces: &[Piece]) -> Result<Self, Failure> {
        let mut all = Self::replace(path, Some(before.clone()), before);
        for (at, piece) in pieces.iter().enumerate() {
            let now = all.after.take().unwrap_or_default();
            let one = Self::edit(path, now, &piece.old_text, &piece.new_text, piece.replace_all)
                .map_err(|e| match pieces.len() {
                    1 => e,
                    _ => Failure::new(e.reason, format!("edit {}: {}", at + 1, e.message)),
                })?;
            all.after = one.after;
            all.replacements = Some(all.replacements() + one.replacements.unwrap_or(0));
            all.matched.extend(one.matched);
        }
        Ok(all)
    }

    /// Replaces complete lines that equal `old` but for white space.
    fn edit_tolerant(path: &str, text: &str, old: &str, new: &str) -> Result<Self, Failure> {
        let raw: Vec<&str> = text.split_inclusive('\n').collect();
        let lines: Vec<&str> = raw.iter().map(|line| line.trim_end_matches(['\r', '\n'])).collect();
        let searched: Vec<&str> = old.lines().collect();
        let at = match find::positions(&lines, &searched, 0).0[..] {
            [at] => at,
            [] => {
                let text = format!("old_text is not in '{path}'{}", nearly(text, old));
                return Err(Failure::new(Reason::InvalidParams, text));
            }
            ref several => {
                let what = "old_text, but for white space,";
                let way_out = "copy it exactly as read_file shows it, with more lines around it";
                return Err(find::ambiguous(what, path, several, way_out));
            }
        };
        let end = at + searched.len();
        let new: Vec<&str> = new.lines().collect();
        let new = find::reindented(&lines[at..end], &searched, &new);
        let eol = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut after = raw[..at].concat();
        for line in &new {
            after.push_str(line);
            after.push_str(eol);
        }
        let rest = raw[end..].concat();
        // The file's last line has no end of its own.
        if rest.is_empty() && !text.ends_with('\n') {
            after.truncate(after.len() - eol.len());
        }
        after.push_str(&rest);
        if after.len() as u64 > MAX_WRITTEN_BYTES {
            let text = format!("'{path}' would have {} bytes", after.len());
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let matched = lines[at..end].join("\n").chars().take(MAX_MATCHED).collect();
        Ok(Self {
            replacements: Some(1),
            matched: vec![matched],
            ..Self::replace(path, Some(text.as_bytes().to_vec()), after.into_bytes())
        })
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
            0 => return Self::edit_tolerant(path, text, &old, &new),
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
        Ok(Self { replacements: Some(count), ..Self::replace(path, Some(before), after) })
    }

    /// Returns the number of replacements.
    pub fn replacements(&self) -> usize {
        self.replacements.unwrap_or(0)
    }

    /// Returns the replaced text whose white space differs from the given one.
    pub fn matched(&self) -> Option<&str> {
        self.matched.first().map(String::as_str)
    }

    /// Returns the change as a diff.
    pub fn diff(&self, limit: usize) -> String {
        diff::unified(&self.path, self.before.as_deref(), self.after.as_deref(), limit)
    }

    /// Returns the result of the tool.
    pub fn result(&self) -> Value {
        match &self.after {
            Some(after) => {
                let mut value = super::done(&self.path, after.len(), self.replacements);
                if !self.matched.is_empty() {
                    value["matched_with_other_white_space"] = self.matched.clone().into();
                }
                value
            }
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
            edit("let x = 1;\nlet y = 2;", "let x = 1;\nlet z", "x", false)
                .unwrap_err()
                .contains("1|let x = 1;")
        );
        assert!(edit("abc", "nothing", "x", false).unwrap_err().contains("read the file again"));
        assert!(edit("abc", "", "x", false).is_err() && edit("abc", "b", "b", false).is_err());
    }

    #[test]
    fn white_space_is_tolerated_for_a_unique_match_only() {
        assert_eq!(edit("fn  main() {", "fn main() {", "x", false).unwrap(), "x");
        let file = "mod m {\n    fn f() {\n        a();\n    }\n}\n";
        let change =
            Change::edit("f", file.into(), "fn f() {\n    a();", "fn f() {\n    b();", false);
        let change = change.unwrap();
        let after = String::from_utf8(change.after.clone().unwrap()).unwrap();
        assert_eq!(after, file.replace("a();", "b();"));
        let matched = &change.result()["matched_with_other_white_space"][0];
        assert_eq!(matched, "    fn f() {\n        a();");
        let error = edit("\tx = 1\n  x = 1\n", "x  = 1", "y", false).unwrap_err();
        assert!(error.contains("2 times in 'f' (lines 1, 2)"), "{error}");
        // A part of a line is never matched with other white space.
        assert!(edit("let  x = f(1);", "x  =", "y", false).is_err());
        assert_eq!(edit("a\r\n  b\r\n", "a \nb", "c\nd", false).unwrap(), "c\r\nd\r\n");
    }

    #[test]
    fn several_pieces_are_replaced_in_order_or_none() {
        let piece = |old: &str, new: &str| Piece {
            old_text: old.into(),
            new_text: new.into(),
            replace_all: false,
        };
        let all = |pieces: &[Piece]| Change::edit_all("f", "a b c".into(), pieces);
        let change = all(&[piece("a", "x"), piece("x b", "y")]).unwrap();
        assert_eq!((change.after.as_deref(), change.replacements()), (Some(&b"y c"[..]), 2));
        let error = all(&[piece("a", "x"), piece("a", "z")]).unwrap_err();
        assert!(error.message.starts_with("edit 2: old_text is not in 'f'"), "{error}");
    }

    #[test]
    fn edit_preserves_line_endings() {
        assert_eq!(
            edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false).unwrap(),
            "x\r\ny\r\nz\r\nc\r\n"
        );
    }
}
