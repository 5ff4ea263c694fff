//! Unified diffs, as git, GNU diff and svn print them.

use cairn_protocol::error::Failure;

use super::{
    names::{self, Name},
    parse::{Destination, FilePatch, Hunk, LineKind, NO_END, bad, body_line, mark_last},
};

/// Begin of lines that no hunk has when it is complete.
const HEADERS: [&str; 5] = ["--- ", "+++ ", "diff --git ", "index ", "Index: "];

/// The headers of one file, and its hunks.
#[derive(Default)]
struct FileDiff {
    /// Line of the patch where it begins.
    start: usize,
    /// Names of the line `diff --git`, with their prefixes.
    git_names: Option<(String, String)>,
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    is_new: bool,
    is_deleted: bool,
    from: Option<String>,
    to: Option<String>,
    is_copy: bool,
    /// Names of `---` and `+++`, with their prefixes.
    names: Option<(Name, Name)>,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    executable: bool,
}

/// Parses a unified diff; text around the files is skipped.
///
/// # Errors
/// `invalid_params` with the line of the patch.
pub fn parse(text: &str) -> Result<Vec<FilePatch>, Failure> {
    let lines = patch_lines(text);
    let mut patch = UnifiedDiff::default();
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let git_names = names::git_names(names);
            patch.begin(FileDiff { start: at, git_names, ..FileDiff::default() })?;
        } else if line.starts_with("--- ") && is_name(&lines, at + 1) {
            if patch.open.as_ref().is_none_or(FileDiff::has_body) {
                patch.begin(FileDiff { start: at, ..FileDiff::default() })?;
            }
            if let Some(file) = &mut patch.open {
                at = file.read_names_and_hunks(&lines, at)?;
                continue;
            }
        } else if let Some(file) = patch.open.as_mut().filter(|file| !file.has_body()) {
            file.read_header(line, at)?;
        }
        refuse_unsupported(line, at)?;
        at += 1;
    }
    patch.finish()?;
    Ok(patch.files)
}

/// The files of a diff, and the one that is being read.
#[derive(Default)]
struct UnifiedDiff {
    files: Vec<FilePatch>,
    open: Option<FileDiff>,
}

impl UnifiedDiff {
    fn begin(&mut self, next: FileDiff) -> Result<(), Failure> {
        self.finish()?;
        self.open = Some(next);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.files.extend(self.open.take().map(FileDiff::finished).transpose()?);
        Ok(())
    }
}

/// Returns the lines of a patch, without line feeds. In a patch whose headers end with carriage
/// returns, each line has an additional one.
fn patch_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let mut headers = lines
        .iter()
        .filter(|line| HEADERS.iter().any(|header| line.starts_with(header)))
        .peekable();
    let is_converted = headers.peek().is_some() && headers.all(|line| line.ends_with('\r'));
    if !is_converted {
        return lines;
    }
    lines.into_iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect()
}

fn is_name(lines: &[&str], at: usize) -> bool {
    lines.get(at).is_some_and(|line| line.starts_with("+++ "))
}

/// Refuses parts of a diff that would be skipped like the text around it.
fn refuse_unsupported(line: &str, at: usize) -> Result<(), Failure> {
    let line = line.trim_end_matches('\r');
    let is_binary = line == "GIT binary patch"
        || (line.starts_with("Binary files ") && line.ends_with(" differ"))
        || line == "Cannot display: file marked as a binary type.";
    if is_binary {
        return Err(bad(at, &format!("binary changes cannot be applied ({line})")));
    }
    if line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
        return Err(bad(at, "the combined diff of a merge cannot be applied"));
    }
    if line.starts_with("Property changes on: ") {
        return Err(bad(at, &format!("properties of svn cannot be changed ({line})")));
    }
    Ok(())
}

impl FileDiff {
    fn has_body(&self) -> bool {
        self.names.is_some() || !self.hunks.is_empty()
    }

    /// Reads one of git's lines between `diff --git` and `---`.
    fn read_header(&mut self, line: &str, at: usize) -> Result<(), Failure> {
        let line = line.trim_end_matches('\r');
        let path = |text: &str| {
            let name = if text.starts_with('"') {
                names::unquoted(text).map(|(name, _)| name)
            } else {
                Some(text.to_owned())
            };
            name.map(Some).ok_or_else(|| bad(at, "the name is quoted in a way that is not UTF-8"))
        };
        let mode = |text: &str| mode_of(text, at).map(Some);
        if let Some(text) = line.strip_prefix("old mode ") {
            self.old_mode = mode(text)?;
        } else if let Some(text) = line.strip_prefix("new mode ") {
            self.new_mode = mode(text)?;
        } else if let Some(text) = line.strip_prefix("new file mode ") {
            self.new_mode = mode(text)?;
            self.is_new = true;
        } else if let Some(text) = line.strip_prefix("deleted file mode ") {
            self.old_mode = mode(text)?;
            self.is_deleted = true;
        } else if let Some(text) = line.strip_prefix("rename from ") {
            self.from = path(text)?;
        } else if let Some(text) = line.strip_prefix("rename to ") {
            self.to = path(text)?;
        } else if let Some(text) = line.strip_prefix("copy from ") {
            self.from = path(text)?;
            self.is_copy = true;
        } else if let Some(text) = line.strip_prefix("copy to ") {
            self.to = path(text)?;
        } else if let Some((_, mode)) =
            line.strip_prefix("index ").and_then(|text| text.split_once(' '))
        {
            mode_of(mode, at)?;
        }
        Ok(())
    }

