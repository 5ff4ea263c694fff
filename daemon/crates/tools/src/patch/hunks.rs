//! Application of hunks to the text of a file: exactly as git does it if the file is the one that
//! the patch was made of, else by its lines, in the form of the file.

use std::borrow::Cow;

use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{LineEnd, TextFile, TextLine, composed, decode_text};

use super::parse::{Hunk, HunkLine, LineKind};
use crate::edit::{
    find::{self, Rule},
    indent::IndentMap,
    rewrite::{LineLetters, end_near, other_indent},
};

fn bad(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

/// Returns the changed content, and notes on hunks that were found without regard to white space.
///
/// # Errors
/// `invalid_params` for a hunk that is found nowhere, or at several positions, or that has no
/// unambiguous form in the file.
pub fn apply(path: &str, before: &[u8], hunks: &[Hunk]) -> Result<(Vec<u8>, Vec<String>), Failure> {
    let no_text = || bad(format!("'{path}' is neither UTF-8 nor UTF-16 text"));
    let (encoding, text) = decode_text(before).ok_or_else(no_text)?;
    if let Some(after) = verbatim(&text, hunks) {
        return Ok((encoding.encode(&after), vec![]));
    }
    let file = TextFile::parse(before).ok_or_else(no_text)?;
    let lines = file.lines();
    let plain: Vec<Cow<'_, str>> = lines.iter().map(|line| composed(line.text)).collect();
    let plain: Vec<&str> = plain.iter().map(AsRef::as_ref).collect();
    let mut notes = Vec::new();
    let mut after = String::with_capacity(file.text().len());
    let mut from = 0;
    for hunk in hunks {
        let target = Target { path, file: &file, lines: &lines, plain: &plain };
        let (start, end, rule) = target.locate(hunk, from)?;
        if !matches!(rule, Rule::Exact) {
            let matched: Vec<&str> = lines[start..end].iter().map(|line| line.text).collect();
            notes.push(format!(
                "lines {} to {end} of '{path}' matched with other white space: {}",
                start + 1,
                matched.join("\n")
            ));
        }
        lines[from..start].iter().for_each(|line| line.push_to(&mut after));
        target.splice(hunk, (start, end), &mut after)?;
        from = end;
    }
    lines[from..].iter().for_each(|line| line.push_to(&mut after));
    notes.extend(indent_note(&file, hunks));
    Ok((file.bytes_of(&after), notes))
}

/// Returns a note on added lines that begin with spaces in a file with tabs, if no line of the
/// patch shows that its author knows the indentation.
fn indent_note(file: &TextFile, hunks: &[Hunk]) -> Option<String> {
    let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let is_known =
        |line: &HunkLine| line.kind != LineKind::Add && line.text.starts_with([' ', '\t']);
    if lines().any(is_known) {
        return None;
    }
    let added = lines().filter(|line| line.kind == LineKind::Add);
    other_indent(file, added.map(|line| line.text.as_str()))
}

/// Applies hunks whose lines are those of the text byte for byte; `None` if one is not.
fn verbatim(text: &str, hunks: &[Hunk]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut after = String::with_capacity(text.len());
    let mut from = 0;
    for hunk in hunks {
        let line = hunk.line?;
        let old: Vec<String> = hunk
            .lines
            .iter()
            .filter(|line| line.kind != LineKind::Add)
            .map(|line| line.text.clone() + if line.lacks_end { "" } else { "\n" })
            .collect();
        let fits = |at: usize| {
            let here = at.checked_add(old.len()).and_then(|end| lines.get(at..end));
            here.is_some_and(|here| here.iter().eq(old.iter()))
        };
        let at = if old.is_empty() {
            // Without a line of the file nothing shows that the patch has its line ends; in a file
            // with both any may be meant.
            let has_returns = hunk.lines.iter().any(|line| line.text.ends_with('\r'));
            let with_return = text.matches("\r\n").count();
            let is_same = match text.matches('\n').count() {
                all if all == with_return => text.is_empty() || has_returns,
                _ => with_return > 0 || !has_returns,
            };
            Some(line).filter(|at| is_same && *at >= from && *at <= lines.len())?
        } else if line >= from && fits(line) {
            line
        } else {
            let mut found = (from..lines.len()).filter(|at| fits(*at));
            let first = found.next()?;
            found.next().is_none().then_some(first)?
        };
        lines[from..at].iter().for_each(|line| after.push_str(line));
        for line in hunk.lines.iter().filter(|line| line.kind != LineKind::Remove) {
            if !after.is_empty() && !after.ends_with('\n') {
                return None;
            }
            after.push_str(&line.text);
            after.push_str(if line.lacks_end { "" } else { "\n" });
        }
        from = at + old.len();
    }
    let rest = &lines[from..];
    // A line without end is the last one.
    if !rest.is_empty() && !after.is_empty() && !after.ends_with('\n') {
        return None;
    }
    rest.iter().for_each(|line| after.push_str(line));
    Some(after)
}

/// The file that hunks are applied to, by lines.
struct Target<'a> {
    path: &'a str,
    file: &'a TextFile,
    lines: &'a [TextLine<'a>],
    /// The lines with composed letters.
    plain: &'a [&'a str],
}

