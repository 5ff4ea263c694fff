//! Edits by line numbers.

use std::ops::Range;

use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::Deserialize;

use cairn_workspace::{Letters, TextFile, TextLine};

use crate::edit::{
    Change,
    occurrences::occurrences,
    rewrite::{self, Replacement},
};

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
    /// Facts about the form of the file that the caller should know.
    pub notes: Vec<String>,
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
                let notes = change.notes;
                let content = change.after.unwrap_or_default();
                Ok(Edited { content, replacements, lines: None, matched, notes })
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
        let file = parsed(rel, &before)?;
        let at = start_of(rel, &file, first)?;
        let old = rewrite::plain_ends(old);
        let line_count = old.lines().count().max(1);
        self.check_overlap(below, (first, first + line_count - 1))?;
        let line = file.lines().get(first - 1).map_or("", |line| line.text).to_owned();
        // Only a match that begins in that line counts.
        let begins_here = |start: usize| start >= at && start <= at + line.len();
        let found = if old.is_empty() { vec![] } else { occurrences(&file, &old).ranges };
        let Some(range) = found.into_iter().find(|range| begins_here(range.start)) else {
            let line: String = line.trim_end().chars().take(120).collect();
            return Err(bad(format!(
                "old_text does not begin in line {first} of '{rel}', which is: {line}"
            )));
        };
        let content = self.replaced(&file, range, &old, &self.new_text)?;
        let lines = Some((first, first + line_count - 1));
        Ok(Edited { content, replacements: 1, lines, matched: None, notes: vec![] })
    }

    /// Returns the file with another text for a range.
    fn replaced(
        &self,
        file: &TextFile,
        range: Range<usize>,
        old: &str,
        new: &str,
    ) -> Result<Vec<u8>, Failure> {
        let replacement = Replacement {
            old,
            new: &rewrite::plain_ends(new),
            has_same_letters: matches!(file.letters(), Letters::Plain | Letters::Composed),
            is_strict: false,
            translate: &rewrite::verbatim,
        };
        let text = replacement
            .rewritten(file, range.clone())
            .map_err(|_| bad(format!("new_text has no unambiguous form in '{}'", self.path)))?;
        let all = file.text();
        Ok(file.bytes_of(&[&all[..range.start], text.as_str(), &all[range.end..]].concat()))
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
        let file = parsed(&self.path, &before)?;
        let start = start_of(&self.path, &file, first)?;
        let lines = file.lines();
        let end = last.min(lines.len()).max(first - 1);
        let part = &lines[first - 1..end];
        let range = start..start + part.iter().map(TextLine::len).sum::<usize>();
        // The last line of the file retains its form, with an end or without one.
        let is_last = end == lines.len() && !lines.is_empty();
        let tail = if is_last && !file.has_final_line_end() { "" } else { "\n" };
        let mut new = rewrite::plain_ends(&self.new_text).into_owned();
        if !new.is_empty() && !new.ends_with('\n') {
            new.push_str(tail);
        }
        if part.is_empty() && is_last && tail.is_empty() && !new.is_empty() {
            new.insert(0, '\n');
        }
        let old: Vec<&str> = part.iter().map(|line| line.text).collect();
        let old = if old.is_empty() { String::new() } else { old.join("\n") + tail };
        let content = self.replaced(&file, range, &old, &new)?;
        let lines = Some((first, last));
        Ok(Edited { content, replacements: 1, lines, matched: None, notes: vec![] })
    }
}

fn bad(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

fn parsed(rel: &str, before: &[u8]) -> Result<TextFile, Failure> {
    let no_text = || bad(format!("'{rel}' is neither UTF-8 nor UTF-16 text"));
    TextFile::parse(before).ok_or_else(no_text)
}

/// Returns the position in the file's text where a line begins.
fn start_of(rel: &str, file: &TextFile, line: usize) -> Result<usize, Failure> {
    let lines = file.lines();
    if line == 0 || line > lines.len() + 1 {
        return Err(bad(format!(
            "start_line {line} is not in '{rel}', which has {} lines (from 1)",
            lines.len()
        )));
    }
    Ok(lines.iter().take(line - 1).map(TextLine::len).sum())
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
            (json!({"start_line": 4, "end_line": 3, "new_text": "x"}), "a\nb\nc\nx"),
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
