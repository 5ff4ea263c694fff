//! Facts of an explore in the form that every rendering of it needs. All texts are as the
//! repository has them: each renderer escapes them for its output.

use std::collections::BTreeMap;

use cairn_protocol::explore::{Component, ExploreDetails, ExploreSummary, Flow};

use crate::render::output::number;

/// A language and its share of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageShare<'a> {
    pub name: &'a str,
    pub lines: u64,
    /// Tenths of a percent.
    pub permille: u64,
}

impl LanguageShare<'_> {
    /// Formats the share, as `87.5 %`.
    pub fn percent(&self) -> String {
        format!("{}.{} %", self.permille / 10, self.permille % 10)
    }
}

/// A command with its kind and the file that states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow<'a> {
    pub kind: &'static str,
    pub command: &'a str,
    pub source: Option<&'a str>,
}

/// A path with the reason to open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRow<'a> {
    pub path: &'a str,
    pub line: Option<u32>,
    pub reason: String,
}

impl FileRow<'_> {
    /// Formats the position, as `path:line`.
    pub fn position(&self) -> String {
        position(self.path, self.line)
    }
}

/// Formats a position, as `path:line`.
pub fn position(path: &str, line: Option<u32>) -> String {
    line.filter(|line| *line > 0).map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))
}

/// Collapses line feeds and other spaces to single spaces.
pub fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats a count with its noun, as `1 file` and `2 files`.
pub fn count(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(n), if n == 1 { "" } else { "s" })
}

/// Returns the purpose, else the description, on one line.
pub fn purpose(details: &ExploreDetails) -> Option<String> {
    [&details.purpose, &details.description]
        .into_iter()
        .flatten()
        .map(|text| single_line(text))
        .find(|text| !text.is_empty())
}

/// Returns the languages, largest first.
pub fn languages(summary: &ExploreSummary) -> Vec<LanguageShare<'_>> {
    let total: u128 = summary.languages.values().map(|lines| u128::from(*lines)).sum();
    let permille = |lines: u64| u64::try_from(u128::from(lines) * 1000 / total.max(1)).unwrap_or(0);
    let mut all: Vec<LanguageShare<'_>> = summary
        .languages
        .iter()
        .filter(|(_, lines)| **lines > 0)
        .map(|(name, lines)| LanguageShare { name, lines: *lines, permille: permille(*lines) })
        .collect();
    all.sort_by(|a, b| b.lines.cmp(&a.lines).then(a.name.cmp(b.name)));
    all
}

/// Returns the commands by kind: build, test, run, lint, format.
pub fn commands(details: &ExploreDetails) -> Vec<CommandRow<'_>> {
    let commands = &details.commands;
    let kinds = [
        ("build", &commands.build),
        ("test", &commands.test),
        ("run", &commands.run),
        ("lint", &commands.lint),
        ("format", &commands.format),
    ];
    kinds
        .into_iter()
        .flat_map(|(kind, all)| all.iter().map(move |command| (kind, command)))
        .map(|(kind, command)| CommandRow {
            kind,
            command,
            source: commands.sources.get(command).map(String::as_str),
        })
        .collect()
}

/// Returns the entrypoints with their reasons.
pub fn entrypoints(summary: &ExploreSummary) -> Vec<FileRow<'_>> {
    if summary.details.entrypoints.is_empty() {
        return bare_paths(&summary.entrypoints);
    }
    let row = |e: &'_ cairn_protocol::explore::Entrypoint| single_line(&e.reason);
    summary
        .details
        .entrypoints
        .iter()
        .map(|e| FileRow { path: &e.path, line: e.line, reason: row(e) })
        .collect()
}

/// Returns the files to read first with their reasons.
pub fn top_files(summary: &ExploreSummary) -> Vec<FileRow<'_>> {
    if summary.details.top_files.is_empty() {
        return bare_paths(&summary.top_files);
    }
    summary
        .details
        .top_files
        .iter()
        .map(|file| {
            let stated = single_line(&file.reason);
            let reason = if stated.is_empty() {
                references(file.referring_files, &file.symbols)
            } else {
                stated
            };
            FileRow { path: &file.path, line: None, reason }
        })
        .collect()
}

/// Describes a file by its references, for one without a reason.
fn references(files: u32, symbols: &[String]) -> String {
    let users = (files > 0).then(|| format!("used by {}", count(files.into(), "file")));
    let names = symbols.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
    match (users, names.is_empty()) {
        (Some(users), false) => format!("{users}: {names}"),
        (Some(users), true) => users,
        (None, _) => names,
    }
}

fn bare_paths(paths: &[String]) -> Vec<FileRow<'_>> {
    paths.iter().map(|path| FileRow { path, line: None, reason: String::new() }).collect()
}

/// Positions of components by their paths. Of two with the same path, the first one counts.
pub fn positions(components: &[Component]) -> BTreeMap<&str, usize> {
    let mut all = BTreeMap::new();
    for (at, component) in components.iter().enumerate() {
        all.entry(component.path.as_str()).or_insert(at);
    }
    all
}

/// Returns the name of a component, else its path.
pub fn name(component: &Component) -> &str {
    if component.name.trim().is_empty() { &component.path } else { &component.name }
}

/// Fewest characters of a prefix that is left out of names.
const LONG_PREFIX: usize = 10;

