//! The two forms of a patch: OpenAI's V4A and unified diffs.

use cairn_protocol::error::{Failure, Reason};

/// Most files of one patch.
pub const MAX_FILES: usize = 100;
/// Most bytes of a patch.
pub const MAX_PATCH: usize = 1024 * 1024;

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Context(String),
    Remove(String),
    Add(String),
}

/// Lines that replace others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines before the hunk, of which the first ones come first: a class, then a function.
    pub headers: Vec<String>,
    /// Line of the file, from 0, where it is expected.
    pub line: Option<usize>,
    pub lines: Vec<Line>,
    /// True if the hunk ends with the file.
    pub at_end: bool,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, to: Option<String>, hunks: Vec<Hunk> },
}

fn bad(line: usize, text: &str) -> Failure {
    Failure::new(Reason::InvalidParams, format!("patch, line {}: {text}", line + 1))
}

/// Parses a patch of either form.
///
/// # Errors
/// `invalid_params` with the line of the patch; `too_large`.
pub fn parse(text: &str) -> Result<Vec<FilePatch>, Failure> {
    if text.len() > MAX_PATCH {
        let text = format!("the patch has {} bytes; the limit is {MAX_PATCH}", text.len());
        return Err(Failure::new(Reason::TooLarge, text));
    }
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().position(|line| line.trim() == "*** Begin Patch");
    let files = match begin {
        Some(begin) => v4a(&lines, begin + 1)?,
        None => unified(&lines)?,
    };
    if files.is_empty() {
        return Err(bad(0, "it changes no file: begin with '*** Begin Patch' or '--- a/path'"));
    }
    if files.len() > MAX_FILES {
        return Err(bad(0, &format!("it changes more than {MAX_FILES} files")));
    }
    Ok(files)
}

