//! A change of one file, computed and not applied yet.

use std::ops::Range;

use cairn_harness::{Permit, diff};
use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{
    Letters, LineEnd, MAX_WRITTEN_BYTES, ResolvedPath, TextFile, TextLine, composed,
};
use serde_json::{Value, json};

use super::{
    find::{self, Rule},
    indent::IndentMap,
    occurrences::occurrences,
    rewrite::{self, Replacement},
};
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
    /// Facts about the form of the file that the caller should know.
    pub notes: Vec<String>,
    /// Modes before and after the change, if it sets one.
    mode: Option<ModeChange>,
}

/// Permission to execute a file, which its owner has or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeChange {
    /// `None` when there is no file.
    pub before: Option<bool>,
    pub after: bool,
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
            notes: vec![],
            mode: None,
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
            notes: vec![],
            mode: None,
        }
    }

    /// Sets the mode with the content.
    pub fn with_mode(self, mode: ModeChange) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Creates the change that reverts this one at `path`.
    pub fn reverted(self, path: &str) -> Self {
        let was_executable = self.mode.and_then(|mode| mode.before);
        let mode = was_executable.map(|after| ModeChange { before: None, after });
        let change = match self.before {
            Some(before) => Self::replace(path, self.after, before),
            None => Self::delete(path, self.after.unwrap_or_default()),
        };
        Self { mode, ..change }
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
            all.notes.extend(one.notes);
            all.notes.dedup();
        }
        Ok(all)
    }

    /// Writes a complete file. One that exists keeps its encoding and byte order mark, and lines
    /// that stay keep their ends and letters; new ones have the usual ones of the file.
    pub fn write(path: &str, before: Option<Vec<u8>>, content: String) -> Self {
        let Some(bytes) = before.as_ref().filter(|bytes| !bytes.is_empty()) else {
            return Self::replace(path, before, content.into_bytes());
        };
        let Some(file) = TextFile::parse(bytes).filter(|file| !file.text().contains('\0')) else {
            let note = "the file was neither UTF-8 nor UTF-16 text; now it is UTF-8".to_owned();
            let change = Self::replace(path, before, content.into_bytes());
            return Self { notes: vec![note], ..change };
        };
        let given = file.without_bom(&content);
        let (old, new) = (plain_text(&file), rewrite::plain_ends(given));
        let has_same_letters = matches!(file.letters(), Letters::Plain | Letters::Composed);
        let replacement = Replacement {
            old: &old,
            new: &new,
            has_same_letters,
            is_strict: false,
            translate: &rewrite::verbatim,
        };
        let range = 0..file.text().len();
        let text = replacement.rewritten(&file, range).unwrap_or_else(|_| new.to_string());
        let notes = written_notes(&file, &content, &text);
        let after = file.bytes_of(&text);
        Self { notes, ..Self::replace(path, before, after) }
    }

    /// Replaces complete lines that equal `old` but for white space.
    fn edit_tolerant(path: &str, file: &TextFile, old: &str, new: &str) -> Result<Self, Failure> {
        let all = file.lines();
        let lines: Vec<_> = all.iter().map(|line| composed(line.text)).collect();
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        let own_old = composed(old);
        let searched: Vec<&str> = own_old.lines().collect();
        let (positions, rule) = find::positions(&lines, &searched, 0);
        let at = match positions[..] {
            [at] => at,
            [] => {
                let text = format!("old_text is not in '{path}'{}", nearly(file.text(), old));
                return Err(Failure::new(Reason::InvalidParams, text));
            }
            ref several => {
                let what = "old_text, but for white space,";
                let way_out = "copy it exactly as read_file shows it, with more lines around it";
                return Err(find::ambiguous(what, path, several, way_out));
            }
        };
        let end = at + searched.len();
        let matched: Vec<&str> = all[at..end].iter().map(|line| line.text).collect();
        let new_lines: Vec<&str> = new.lines().collect();
        let map = IndentMap::new(&matched, &searched, &new_lines, file.indent());
        // The last line of the file may have no end, whatever the given text has.
        let has_end = all[..end].last().is_some_and(|line| line.end.is_some());
        let tail = if has_end { "\n" } else { "" };
        let joined = |lines: &[&str]| match lines {
            [] => String::new(),
            lines => lines.join("\n") + tail,
        };
        let start: usize = all[..at].iter().map(TextLine::len).sum();
        let length: usize = all[at..end].iter().map(TextLine::len).sum();
        let range = start..start + length;
        let replacement = Replacement {
            old: &joined(&searched),
            new: &joined(&new_lines),
            has_same_letters: false,
            is_strict: true,
            translate: &|line| map.translate(line),
        };
        let text = replacement
            .rewritten(file, range.clone())
            .map_err(|_| find::untranslatable("old_text", path, at, &matched))?;
        let change = Self::spliced(path, file, &[(range, text)])?;
        let excerpt = matched.join("\n").chars().take(MAX_MATCHED).collect();
        let matched = if rule == Rule::Exact { vec![] } else { vec![excerpt] };
        Ok(Self { matched, ..change })
    }

    /// Replaces ranges of the file's text, in their order.
    fn spliced(
        path: &str,
        file: &TextFile,
        pieces: &[(Range<usize>, String)],
    ) -> Result<Self, Failure> {
        let text = file.text();
        let removed: usize = pieces.iter().map(|(range, _)| range.len()).sum();
        let added: usize = pieces.iter().map(|(_, new)| new.len()).sum();
        let size = text.len() - removed + added;
        if size as u64 > MAX_WRITTEN_BYTES {
            let text = format!("'{path}' would have {size} bytes");
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let mut after = String::with_capacity(size);
        let mut at = 0;
        for (range, new) in pieces {
            after.push_str(&text[at..range.start]);
            after.push_str(new);
            at = range.end;
        }
        after.push_str(&text[at..]);
        let before = file.bytes_of(text);
        let change = Self::replace(path, Some(before), file.bytes_of(&after));
        Ok(Self { replacements: Some(pieces.len()), ..change })
    }

    /// Replaces a piece of text. It is found without regard to line ends and the form of letters,
    /// and complete lines also without regard to white space; the new text has those of the file.
    ///
    /// # Errors
    /// `invalid_params` that describes the file's text: no match, several, or a text that cannot be
    /// written in the file's form.
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
        let file = TextFile::parse(&before)
            .ok_or_else(|| bad(format!("'{path}' is neither UTF-8 nor UTF-16 text")))?;
        let (old, new) = (file.without_bom(old), file.without_bom(new));
        // A caller that gives carriage returns of the file knows its bytes; new lines without any
        // were written for a file without them.
        let is_exact = new.contains('\r') || !new.contains('\n');
        if old.contains('\r') && is_exact && file.text().contains(old) {
            let ranges: Vec<Range<usize>> =
                file.text().match_indices(old).map(|(at, text)| at..at + text.len()).collect();
            require_one(path, file.text(), &ranges, all)?;
            let pieces: Vec<_> = ranges.into_iter().map(|range| (range, new.to_owned())).collect();
            return Self::spliced(path, &file, &pieces);
        }
        let (old, new) = (rewrite::plain_ends(old), rewrite::plain_ends(new));
        if old == new {
            return Err(bad("old_text and new_text differ in line ends only".into()));
        }
        let found = occurrences(&file, &old);
        if found.ranges.is_empty() {
            return Self::edit_tolerant(path, &file, &old, &new);
        }
        require_one(path, file.text(), &found.ranges, all)?;
        let replacement = Replacement {
            old: &old,
            new: &new,
            has_same_letters: !found.in_other_letters,
            is_strict: found.in_other_letters,
            translate: &rewrite::verbatim,
        };
        let written = |range: Range<usize>| match replacement.rewritten(&file, range.clone()) {
            Ok(text) => Ok((range, text)),
            Err(_) => {
                let at = line_of(file.text(), range.start);
                let lines: Vec<&str> = file.text()[range].lines().collect();
                Err(find::untranslatable("old_text", path, at, &lines))
            }
        };
        let pieces = found.ranges.into_iter().map(written).collect::<Result<Vec<_>, _>>()?;
        let change = Self::spliced(path, &file, &pieces)?;
        let notes = edited_notes(&file, &old, &new);
        Ok(Self { notes, ..change })
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
        let content =
            diff::unified(&self.path, self.before.as_deref(), self.after.as_deref(), limit);
        let number = |executable: bool| if executable { "100755" } else { "100644" };
        let header = |text: String| format!("diff --git a/{0} b/{0}\n{text}", self.path);
        let mode = match (self.mode, &self.after) {
            (Some(ModeChange { before: None, after: true }), Some(_)) => {
                header("new file mode 100755\n".to_owned())
            }
            (Some(ModeChange { before: Some(before), after }), Some(_)) if before != after => {
                header(format!("old mode {}\nnew mode {}\n", number(before), number(after)))
            }
            _ => String::new(),
        };
        mode + &content
    }

    /// Returns the result of the tool.
    pub fn result(&self) -> Value {
        match &self.after {
            Some(after) => {
                let mut value = super::done(&self.path, after.len(), self.replacements);
                if !self.matched.is_empty() {
                    value["matched_with_other_white_space"] = self.matched.clone().into();
                }
                if !self.notes.is_empty() {
                    value["notes"] = self.notes.clone().into();
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
                let executable = self.mode.map(|mode| mode.after);
                permit.write_file_as(target, self.before, after.clone(), executable)?;
                // The writer knows the content.
                seen.note(permit.session(), target.real(), &after);
                Ok(())
            }
            None => permit.remove_file(target, self.before.unwrap_or_default()),
        }
    }
}

