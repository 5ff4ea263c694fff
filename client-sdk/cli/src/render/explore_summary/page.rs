//! The page: at most [`MAX_LINES`] lines that never wrap.

use cairn_explore_report::facts::{self, FileRow, single_line};
use cairn_protocol::{
    changes::ExploreChanges,
    explore::{Component, ExploreSummary, Statement},
    id::SessionId,
};
use console::Style;

use super::{FEWEST_COLUMNS, Line, MOST_COLUMNS, PIPED_COLUMNS, changes, clean, figures, heading};
use crate::render::cells;

/// Maximum lines of the page.
pub const MAX_LINES: usize = 40;
/// The last line: how to get the rest.
const MORE: &str = "the rest: cairn explore --full, --html FILE, --markdown, --agents-md";
/// Columns from which labels are in a margin; below, they are lines of their own.
const MARGIN_FROM: usize = 76;
/// Additional lines of a page without a margin, beside its titles.
const NARROW_EXTRA: usize = 6;
/// Columns of the margin.
const MARGIN: usize = 12;
/// Maximum number of components.
const COMPONENTS: usize = 14;
/// Maximum number of goals.
const GOALS: usize = 3;
/// Maximum percentage of a line for the name of a component.
const NAME_PERCENT: usize = 30;
/// Maximum percentage of a line for the path of a file.
const PATH_PERCENT: usize = 45;

/// Lines of the page under one label.
struct Section {
    label: String,
    /// Second line of the label: the number of entries, where some are left out.
    total: usize,
    /// Entries, each of one or more lines.
    entries: Vec<Vec<String>>,
    /// Entries that remain when others need the room.
    fewest: usize,
    /// True if a blank line separates it from the section before.
    is_spaced: bool,
}

impl Section {
    /// A section whose entries are lines.
    fn new(label: &str, fewest: usize, total: usize, lines: Vec<String>) -> Self {
        Self::of(label, fewest, total, lines.into_iter().map(|line| vec![line]).collect())
    }

    fn of(label: &str, fewest: usize, total: usize, entries: Vec<Vec<String>>) -> Self {
        Self { label: label.to_owned(), total, entries, fewest, is_spaced: true }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().flatten()
    }

    /// Joins it to the section before.
    fn joined(self) -> Self {
        Self { is_spaced: false, ..self }
    }
}

/// Renders the page for a terminal of these columns, coloured if standard output supports it.
pub fn page(summary: &ExploreSummary, session: &SessionId, columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(PIPED_COLUMNS).clamp(FEWEST_COLUMNS, MOST_COLUMNS);
    let has_margin = columns >= MARGIN_FROM;
    let content = if has_margin { columns - MARGIN } else { columns - 2 };
    let mut head = vec![heading(summary, columns)];
    if let Some(purpose) = facts::purpose(&summary.details) {
        head.extend(cells::wrap_at_most(&clean(&purpose), columns, 3));
    }
    let dim = Style::new().dim();
    let mut tail = vec![String::new()];
    let mut last = figures(summary, session, columns);
    last.extend(cells::wrap(MORE, columns));
    tail.extend(last.iter().map(|line| dim.apply_to(line).to_string()));
    let mut sections = sections(summary, content);
    sections.retain(|section| !section.entries.is_empty());
    let titles = if has_margin { 0 } else { sections.len() };
    let fixed = head.len() + tail.len();
    // Titles of their own and more wrapping make a narrow page longer.
    let most = if has_margin { MAX_LINES } else { MAX_LINES + NARROW_EXTRA + titles };
    shrink(&mut sections, most - titles - fixed);
    for section in &sections {
        if section.is_spaced {
            head.push(String::new());
        }
        render_section(&mut head, section, has_margin);
    }
    head.extend(tail);
    head.join("\n") + "\n"
}

/// Shortens sections until they fit into `lines`. If that is not enough, blank lines go, the last
/// one first, then entries that should remain.
fn shrink(sections: &mut [Section], lines: usize) {
    let surplus = |s: &Section| s.entries.len().saturating_sub(s.fewest);
    let used = |s: &Section| s.lines().count() + usize::from(s.is_spaced);
    while sections.iter().map(used).sum::<usize>() > lines {
        // Of sections with the same surplus, the last one is the least important.
        let longest = sections.iter_mut().filter(|s| surplus(s) > 0).max_by_key(|s| surplus(s));
        if let Some(longest) = longest {
            longest.entries.pop();
            continue;
        }
        if let Some(section) = sections.iter_mut().rev().find(|s| s.is_spaced) {
            section.is_spaced = false;
            continue;
        }
        match sections.iter_mut().filter(|s| s.entries.len() > 1).max_by_key(|s| s.entries.len()) {
            Some(longest) => longest.entries.pop(),
            None => return,
        };
    }
}

