//! Edits by line numbers.

use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::Change;

/// Arguments of an edit.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FsEdit {
    /// Path of the file, relative to the workspace.
    pub path: String,
    /// The exact text to replace, without line numbers. With `start_line` it must begin in that
    /// line.
    #[serde(default)]
    pub old_text: Option<String>,
    /// Text that replaces it.
    pub new_text: String,
    /// Replaces every occurrence of `old_text`.
    #[serde(default)]
    pub replace_all: bool,
    /// For an edit by lines: the first one, from 1.
    #[serde(default)]
    pub start_line: Option<usize>,
    /// For an edit by lines: the last one; `start_line` when absent.
    #[serde(default)]
    pub end_line: Option<usize>,
}

/// Result of an edit, and the lines that it replaced.
pub struct Edited {
    pub content: Vec<u8>,
    pub replacements: usize,
    pub lines: Option<(usize, usize)>,
    /// Replaced text of the file whose white space differs from the given one.
    pub matched: Option<String>,
}

impl FsEdit {
    /// Applies the edit to `before`. `below` is the first line that an earlier edit of the same
    /// call changed.
    ///
    /// # Errors
    /// `invalid_params` with the cause.
    pub fn make(&self, before: Vec<u8>, below: Option<usize>) -> Result<Edited, Failure> {
        let rel = self.path.as_str();
        match (self.start_line, &self.old_text) {
            (None, _) if self.end_line.is_some() => Err(bad("end_line needs start_line".into())),
            (None, None) => Err(bad("an edit needs old_text or start_line".into())),
            (None, Some(old)) => {
                let change = Change::edit(rel, before, old, &self.new_text, self.replace_all)?;
                let replacements = change.replacements();
                let matched = change.matched().map(str::to_owned);
                let content = change.after.unwrap_or_default();
                Ok(Edited { content, replacements, lines: None, matched })
            }
            (Some(_), _) if self.replace_all => {
                Err(bad("replace_all replaces every occurrence: omit start_line".into()))
            }
            (Some(_), Some(_)) if self.end_line.is_some() => {
                Err(bad("give old_text or end_line with start_line, not both".into()))
            }
            (Some(first), Some(old)) => self.replace_in_line(before, below, first, old),
            (Some(first), None) => self.replace_lines(before, below, first),
        }
    }

    fn check_overlap(
        &self,
        below: Option<usize>,
        (first, last): (usize, usize),
    ) -> Result<(), Failure> {
        match below {
            Some(below) if last >= below => Err(bad(format!(
                "lines {first} to {last} of '{}' overlap with another edit at line {below}",
                self.path
            ))),
            _ => Ok(()),
        }
    }

    /// Replaces a text that begins in line `first`.
    fn replace_in_line(
        &self,
        before: Vec<u8>,
        below: Option<usize>,
        first: usize,
        old: &str,
    ) -> Result<Edited, Failure> {
        let rel = self.path.as_str();
        let (head, tail, tail_starts) = split(rel, before, first)?;
        let line_count = old.lines().count().max(1);
        self.check_overlap(below, (first, first + line_count - 1))?;
        // Only a match that begins in that line counts.
        let line_end = tail.find('\n').map_or(tail.len(), |at| at + 1);
        let windows = tail_starts && !old.contains('\r');
        let ends = |s: &str| if windows { s.replace('\n', "\r\n") } else { s.to_owned() };
        let (old, new) = (ends(old), ends(&self.new_text));
        let Some(at) = tail.find(&old).filter(|at| !old.is_empty() && *at < line_end) else {
            let line: String = tail[..line_end].trim_end().chars().take(120).collect();
            return Err(bad(format!(
                "old_text does not begin in line {first} of '{rel}', which is: {line}"
            )));
        };
        let content =
            [&head, &tail[..at], new.as_str(), &tail[at + old.len()..]].concat().into_bytes();
        Ok(Edited {
            content,
            replacements: 1,
            lines: Some((first, first + line_count - 1)),
            matched: None,
        })
    }

    /// Replaces the lines from `first` to `end_line`.
    fn replace_lines(
        &self,
        before: Vec<u8>,
        below: Option<usize>,
        first: usize,
    ) -> Result<Edited, Failure> {
        let last = self.end_line.unwrap_or(first);
        if last + 1 < first {
            return Err(bad(format!("end_line {last} is before start_line {first}")));
        }
        self.check_overlap(below, (first, last))?;
        let (head, tail, windows) = split(&self.path, before, first)?;
        let removed: usize = tail.split_inclusive('\n').take(last + 1 - first).map(str::len).sum();
        let rest = &tail[removed..];
        let mut new = self.new_text.clone();
        let needs_newline = removed == 0 || tail[..removed].ends_with('\n') || !rest.is_empty();
        if !new.is_empty() && !new.ends_with('\n') && needs_newline {
            new.push('\n');
        }
        if windows && !new.contains('\r') {
            new = new.replace('\n', "\r\n");
        }
        let joint =
            if !head.is_empty() && !head.ends_with('\n') && !new.is_empty() { "\n" } else { "" };
        let content = [&head, joint, new.as_str(), rest].concat().into_bytes();
        Ok(Edited { content, replacements: 1, lines: Some((first, last)), matched: None })
    }
}