/// Returns the text of a file with plain line ends.
fn plain_text(file: &TextFile) -> String {
    let mut text = String::with_capacity(file.text().len());
    for line in file.lines() {
        text.push_str(line.text);
        text.push_str(line.end.map_or("", |_| "\n"));
    }
    text
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count()
}

/// Refuses several occurrences where one is meant.
fn require_one(path: &str, text: &str, ranges: &[Range<usize>], all: bool) -> Result<(), Failure> {
    if all || ranges.len() < 2 {
        return Ok(());
    }
    let lines: Vec<usize> = ranges.iter().map(|range| line_of(text, range.start)).collect();
    let way_out = "include more of the surrounding text, or set replace_all";
    Err(find::ambiguous("old_text", path, &lines, way_out))
}

/// Describes the form that a written file retains although its content was given without it.
fn written_notes(file: &TextFile, given: &str, written: &str) -> Vec<String> {
    let mut retained = Vec::new();
    if file.has_bom() && !given.starts_with('\u{feff}') {
        retained.push(format!("{} with a byte order mark", file.encoding().name()));
    }
    let ends = |text: &str| (text.matches("\r\n").count(), text.matches('\n').count());
    if ends(given) != ends(written) {
        let usual = file.line_end().unwrap_or(LineEnd::Lf).name();
        let mixed = if file.has_mixed_line_ends() { ", else those of each line" } else { "" };
        retained.push(format!("{usual} line ends{mixed}"));
    }
    if rewrite::plain_ends(given).chars().count() != rewrite::plain_ends(written).chars().count()
        && file.letters() != Letters::Plain
    {
        retained.push("the form of its letters".to_owned());
    }
    let mut notes = Vec::new();
    if !retained.is_empty() {
        notes.push(format!("the file retains {}", retained.join(", ")));
    }
    notes.extend(rewrite::other_indent(file, given.lines()));
    notes
}

