//! Replacement of a part of a file's text in the form of the file: lines that stay are not touched,
//! new ones get the line ends, the letters and the indentation of those around them.

use std::{borrow::Cow, ops::Range};

use cairn_workspace::{
    Indent, Letters, LineEnd, TextFile, TextLine, composed, decomposed, letters_of,
};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::indent::Untranslatable;

/// Most lines that are compared one by one; of longer texts only the common first and last ones.
const MAX_COMPARED: usize = 2000;

/// Returns a text with plain line ends.
pub fn plain_ends(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Returns the lines of a text as they are compared.
fn compared(text: &str, by_letters: bool) -> Vec<Cow<'_, str>> {
    let lines = text.split_inclusive('\n').map(without_end);
    lines.map(|line| if by_letters { line.into() } else { composed(line) }).collect()
}

fn without_end(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

/// Line of the file that a new line is, or stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Same(Option<usize>),
    /// Its end is that of this line, if there is one.
    Near(Option<usize>),
}

/// Function that gives a new line the indentation of the file.
pub type Translate<'a> = &'a dyn Fn(&str) -> Result<String, Untranslatable>;

/// Returns a line unchanged.
pub fn verbatim(line: &str) -> Result<String, Untranslatable> {
    Ok(line.to_owned())
}

/// A text that replaces another; both have plain line ends.
pub struct Replacement<'t> {
    /// The replaced text as the caller has it, with the same lines as in the file.
    pub old: &'t str,
    pub new: &'t str,
    /// True if `old` has the letters of the file, in the same form.
    pub has_same_letters: bool,
    /// True if a letter whose form is not known is refused, not written as given.
    pub is_strict: bool,
    pub translate: Translate<'t>,
}

impl Replacement<'_> {
    /// Returns the text for `range` of the file.
    ///
    /// # Errors
    /// A new line whose indentation or letters have no unambiguous form in the file.
    pub fn rewritten(
        &self,
        file: &TextFile,
        range: Range<usize>,
    ) -> Result<String, Untranslatable> {
        let part = &file.text()[range.clone()];
        let here = file.lines_of(part);
        let by_letters = self.has_same_letters;
        let origins = origins(&compared(self.old, by_letters), &compared(self.new, by_letters));
        let letters = LineLetters::of(file, part, self.is_strict);
        let mut out = String::with_capacity(self.new.len());
        for (line, origin) in self.new.split_inclusive('\n').zip(origins) {
            let same = match origin {
                Origin::Same(at) => at.and_then(|at| here.get(at)),
                Origin::Near(_) => None,
            };
            match same {
                Some(same) => out.push_str(same.text),
                None => {
                    out.push_str(&letters.apply(&(self.translate)(without_end(line))?)?);
                }
            }
            if line.ends_with('\n') {
                let (Origin::Same(at) | Origin::Near(at)) = origin;
                out.push_str(end_near(file, &range, &here, at).text());
            }
        }
        Ok(out)
    }
}

/// Finds the lines of the file that new lines are.
fn origins(old: &[Cow<'_, str>], new: &[Cow<'_, str>]) -> Vec<Origin> {
    let first = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - first;
    let last = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b);
    let last = last.count();
    let inner_old = &old[first..old.len() - last];
    let inner_new = &new[first..new.len() - last];
    let mut origins: Vec<Origin> = (0..first).map(|at| Origin::Same(Some(at))).collect();
    let near = |at: usize| Origin::Near((first + at).checked_sub(1));
    if inner_old.len().max(inner_new.len()) > MAX_COMPARED || inner_old.is_empty() {
        let own = |n: usize| (n < inner_old.len()).then_some(Origin::Near(Some(first + n)));
        let other = |n: usize| own(n).unwrap_or_else(|| near(inner_old.len()));
        origins.extend((0..inner_new.len()).map(other));
    } else {
        for op in capture_diff_slices(Algorithm::Myers, inner_old, inner_new) {
            match op {
                DiffOp::Equal { old_index, len, .. } => {
                    origins.extend((0..len).map(|n| Origin::Same(Some(first + old_index + n))));
                }
                DiffOp::Insert { old_index, new_len, .. } => {
                    origins.extend((0..new_len).map(|_| near(old_index)));
                }
                DiffOp::Replace { old_index, old_len, new_len, .. } => {
                    let at = |n: usize| first + old_index + n.min(old_len.saturating_sub(1));
                    origins.extend((0..new_len).map(|n| Origin::Near(Some(at(n)))));
                }
                DiffOp::Delete { .. } => {}
            }
        }
    }
    origins.extend((old.len() - last..old.len()).map(|at| Origin::Same(Some(at))));
    origins
}