    /// Reads `---`, `+++` and the hunks after them; returns the line after those.
    fn read_names_and_hunks(&mut self, lines: &[&str], first: usize) -> Result<usize, Failure> {
        let name = |at: usize| {
            let text = lines.get(at).and_then(|line| line.get(4..)).unwrap_or_default();
            names::header_name(text).ok_or_else(|| bad(at, "the name cannot be read as UTF-8"))
        };
        self.names = Some((name(first)?, name(first + 1)?));
        let mut at = first + 2;
        while let Some(line) = lines.get(at).filter(|line| line.starts_with("@@ ")) {
            let (mut hunk, mut old_left, mut new_left) =
                hunk_header(line).ok_or_else(|| bad(at, "the header of a hunk is invalid"))?;
            at += 1;
            while old_left > 0 || new_left > 0 {
                let missing = || bad(at, "a hunk has fewer lines than its header names");
                let text = lines.get(at).ok_or_else(missing)?;
                if text.starts_with(NO_END) {
                    mark_last(&mut hunk);
                    at += 1;
                    continue;
                }
                let line = body_line(text).ok_or_else(missing)?;
                at += 1;
                old_left = old_left.saturating_sub(usize::from(line.kind != LineKind::Add));
                new_left = new_left.saturating_sub(usize::from(line.kind != LineKind::Remove));
                hunk.lines.push(line);
            }
            if lines.get(at).is_some_and(|line| line.starts_with(NO_END)) {
                mark_last(&mut hunk);
                at += 1;
            }
            self.hunks.push(hunk);
        }
        let is_more = |line: &&str| {
            let is_end = line.trim_end() == "--" || line.starts_with("--- ");
            line.starts_with(['+', '-', ' ']) && !line.trim().is_empty() && !is_end
        };
        if lines.get(at).is_some_and(is_more) {
            return Err(bad(at, "a hunk has more lines than its header names"));
        }
        Ok(at)
    }

    /// Returns the old and the new path, without prefixes.
    fn paths(&self) -> Result<(Name, Name), Failure> {
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            return Ok((Some(from.clone()), Some(to.clone())));
        }
        let git = self.git_names.as_ref();
        let git_paths = git.and_then(|(old, new)| names::without_prefixes(old, new));
        // One name does not show that it has a prefix; the two of git do.
        let without_prefix = |name: &str, prefix: &str| match git {
            Some(_) => name.to_owned(),
            None => name.strip_prefix(prefix).unwrap_or(name).to_owned(),
        };
        match &self.names {
            Some((Some(old), Some(new))) => {
                let (old, new) = names::traditional(old, new);
                Ok((Some(old), Some(new)))
            }
            Some((None, Some(new))) => {
                let path = git_paths.map(|(_, path)| path);
                Ok((None, Some(path.unwrap_or_else(|| without_prefix(new, "b/")))))
            }
            Some((Some(old), None)) => {
                let path = git_paths.map(|(path, _)| path);
                Ok((Some(path.unwrap_or_else(|| without_prefix(old, "a/"))), None))
            }
            Some((None, None)) => Err(bad(self.start, "it names no file")),
            None => {
                let names = git_paths.or_else(|| self.git_names.clone());
                let unknown = || bad(self.start, "the names of 'diff --git' cannot be read");
                let (old, new) = names.ok_or_else(unknown)?;
                Ok(((!self.is_new).then_some(old), (!self.is_deleted).then_some(new)))
            }
        }
    }

    fn finished(self) -> Result<FilePatch, Failure> {
        let start = self.start;
        let (old, new) = self.paths()?;
        let executable = self.new_mode.filter(|mode| Some(*mode) != self.old_mode);
        let executable = executable.map(|mode| mode.executable);
        match (old, new) {
            (None, Some(path)) => Ok(FilePatch::Add {
                path,
                content: added_content(self.hunks),
                executable: executable == Some(true),
            }),
            (Some(path), None) => Ok(FilePatch::Delete { path, hunks: Some(self.hunks) }),
            (Some(path), Some(to)) => {
                let is_copy = self.is_copy;
                let to = (to != path).then_some(Destination { path: to, is_copy });
                if self.hunks.is_empty() && to.is_none() && executable.is_none() {
                    return Err(bad(start, &format!("the change of '{path}' has no hunks")));
                }
                Ok(FilePatch::Update { path, to, hunks: self.hunks, executable })
            }
            (None, None) => Err(bad(start, "it names no file")),
        }
    }
}

/// Returns the content of a new file.
fn added_content(hunks: Vec<Hunk>) -> String {
    let mut content = String::new();
    let lines = hunks.into_iter().flat_map(|hunk| hunk.lines);
    for line in lines.filter(|line| line.kind == LineKind::Add) {
        content.push_str(&line.text);
        content.push_str(if line.lacks_end { "" } else { "\n" });
    }
    content
}