/// Returns the names of components for narrow cells: without the folders that most of them begin
/// with, such as `go.etcd.io/etcd/`.
pub fn short_names<'a>(components: &'a [Component]) -> Vec<&'a str> {
    let names: Vec<&str> = components.iter().map(name).collect();
    let users = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    let prefixes =
        names.iter().flat_map(|name| name.match_indices('/').map(|(at, _)| &name[..=at]));
    let long = prefixes.filter(|prefix| prefix.len() >= LONG_PREFIX);
    let common = long.filter(|prefix| users(prefix) * 2 > names.len()).max_by_key(|p| p.len());
    let short = |name: &'a str| match common.and_then(|prefix| name.strip_prefix(prefix)) {
        Some(rest) if !rest.is_empty() => rest,
        _ => name,
    };
    names.iter().map(|name| short(name)).collect()
}

/// Returns the names of the components that one depends on; unknown ones by their paths.
pub fn dependency_names<'a>(components: &'a [Component], of: &'a Component) -> Vec<&'a str> {
    let names: Vec<&str> = components.iter().map(name).collect();
    named_dependencies(components, &names, of)
}

/// Like [`dependency_names`], with these names of the components.
pub fn named_dependencies<'a>(
    components: &'a [Component],
    names: &[&'a str],
    of: &'a Component,
) -> Vec<&'a str> {
    let positions = positions(components);
    of.depends_on
        .iter()
        .filter(|path| **path != of.path)
        .map(|path| positions.get(path.as_str()).map_or(path.as_str(), |at| names[*at]))
        .collect()
}

/// Describes the size of a component, as `12 files, 3,400 lines`; empty if it is unknown.
pub fn size(component: &Component) -> String {
    let files = (component.files > 0).then(|| count(component.files, "file"));
    let lines = (component.lines > 0).then(|| count(component.lines, "line"));
    [files, lines].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the flows that have steps.
pub fn flows(details: &ExploreDetails) -> impl Iterator<Item = &Flow> {
    details.flows.iter().filter(|flow| !flow.steps.is_empty())
}

/// Describes the checked-out commit, as `main at bbe3a021903d, 2 changed files`.
pub fn revision(details: &ExploreDetails) -> Option<String> {
    let git = details.git.as_ref()?;
    let branch = git.branch.as_deref().unwrap_or("no branch");
    let Some(head) = &git.head else { return Some(format!("{branch}, no commit yet")) };
    let head: String = head.chars().take(12).collect();
    let changed = match git.changed_files {
        0 => String::new(),
        n => format!(", {}", count(n, "changed file")),
    };
    Some(format!("{branch} at {head}{changed}"))
}

#[cfg(test)]
mod tests {
    use cairn_protocol::explore::{GitFacts, TopFile};

    use super::*;

    #[test]
    fn shares_are_of_all_lines_and_sorted() {
        let summary = ExploreSummary {
            languages: [("A".to_owned(), 1), ("B".to_owned(), 2), ("C".to_owned(), 0)].into(),
            ..Default::default()
        };
        let all: Vec<(&str, String)> =
            languages(&summary).iter().map(|l| (l.name, l.percent())).collect();
        assert_eq!(all, [("B", "66.6 %".to_owned()), ("A", "33.3 %".to_owned())]);
        let huge = ExploreSummary {
            languages: [("A".to_owned(), u64::MAX), ("B".to_owned(), u64::MAX)].into(),
            ..Default::default()
        };
        assert_eq!(languages(&huge)[0].permille, 500);
    }

    #[test]
    fn a_file_without_reason_is_described_by_its_references() {
        for (files, symbols, expected) in [
            (0, vec![], ""),
            (1, vec![], "used by 1 file"),
            (2, vec!["a", "b", "c", "d", "e"], "used by 2 files: a, b, c, d"),
            (0, vec!["a"], "a"),
        ] {
            let file = TopFile {
                path: "p".into(),
                score: 0.0,
                referring_files: files,
                symbols: symbols.into_iter().map(str::to_owned).collect(),
                reason: " ".into(),
            };
            let details = ExploreDetails { top_files: vec![file], ..Default::default() };
            let summary = ExploreSummary { details, ..Default::default() };
            assert_eq!(top_files(&summary)[0].reason, expected);
        }
    }

    #[test]
    fn names_lose_a_long_common_prefix() {
        let of = |names: &[&str]| -> Vec<Component> {
            let component = |name: &&str| Component { name: (*name).into(), ..Default::default() };
            names.iter().map(component).collect()
        };
        for (names, expected) in [
            (&["go.etcd.io/etcd/a/v3", "go.etcd.io/etcd/b", "c"][..], &["a/v3", "b", "c"][..]),
            (&["@trpc/a", "@trpc/b"], &["@trpc/a", "@trpc/b"]),
            (&["example.org/x/", "example.org/x/y"], &["example.org/x/", "y"]),
            (&["example.org/x", "y", "z"], &["example.org/x", "y", "z"]),
            (&[], &[]),
        ] {
            assert_eq!(short_names(&of(names)), expected);
        }
    }

    #[test]
    fn revisions_name_branch_and_commit() {
        let git = |branch: Option<&str>, head: Option<&str>, changed_files| ExploreDetails {
            git: Some(GitFacts {
                branch: branch.map(str::to_owned),
                head: head.map(str::to_owned),
                changed_files,
                ..Default::default()
            }),
            ..Default::default()
        };
        for (details, expected) in [
            (ExploreDetails::default(), None),
            (git(None, None, 0), Some("no branch, no commit yet")),
            (git(Some("m"), Some("0123456789abcdef"), 0), Some("m at 0123456789ab")),
            (git(Some("m"), Some("0"), 1), Some("m at 0, 1 changed file")),
        ] {
            assert_eq!(revision(&details).as_deref(), expected);
        }
    }
}
