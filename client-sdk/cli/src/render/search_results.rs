//! Search results as text: detailed for a terminal, one line per result for a pipe.

use std::{fmt::Write as _, ops::Range, path::Path};

use cairn_protocol::search::{SearchItem, Share};
use console::{Style, StyledObject};

use super::match_reasons::why;
use crate::{
    render::{
        highlight::{CodeClass, Painter, Piece},
        output::plain,
        theme::Theme,
    },
    scope,
};

/// Columns of a line where the output is no terminal.
pub const WIDE: usize = 200;
/// Columns of a line's number and indentation, a multiple of the width of a tab.
const PREFIX: usize = 8;

/// Options of the output.
pub struct Page<'a> {
    pub root: &'a str,
    pub here: &'a Path,
    /// Maximum lines of each passage.
    pub limit: usize,
    /// Columns of the output; longer lines are cut.
    pub columns: usize,
    /// The output is a terminal.
    pub terminal: bool,
    pub colours: bool,
    /// Set if the composition of scores was requested.
    pub explain: bool,
    /// Highlights the code, on a terminal with colours.
    pub painter: Option<Painter>,
}

impl Page<'_> {
    /// Renders all results, best first. On a terminal the results of one file follow its best one.
    pub fn text(&mut self, items: &[SearchItem]) -> String {
        if !self.terminal {
            return (1..).zip(items).map(|(rank, item)| self.item(rank, item, true)).collect();
        }
        let mut out = String::new();
        let mut printed = vec![false; items.len()];
        for first in 0..items.len() {
            let mut is_first = true;
            for at in first..items.len() {
                let is_same = items[at].path == items[first].path;
                if printed[at] || !is_same || items[at].root != items[first].root {
                    continue;
                }
                out.push_str(&self.item(at + 1, &items[at], is_first));
                printed[at] = true;
                is_first = false;
            }
        }
        out
    }

    fn styled<D>(&self, style: Style, what: D) -> StyledObject<D> {
        style.force_styling(self.colours).apply_to(what)
    }

    /// Renders a result; the path of a further one of a file is dim.
    fn item(&mut self, rank: usize, item: &SearchItem, is_first: bool) -> String {
        let path = scope::relative_display(self.root, &item.path, self.here);
        let symbol = item
            .symbol
            .as_ref()
            .map_or_else(String::new, |s| format!("  {} {}", s.kind, plain(&s.name)));
        let changed = if item.changed { "  (changed since)" } else { "" };
        let look = if is_first { Style::new().green() } else { Style::new().dim() };
        let path = self.styled(look, path);
        let symbol = self.styled(Style::new().cyan(), symbol);
        let lines = format!("{}-{}", item.start_line, item.end_line);
        let score = self.styled(Style::new().dim(), format!("{:.3}", item.score));
        let mut out = String::new();
        let _infallible = if self.terminal {
            let rank = self.styled(Style::new().dim(), format!("{rank:>2}."));
            let score = if self.explain { format!("  {score}") } else { String::new() };
            writeln!(out, "{rank} {path}:{lines}{symbol}{score}{changed}")
        } else {
            writeln!(out, "{path}:{lines}{symbol}  {score}{changed}")
        };
        self.reasons(&mut out, item);
        if let Some(text) = &item.text {
            self.passage(&mut out, item, text);
            out.push('\n');
        }
        out
    }

    fn reasons(&self, out: &mut String, item: &SearchItem) {
        let why = why(&item.explain);
        let dim = Style::new().dim();
        if self.terminal && !why.is_empty() {
            let _infallible =
                writeln!(out, "    {}", self.styled(dim.clone(), format!("by {why}")));
        }
        if self.explain && !item.explain.is_empty() {
            let share = |s: &Share| format!("{} {:+.3}", s.feature, s.share);
            let shares: Vec<String> = item.explain.iter().map(share).collect();
            let _infallible =
                writeln!(out, "        {}", self.styled(dim, plain(&shares.join("  "))));
        }
    }

    /// Renders a passage; if it is too long, the lines around its best match.
    fn passage(&mut self, out: &mut String, item: &SearchItem, text: &str) {
        let first = item.text_start_line.unwrap_or(item.start_line);
        let mut starts = Vec::new();
        let mut lines: Vec<&str> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            starts.push(at);
            lines.push(line.trim_end_matches(['\n', '\r']));
            at += line.len();
        }
        let selected = best_lines(&starts, &lines, &item.highlights, self.limit);
        let painted = match &mut self.painter {
            Some(painter) => painter.paint(&item.path, &lines, selected.clone()),
            None => vec![Vec::new(); selected.len()],
        };
        let rest = lines.len() - selected.len();
        let numbers = first as usize + selected.start..;
        for ((number, n), pieces) in numbers.zip(selected).zip(painted) {
            let marked = self.marked(lines[n], starts[n], &item.highlights, &pieces);
            let number = self.styled(Style::new().dim(), format!("{number:>5}"));
            let _infallible = writeln!(out, "  {number} {marked}");
        }
        if self.terminal && rest > 0 {
            let more = format!("      … {rest} more {}", if rest == 1 { "line" } else { "lines" });
            let _infallible = writeln!(out, "{}", self.styled(Style::new().dim(), more));
        }
    }

    /// Renders a highlighted line with its matches marked.
    fn marked(
        &self,
        line: &str,
        start: usize,
        highlights: &[[u32; 2]],
        pieces: &[Piece],
    ) -> String {
        let mut out = String::new();
        let mut done = 0;
        let complete = line;
        let line = &line[..fitting(line, self.columns.saturating_sub(PREFIX))];
        for [from, to] in highlights {
            let from = (*from as usize).max(start + done) - start;
            let to = (*to as usize).min(start + line.len()).max(start) - start;
            // Ranges are untrusted: those that do not fit are skipped.
            let (Some(_), Some(hit)) = (line.get(done..from), line.get(from..to)) else { continue };
            if hit.is_empty() {
                continue;
            }
            self.coloured(&mut out, line, done..from, pieces);
            let _infallible = write!(out, "{}", self.styled(Style::new().bold().red(), plain(hit)));
            done = to;
        }
        self.coloured(&mut out, line, done..line.len(), pieces);
        if self.terminal && line.len() < complete.len() {
            let _infallible = write!(out, "{}", self.styled(Style::new().dim(), "…"));
        }
        out
    }

    /// Renders a part of a line in its colours.
    fn coloured(&self, out: &mut String, line: &str, part: Range<usize>, pieces: &[Piece]) {
        let mut done = part.start;
        for (range, look) in pieces {
            let from = range.start.max(done);
            let to = range.end.min(part.end);
            let (Some(before), Some(piece)) = (line.get(done..from), line.get(from..to)) else {
                continue;
            };
            if piece.is_empty() {
                continue;
            }
            out.push_str(&plain(before));
            match look {
                CodeClass::Plain => out.push_str(&plain(piece)),
                look => {
                    let _infallible =
                        write!(out, "{}", self.styled(look.style(Theme::Unknown), plain(piece)));
                }
            }
            done = to;
        }
        out.push_str(&plain(line.get(done..part.end).unwrap_or_default()));
    }
}

