//! Lines in ripgrep's format.

use std::{fmt::Write as _, path::PathBuf};

use cairn_protocol::{
    lines::FileLines,
    search::{GrepAnswer, GrepItem},
};
use console::style;

use super::GrepArgs;
use crate::{
    render::output::{self, plain},
    scope,
};

/// Renders the lines of a search.
pub struct Output<'a> {
    pub args: &'a GrepArgs,
    /// The root of the search, and the current folder.
    pub names: (String, PathBuf),
    /// A match whose context is not printed yet, because the next match may be in it.
    pending: Option<GrepItem>,
    /// Path and number of the last printed line.
    last: Option<(String, u32)>,
    has_printed: bool,
}

impl<'a> Output<'a> {
    pub fn new(args: &'a GrepArgs) -> Self {
        Self { args, names: Default::default(), pending: None, last: None, has_printed: false }
    }

    fn path(&self, path: &str) -> String {
        let (root, here) = &self.names;
        style(scope::relative_display(root, path, here)).magenta().to_string()
    }

    /// Appends the lines of a file to `out`. There may be millions, so the common prefix is
    /// rendered once.
    pub fn lines(&self, out: &mut String, file: &FileLines) {
        let path = self.path(&file.path);
        let mut digits = itoa::Buffer::new();
        let is_plain = output::is_plain(&file.text);
        let is_coloured = console::colors_enabled();
        for (line, text, ranges) in file.iter() {
            let mut prefix = |out: &mut String| {
                out.extend([&path, ":"]);
                if self.args.no_line_number {
                    return;
                }
                let number = digits.format(line);
                if is_coloured {
                    let _infallible = write!(out, "{}", style(number).green());
                } else {
                    out.push_str(number);
                }
                out.push(':');
            };
            if self.args.only_matching {
                for [from, to] in ranges {
                    let Some(hit) = text.get(*from as usize..*to as usize) else { continue };
                    prefix(out);
                    let _infallible = writeln!(out, "{}", style(plain(hit)).bold().red());
                }
                continue;
            }
            prefix(out);
            if is_plain && ranges.is_empty() {
                out.push_str(text);
            } else {
                out.push_str(&marked(text, ranges));
            }
            out.push('\n');
        }
    }

    /// Renders a page of counts, paths, or matches with their context.
    pub fn page(&mut self, answer: GrepAnswer) -> String {
        let mut out = String::new();
        for count in &answer.counts {
            let path = self.path(&count.path);
            let _infallible = match self.args.count {
                true => writeln!(out, "{path}:{}", count.lines),
                false => writeln!(out, "{path}"),
            };
        }
        for item in answer.items {
            if let Some(before) = self.pending.take() {
                let is_same = before.path == item.path;
                self.item(&mut out, &before, is_same.then_some(item.line));
            }
            self.pending = Some(item);
        }
        out
    }

    /// Renders the last match of a search.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if let Some(item) = self.pending.take() {
            self.item(&mut out, &item, None);
        }
        out
    }

    /// Appends a match with the context that was not printed yet, up to the next match.
    fn item(&mut self, out: &mut String, item: &GrepItem, next: Option<u32>) {
        let path = self.path(&item.path);
        let printed = self.last.take().filter(|(last, _)| *last == item.path).map(|(_, n)| n);
        let count = item.before.len().min(self.args.before() as usize);
        let before = &item.before[item.before.len() - count..];
        let first = item.line.saturating_sub(u32::try_from(before.len()).unwrap_or(0));
        let from = first.max(printed.map_or(0, |n| n + 1));
        let has_gap = printed.is_none_or(|n| from > n + 1);
        if has_gap && self.has_printed {
            out.push_str("--\n");
        }
        for (n, line) in (first..).zip(before).filter(|(n, _)| *n >= from) {
            self.line(out, &path, '-', n, &plain(line));
        }
        self.line(out, &path, ':', item.line, &marked(&item.text, &item.ranges));
        let mut last = item.line;
        for (n, line) in (item.line + 1..).zip(&item.after).take(self.args.after() as usize) {
            if next.is_some_and(|next| n >= next) {
                break;
            }
            self.line(out, &path, '-', n, &plain(line));
            last = n;
        }
        self.last = Some((item.path.clone(), last));
        self.has_printed = true;
    }

    fn line(&self, out: &mut String, path: &str, mark: char, n: u32, text: &str) {
        let number = match self.args.no_line_number {
            true => String::new(),
            false if mark == ':' => format!("{}{mark}", style(n).green()),
            false => format!("{n}{mark}"),
        };
        let _infallible = writeln!(out, "{path}{mark}{number}{text}");
    }
}

/// Renders a line with its matches marked.
fn marked(text: &str, ranges: &[[u32; 2]]) -> String {
    let mut out = String::new();
    let mut done = 0;
    for [from, to] in ranges {
        let from = *from as usize;
        let to = *to as usize;
        let (Some(before), Some(hit)) = (text.get(done..from), text.get(from..to)) else {
            continue;
        };
        let _infallible = write!(out, "{}{}", plain(before), style(plain(hit)).bold().red());
        done = to;
    }
    out.push_str(&plain(text.get(done..).unwrap_or_default()));
    out
}
