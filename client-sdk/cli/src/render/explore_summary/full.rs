//! Everything that a summary contains, section by section.

use cairn_explore_report::facts::{self, position, single_line};
use cairn_protocol::{
    changes::ExploreChanges,
    explore::{Component, ExploreSummary, Overview},
    id::SessionId,
};
use console::Style;

use super::{FEWEST_COLUMNS, changes::extent, clean, figures, heading};
use crate::render::{cells, output::number};

/// Cells of the longest bar of the languages.
const BAR_CELLS: u64 = 20;
/// Cells before a command.
const COMMAND_INDENT: usize = 10;
/// Cells of the figures of a language and the spaces around them.
const FIGURE_CELLS: usize = 24;

/// Renders everything, wrapped at these columns, or unwrapped without them.
pub fn full(summary: &ExploreSummary, session: &SessionId, columns: Option<usize>) -> String {
    let columns = columns.map_or(usize::MAX, |columns| columns.max(FEWEST_COLUMNS));
    let mut out = Sections { text: String::new(), columns };
    out.push(&heading(summary, columns));
    if let Some(purpose) = facts::purpose(&summary.details) {
        out.wrapped(&clean(&purpose), 0, &Style::new());
    }
    if let Some(overview) = &summary.details.overview {
        overview_section(&mut out, overview);
    }
    languages(&mut out, summary);
    if let Some(changes) = &summary.details.changes {
        change_sections(&mut out, changes);
    }
    findings(&mut out, summary);
    components(&mut out, "Components", &summary.details.components, &summary.details.components);
    components(
        &mut out,
        "Secondary folders",
        &summary.details.secondary,
        &summary.details.components,
    );
    files(&mut out, "Entrypoints", &facts::entrypoints(summary));
    files(&mut out, "Read first", &facts::top_files(summary));
    commands(&mut out, summary);
    flows(&mut out, summary);
    rules_and_names(&mut out, summary);
    history(&mut out, summary);
    packages_and_folders(&mut out, summary);
    out.title("Open questions", summary.followups.len());
    for question in &summary.followups {
        out.wrapped(&clean(&single_line(question)), 2, &Style::new());
    }
    out.push("");
    for line in figures(summary, session, columns) {
        out.wrapped(&line, 0, &Style::new().dim());
    }
    out.text
}

struct Sections {
    text: String,
    columns: usize,
}

impl Sections {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Starts a section, unless it has no entries.
    fn title(&mut self, title: &str, entries: usize) {
        if entries > 0 {
            self.push("");
            self.wrapped(title, 0, &Style::new().bold());
        }
    }

    /// Adds a text, wrapped with an indent.
    fn wrapped(&mut self, text: &str, indent: usize, style: &Style) {
        for line in cells::wrap(text, self.columns - indent) {
            self.push(&format!("{}{}", " ".repeat(indent), style.apply_to(line)));
        }
    }

    /// Adds an entry and its explanation: on the same line if they fit, else below it.
    fn entry(&mut self, name: &str, style: &Style, explanation: &str) {
        let explanation = clean(&single_line(explanation));
        let both = 4 + cells::width(name) + cells::width(&explanation);
        let dim = Style::new().dim();
        if both <= self.columns {
            let line = format!("  {}  {}", style.apply_to(name), dim.apply_to(&explanation));
            self.push(if explanation.is_empty() { line.trim_end() } else { &line });
            return;
        }
        self.wrapped(name, 2, style);
        self.wrapped(&explanation, 6, &dim);
    }
}

/// Overview by a model, each statement with the lines that bear it out.
fn overview_section(out: &mut Sections, overview: &Overview) {
    out.title("Overview by the model", overview.statements.len());
    for statement in &overview.statements {
        let lines = statement.citations.iter().map(|c| position(&c.path, Some(c.line)));
        let lines = lines.collect::<Vec<_>>().join(", ");
        out.entry(&clean(&single_line(&statement.text)), &Style::new(), &lines);
    }
    if let Some(note) = facts::dropped(overview) {
        out.wrapped(&note, 2, &Style::new().dim());
    }
}

