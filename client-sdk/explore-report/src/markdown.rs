//! The summary of an explore as Markdown, to be stored in the repository as `ARCHITECTURE.md`.

mod changes;
pub mod escape;
pub mod mermaid;
mod page;
#[cfg(test)]
mod tests;

use cairn_protocol::explore::{Component, ExploreDetails, ExploreSummary};

use crate::facts::{self, FileRow, count, position};
use escape::{code, text};

pub use page::page;

/// Maximum entries of a list of files.
const FILES: usize = 15;

/// Comment above the first section.
pub const NOTE: &str = "<!-- Written by cairn explore --markdown. -->";

/// Renders the document. The same summary has the same document.
pub fn document(summary: &ExploreSummary) -> String {
    let details = &summary.details;
    let mut out = Document::new(&summary.repo_name);
    if let Some(purpose) = facts::purpose(details) {
        out.paragraph(&text(&purpose));
    }
    let shares = facts::languages(summary);
    let shares: Vec<String> = shares
        .iter()
        .take(8)
        .filter(|share| share.permille > 0)
        .map(|share| format!("{} {}", text(share.name), share.percent()))
        .collect();
    if !shares.is_empty() {
        out.paragraph(&format!("Languages: {}.", shares.join(", ")));
    }
    out.paragraph(NOTE);
    if let Some(changes) = &details.changes {
        changes::sections(&mut out, changes, &changes::DOCUMENT);
    }
    overview(&mut out, details);
    components(&mut out, details);
    out.files("Where it starts", &facts::entrypoints(summary));
    flows(&mut out, details);
    out.files("Read first", &facts::top_files(summary));
    commands(&mut out, details);
    lists(&mut out, summary);
    out.text
}

/// A Markdown document that sections are appended to.
pub struct Document {
    pub text: String,
}

impl Document {
    pub fn new(title: &str) -> Self {
        let title = match text(title) {
            title if title.is_empty() => "Overview".to_owned(),
            title => title,
        };
        Self { text: format!("# {title}\n") }
    }

    pub fn title(&mut self, title: &str) {
        self.text.push_str(&format!("\n## {title}\n"));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.text.push_str(&format!("\n{text}\n"));
    }

    /// Adds a titled list, unless it is empty.
    pub fn list(&mut self, title: &str, items: impl Iterator<Item = String>) {
        let items: String = items.map(|item| format!("* {item}\n")).collect();
        if !items.is_empty() {
            self.title(title);
            self.paragraph(items.trim_end());
        }
    }

    /// Adds a titled list of at most `most` entries and the number of the others.
    pub fn bounded(
        &mut self,
        title: &str,
        most: usize,
        items: impl ExactSizeIterator<Item = String>,
    ) {
        let rest = items.len().saturating_sub(most);
        let rest = (rest > 0).then(|| format!("… {rest} more"));
        self.list(title, items.take(most).chain(rest));
    }

    /// Adds a table of cells that are escaped already, unless it is empty. Columns without any text
    /// are left out.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let has_text = |at: usize| rows.iter().any(|row| !row[at].is_empty());
        let columns: Vec<usize> = (0..head.len()).filter(|at| has_text(*at)).collect();
        if columns.is_empty() {
            return;
        }
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut table = line(columns.iter().map(|at| head[*at]).collect());
        table.push_str(&format!("|{}\n", "---|".repeat(columns.len())));
        for row in rows {
            table.push_str(&line(columns.iter().map(|at| row[*at].as_str()).collect()));
        }
        self.paragraph(table.trim_end());
    }

    fn files(&mut self, title: &str, all: &[FileRow<'_>]) {
        self.list(title, all.iter().take(FILES).map(|row| explained(&row.position(), &row.reason)));
    }
}

/// Renders a command with the file that states it.
pub fn command(row: &facts::CommandRow<'_>) -> String {
    let source = row.source.map(|source| format!(" ({})", code(source))).unwrap_or_default();
    format!("{}: {}{source}", row.kind, code(row.command))
}