fn render_section(out: &mut Vec<String>, section: &Section, has_margin: bool) {
    let bold = Style::new().bold();
    let dim = Style::new().dim();
    let listed = section.entries.len();
    let note = if section.total > listed {
        format!("{listed} of {}", section.total)
    } else {
        String::new()
    };
    if !has_margin {
        let mut title = bold.apply_to(&section.label).to_string();
        if !note.is_empty() {
            title = format!("{title}  {}", dim.apply_to(&note));
        }
        out.push(title);
        out.extend(section.lines().map(|line| format!("  {line}")));
        return;
    }
    for (at, line) in section.lines().enumerate() {
        let mut margin = Line::new(MARGIN);
        match at {
            0 => margin.cell(&section.label, MARGIN, &bold),
            1 => margin.cell(&note, MARGIN, &dim),
            _ => margin.space(MARGIN),
        }
        out.push(format!("{}{line}", margin.text));
    }
}

fn sections(summary: &ExploreSummary, columns: usize) -> Vec<Section> {
    let details = &summary.details;
    let starts = facts::entrypoints(summary);
    let reads = facts::top_files(summary);
    let (kinds, commands) = commands(summary, columns);
    let components = components(&details.components, columns);
    let questions = questions(summary, columns);
    let mut all = vec![Section::new("languages", 1, 0, languages(summary, columns)).joined()];
    if let Some(changes) = &details.changes {
        all.extend(change_sections(changes, columns));
    }
    for finding in details.findings.iter().take(GOALS) {
        let goal = clean(&single_line(&finding.goal));
        let mut entries = vec![cells::wrap_at_most(&goal, columns, 2)];
        let green = Style::new().green();
        entries.extend(finding.places.iter().take(5).map(|found| {
            let mut line = Line::new(columns);
            line.path(&clean(found), columns, &green);
            vec![line.finish()]
        }));
        if finding.places.is_empty() {
            entries.push(vec!["nothing was found".to_owned()]);
        }
        all.push(Section::of("goal", 3, 0, entries));
    }
    let statements = details.overview.iter().flat_map(|overview| &overview.statements);
    let statements: Vec<_> = statements.map(|statement| stated(statement, columns)).collect();
    all.push(Section::of("by model", 2, statements.len(), statements));
    all.extend([
        Section::new("components", 7, details.components.len(), components),
        Section::new("start", 3, starts.len(), files(&starts, 6, columns)),
        Section::new("read first", 4, reads.len(), files(&reads, 8, columns)),
        Section::of("commands", kinds, 0, commands),
        Section::of("flow", 1, 0, flow(summary, columns)),
        Section::new("hotspots", 1, 0, hotspots(summary, columns)).joined(),
        Section::of("questions", 1, summary.followups.len(), questions).joined(),
    ]);
    if details.components.is_empty() {
        all.insert(1, Section::new("folders", 3, details.layout.len(), layout(summary, columns)));
    }
    all
}

/// A statement of the model, with the first line that bears it out.
fn stated(statement: &Statement, columns: usize) -> Vec<String> {
    let mut lines = cells::wrap_at_most(&clean(&single_line(&statement.text)), columns, 2);
    if let Some(citation) = statement.citations.first() {
        let mut line = Line::new(columns);
        let position = format!("{}:{}", clean(&citation.path), citation.line);
        line.path(&position, columns, &Style::new().dim());
        lines.push(line.finish());
    }
    lines
}

/// The sections about the changes since a revision.
fn change_sections(changes: &ExploreChanges, columns: usize) -> [Section; 4] {
    let components = changes::components(changes, columns);
    let risks = changes::risks(changes, columns);
    let impact = changes::impact(changes, columns);
    let commits = changes::commits(changes, columns);
    let total = usize::try_from(changes.commits).unwrap_or(usize::MAX);
    [
        Section::of("changes", 6, 0, components),
        Section::new("risks", 4, changes.risks.len(), risks).joined(),
        Section::new("affects", 3, changes.impact.len(), impact).joined(),
        Section::new("commits", 2, total, commits).joined(),
    ]
}