fn languages(out: &mut Sections, summary: &ExploreSummary) {
    let all = facts::languages(summary);
    let most = out.columns.saturating_sub(FIGURE_CELLS).min(24);
    let names: Vec<String> =
        all.iter().map(|l| cells::fit(&clean(l.name), most).into_owned()).collect();
    let width = names.iter().map(|name| cells::width(name)).max().unwrap_or_default();
    let largest = all.first().map_or(1, |language| language.lines.max(1));
    out.title("Languages (lines)", all.len());
    for (language, name) in all.iter().zip(&names) {
        let cells = u128::from(language.lines) * u128::from(BAR_CELLS);
        let cells = usize::try_from(cells.div_ceil(u128::from(largest))).unwrap_or_default();
        let figures = format!(
            "  {}  {:>10}  {:>7}",
            cells::pad(name, width),
            number(language.lines),
            language.percent()
        );
        let room = out.columns.saturating_sub(cells::width(&figures) + 2);
        let bar = Style::new().cyan().apply_to("▪".repeat(cells.min(room)));
        out.push(format!("{figures}  {bar}").trim_end());
    }
}

fn change_sections(out: &mut Sections, changes: &ExploreChanges) {
    let since = clean(&single_line(&changes.since));
    let base = facts::short_hash(&changes.base);
    out.title(&format!("Changes since {since}"), 1);
    let total = format!("compared with {base}: {}", facts::change_totals(changes));
    out.wrapped(&clean(&total), 2, &Style::new());
    for note in facts::change_notes(changes) {
        out.wrapped(&note, 2, &Style::new());
    }
    for component in &changes.components {
        out.entry(&clean(&single_line(&component.name)), &Style::new().cyan(), &extent(component));
    }
    let green = Style::new().green();
    out.title("Risky changes", changes.risks.len());
    for risk in &changes.risks {
        out.entry(&clean(&risk.path), &green, &risk.reason);
    }
    out.title("Affected by the changes", changes.impact.len());
    for one in &changes.impact {
        out.entry(&clean(&one.path), &green, &facts::impact(one));
    }
    out.title("Changed files", changes.changed_files.len());
    for file in &changes.changed_files {
        let lines = facts::line_change(file.added_lines, file.deleted_lines);
        let from =
            file.previous_path.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        let about = format!("{lines}  {}{from}", file.status.replace('_', " "));
        out.entry(&clean(&file.path), &green, &about);
    }
    let rest = changes.files.saturating_sub(changes.changed_files.len() as u64);
    if rest > 0 {
        out.wrapped(&format!("{} more", number(rest)), 2, &Style::new().dim());
    }
    out.title("Commits", changes.subjects.len());
    for commit in &changes.subjects {
        let hash = clean(commit.id.get(..8).unwrap_or(&commit.id));
        out.entry(&hash, &Style::new().yellow(), &commit.subject);
    }
    let rest = changes.commits.saturating_sub(changes.subjects.len() as u64);
    if rest > 0 {
        out.wrapped(&format!("{} more", number(rest)), 2, &Style::new().dim());
    }
}

fn findings(out: &mut Sections, summary: &ExploreSummary) {
    for finding in &summary.details.findings {
        out.title(&format!("Goal: {}", clean(&single_line(&finding.goal))), 1);
        if finding.places.is_empty() {
            out.wrapped("nothing was found", 2, &Style::new());
        }
        for found in &finding.places {
            out.wrapped(&clean(found), 2, &Style::new().green());
        }
    }
}