/// Describes how the new text of an edit differs from the file.
fn edited_notes(file: &TextFile, old: &str, new: &str) -> Vec<String> {
    // Lines that were matched with their own indentation show that it is known.
    if old.lines().any(|line| line.starts_with([' ', '\t'])) {
        return vec![];
    }
    rewrite::other_indent(file, new.lines()).into_iter().collect()
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
        assert_eq!(edit("a\r\n  b\r\n", "a \n b", "c\n d", false).unwrap(), "c\r\n  d\r\n");
        let error = edit("\ta\n\t\tb\n", "a\nb", "a\nc", false).unwrap_err();
        assert!(
            error.contains(r#"lines 1 to 2 of 'f'"#) && error.contains(r#""\t\tb""#),
            "{error}"
        );
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
    fn tolerated_white_space_is_written_as_in_the_file() {
        let makefile = "all: build\n\nbuild:\n\techo one\n\techo two\n";
        let old = "build:\n    echo one\n    echo two\n";
        let new = "build:\n    echo one\n    echo three\n";
        assert_eq!(edit(makefile, old, new, false).unwrap(), makefile.replace("two", "three"),);
        let python = "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n";
        let (old, new) = ("    if x:\n        return 1\n", "    if x:\n        return 3\n");
        assert_eq!(edit(python, old, new, false).unwrap(), python.replace('1', "3"));
        // A deeper line than the matched ones.
        let new = "    if x:\n        if y:\n            return 3\n";
        assert!(
            edit(python, old, new, false)
                .unwrap()
                .contains("\t\tif y:\n\t\t\treturn 3\n\treturn 2")
        );
        let letters = "\tcafe\u{301} = 1\n\tx = 2\n";
        assert_eq!(
            edit(letters, "caf\u{e9} = 1", "caf\u{e9} = \u{e4}", false).unwrap(),
            "\tcafe\u{301} = a\u{308}\n\tx = 2\n",
        );
    }

    #[test]
    fn carriage_returns_of_the_caller_are_those_of_the_file_or_none() {
        for (text, old, new, expected) in [
            ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\r\ny\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
            ("a\rb\nc\r\n", "a\rb", "ab", "ab\nc\r\n"),
        ] {
            assert_eq!(edit(text, old, new, false).unwrap(), expected, "{text:?} {old:?}");
        }
        let error = edit("a\r\nb\r\n", "a\nb", "a\r\nb", false).unwrap_err();
        assert!(error.contains("differ in line ends only"), "{error}");
    }

    #[test]
    fn written_file_retains_its_form() {
        let before = b"\xef\xbb\xbfa\r\nb\r\n".to_vec();
        let change = Change::write("f", Some(before), "a\nc\nd\n".into());
        assert_eq!(change.after.as_deref(), Some(&b"\xef\xbb\xbfa\r\nc\r\nd\r\n"[..]));
        let note = "the file retains UTF-8 with a byte order mark, CRLF line ends";
        assert_eq!(change.result()["notes"][0], note);
        let change = Change::write("f", None, "a\r\n".into());
        assert_eq!((change.after.as_deref(), change.notes.len()), (Some(&b"a\r\n"[..]), 0));
        let change = Change::write("f", Some(b"\xe4\n".to_vec()), "\u{e4}\n".into());
        assert!(change.notes[0].contains("now it is UTF-8"), "{:?}", change.notes);
    }

    #[test]
    fn edit_preserves_line_endings() {
        assert_eq!(
            edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false).unwrap(),
            "x\r\ny\r\nz\r\nc\r\n"
        );
    }
}
