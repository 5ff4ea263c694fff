//! Results of a search as text: in full for a person at a terminal, one line each for whatever reads a pipe.

use std::{fmt::Write as _, ops::Range, path::Path};

use cairn_protocol::search::{SearchItem, Share};
use console::{Style, StyledObject};

use super::why::why;
use crate::{
    output::plain,
    paint::{Look, Painter, Piece},
    scope,
};

/// Characters of a line shown.
const WIDTH: usize = 200;

/// How results are shown.
pub struct Page<'a> {
    /// The root's folder.
    pub root: &'a str,
    /// The current folder.
    pub here: &'a Path,
    /// Lines of each passage.
    pub limit: usize,
    /// For a person at a terminal.
    pub terminal: bool,
    /// With colours.
    pub colours: bool,
    /// Whether what the score is made of was asked for.
    pub explain: bool,
    /// Colours the code, on a terminal with colours.
    pub painter: Option<Painter>,
}

impl Page<'_> {
    /// All results, best first.
    pub fn text(&mut self, items: &[SearchItem]) -> String {
        (1..).zip(items).map(|(rank, item)| self.item(rank, item)).collect()
    }

    fn styled<D>(&self, style: Style, what: D) -> StyledObject<D> {
        style.force_styling(self.colours).apply_to(what)
    }

    fn item(&mut self, rank: usize, item: &SearchItem) -> String {
        let path = scope::shown(self.root, &item.path, self.here);
        let symbol =
            item.symbol.as_ref().map_or_else(String::new, |s| format!("  {} {}", s.kind, plain(&s.name)));
        let changed = if item.changed { "  (changed since)" } else { "" };
        let (path, symbol) =
            (self.styled(Style::new().green(), path), self.styled(Style::new().cyan(), symbol));
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
            let _infallible = writeln!(out, "    {}", self.styled(dim.clone(), format!("by {why}")));
        }
        if self.explain && !item.explain.is_empty() {
            let share = |s: &Share| format!("{} {:+.3}", s.feature, s.share);
            let shares: Vec<String> = item.explain.iter().map(share).collect();
            let _infallible = writeln!(out, "        {}", self.styled(dim, plain(&shares.join("  "))));
        }
    }

    /// The lines of a passage; when not all are shown, those around its best match.
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
        let shown = best(&starts, &lines, &item.highlights, self.limit);
        let painted = match &mut self.painter {
            Some(painter) => painter.paint(&item.path, &lines, shown.clone()),
            None => vec![Vec::new(); shown.len()],
        };
        let rest = lines.len() - shown.len();
        let numbers = first as usize + shown.start..;
        for ((number, n), pieces) in numbers.zip(shown).zip(painted) {
            let marked = self.marked(lines[n], starts[n], &item.highlights, &pieces);
            let number = self.styled(Style::new().dim(), format!("{number:>5}"));
            let _infallible = writeln!(out, "  {number} {marked}");
        }
        if self.terminal && rest > 0 {
            let more = format!("      … {rest} more {}", if rest == 1 { "line" } else { "lines" });
            let _infallible = writeln!(out, "{}", self.styled(Style::new().dim(), more));
        }
    }

    /// A line in its colours, with the matches in it marked.
    fn marked(&self, line: &str, start: usize, highlights: &[[u32; 2]], pieces: &[Piece]) -> String {
        let mut out = String::new();
        let mut done = 0;
        let end = line.char_indices().nth(WIDTH).map_or(line.len(), |(at, _)| at);
        let line = &line[..end];
        for [from, to] in highlights {
            let (from, to) = (
                (*from as usize).max(start + done) - start,
                (*to as usize).min(start + line.len()).max(start) - start,
            );
            // Ranges come from outside: those that do not fit are passed over.
            let (Some(_), Some(hit)) = (line.get(done..from), line.get(from..to)) else { continue };
            if hit.is_empty() {
                continue;
            }
            self.coloured(&mut out, line, done..from, pieces);
            let _infallible = write!(out, "{}", self.styled(Style::new().bold().red(), plain(hit)));
            done = to;
        }
        self.coloured(&mut out, line, done..line.len(), pieces);
        out
    }

    /// A part of a line in its colours.
    fn coloured(&self, out: &mut String, line: &str, part: Range<usize>, pieces: &[Piece]) {
        let mut done = part.start;
        for (range, look) in pieces {
            let (from, to) = (range.start.max(done), range.end.min(part.end));
            let (Some(before), Some(piece)) = (line.get(done..from), line.get(from..to)) else { continue };
            if piece.is_empty() {
                continue;
            }
            out.push_str(&plain(before));
            match look {
                Look::Plain => out.push_str(&plain(piece)),
                look => {
                    let _infallible = write!(out, "{}", self.styled(look.style(), plain(piece)));
                }
            }
            done = to;
        }
        out.push_str(&plain(line.get(done..part.end).unwrap_or_default()));
    }
}

/// The lines to show: as many as fit, around as many matches as can be.
fn best(starts: &[usize], lines: &[&str], highlights: &[[u32; 2]], limit: usize) -> Range<usize> {
    let limit = limit.min(lines.len());
    let hits = |n: usize| {
        let range = starts[n]..starts[n] + lines[n].len().max(1);
        highlights.iter().filter(|h| range.contains(&(h[0] as usize))).count()
    };
    let hits: Vec<usize> = (0..lines.len()).map(hits).collect();
    let from = (0..=lines.len() - limit)
        .max_by_key(|from| (hits[*from..from + limit].iter().sum::<usize>(), std::cmp::Reverse(*from)));
    let from = from.unwrap_or(0);
    from..from + limit
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
