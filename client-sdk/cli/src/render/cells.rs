//! Text in the cells of a terminal: width, truncation and wrapping. All texts are sanitised first.

use std::borrow::Cow;

/// Returns the number of cells that a text occupies.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// Truncates at the end to a number of cells.
pub fn fit(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let mut fitted = console::truncate_str(text, cells, "").into_owned();
    // Joined characters are counted one by one when cut.
    while !fitted.is_empty() && width(&fitted) + 1 > cells {
        fitted.pop();
    }
    Cow::Owned(if cells == 0 { fitted } else { fitted + "…" })
}

/// Truncates a path at its start, because its end distinguishes it.
pub fn fit_path(path: &str, cells: usize) -> Cow<'_, str> {
    if width(path) <= cells {
        return Cow::Borrowed(path);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    let fits = |at: &usize| width(&path[*at..]) < cells;
    let start = path.char_indices().map(|(at, _)| at).find(fits).unwrap_or(path.len());
    // A cut at a separator is preferred, unless it costs most of the text.
    let tail = &path[start..];
    let tail = match tail.find('/') {
        Some(at) if at * 4 <= tail.len() => &tail[at..],
        _ => tail,
    };
    Cow::Owned(format!("…{tail}"))
}

/// Pads with spaces to a number of cells.
pub fn pad(text: &str, cells: usize) -> String {
    format!("{text}{}", " ".repeat(cells.saturating_sub(width(text))))
}

/// Wraps at spaces into lines of at most `cells`; longer words are split.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > cells {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        if width(word) <= cells {
            line.push_str(word);
            continue;
        }
        for c in word.chars() {
            if width(&line) + width(c.encode_utf8(&mut [0; 4])) > cells && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Wraps into at most `count` lines; the last one is truncated if text remains.
pub fn wrap_at_most(text: &str, cells: usize, count: usize) -> Vec<String> {
    let mut lines = wrap(text, cells);
    if lines.len() > count && count > 0 {
        let rest = lines.split_off(count - 1).join(" ");
        lines.push(fit(&rest, cells).into_owned());
    }
    lines.truncate(count);
    lines
}

/// Fewest cells behind the beginning of a line in which a text is wrapped.
const MIN_HANGING: usize = 20;

/// Continues a line with a text that is wrapped in the columns behind its beginning; on one line
/// if there are few.
pub fn hanging(begin: &str, text: &str, columns: usize) -> String {
    let indent = width(begin);
    let cells = columns.saturating_sub(indent);
    if cells < MIN_HANGING || width(text) <= cells {
        return format!("{begin}{text}");
    }
    format!("{begin}{}", wrap(text, cells).join(&format!("\n{}", " ".repeat(indent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_hangs_behind_the_beginning_of_its_line() {
        let text = "found: clangd; not found: gopls";
        assert_eq!(
            hanging("info  servers  ", text, 40),
            "info  servers  found: clangd; not found:\n               gopls"
        );
        assert_eq!(hanging("info  servers  ", text, 46), format!("info  servers  {text}"));
        assert_eq!(hanging("info  servers  ", text, 30), format!("info  servers  {text}"));
    }

    #[test]
    fn paths_are_truncated_at_their_start() {
        for (path, cells, expected) in [
            ("src/a.rs", 8, "src/a.rs"),
            ("src/render/a.rs", 8, "…er/a.rs"),
            ("src/render/a.rs", 12, "…render/a.rs"),
            ("関係/関係.rs", 7, "…係.rs"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            let fitted = fit_path(path, cells);
            assert!(width(&fitted) <= cells, "{fitted}");
            assert_eq!(fitted, expected);
        }
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrap("a bb  ccc\ndddd", 5), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("関係関係", 5), ["関係", "関係"]);
        assert_eq!(wrap("", 5), [""; 0]);
        assert_eq!(wrap_at_most("a bb ccc dddd", 4, 2), ["a bb", "ccc…"]);
        assert_eq!(wrap_at_most("a bb", 4, 2), ["a bb"]);
        assert_eq!(wrap_at_most("a bb", 4, 0), [""; 0]);
    }
}
