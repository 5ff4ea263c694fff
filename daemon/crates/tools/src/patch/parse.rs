//! The patch as files and hunks, and its first form: OpenAI's V4A.

use cairn_protocol::error::{Failure, Reason};

use super::unified;

/// Most files of one patch.
pub const MAX_FILES: usize = 100;
/// Most hunks of one patch.
const MAX_HUNKS: usize = 5000;
/// Most bytes of a patch.
pub const MAX_PATCH: usize = 1024 * 1024;

/// Effect of a line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Remove,
    Add,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    pub kind: LineKind,
    /// Without line feed; a carriage return before it is part of the text.
    pub text: String,
    /// True for the last line of a file that does not end with a line feed.
    pub lacks_end: bool,
}

/// Lines that replace others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines before the hunk, of which the first ones come first: a class, then a function.
    pub headers: Vec<String>,
    /// Line of the file, from 0, where it is expected.
    pub line: Option<usize>,
    pub lines: Vec<HunkLine>,
    /// True if the hunk ends with the file.
    pub at_end: bool,
}

/// New path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub path: String,
    /// True if the file under its old path stays.
    pub is_copy: bool,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePatch {
    Add {
        path: String,
        content: String,
        executable: bool,
    },
    Delete {
        path: String,
        /// The complete content that is deleted, if the patch has it.
        hunks: Option<Vec<Hunk>>,
    },
    Update {
        path: String,
        to: Option<Destination>,
        hunks: Vec<Hunk>,
        /// The new mode, if it changes.
        executable: Option<bool>,
    },
}

impl FilePatch {
    fn hunk_count(&self) -> usize {
        match self {
            Self::Add { .. } => 0,
            Self::Delete { hunks, .. } => hunks.as_ref().map_or(0, Vec::len),
            Self::Update { hunks, .. } => hunks.len(),
        }
    }
}

pub fn bad(line: usize, text: &str) -> Failure {
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
        None => unified::parse(text)?,
    };
    if files.is_empty() {
        return Err(bad(0, "it changes no file: begin with '*** Begin Patch' or '--- a/path'"));
    }
    if files.len() > MAX_FILES {
        return Err(bad(0, &format!("it changes more than {MAX_FILES} files")));
    }
    if files.iter().map(FilePatch::hunk_count).sum::<usize>() > MAX_HUNKS {
        return Err(bad(0, &format!("it has more than {MAX_HUNKS} hunks")));
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
            files.push(FilePatch::Add { path, content, executable: false });
        } else if let Some(path) = name("*** Delete File: ") {
            files.push(FilePatch::Delete { path, hunks: None });
        } else if let Some(path) = name("*** Update File: ") {
            let to = lines.get(at).and_then(|line| line.strip_prefix("*** Move to: "));
            let to = to.map(|path| Destination { path: path.trim().to_owned(), is_copy: false });
            at += usize::from(to.is_some());
            let (hunks, next) = v4a_hunks(lines, at)?;
            if hunks.is_empty() && to.is_none() {
                return Err(bad(at, "the update has no changes"));
            }
            at = next;
            files.push(FilePatch::Update { path, to, hunks, executable: None });
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
        } else if line.starts_with(NO_END) {
            mark_last(&mut hunk);
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

/// Begin of the line which states that the one before it has no line end; its words are translated.
pub const NO_END: &str = "\\ ";

/// Marks the last line of a hunk as one without end.
pub fn mark_last(hunk: &mut Hunk) {
    if let Some(last) = hunk.lines.last_mut() {
        last.lacks_end = true;
    }
}

/// Parses a line of a hunk; an empty one is an empty line of context.
pub fn body_line(line: &str) -> Option<HunkLine> {
    let (kind, text) = match line.chars().next() {
        None | Some('\r') => (LineKind::Context, line),
        Some(' ') => (LineKind::Context, &line[1..]),
        Some('-') => (LineKind::Remove, &line[1..]),
        Some('+') => (LineKind::Add, &line[1..]),
        Some(_) => return None,
    };
    Some(HunkLine { kind, text: text.to_owned(), lacks_end: false })
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
                match file {
                    FilePatch::Update { hunks, .. } => {
                        hunks.iter_mut().for_each(|hunk| hunk.line = None);
                    }
                    FilePatch::Delete { hunks, .. } => *hunks = None,
                    FilePatch::Add { .. } => {}
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
        let many = "@@ -1 +1 @@\n-x\n+y\n".repeat(MAX_HUNKS + 1);
        let error = parse(&format!("--- a/x\n+++ b/x\n{many}")).unwrap_err();
        assert!(error.message.contains("more than 5000 hunks"), "{error}");
    }
}