/// Returns the line end for a new line: that of the line it stands for, else of the nearest one
/// above, else of the next one below.
pub fn end_near(
    file: &TextFile,
    range: &Range<usize>,
    here: &[TextLine<'_>],
    near: Option<usize>,
) -> LineEnd {
    let usual = file.line_end().unwrap_or(LineEnd::Lf);
    if !file.has_mixed_line_ends() {
        return usual;
    }
    // The last line of the range may end behind it.
    let below = || first_end(&file.text()[range.end..]);
    let own = near.and_then(|at| match here.get(at)?.end {
        Some(end) => Some(end),
        None => below(),
    });
    own.or_else(|| last_end(&file.text()[..range.start]))
        .or_else(|| here.iter().find_map(|line| line.end))
        .or_else(below)
        .unwrap_or(usual)
}

/// Returns the first line end of a part of a file with line feeds.
fn first_end(text: &str) -> Option<LineEnd> {
    let at = text.find('\n')?;
    Some(if text[..at].ends_with('\r') { LineEnd::CrLf } else { LineEnd::Lf })
}

/// Returns the last line end of a part of a file with line feeds.
fn last_end(text: &str) -> Option<LineEnd> {
    let at = text.rfind('\n')?;
    Some(if text[..at].ends_with('\r') { LineEnd::CrLf } else { LineEnd::Lf })
}

/// Letters of new lines.
pub struct LineLetters<'f> {
    file: &'f TextFile,
    /// The part of the file that is replaced.
    part: &'f str,
    /// True if a letter whose form is not known is refused.
    is_strict: bool,
}

impl<'f> LineLetters<'f> {
    pub fn of(file: &'f TextFile, part: &'f str, is_strict: bool) -> Self {
        Self { file, part, is_strict }
    }

    /// Returns a line with the letters of the file, or if it has both forms with those of the part
    /// that is replaced. Composed ones are the default, so their presence changes nothing.
    pub fn apply<'t>(&self, line: &'t str) -> Result<Cow<'t, str>, Untranslatable> {
        if line.is_ascii() {
            return Ok(line.into());
        }
        let letters = match self.file.letters() {
            Letters::Mixed => letters_of(self.part),
            letters => letters,
        };
        match letters {
            Letters::Decomposed => Ok(decomposed(line)),
            Letters::Mixed if self.is_strict && letters_of(line) != Letters::Plain => {
                Err(Untranslatable)
            }
            Letters::Plain | Letters::Composed | Letters::Mixed => Ok(line.into()),
        }
    }
}

/// Describes new lines that are indented by spaces in a file that is indented by tabs.
pub fn other_indent<'t>(file: &TextFile, mut new: impl Iterator<Item = &'t str>) -> Option<String> {
    let is_spaced = |line: &str| line.starts_with("  ") && !line.trim().is_empty();
    (file.indent() == Indent::Tabs && new.any(is_spaced)).then(|| {
        "the file is indented by tabs, and new lines begin with spaces: they were written as given"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, old: &str, new: &str) -> String {
        let file = TextFile::parse(text.as_bytes()).unwrap();
        let found = super::super::occurrences::occurrences(&file, old);
        let range = found.ranges[0].clone();
        let has_same_letters = !found.in_other_letters;
        let is_strict = false;
        let replacement =
            Replacement { old, new, has_same_letters, is_strict, translate: &verbatim };
        let middle = replacement.rewritten(&file, range.clone()).unwrap();
        [&text[..range.start], middle.as_str(), &text[range.end..]].concat()
    }

    #[test]
    fn lines_that_stay_are_not_touched_and_new_ones_end_like_their_neighbours() {
        for (text, old, new, expected) in [
            ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nb\nc\n", "A\nb\nc\n", "A\r\nb\nc\r\n"),
            ("a\r\nb\nc\r\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\n", "x\na\n", "x\r\na\r\nb\nc\r\n"),
            ("a\r\nb\nc\r\n", "c", "c\nd", "a\r\nb\nc\r\nd\r\n"),
            ("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n"),
            ("a\rb", "a\nb", "a\nx\nb", "a\rx\rb"),
            ("e\u{301}\nx\n", "x", "\u{e9}", "e\u{301}\ne\u{301}\n"),
            ("\u{e9}\nx\n", "x", "e\u{301}", "\u{e9}\ne\u{301}\n"),
            (
                "\u{e9}\ne\u{301}\n",
                "\u{e9}\n\u{e9}\n",
                "\u{e9}\nx\n\u{e9}\n",
                "\u{e9}\nx\ne\u{301}\n",
            ),
        ] {
            assert_eq!(replaced(text, old, new), expected, "{text:?} {old:?} {new:?}");
        }
    }
}
