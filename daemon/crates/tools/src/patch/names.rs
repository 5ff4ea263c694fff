//! Names of files in the headers of unified diffs.

/// Prefixes that git puts before the old and the new name.
const PREFIXES: [(&str, &str); 6] =
    [("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/")];

/// A name in a header; `None` for a file that does not exist.
pub type Name = Option<String>;

/// Reads a name in C's quotes, as git prints one with other than plain ASCII characters: the name,
/// and the text after it. `None` if the quotes are not closed, or the name is not UTF-8.
pub fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text.strip_prefix('"')?;
    loop {
        let (at, found) = rest.char_indices().find(|(_, c)| matches!(c, '"' | '\\'))?;
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if found == '"' {
            return Some((String::from_utf8(bytes).ok()?, rest));
        }
        let code = rest.chars().next()?;
        let octal = rest.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (byte, length) = match (code, octal) {
            ('0'..='3', Some(byte)) => (byte, 3),
            ('a', _) => (0x07, 1),
            ('b', _) => (0x08, 1),
            ('t', _) => (b'\t', 1),
            ('n', _) => (b'\n', 1),
            ('v', _) => (0x0b, 1),
            ('f', _) => (0x0c, 1),
            ('r', _) => (b'\r', 1),
            ('"', _) => (b'"', 1),
            ('\\', _) => (b'\\', 1),
            _ => return None,
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
}

/// Reads the name after `--- ` or `+++ `. A tab, or a date, ends it.
pub fn header_name(text: &str) -> Option<Name> {
    let text = text.trim_end_matches('\r');
    let (name, after) = match text.starts_with('"') {
        true => unquoted(text)?,
        false => {
            let at = text.find('\t').unwrap_or_else(|| date_at(text).unwrap_or(text.len()));
            (text[..at].trim().to_owned(), &text[at..])
        }
    };
    let note = after.trim();
    // GNU diff gives the epoch to absent files, svn a revision that does not exist.
    let is_absent = name == "/dev/null"
        || note.starts_with("1970-01-01 00:00:00")
        || note.starts_with("1969-12-31 ")
        || note == "(revision 0)"
        || note == "(nonexistent)";
    if name.is_empty() {
        return None;
    }
    Some((!is_absent).then_some(name))
}

/// Returns the position of ` 2020-01-31 10:00:00` at the end of a name.
fn date_at(text: &str) -> Option<usize> {
    const FORM: &str = " 0000-00-00 00:00:00";
    let fits = |at: &usize| {
        let bytes = &text.as_bytes()[*at..];
        bytes.len() >= FORM.len()
            && bytes.iter().zip(FORM.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => *byte == form,
            })
    };
    text.match_indices(' ').map(|(at, _)| at).find(fits)
}

/// Removes the prefixes of an old and a new name, if both have one of a pair.
pub fn without_prefixes(old: &str, new: &str) -> Option<(String, String)> {
    let strip = |(first, second): (&str, &str)| {
        Some((old.strip_prefix(first)?.to_owned(), new.strip_prefix(second)?.to_owned()))
    };
    // A reverse diff has them the other way round.
    PREFIXES.into_iter().find_map(|(a, b)| strip((a, b)).or_else(|| strip((b, a))))
}

/// The names of a line `diff --git`, of one file or of two.
pub fn git_names(text: &str) -> Option<(String, String)> {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') {
        let (old, rest) = unquoted(text)?;
        let rest = rest.strip_prefix(' ')?;
        let new = if rest.starts_with('"') { unquoted(rest)?.0 } else { rest.to_owned() };
        return Some((old, new));
    }
    if let Some(at) = text.find(" \"") {
        return Some((text[..at].to_owned(), unquoted(&text[at + 1..])?.0));
    }
    // Names with spaces are not quoted: only equal ones can be told apart.
    let pairs = text.match_indices(' ').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let is_same = |(old, new): &(&str, &str)| {
        old == new || without_prefixes(old, new).is_some_and(|(old, new)| old == new)
    };
    let mut pairs = pairs.filter(is_same);
    pairs.next().map(|(old, new)| (old.to_owned(), new.to_owned()))
}

/// Returns the paths of a traditional diff, whose names may be those of two folders or of a backup.
pub fn traditional(old: &str, new: &str) -> (String, String) {
    if let Some(paths) = without_prefixes(old, new) {
        return paths;
    }
    if old == new {
        return (old.to_owned(), new.to_owned());
    }
    let inner = |path: &str| path.split_once('/').map(|(_, inner)| inner.to_owned());
    if let (Some(first), Some(second)) = (inner(old), inner(new))
        && first == second
    {
        return (first, second);
    }
    let is_backup =
        [".orig", ".old", ".bak", "~"].iter().any(|end| old.strip_suffix(end) == Some(new));
    if is_backup { (new.to_owned(), new.to_owned()) } else { (old.to_owned(), new.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_gnu_and_svn_write_them() {
        let some = |name: &str| Some(Some(name.to_owned()));
        for (text, expected) in [
            ("a/x.rs", some("a/x.rs")),
            ("a/x y.rs\t", some("a/x y.rs")),
            ("x.c\t2020-01-31 10:00:00.000000000 +0100", some("x.c")),
            ("x.c 2020-01-31 10:00:00", some("x.c")),
            ("x.c\t1970-01-01 00:00:00.000000000 +0000", Some(None)),
            ("x.c\t(revision 12)", some("x.c")),
            ("x.c\t(nonexistent)", Some(None)),
            ("/dev/null\r", Some(None)),
            ("\"a/\\303\\244 \\\"\\\\\\t.txt\"", some("a/\u{e4} \"\\\t.txt")),
            ("\"a/\\377\"", None),
            ("\"a/\\9\"", None),
            ("\"a/", None),
            ("\"a/\\", None),
        ] {
            assert_eq!(header_name(text), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_are_removed_in_pairs_only() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        for (text, expected) in [
            ("a/x b/x", pair("a/x", "b/x")),
            ("a/x y b/x y", pair("a/x y", "b/x y")),
            ("a/x a/x", pair("a/x", "a/x")),
            ("\"a/\\303\\244\" \"b/\\303\\244\"", pair("a/\u{e4}", "b/\u{e4}")),
            ("a/x \"b/\\303\\244\"", pair("a/x", "b/\u{e4}")),
            ("a/x b/y", None),
        ] {
            assert_eq!(git_names(text), expected, "{text}");
        }
        assert_eq!(without_prefixes("a/x", "b/y"), pair("x", "y"));
        assert_eq!(without_prefixes("b/x", "a/x"), pair("x", "x"));
        assert_eq!(without_prefixes("a/x", "a/x"), None);
        for (old, new, expected) in [
            ("src/x.c", "src/x.c", pair("src/x.c", "src/x.c")),
            ("old/src/x.c", "new/src/x.c", pair("src/x.c", "src/x.c")),
            ("x.c.orig", "x.c", pair("x.c", "x.c")),
            ("a/x.c", "b/y.c", pair("x.c", "y.c")),
        ] {
            assert_eq!(Some(traditional(old, new)), expected, "{old} {new}");
        }
    }
}
