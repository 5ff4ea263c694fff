//! Application of hunks to the text of a file.

use cairn_protocol::error::{Failure, Reason};

use super::parse::{Hunk, Line};
use crate::edit::find::{self, Rule};

/// A line of the result.
enum Out {
    /// A line of the file, unchanged.
    Same(usize),
    New(String),
}

/// Lines `start..end` of the file that others replace.
struct Splice {
    start: usize,
    end: usize,
    lines: Vec<Out>,
}

/// Returns the changed content, and notes on hunks that were found without regard to white space.
///
/// # Errors
/// `invalid_params` for a hunk that is found nowhere, or at several positions.
pub fn apply(path: &str, before: &[u8], hunks: &[Hunk]) -> Result<(Vec<u8>, Vec<String>), Failure> {
    let text = std::str::from_utf8(before)
        .map_err(|_| Failure::new(Reason::InvalidParams, format!("'{path}' is not UTF-8 text")))?;
    let raw: Vec<&str> = text.split_inclusive('\n').collect();
    let lines: Vec<&str> = raw.iter().map(|line| line.trim_end_matches(['\r', '\n'])).collect();
    let mut notes = Vec::new();
    let mut splices: Vec<Splice> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        let (splice, rule) = locate(path, &lines, hunk, from)?;
        if rule != Rule::Exact {
            let matched = lines[splice.start..splice.end].join("\n");
            let (first, last) = (splice.start + 1, splice.end);
            notes.push(format!(
                "lines {first} to {last} of '{path}' matched with other white space: {matched}"
            ));
        }
        from = splice.end;
        splices.push(splice);
    }
    Ok((joined(text, &raw, &splices).into_bytes(), notes))
}

/// Finds the place of a hunk, from line `from` on.
fn locate(path: &str, lines: &[&str], hunk: &Hunk, from: usize) -> Result<(Splice, Rule), Failure> {
    let bad = |text: String| Failure::new(Reason::InvalidParams, text);
    let mut start = from;
    for header in &hunk.headers {
        let (positions, _) = find::positions(lines, &[header], start);
        let contains = || (start..lines.len()).find(|at| lines[*at].contains(header.as_str()));
        let at = positions.first().copied().or_else(contains);
        let absent = || bad(format!("the line '@@ {header}' is not in '{path}'"));
        start = at.ok_or_else(absent)? + 1;
    }
    let old: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Context(text) | Line::Remove(text) => Some(text.as_str()),
            Line::Add(_) => None,
        })
        .collect();
    if old.is_empty() {
        let at = match hunk.line {
            Some(line) => line.min(lines.len()),
            None if hunk.headers.is_empty() || hunk.at_end => lines.len(),
            None => start,
        };
        return Ok((splice(lines, hunk, at.max(from), &old, Rule::Exact), Rule::Exact));
    }
    let (mut positions, rule) = find::positions(lines, &old, start);
    if hunk.at_end && positions.iter().any(|at| at + old.len() == lines.len()) {
        positions.retain(|at| at + old.len() == lines.len());
    }
    let at = match (&positions[..], hunk.line) {
        ([], _) => {
            let first = old.iter().find(|line| !line.trim().is_empty()).unwrap_or(&"");
            let text = format!(
                "a hunk is not in '{path}' after line {start}: read the file again; its first line \
                is '{}'",
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
    Ok((splice(lines, hunk, at, &old, rule), rule))
}

fn splice(lines: &[&str], hunk: &Hunk, start: usize, old: &[&str], rule: Rule) -> Splice {
    let end = start + old.len();
    let added: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|line| match line {
            Line::Add(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let added = match rule {
        Rule::Words => find::reindented(&lines[start..end], old, &added),
        Rule::Exact | Rule::TrimEnd => added.into_iter().map(str::to_owned).collect(),
    };
    let mut added = added.into_iter();
    let mut at = start;
    let mut out = Vec::new();
    for line in &hunk.lines {
        match line {
            Line::Context(_) => out.push(Out::Same(at)),
            Line::Remove(_) => {}
            Line::Add(_) => out.extend(added.next().map(Out::New)),
        }
        at += usize::from(!matches!(line, Line::Add(_)));
    }
    Splice { start, end, lines: out }
}

fn joined(text: &str, raw: &[&str], splices: &[Splice]) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len());
    let mut push = |line: &str, is_new: bool| {
        // The last line of the file may have no end.
        if !out.is_empty() && !out.ends_with('\n') {
            out.push_str(end);
        }
        out.push_str(line);
        if is_new {
            out.push_str(end);
        }
    };
    let mut at = 0;
    for splice in splices {
        raw[at..splice.start].iter().for_each(|line| push(line, false));
        for line in &splice.lines {
            match line {
                Out::Same(at) => push(raw[*at], false),
                Out::New(line) => push(line, true),
            }
        }
        at = splice.end;
    }
    raw[at..].iter().for_each(|line| push(line, false));
    out
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
        assert_eq!((after.as_str(), notes.len()), ("a\r\nB\r\nc\r\nd\r\n", 0));
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