/// Lists components; `all` has the names of those that they depend on.
fn components(out: &mut Sections, title: &str, listed: &[Component], all: &[Component]) {
    out.title(title, listed.len());
    for component in listed {
        let name = clean(facts::name(component));
        let style = Style::new().cyan();
        let kind = clean(&component.kind);
        let size = facts::size(component);
        let facts_of_it: Vec<&str> =
            [kind.as_str(), size.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
        out.entry(&name, &style, &component.role);
        let mut location = clean(&component.path);
        if !facts_of_it.is_empty() {
            location = format!("{location} ({})", facts_of_it.join(", "));
        }
        out.wrapped(&location, 6, &Style::new().dim());
        let dependencies: Vec<String> =
            facts::dependency_names(all, component).into_iter().map(clean).collect();
        for (label, names) in [
            ("depends on", dependencies),
            ("key files", component.key_files.iter().map(|path| clean(path)).collect()),
            ("stated in", component.evidence.iter().map(|path| clean(path)).collect()),
        ] {
            if !names.is_empty() {
                out.wrapped(&format!("{label}: {}", names.join(", ")), 6, &Style::new().dim());
            }
        }
    }
}

fn files(out: &mut Sections, title: &str, rows: &[facts::FileRow<'_>]) {
    out.title(title, rows.len());
    for row in rows {
        out.entry(&clean(&row.position()), &Style::new().green(), &row.reason);
    }
}

fn commands(out: &mut Sections, summary: &ExploreSummary) {
    let rows = facts::commands(&summary.details);
    out.title("Commands", rows.len());
    for row in rows {
        let command = clean(&single_line(row.command));
        let source = clean(&single_line(row.source.unwrap_or_default()));
        let lines = cells::wrap(&command, out.columns - COMMAND_INDENT);
        for (at, line) in lines.iter().enumerate() {
            let kind = if at == 0 { row.kind } else { "" };
            let is_last = at + 1 == lines.len();
            let room = out.columns - COMMAND_INDENT - cells::width(line);
            let is_beside = is_last && cells::width(&source) + 2 <= room;
            let beside = if is_beside { source.as_str() } else { "" };
            let line = Style::new().yellow().apply_to(line);
            let beside = Style::new().dim().apply_to(beside);
            out.push(format!("  {kind:<8}{line}  {beside}").trim_end());
            if is_last && !is_beside {
                out.wrapped(&source, COMMAND_INDENT, &Style::new().dim());
            }
        }
    }
}

fn flows(out: &mut Sections, summary: &ExploreSummary) {
    for flow in facts::flows(&summary.details) {
        out.title(&format!("Flow from {}", clean(&flow.entrypoint)), 1);
        for (at, step) in flow.steps.iter().enumerate() {
            let name = format!("{}. {}", at + 1, clean(&step.name));
            out.entry(&name, &Style::new().cyan(), &position(&step.path, Some(step.line)));
        }
    }
}

fn rules_and_names(out: &mut Sections, summary: &ExploreSummary) {
    let details = &summary.details;
    out.title("Conventions", details.conventions.len());
    for convention in &details.conventions {
        out.entry(&clean(&single_line(&convention.text)), &Style::new(), &convention.source);
    }
    out.title("Concepts", details.concepts.len());
    for concept in &details.concepts {
        let users = facts::count(concept.files.into(), "file");
        let at = position(&concept.path, Some(concept.line));
        let explanation = format!("{} in {at}, used by {users}", concept.kind);
        out.entry(&clean(&concept.name), &Style::new().cyan(), &explanation);
    }
}

fn history(out: &mut Sections, summary: &ExploreSummary) {
    let details = &summary.details;
    out.title("Hotspots", details.hotspots.len());
    for spot in &details.hotspots {
        let commits = facts::count(spot.commits.into(), "commit");
        out.entry(&clean(&spot.path), &Style::new().green(), &commits);
        for subject in &spot.subjects {
            out.wrapped(&format!("· {}", clean(&single_line(subject))), 6, &Style::new().dim());
        }
    }
    let recent = details.git.as_ref().map_or(&[][..], |git| &git.recent);
    out.title("Latest commits", recent.len());
    for subject in recent {
        out.wrapped(&clean(&single_line(subject)), 2, &Style::new());
    }
}

fn packages_and_folders(out: &mut Sections, summary: &ExploreSummary) {
    let details = &summary.details;
    out.title("Packages", details.projects.len());
    for project in &details.projects {
        let name = format!("{} ({}, {})", project.name, project.kind, project.manifest);
        let description = project.description.as_deref().unwrap_or_default();
        out.entry(&clean(&single_line(&name)), &Style::new(), description);
    }
    out.title("Folders", details.layout.len());
    for folder in &details.layout {
        let files = facts::count(folder.files, "file");
        out.entry(
            &clean(&folder.path),
            &Style::new().green(),
            &format!("{files}  {}", folder.role),
        );
    }
}