fn languages(summary: &ExploreSummary, columns: usize) -> Vec<String> {
    let shares = facts::languages(summary);
    let mut line = Line::new(columns);
    for (at, share) in shares.iter().enumerate() {
        let text = format!("{} {} %", clean(share.name), (share.permille + 5) / 10);
        let rest = format!("{} more", shares.len() - at);
        let room = cells::width(&text) + 3 + cells::width(&rest) + 3;
        let is_small = share.permille < 10 && at > 0;
        if at > 0 {
            line.push(" · ", &Style::new().dim());
        }
        if is_small || (at > 0 && room > line.remaining) {
            line.push(&rest, &Style::new().dim());
            break;
        }
        line.push(&text, &Style::new());
    }
    [line.finish()].into_iter().filter(|line| !line.is_empty()).collect()
}

/// Columns of the first cell of a table: the longest one, up to a limit.
fn first_cell(texts: &[String], limit: usize) -> usize {
    texts.iter().map(|text| cells::width(text)).max().unwrap_or_default().min(limit)
}

fn components(all: &[Component], columns: usize) -> Vec<String> {
    let listed = &all[..all.len().min(COMPONENTS)];
    let short = facts::short_names(all);
    let names: Vec<String> = short.iter().take(COMPONENTS).map(|name| clean(name)).collect();
    let roles: Vec<String> = listed.iter().map(|c| clean(&single_line(&c.role))).collect();
    let name_columns = first_cell(&names, columns * NAME_PERCENT / 100);
    let rest = columns.saturating_sub(name_columns + 2);
    let has_dependencies = listed.iter().any(|c| !c.depends_on.is_empty()) && rest >= 38;
    let longest_role = roles.iter().map(|role| cells::width(role)).max().unwrap_or_default();
    let role_columns = if has_dependencies { longest_role.min(rest * 3 / 5) } else { rest };
    listed
        .iter()
        .zip(names.iter().zip(&roles))
        .map(|(component, (name, role))| {
            let mut line = Line::new(columns);
            line.cell(name, name_columns, &Style::new().cyan());
            line.space(2);
            line.cell(role, role_columns, &Style::new());
            if has_dependencies {
                line.space(2);
                let names = facts::named_dependencies(all, &short, component);
                let text = dependencies(&names, line.remaining);
                line.push(&text, &Style::new().dim());
            }
            line.finish()
        })
        .collect()
}

/// Lists as many names as fit, and the number of the others.
fn dependencies(names: &[&str], columns: usize) -> String {
    let Some((first, others)) = names.split_first() else { return String::new() };
    let mut text = format!("→ {}", clean(first));
    let suffix = if others.is_empty() { String::new() } else { format!(", +{}", others.len()) };
    if cells::width(&text) + cells::width(&suffix) > columns {
        return format!("→ {}", facts::count(others.len() as u64 + 1, "other"));
    }
    for (at, name) in others.iter().enumerate() {
        let next = format!("{text}, {}", clean(name));
        let rest = names.len() - at - 2;
        let suffix = if rest > 0 { format!(", +{rest}") } else { String::new() };
        if cells::width(&next) + cells::width(&suffix) > columns {
            return format!("{text}, +{}", rest + 1);
        }
        text = next;
    }
    text
}