/// Returns the bytes of a line that fit into some columns, with one left for a mark.
fn fitting(line: &str, columns: usize) -> usize {
    const TAB: usize = 8;
    let mut column = 0;
    let mut cut = 0;
    for (at, c) in line.char_indices() {
        // The last place where a mark fits behind the text.
        if column < columns {
            cut = at;
        }
        column += match c {
            '\t' => TAB - column % TAB,
            c => console::measure_text_width(c.encode_utf8(&mut [0; 4])),
        };
        if column > columns {
            return cut;
        }
    }
    line.len()
}

/// Selects the lines that contain most matches.
fn best_lines(
    starts: &[usize],
    lines: &[&str],
    highlights: &[[u32; 2]],
    limit: usize,
) -> Range<usize> {
    let limit = limit.min(lines.len());
    let hits = |n: usize| {
        let range = starts[n]..starts[n] + lines[n].len().max(1);
        highlights.iter().filter(|h| range.contains(&(h[0] as usize))).count()
    };
    let hits: Vec<usize> = (0..lines.len()).map(hits).collect();
    let from = (0..=lines.len() - limit).max_by_key(|from| {
        (hits[*from..from + limit].iter().sum::<usize>(), std::cmp::Reverse(*from))
    });
    let from = from.unwrap_or(0);
    from..from + limit
}

#[cfg(test)]
#[path = "search_results_tests.rs"]
mod tests;
