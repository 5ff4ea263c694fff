//! The summary of an explore, for people: one page, or everything.

mod changes;
mod full;
mod page;
#[cfg(test)]
mod tests;

use cairn_explore_report::facts::{count, revision};
use cairn_protocol::{explore::ExploreSummary, id::SessionId};
use console::{Style, Term};

use crate::render::{
    cells,
    output::{millis, plain},
};

pub use full::full;
pub use page::page;

/// Columns of an output that is not a terminal.
const PIPED_COLUMNS: usize = 100;
/// Fewest columns; a narrower terminal wraps.
const FEWEST_COLUMNS: usize = 40;
/// Most columns: longer lines are hard to read.
const MOST_COLUMNS: usize = 120;

/// Sanitises text for a cell. A tab has no width of its own and is escaped too.
fn clean(text: &str) -> String {
    plain(text).replace('\t', "\\t")
}

/// Returns the columns to use for standard output; `None` if it is not a terminal.
pub fn terminal_columns() -> Option<usize> {
    let terminal = Term::stdout();
    let columns = terminal.is_term().then(|| terminal.size_checked()).flatten();
    columns.map(|(_, columns)| usize::from(columns))
}

/// Name of the repository and its checked-out commit.
fn heading(summary: &ExploreSummary, columns: usize) -> String {
    let name = clean(&summary.repo_name);
    let mut line = Line::new(columns);
    line.push(&name, &Style::new().bold().cyan());
    if let Some(revision) = revision(&summary.details) {
        line.push("  ", &Style::new());
        line.push(&clean(&revision), &Style::new().dim());
    }
    line.text
}

/// Figures of the explore and its session, as lines of plain text.
fn figures(summary: &ExploreSummary, session: &SessionId, columns: usize) -> Vec<String> {
    let stats = &summary.details.stats;
    let figures = format!(
        "{}, {} in {}",
        count(stats.files, "file"),
        count(stats.symbols, "symbol"),
        millis(stats.millis),
    );
    let session = format!("session {session}");
    if cells::width(&figures) + 2 + cells::width(&session) <= columns {
        return vec![format!("{figures}; {session}")];
    }
    [figures, session].iter().flat_map(|text| cells::wrap(text, columns)).collect()
}

/// A line that never exceeds its columns.
struct Line {
    text: String,
    remaining: usize,
}

impl Line {
    fn new(columns: usize) -> Self {
        Self { text: String::new(), remaining: columns }
    }

    /// Appends text, truncated at its end.
    fn push(&mut self, text: &str, style: &Style) {
        let text = cells::fit(text, self.remaining);
        self.append(&text, style);
    }

    /// Appends a cell of a table: truncated or padded to `columns`.
    fn cell(&mut self, text: &str, columns: usize, style: &Style) {
        let columns = columns.min(self.remaining);
        let text = cells::fit(text, columns);
        self.append(&text, style);
        self.space(columns.saturating_sub(cells::width(&text)));
    }

    /// Appends a path as a cell of a table.
    fn path(&mut self, path: &str, columns: usize, style: &Style) {
        self.cell(&cells::fit_path(path, columns.min(self.remaining)), columns, style);
    }

    fn space(&mut self, columns: usize) {
        let columns = columns.min(self.remaining);
        self.text.extend(std::iter::repeat_n(' ', columns));
        self.remaining -= columns;
    }

    fn append(&mut self, text: &str, style: &Style) {
        if !text.is_empty() {
            self.remaining -= cells::width(text).min(self.remaining);
            self.text.push_str(&style.apply_to(text).to_string());
        }
    }

    fn finish(self) -> String {
        self.text.trim_end().to_owned()
    }
}