fn files(all: &[FileRow<'_>], most: usize, columns: usize) -> Vec<String> {
    let listed = &all[..all.len().min(most)];
    let positions: Vec<String> = listed.iter().map(|row| clean(&row.position())).collect();
    let path_columns = first_cell(&positions, columns * PATH_PERCENT / 100);
    listed
        .iter()
        .zip(&positions)
        .map(|(row, position)| {
            let mut line = Line::new(columns);
            line.path(position, path_columns, &Style::new().green());
            line.space(2);
            line.push(&clean(&row.reason), &Style::new().dim());
            line.finish()
        })
        .collect()
}

/// One command of each kind, and a second one while fewer than five are listed; returns the number
/// of kinds and the entries.
fn commands(summary: &ExploreSummary, columns: usize) -> (usize, Vec<Vec<String>>) {
    let mut rows = facts::commands(&summary.details);
    let mut seen: Vec<&str> = Vec::new();
    let mut rank = |kind: &'static str| {
        seen.push(kind);
        seen.iter().filter(|other| **other == kind).count()
    };
    let ranks: Vec<usize> = rows.iter().map(|row| rank(row.kind)).collect();
    let firsts = ranks.iter().filter(|rank| **rank == 1).count();
    let mut spare = 5_usize.saturating_sub(firsts);
    let mut at = 0;
    rows.retain(|_| {
        let rank = ranks[at];
        at += 1;
        let is_extra = rank == 2 && spare > 0;
        spare -= usize::from(is_extra);
        rank == 1 || is_extra
    });
    let texts: Vec<String> = rows.iter().map(|row| clean(&single_line(row.command))).collect();
    let longest = texts.iter().map(|text| cells::width(text)).max().unwrap_or_default();
    let command_columns = longest.min(columns.saturating_sub(10));
    let mut before = "";
    let entries = rows
        .iter()
        .zip(&texts)
        .map(|(row, text)| {
            let mut line = Line::new(columns);
            line.cell(if before == row.kind { "" } else { row.kind }, 8, &Style::new());
            before = row.kind;
            let yellow = Style::new().yellow();
            let wrapped = cells::wrap_at_most(text, command_columns, 2);
            line.cell(wrapped.first().map_or("", String::as_str), command_columns, &yellow);
            if let Some(source) = row.source
                && line.remaining > 12
            {
                line.space(2);
                line.path(&clean(source), line.remaining, &Style::new().dim());
            }
            let rest = wrapped.get(1).map(|rest| format!("{:10}{}", "", yellow.apply_to(rest)));
            [Some(line.finish()), rest].into_iter().flatten().collect()
        })
        .collect();
    (firsts, entries)
}

/// Names of the steps of the first flow, as an entry of at most two lines.
fn flow(summary: &ExploreSummary, columns: usize) -> Vec<Vec<String>> {
    let Some(flow) = facts::flows(&summary.details).next() else { return Vec::new() };
    let names: Vec<String> =
        flow.steps.iter().map(|step| clean(&step.name).replace(' ', "\u{a0}")).collect();
    let lines = cells::wrap_at_most(&names.join(" → "), columns, 2);
    vec![lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()]
}

fn hotspots(summary: &ExploreSummary, columns: usize) -> Vec<String> {
    let spot = |(at, spot): (usize, &cairn_protocol::explore::Hotspot)| {
        let unit = if at == 0 { " commits" } else { "" };
        format!("{} ({}{unit})", clean(&spot.path), spot.commits)
    };
    let all: Vec<String> = summary.details.hotspots.iter().take(6).enumerate().map(spot).collect();
    let mut lines: Vec<String> = Vec::new();
    for text in all {
        match lines.last_mut() {
            Some(line) if cells::width(line) + 2 + cells::width(&text) <= columns => {
                line.push_str(", ");
                line.push_str(&text);
            }
            _ => lines.push(cells::fit(&text, columns).into_owned()),
        }
    }
    lines.truncate(2);
    lines
}

/// The first open questions, each in at most two lines.
fn questions(summary: &ExploreSummary, columns: usize) -> Vec<Vec<String>> {
    let indented = |text: &String| {
        let lines = cells::wrap_at_most(&clean(&single_line(text)), columns.saturating_sub(2), 2);
        let prefix = |at: usize| if at == 0 { "?" } else { " " };
        let numbered = lines.into_iter().enumerate();
        numbered.map(|(at, line)| format!("{} {line}", prefix(at))).collect::<Vec<_>>()
    };
    summary.followups.iter().take(3).map(indented).collect()
}

fn layout(summary: &ExploreSummary, columns: usize) -> Vec<String> {
    let folders = &summary.details.layout;
    let paths: Vec<String> = folders.iter().take(6).map(|l| clean(&l.path)).collect();
    let path_columns = first_cell(&paths, columns * PATH_PERCENT / 100);
    let folder = |(path, entry): (&String, &cairn_protocol::explore::LayoutEntry)| {
        let mut line = Line::new(columns);
        line.path(path, path_columns, &Style::new().green());
        line.space(2);
        line.cell(&facts::count(entry.files, "file"), 12, &Style::new());
        line.push(&clean(&single_line(&entry.role)), &Style::new().dim());
        line.finish()
    };
    paths.iter().zip(folders).map(folder).collect()
}