fn bad(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

/// Returns the text before a line, the text from it on, and true if its lines end as on Windows.
fn split(rel: &str, before: Vec<u8>, line: usize) -> Result<(String, String, bool), Failure> {
    let bad = |text: String| Failure::new(Reason::InvalidParams, text);
    let mut text =
        String::from_utf8(before).map_err(|_| bad(format!("'{rel}' is not UTF-8 text")))?;
    let lines = text.lines().count();
    if line == 0 || line > lines + 1 {
        return Err(bad(format!(
            "start_line {line} is not in '{rel}', which has {lines} lines (from 1)"
        )));
    }
    let at = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let windows = text.contains("\r\n");
    let tail = text.split_off(at);
    Ok((text, tail, windows))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn edit(text: &str, args: Value, below: Option<usize>) -> Result<String, String> {
        let mut all = json!({"path": "f"});
        all.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
        let edit: FsEdit = serde_json::from_value(all).unwrap();
        let edited = edit.make(text.into(), below).map_err(|e| e.message)?;
        Ok(String::from_utf8(edited.content).unwrap())
    }

    #[test]
    fn lines_can_be_replaced_inserted_and_removed() {
        let text = "a\nb\nc";
        for (args, want) in [
            (json!({"start_line": 1, "new_text": "x"}), "x\nb\nc"),
            (json!({"start_line": 1, "end_line": 2, "new_text": "x\ny\nz\n"}), "x\ny\nz\nc"),
            (json!({"start_line": 3, "new_text": "x"}), "a\nb\nx"),
            (json!({"start_line": 2, "end_line": 1, "new_text": "x"}), "a\nx\nb\nc"),
            (json!({"start_line": 4, "end_line": 3, "new_text": "x"}), "a\nb\nc\nx\n"),
            (json!({"start_line": 2, "end_line": 9, "new_text": ""}), "a\n"),
            (json!({"start_line": 2, "old_text": "b", "new_text": "x"}), "a\nx\nc"),
            (json!({"start_line": 2, "old_text": "b\nc", "new_text": "x"}), "a\nx"),
            (json!({"old_text": "b", "new_text": "x"}), "a\nx\nc"),
        ] {
            assert_eq!(edit(text, args.clone(), None).unwrap(), want, "{args}");
        }
        assert_eq!(
            edit("a\r\nb\r\n", json!({"start_line": 1, "new_text": "x\ny"}), None).unwrap(),
            "x\r\ny\r\nb\r\n"
        );
        assert_eq!(edit("", json!({"start_line": 1, "new_text": "x"}), None).unwrap(), "x\n");
    }

    #[test]
    fn invalid_edits_return_errors() {
        let text = "a\nb\na\n";
        for (args, below, want) in [
            (json!({"new_text": "x"}), None, "needs old_text or start_line"),
            (json!({"end_line": 1, "new_text": "x"}), None, "needs start_line"),
            (json!({"start_line": 0, "new_text": "x"}), None, "has 3 lines"),
            (json!({"start_line": 5, "new_text": "x"}), None, "has 3 lines"),
            (
                json!({"start_line": 3, "end_line": 1, "new_text": "x"}),
                None,
                "is before start_line",
            ),
            (json!({"start_line": 1, "end_line": 2, "new_text": "x"}), Some(2), "overlap"),
            (
                json!({"start_line": 2, "old_text": "a", "new_text": "x"}),
                None,
                "line 2 of 'f', which is: b",
            ),
            (json!({"start_line": 2, "old_text": "", "new_text": "x"}), None, "does not begin"),
            (
                json!({"start_line": 2, "old_text": "b", "new_text": "x", "replace_all": true}),
                None,
                "every occurrence",
            ),
            (json!({"old_text": "a", "new_text": "x"}), None, "2 times"),
        ] {
            let error = edit(text, args.clone(), below).unwrap_err();
            assert!(error.contains(want), "{args}: {error}");
        }
        assert!(edit(text, json!({"start_line": 1, "new_text": "x"}), Some(2)).is_ok());
    }
}
