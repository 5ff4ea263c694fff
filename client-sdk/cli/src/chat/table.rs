//! Tables of Markdown, with columns that fit the terminal.

use console::{Style, measure_text_width};

use super::inline::{self, LineStyle};
use crate::render::output::plain;

/// Text between two columns.
const SEPARATOR: &str = " │ ";
/// Columns that a cell has at least; in a narrower terminal each row is a list of its cells.
const MIN_COLUMNS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Left,
    Right,
}

/// Renders the lines of a table as rows of at most `width` columns; `None` if they are none.
pub fn render(lines: &[String], width: usize, heading: &Style) -> Option<Vec<String>> {
    let alignments = alignments(lines.get(1)?)?;
    let mut rows: Vec<Vec<String>> = lines.iter().map(|line| cells(&plain(line))).collect();
    rows.remove(1);
    let count = rows.iter().map(Vec::len).max()?;
    let natural: Vec<usize> = (0..count)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max())
        .map(Option::unwrap_or_default)
        .collect();
    let available = width.saturating_sub((count - 1) * measure_text_width(SEPARATOR));
    let Some(widths) = fitted(&natural, available) else {
        return Some(records(&rows, width, heading));
    };
    let mut out = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let base = if at == 0 { heading.clone() } else { Style::new() };
        out.extend(lines_of(row, &widths, &alignments, &base));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            out.push(dim(&rule.join("─┼─")));
        }
    }
    Some(out)
}

fn dim(text: &str) -> String {
    Style::new().dim().force_styling(true).apply_to(text).to_string()
}

/// Returns the alignments of the columns, if the line is the one below the header.
fn alignments(line: &str) -> Option<Vec<Alignment>> {
    let cells = cells(line);
    let is_rule = |cell: &String| {
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.bytes().all(|b| b == b'-')
    };
    let alignment = |cell: &String| match cell.ends_with(':') && !cell.starts_with(':') {
        true => Alignment::Right,
        false => Alignment::Left,
    };
    cells.iter().all(is_rule).then(|| cells.iter().map(alignment).collect())
}

/// Splits a line at its bars, of which a backslash escapes one.
fn cells(line: &str) -> Vec<String> {
    let body = line.trim();
    let body = body.strip_prefix('|').unwrap_or(body);
    let mut cells = vec![String::new()];
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.len() - 1;
        match c {
            '\\' if chars.next_if_eq(&'|').is_some() => cells[cell].push('|'),
            '|' => cells.push(String::new()),
            c => cells[cell].push(c),
        }
    }
    // The bar at the end of the line begins no cell.
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn wrapped(cell: &str, base: &Style, width: usize) -> Vec<String> {
    let line_style = LineStyle { base: base.clone(), first: String::new(), hang: 0 };
    inline::rows(cell, &line_style, width.into())
}

/// Returns the columns of a cell in one row.
fn columns(cell: &str) -> usize {
    wrapped(cell, &Style::new(), usize::MAX).iter().map(|row| measure_text_width(row)).sum()
}

/// Returns widths that fit: narrow columns have what they need, wide ones share what remains.
fn fitted(natural: &[usize], available: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|at| natural[*at]);
    let mut widths = vec![0; natural.len()];
    let mut remaining = available;
    for (done, at) in order.iter().enumerate() {
        let share = remaining / (natural.len() - done);
        if natural[*at] > share && share < MIN_COLUMNS {
            return None;
        }
        widths[*at] = natural[*at].min(share);
        remaining -= widths[*at];
    }
    Some(widths)
}

/// Renders a row of the table as lines.
fn lines_of(
    row: &[String],
    widths: &[usize],
    alignments: &[Alignment],
    base: &Style,
) -> Vec<String> {
    let empty = String::new();
    let cells: Vec<Vec<String>> = widths
        .iter()
        .enumerate()
        .map(|(at, width)| wrapped(row.get(at).unwrap_or(&empty), base, (*width).max(1)))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |at: usize| {
        let mut out = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let text = cell.get(at).unwrap_or(&empty);
            let space = " ".repeat(width.saturating_sub(measure_text_width(text)));
            if column > 0 {
                out.push_str(&dim(SEPARATOR));
            }
            match alignments.get(column) {
                Some(Alignment::Right) => out.extend([space.as_str(), text]),
                _ if column + 1 == widths.len() => out.push_str(text),
                _ => out.extend([text, space.as_str()]),
            }
        }
        out.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// Renders each row as a list of its cells with their headers.
fn records(rows: &[Vec<String>], width: usize, heading: &Style) -> Vec<String> {
    let mut out = Vec::new();
    let Some((header, rows)) = rows.split_first() else { return out };
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push(String::new());
        }
        for (column, cell) in row.iter().enumerate() {
            let name = header.get(column).map(String::as_str).unwrap_or_default();
            let first = match name {
                "" => String::new(),
                name => format!("{} ", heading.apply_to(format!("{name}:"))),
            };
            let line_style = LineStyle { base: Style::new(), first, hang: 2 };
            out.extend(inline::rows(cell, &line_style, width.into()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, width: usize) -> String {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let rows = render(&lines, width, &Style::new().bold()).unwrap_or_default();
        for row in &rows {
            assert!(measure_text_width(row) <= width, "{width}: {row}");
        }
        console::strip_ansi_codes(&rows.join("\n")).into_owned()
    }

    #[test]
    fn columns_are_aligned() {
        let table = "| name | n |\n|:--|--:|\n| `one` | 1 |\n| two \\| three | 200 |";
        let expected = "\
name        │   n
────────────┼────
one         │   1
two | three │ 200";
        assert_eq!(rendered(table, 60), expected);
    }

    #[test]
    fn wide_cells_are_wrapped_at_words() {
        let table = "|key|meaning|\n|-|-|\n|a|several words that do not fit|\n|b||";
        let expected = "\
key │ meaning
────┼───────────────
a   │ several words
    │ that do not
    │ fit
b   │ ";
        assert_eq!(rendered(table, 20), expected);
    }

    #[test]
    fn row_of_many_columns_becomes_a_list() {
        let table = "|first|second|third|\n|-|-|-|\n|a long text|another text|a third text|\n|x|y|";
        let expected = "\
first: a long text
second: another text
third: a third text

first: x
second: y";
        assert_eq!(rendered(table, 24), expected);
    }

    #[test]
    fn lines_without_a_rule_are_no_table() {
        for text in ["| a | b |", "| a |\n| b |", "| a |\n|  |"] {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(render(&lines, 60, &Style::new()), None, "{text}");
        }
    }
}
