//! The changes since a revision, as lines of the page.

use cairn_explore_report::facts::{self, single_line};
use cairn_protocol::changes::{ComponentChanges, ExploreChanges};
use console::Style;

use super::{Line, clean};
use crate::render::cells;

/// Most components, risks, affected files and commits of the page.
const COMPONENTS: usize = 6;
const RISKS: usize = 5;
const IMPACT: usize = 4;
const COMMITS: usize = 4;
/// Maximum percentages of a line for the name of a component and for a path.
const NAME_PERCENT: usize = 35;
const PATH_PERCENT: usize = 45;

/// The extent of the changes, and a line for each component.
pub fn components(changes: &ExploreChanges, columns: usize) -> Vec<Vec<String>> {
    let base = facts::short_hash(&changes.base);
    let total = facts::change_totals(changes);
    let total = format!("since {} ({base}): {total}", single_line(&changes.since));
    let mut entries = vec![cells::wrap_at_most(&clean(&total), columns, 2)];
    entries.extend(facts::change_notes(changes).iter().map(|note| cells::wrap(note, columns)));
    let listed = &changes.components[..changes.components.len().min(COMPONENTS)];
    let names: Vec<String> = listed.iter().map(|c| clean(&single_line(&c.name))).collect();
    let widest = names.iter().map(|name| cells::width(name)).max().unwrap_or_default();
    let name_columns = widest.min(columns * NAME_PERCENT / 100);
    entries.extend(listed.iter().zip(&names).map(|(component, name)| {
        let mut line = Line::new(columns);
        line.cell(name, name_columns, &Style::new().cyan());
        line.space(2);
        line.push(&extent(component), &Style::new());
        vec![line.finish()]
    }));
    entries
}

/// Describes the changes of a component, as `+12 −3  2 modified, 1 commit`.
pub fn extent(component: &ComponentChanges) -> String {
    let lines = facts::line_change(component.added_lines, component.deleted_lines);
    let mut text = format!("{lines}  {}", facts::changed_files(component));
    if component.commits > 0 {
        text = format!("{text}, {}", facts::count(component.commits, "commit"));
    }
    text
}

pub fn risks(changes: &ExploreChanges, columns: usize) -> Vec<String> {
    let risks = changes.risks.iter().take(RISKS);
    paths(risks.map(|risk| (risk.path.as_str(), single_line(&risk.reason))).collect(), columns)
}

pub fn impact(changes: &ExploreChanges, columns: usize) -> Vec<String> {
    let impact = changes.impact.iter().take(IMPACT);
    paths(impact.map(|one| (one.path.as_str(), facts::impact(one))).collect(), columns)
}

pub fn commits(changes: &ExploreChanges, columns: usize) -> Vec<String> {
    let line = |commit: &cairn_protocol::changes::ChangeCommit| {
        let mut line = Line::new(columns);
        line.push(&clean(commit.id.get(..8).unwrap_or(&commit.id)), &Style::new().yellow());
        line.space(2);
        line.push(&clean(&single_line(&commit.subject)), &Style::new());
        line.finish()
    };
    changes.subjects.iter().take(COMMITS).map(line).collect()
}

/// A table of paths with explanations.
fn paths(rows: Vec<(&str, String)>, columns: usize) -> Vec<String> {
    let paths: Vec<String> = rows.iter().map(|(path, _)| clean(path)).collect();
    let widest = paths.iter().map(|path| cells::width(path)).max().unwrap_or_default();
    let path_columns = widest.min(columns * PATH_PERCENT / 100);
    rows.iter()
        .zip(&paths)
        .map(|((_, about), path)| {
            let mut line = Line::new(columns);
            line.path(path, path_columns, &Style::new().green());
            line.space(2);
            line.push(&clean(about), &Style::new().dim());
            line.finish()
        })
        .collect()
}