fn v4a(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, Failure> {
    let mut files = Vec::new();
    let mut at = first;
    while let Some(line) = lines.get(at) {
        let name = |key: &str| line.strip_prefix(key).map(|path| path.trim().to_owned());
        at += 1;
        if line.trim() == "*** End Patch" {
            return Ok(files);
        } else if let Some(path) = name("*** Add File: ") {
            let mut content = String::new();
            while let Some(added) = lines.get(at).and_then(|line| line.strip_prefix('+')) {
                content.push_str(added);
                content.push('\n');
                at += 1;
            }
            files.push(FilePatch::Add { path, content });
        } else if let Some(path) = name("*** Delete File: ") {
            files.push(FilePatch::Delete { path });
        } else if let Some(path) = name("*** Update File: ") {
            let to = lines.get(at).and_then(|line| line.strip_prefix("*** Move to: "));
            let to = to.map(|path| path.trim().to_owned());
            at += usize::from(to.is_some());
            let (hunks, next) = v4a_hunks(lines, at)?;
            if hunks.is_empty() && to.is_none() {
                return Err(bad(at, "the update has no changes"));
            }
            at = next;
            files.push(FilePatch::Update { path, to, hunks });
        } else if !line.trim().is_empty() {
            let text = "expected '*** Add File: ', '*** Update File: ', '*** Delete File: ' or \
                '*** End Patch'";
            return Err(bad(at - 1, text));
        }
    }
    Err(bad(lines.len(), "'*** End Patch' is missing"))
}

/// Reads the hunks of one file; returns the line after them.
fn v4a_hunks(lines: &[&str], first: usize) -> Result<(Vec<Hunk>, usize), Failure> {
    let mut hunks = Vec::new();
    let mut hunk = Hunk::default();
    let mut at = first;
    while let Some(line) = lines.get(at) {
        if line.trim_end() == "*** End of File" {
            hunk.at_end = true;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(header) = line.strip_prefix("@@") {
            if !hunk.lines.is_empty() {
                hunks.push(std::mem::take(&mut hunk));
            }
            let header = header.trim();
            if !header.is_empty() {
                hunk.headers.push(header.to_owned());
            }
        } else {
            hunk.lines.push(
                body_line(line).ok_or_else(|| {
                    bad(at, "a line of a hunk must begin with a space, '-' or '+'")
                })?,
            );
        }
        at += 1;
    }
    if !hunk.lines.is_empty() {
        hunks.push(hunk);
    } else if !hunk.headers.is_empty() {
        return Err(bad(at, "a hunk has no lines"));
    }
    Ok((hunks, at))
}

/// Parses a line of a hunk; an empty one is an empty line of context.
fn body_line(line: &str) -> Option<Line> {
    match line.chars().next() {
        None => Some(Line::Context(String::new())),
        Some(' ') => Some(Line::Context(line[1..].to_owned())),
        Some('-') => Some(Line::Remove(line[1..].to_owned())),
        Some('+') => Some(Line::Add(line[1..].to_owned())),
        Some(_) => None,
    }
}

fn unified(lines: &[&str]) -> Result<Vec<FilePatch>, Failure> {
    let mut files = Vec::new();
    let mut at = 0;
    while at + 1 < lines.len() {
        let (old, new) = (lines[at].strip_prefix("--- "), lines[at + 1].strip_prefix("+++ "));
        let (Some(old), Some(new)) = (old, new) else {
            at += 1;
            continue;
        };
        at += 2;
        let mut hunks = Vec::new();
        while let Some(line) = lines.get(at).filter(|line| line.starts_with("@@ ")) {
            let (mut hunk, mut old_left, mut new_left) =
                hunk_header(line).ok_or_else(|| bad(at, "the header of a hunk is invalid"))?;
            at += 1;
            while old_left > 0 || new_left > 0 {
                let missing = || bad(at, "a hunk has fewer lines than its header names");
                let line = body_line(lines.get(at).ok_or_else(missing)?).ok_or_else(missing)?;
                old_left = old_left.saturating_sub(usize::from(!matches!(line, Line::Add(_))));
                new_left = new_left.saturating_sub(usize::from(!matches!(line, Line::Remove(_))));
                hunk.lines.push(line);
                at += 1;
            }
            if lines.get(at).is_some_and(|line| line.starts_with('\\')) {
                at += 1;
            }
            hunks.push(hunk);
        }
        if hunks.is_empty() {
            return Err(bad(at, "a file has no hunks"));
        }
        files.push(file_of(old, new, hunks));
    }
    Ok(files)
}

/// Returns the change of a file from its two names.
fn file_of(old: &str, new: &str, hunks: Vec<Hunk>) -> FilePatch {
    let name = |text: &str, prefix: &str| {
        let path = text.split('\t').next().unwrap_or(text).trim();
        (path != "/dev/null").then(|| path.strip_prefix(prefix).unwrap_or(path).to_owned())
    };
    match (name(old, "a/"), name(new, "b/")) {
        (None, Some(path)) => {
            let added = hunks.into_iter().flat_map(|hunk| hunk.lines);
            let content = added.filter_map(|line| match line {
                Line::Add(text) => Some(text + "\n"),
                _ => None,
            });
            FilePatch::Add { path, content: content.collect() }
        }
        (Some(path), None) => FilePatch::Delete { path },
        (Some(path), Some(to)) => {
            let to = (to != path).then_some(to);
            FilePatch::Update { path, to, hunks }
        }
        (None, None) => FilePatch::Delete { path: "/dev/null".into() },
    }
}

/// Parses `@@ -3,4 +3,5 @@`: the hunk, and the numbers of its old and new lines.
fn hunk_header(line: &str) -> Option<(Hunk, usize, usize)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let range = |word: &str, sign: char| {
        let text = word.strip_prefix(sign)?;
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (start, old) = range(words.next()?, '-')?;
    let (_, new) = range(words.next()?, '+')?;
    // After a hunk without old lines comes the next line.
    let line = if old == 0 { start } else { start.saturating_sub(1) };
    Some((Hunk { line: Some(line), ..Hunk::default() }, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_meaning() {
        let v4a = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n\
            *** Add File: b.txt\n+b\n*** Delete File: c.txt\n*** End Patch\n";
        let unified = "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n\
            @@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n\
            --- a/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n\\ No newline at end of file\n";
        let unplaced = |text: &str| {
            let mut files = parse(text).unwrap();
            for file in &mut files {
                if let FilePatch::Update { hunks, .. } = file {
                    hunks.iter_mut().for_each(|hunk| hunk.line = None);
                }
            }
            files
        };
        assert_eq!(unplaced(v4a), unplaced(unified));
        assert_eq!(parse(v4a).unwrap().len(), 3);
    }

    #[test]
    fn invalid_patches_are_refused_with_their_line() {
        for (text, expected) in [
            ("", "line 1: it changes no file"),
            ("*** Begin Patch\n*** Update File: a\n-x\n", "line 4: '*** End Patch' is missing"),
            ("*** Begin Patch\n*** Update File: a\n*** End Patch", "line 3: the update has no"),
            ("*** Begin Patch\n*** Update File: a\nx\n*** End Patch", "line 3: a line of a hunk"),
            ("*** Begin Patch\nhello\n*** End Patch", "line 2: expected"),
            ("--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-x\n", "line 5: a hunk has fewer lines"),
            ("--- a/x\n+++ b/x\n@@ nothing\n-x\n", "line 3: the header"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text:?}: {error}");
        }
        let long = "x".repeat(MAX_PATCH + 1);
        assert_eq!(parse(&long).unwrap_err().reason, Reason::TooLarge);
    }
}