/// Returns the text of a line of a hunk as it is compared.
fn compared(line: &HunkLine) -> Cow<'_, str> {
    composed(added_text(line).trim_start_matches('\u{feff}'))
}

/// Returns the text of a line of a hunk without a carriage return of its end.
fn added_text(line: &HunkLine) -> &str {
    line.text.strip_suffix('\r').unwrap_or(&line.text)
}

impl Target<'_> {
    /// Finds the lines of a hunk, from line `from` on.
    fn locate(&self, hunk: &Hunk, from: usize) -> Result<(usize, usize, Rule), Failure> {
        let (path, lines) = (self.path, self.plain);
        let mut start = from;
        for header in &hunk.headers {
            let (positions, _) = find::positions(lines, &[header], start);
            let contains = || (start..lines.len()).find(|at| lines[*at].contains(header.as_str()));
            let at = positions.first().copied().or_else(contains);
            let absent = || bad(format!("the line '@@ {header}' is not in '{path}'"));
            start = at.ok_or_else(absent)? + 1;
        }
        let old = hunk.lines.iter().filter(|line| line.kind != LineKind::Add);
        let old: Vec<Cow<'_, str>> = old.map(compared).collect();
        let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
        if old.is_empty() {
            let at = match hunk.line {
                Some(line) => line.min(lines.len()),
                None if hunk.headers.is_empty() || hunk.at_end => lines.len(),
                None => start,
            };
            let at = at.max(from);
            return Ok((at, at, Rule::Exact));
        }
        let (mut positions, rule) = find::positions(lines, &old, start);
        if hunk.at_end && positions.iter().any(|at| at + old.len() == lines.len()) {
            positions.retain(|at| at + old.len() == lines.len());
        }
        let at = match (&positions[..], hunk.line) {
            ([], _) => {
                let first = old.iter().find(|line| !line.trim().is_empty()).unwrap_or(&"");
                let text = format!(
                    "a hunk is not in '{path}' after line {start}: read the file again; its first \
                    line is '{}'",
                    first.trim().chars().take(120).collect::<String>()
                );
                return Err(bad(text));
            }
            ([one], _) => *one,
            (positions, Some(line)) if positions.contains(&line) => line,
            // A header says which of them.
            ([first, ..], None) if !hunk.headers.is_empty() => *first,
            (positions, _) => {
                let way_out = "add more lines around it, or a line above it after '@@ '";
                return Err(find::ambiguous("a hunk", path, positions, way_out));
            }
        };
        Ok((at, at + old.len(), rule))
    }

    /// Appends what a hunk makes of the lines `start..end`.
    fn splice(
        &self,
        hunk: &Hunk,
        (start, end): (usize, usize),
        after: &mut String,
    ) -> Result<(), Failure> {
        let here = &self.lines[start..end];
        let matched: Vec<&str> = here.iter().map(|line| line.text).collect();
        let old: Vec<&str> =
            hunk.lines.iter().filter(|line| line.kind != LineKind::Add).map(added_text).collect();
        let new: Vec<&str> =
            hunk.lines.iter().filter(|line| line.kind == LineKind::Add).map(added_text).collect();
        let map = IndentMap::new(&matched, &old, &new, self.file.indent());
        let has_other_letters = matched
            .iter()
            .zip(&old)
            .any(|(file, given)| composed(file) == composed(given) && file != given);
        let part = matched.concat();
        let letters = LineLetters::of(self.file, &part, has_other_letters);
        let refused = |_| find::untranslatable("a hunk", self.path, start, &matched);
        let ends = self.ends(hunk, start, end);
        let mut at = start;
        for (line, end) in hunk.lines.iter().zip(ends) {
            let end = end.map_or("", LineEnd::text);
            match line.kind {
                LineKind::Context => {
                    after.push_str(self.lines[at].text);
                    after.push_str(end);
                }
                LineKind::Remove => {}
                LineKind::Add => {
                    // The line before an insertion at the end of the file may have no end.
                    if at == self.lines.len() && self.is_open(after) {
                        after.push_str(self.usual_end().text());
                    }
                    let text = map.translate(added_text(line)).map_err(refused)?;
                    after.push_str(&letters.apply(&text).map_err(refused)?);
                    after.push_str(end);
                }
            }
            at += usize::from(line.kind != LineKind::Add);
        }
        Ok(())
    }

    fn usual_end(&self) -> LineEnd {
        self.file.line_end().unwrap_or(LineEnd::Lf)
    }

    /// Returns true if the last line of the result has no end.
    fn is_open(&self, text: &str) -> bool {
        let is_closed = |end: &LineEnd| text.ends_with(end.text());
        !text.is_empty() && ![LineEnd::Lf, self.usual_end()].iter().any(is_closed)
    }

    /// Returns the ends of the lines of a hunk in the result; those of removed lines do not count.
    fn ends(&self, hunk: &Hunk, start: usize, end: usize) -> Vec<Option<LineEnd>> {
        let here = &self.lines[start..end];
        let offset: usize = self.lines[..start].iter().map(TextLine::len).sum();
        let range = offset..offset + here.iter().map(TextLine::len).sum::<usize>();
        let mut at = 0_usize;
        let mut removed = 0;
        let mut ends = Vec::with_capacity(hunk.lines.len());
        for line in &hunk.lines {
            let near = match line.kind {
                LineKind::Context => {
                    removed = 0;
                    Some(at)
                }
                LineKind::Remove => {
                    removed += 1;
                    None
                }
                // The first added line stands for the first removed one, and so on.
                LineKind::Add if removed > 0 => {
                    removed -= 1;
                    Some(at - removed - 1)
                }
                LineKind::Add => at.checked_sub(1),
            };
            ends.push(Some(end_near(self.file, &range, here, near)));
            at += usize::from(line.kind != LineKind::Add);
        }
        let stays = |at: &usize| hunk.lines[*at].kind != LineKind::Remove;
        let last = (0..hunk.lines.len()).rev().find(stays);
        if let Some(last) = last.filter(|_| end == self.lines.len()) {
            // A patch that marks absent line ends means those that it does not mark.
            let is_marked = hunk.lines.iter().any(|line| line.lacks_end);
            let is_last_of_file = hunk.lines[last + 1..].is_empty();
            let lacks_end = match hunk.lines[last].kind {
                _ if is_marked => hunk.lines[last].lacks_end,
                LineKind::Context if !is_last_of_file => false,
                _ => !self.lines.is_empty() && !self.file.has_final_line_end(),
            };
            if lacks_end {
                ends[last] = None;
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    fn patched(before: &str, body: &str) -> Result<(String, Vec<String>), String> {
        let text = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        let files = parse::parse(&text).map_err(|e| e.message)?;
        let parse::FilePatch::Update { hunks, .. } = &files[0] else { panic!("no update") };
        let (after, notes) = apply("f", before.as_bytes(), hunks).map_err(|e| e.message)?;
        Ok((String::from_utf8(after).unwrap(), notes))
    }

    #[test]
    fn hunks_are_applied_in_order() {
        let file = "fn a() {\n    x();\n}\nfn b() {\n    x();\n}\n";
        let changed = |body: &str| patched(file, body).unwrap().0;
        assert_eq!(
            changed("@@ fn b() {\n-    x();\n+    y();"),
            "fn a() {\n    x();\n}\nfn b() {\n    y();\n}\n"
        );
        assert_eq!(
            changed("@@\n fn a() {\n-    x();\n@@\n fn b() {\n+    z();"),
            "fn a() {\n}\nfn b() {\n    z();\n    x();\n}\n"
        );
        assert_eq!(changed("@@\n+// end"), format!("{file}// end\n"));
        assert_eq!(
            changed("@@\n-}\n+};\n*** End of File"),
            file.strip_suffix("}\n").unwrap().to_owned() + "};\n"
        );
    }

    #[test]
    fn ambiguous_and_absent_hunks_are_refused_with_their_lines() {
        let file = "a\nx\nb\nx\n";
        let error = patched(file, "@@\n-x\n+y").unwrap_err();
        assert!(error.contains("occurs 2 times in 'f' (lines 2, 4)"), "{error}");
        let error = patched(file, "@@\n-z\n+y").unwrap_err();
        assert!(error.contains("not in 'f'") && error.contains("'z'"), "{error}");
        let error = patched(file, "@@ q\n-x\n+y").unwrap_err();
        assert!(error.contains("'@@ q' is not in 'f'"), "{error}");
        // An earlier place than that of the hunk before.
        let error = patched(file, "@@\n-b\n+c\n@@\n-a\n+d").unwrap_err();
        assert!(error.contains("after line 3"), "{error}");
    }

    #[test]
    fn white_space_is_tolerated_and_reported() {
        let file = "class A:\n    def f(self):\n        return 1\n";
        let (after, notes) =
            patched(file, "@@\n def f(self):\n-    return 1\n+    return 2").unwrap();
        assert_eq!(after, "class A:\n    def f(self):\n        return 2\n");
        assert!(notes[0].starts_with("lines 2 to 3 of 'f' matched"), "{notes:?}");
        let (after, notes) = patched("a\r\nb\r\nc", "@@\n a\n-b\n+B\n c\n+d").unwrap();
        assert_eq!((after.as_str(), notes.len()), ("a\r\nB\r\nc\r\nd", 0));
    }

    #[test]
    fn line_of_a_unified_diff_chooses_among_equal_matches() {
        let text = "--- a/f\n+++ b/f\n@@ -4 +4 @@\n-x\n+y\n";
        let files = parse::parse(text).unwrap();
        let parse::FilePatch::Update { hunks, .. } = &files[0] else { panic!("no update") };
        let (after, _) = apply("f", b"a\nx\nb\nx\n", hunks).unwrap();
        assert_eq!(after, b"a\nx\nb\ny\n");
    }
}