/// Renders a convention with the file that states it.
pub fn rule(convention: &cairn_protocol::explore::Convention) -> String {
    format!("{} ({})", text(&convention.text), code(&convention.source))
}

/// Renders a path with its explanation.
pub fn explained(path: &str, explanation: &str) -> String {
    match text(explanation) {
        explanation if explanation.is_empty() => code(path),
        explanation => format!("{}: {explanation}", code(path)),
    }
}

fn components(out: &mut Document, details: &ExploreDetails) {
    let all = &details.components;
    if all.is_empty() {
        let folder = |entry: &cairn_protocol::explore::LayoutEntry| {
            let about = format!("{}, {}", count(entry.files, "file"), entry.role);
            explained(&entry.path, &about)
        };
        out.list("Folders", details.layout.iter().map(folder));
        return;
    }
    out.title("Components");
    out.paragraph(&mermaid::diagram(all));
    if let Some(omissions) = crate::graph::ComponentGraph::new(all).omissions() {
        out.paragraph(&omissions);
    }
    let row = |component: &Component| {
        let names = facts::dependency_names(all, component);
        let names: Vec<String> = names.into_iter().map(text).collect();
        vec![
            text(facts::name(component)),
            code(&component.path),
            text(&component.role),
            names.join(", "),
            facts::size(component),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    out.table(&["Component", "Path", "Role", "Depends on", "Size"], &rows);
}

/// Overview by a model, each statement with the lines that bear it out.
fn overview(out: &mut Document, details: &ExploreDetails) {
    let Some(overview) = &details.overview else { return };
    out.list(
        "Overview",
        overview.statements.iter().map(|statement| {
            let lines = statement.citations.iter().map(|c| code(&position(&c.path, Some(c.line))));
            format!("{} ({})", text(&statement.text), lines.collect::<Vec<_>>().join(", "))
        }),
    );
    if let Some(note) = facts::dropped(overview) {
        out.paragraph(&note);
    }
}

fn flows(out: &mut Document, details: &ExploreDetails) {
    let flows: Vec<_> = facts::flows(details).collect();
    if flows.is_empty() {
        return;
    }
    out.title(if flows.len() == 1 { "Flow" } else { "Flows" });
    for flow in flows {
        out.paragraph(&format!("From {}:", code(&flow.entrypoint)));
        let step = |(at, step): (usize, &cairn_protocol::explore::FlowStep)| {
            let location = code(&position(&step.path, Some(step.line)));
            format!("{}. {} in {location}\n", at + 1, text(&step.name))
        };
        let steps: String = flow.steps.iter().enumerate().map(step).collect();
        out.paragraph(steps.trim_end());
    }
}

fn commands(out: &mut Document, details: &ExploreDetails) {
    let all = facts::commands(details);
    if all.is_empty() {
        return;
    }
    out.title("Commands");
    let row = |row: &facts::CommandRow<'_>| {
        let source = row.source.map(code).unwrap_or_default();
        vec![row.kind.to_owned(), code(row.command), source]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    out.table(&["For", "Command", "Stated in"], &rows);
}

fn lists(out: &mut Document, summary: &ExploreSummary) {
    let details = &summary.details;
    out.list("Conventions", details.conventions.iter().map(rule));
    let concept = |c: &cairn_protocol::explore::Concept| {
        let used = count(c.files.into(), "file");
        let at = code(&position(&c.path, Some(c.line)));
        format!("{}: {} in {at}, used by {used}", code(&c.name), text(&c.kind))
    };
    out.list("Concepts", details.concepts.iter().map(concept));
    let spot = |h: &cairn_protocol::explore::Hotspot| {
        explained(&h.path, &count(h.commits.into(), "recent commit"))
    };
    out.list("Hotspots", details.hotspots.iter().map(spot));
    let folder = |c: &Component| explained(&c.path, &facts::single_line(&c.role));
    out.list("Secondary folders", details.secondary.iter().map(folder));
    for finding in &details.findings {
        let title = format!("Goal: {}", text(&finding.goal));
        out.list(&title, finding.places.iter().map(|found| code(found)));
    }
    out.list("Open questions", summary.followups.iter().map(|question| text(question)));
}