/// Reads a mode of git; only regular files can be changed.
fn mode_of(text: &str, at: usize) -> Result<Mode, Failure> {
    match text.trim() {
        "120000" => Err(bad(at, "symbolic links cannot be changed by a patch (mode 120000)")),
        "160000" => Err(bad(at, "submodules cannot be changed by a patch (mode 160000)")),
        mode => match u32::from_str_radix(mode, 8) {
            Ok(mode) if mode & 0o170_000 == 0o100_000 => Ok(Mode { executable: mode & 0o100 != 0 }),
            _ => Err(bad(at, "the mode is not that of a file")),
        },
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
    use crate::patch::{hunks, parse};

    fn one(text: &str) -> FilePatch {
        let mut files = parse::parse(text).unwrap();
        assert_eq!(files.len(), 1, "{text}");
        files.remove(0)
    }

    #[test]
    fn headers_of_git_without_hunks_are_changes() {
        let update = |path: &str, to: Option<Destination>, executable| FilePatch::Update {
            path: path.into(),
            to,
            hunks: vec![],
            executable,
        };
        let destination = |path: &str, is_copy| Some(Destination { path: path.into(), is_copy });
        for (text, expected) in [
            (
                "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
                update("x", destination("y", false), None),
            ),
            (
                "diff --git \"a/\\303\\244\" b/y\nsimilarity index 100%\nrename from \
                 \"\\303\\244\"\nrename to y\n",
                update("\u{e4}", destination("y", false), None),
            ),
            (
                "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n",
                update("x", destination("y", true), None),
            ),
            (
                "diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n",
                update("x y", None, Some(true)),
            ),
            (
                "diff --git a/x b/x\nnew file mode 100755\nindex 0000000..e69de29\n",
                FilePatch::Add { path: "x".into(), content: String::new(), executable: true },
            ),
            (
                "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n",
                FilePatch::Delete { path: "x".into(), hunks: Some(vec![]) },
            ),
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
    }

    #[test]
    fn unsupported_parts_are_refused_by_name() {
        for (text, expected) in [
            ("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\n", "binary changes"),
            ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary changes"),
            ("diff --git a/x b/x\nnew file mode 120000\n", "symbolic links"),
            ("diff --git a/x b/x\nindex 1..2 120000\n", "symbolic links"),
            ("diff --git a/x b/x\nindex 1..2 160000\n", "submodules"),
            ("diff --cc x\n", "combined diff of a merge"),
            ("diff --git a/x b/x\nindex 1..2 100644\n", "the change of 'x' has no hunks"),
            (
                "Index: x\n=====\n--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n\nProperty changes on: x\n",
                "svn",
            ),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", "more lines than its header"),
            ("--- \"a/\\377\"\n+++ \"b/\\377\"\n@@ -1 +1 @@\n-a\n+b\n", "cannot be read"),
        ] {
            let error = parse::parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn marks_of_absent_line_ends_belong_to_the_line_before_them() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n";
        let FilePatch::Update { hunks, .. } = one(text) else { panic!("no update") };
        let marks: Vec<bool> = hunks[0].lines.iter().map(|line| line.lacks_end).collect();
        assert_eq!(marks, [false, true, false]);
    }

    #[test]
    fn carriage_returns_of_the_patch_are_not_those_of_the_file() {
        let text = "diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n";
        let FilePatch::Update { hunks, path, .. } = one(text) else { panic!("no update") };
        assert_eq!((path.as_str(), hunks[0].lines[1].text.as_str()), ("x", "b"));
        let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@ f\r\n-a\r\n+b\r\n";
        let FilePatch::Update { hunks, .. } = one(text) else { panic!("no update") };
        assert_eq!(hunks[0].lines[1].text, "b\r");
    }

    #[test]
    fn damaged_patches_are_parsed_without_a_panic() {
        let text = "diff --git \"a/\\303\\244\" b/y z\nold mode 100644\nnew mode 100755\nsimilarity index \
            90%\nrename from \"\\303\\244\"\nrename to y z\nindex 1..2\n--- \"a/\\303\\244\"\n+++ b/y \
            z\t\n@@ -1,2 +1,2 @@ f\n a\n-\u{e4}\n\\ No newline\n+b\r\n\\ No newline\n";
        assert_eq!(parse::parse(text).unwrap().len(), 1);
        let chars: Vec<char> = text.chars().collect();
        for at in 0..chars.len() {
            let (head, tail) = (&chars[..at], &chars[at + 1..]);
            for middle in [&[][..], &['\n'], &['"'], &['\\'], &['9'], &['\u{20ac}'], &['\r', '-']] {
                let damaged: String = [head, middle, tail].concat().into_iter().collect();
                if let Ok(files) = parse::parse(&damaged) {
                    for file in files {
                        if let FilePatch::Update { hunks, .. } = file {
                            let _refused = hunks::apply("f", "a\n\u{e4}".as_bytes(), &hunks);
                        }
                    }
                }
            }
        }
    }
}
