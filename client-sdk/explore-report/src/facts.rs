//! Facts of an explore in the form that every rendering of it needs. All texts are as the
//! repository has them: each renderer escapes them for its output.

use std::collections::BTreeMap;

use cairn_protocol::{
    changes::{ChangeImpact, ComponentChanges, ExploreChanges},
    explore::{Component, ExploreDetails, ExploreSummary, Flow, Overview},
};

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

/// Formats a number with thousands separators.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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

/// Returns the note of what was dropped from an overview; `None` if nothing was.
pub fn dropped(overview: &Overview) -> Option<String> {
    let (citations, statements) = (overview.dropped_citations, overview.dropped_statements);
    (citations + statements > 0).then(|| {
        format!(
            "Dropped, since their lines do not bear them out: {}, {}.",
            count(statements, "statement"),
            count(citations, "citation")
        )
    })
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

/// Formats the start of a hash.
pub fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Describes the extent of changes, as `3 commits, 5 changed files, +120 −30 lines`.
pub fn change_totals(changes: &ExploreChanges) -> String {
    if changes.files == 0 && changes.commits == 0 {
        return "Nothing has changed.".to_owned();
    }
    let commits = count(changes.commits, "commit");
    let files = match changes.files {
        0 => return format!("{commits}, no changed files"),
        files => count(files, "changed file"),
    };
    format!("{commits}, {files}, {} lines", line_change(changes.added_lines, changes.deleted_lines))
}

/// Formats numbers of lines, as `+120 −30`.
pub fn line_change(added: u64, deleted: u64) -> String {
    format!("+{} −{}", number(added), number(deleted))
}

/// Returns what a reader of the numbers must know.
pub fn change_notes(changes: &ExploreChanges) -> Vec<String> {
    let behind = (changes.behind > 0).then(|| {
        let commits = count(changes.behind, "commit");
        format!("The revision has {commits} that the checked-out commit does not have.")
    });
    let truncated = changes.truncated.then(|| {
        "Some commits, files or contents could not be read: the numbers are lower bounds."
            .to_owned()
    });
    [behind, truncated].into_iter().flatten().collect()
}

/// Describes the changed files of a component, as `1 added, 5 modified`.
pub fn changed_files(component: &ComponentChanges) -> String {
    let parts = [
        (component.added, "added"),
        (component.modified, "modified"),
        (component.deleted, "deleted"),
        (component.renamed, "renamed"),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    parts.map(|(n, kind)| format!("{} {kind}", number(n))).collect::<Vec<_>>().join(", ")
}

/// Most components of an impact that are named.
const IMPACT_COMPONENTS: usize = 4;

/// Describes the files that depend on a changed one, as `12 files depend on it, 3 directly: a, b`.
pub fn impact(impact: &ChangeImpact) -> String {
    let more = if impact.truncated { "more than " } else { "" };
    let verb = if impact.total == 1 { "depends" } else { "depend" };
    let mut text = format!("{more}{} {verb} on it", count(impact.total, "file"));
    if impact.direct < impact.total {
        text = format!("{text}, {} directly", number(impact.direct));
    }
    let all = &impact.components;
    let names: Vec<String> =
        all.iter().take(IMPACT_COMPONENTS).map(|name| single_line(name)).collect();
    if names.is_empty() {
        return text;
    }
    let rest = match all.len().saturating_sub(IMPACT_COMPONENTS) {
        0 => String::new(),
        rest => format!(", +{rest}"),
    };
    format!("{text}: {}{rest}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use cairn_protocol::explore::{GitFacts, TopFile};

    use super::*;

    #[test]
    fn numbers_have_separators() {
        for (n, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(n), expected);
        }
    }

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
    fn changes_are_described() {
        let mut changes = ExploreChanges::default();
        assert_eq!(change_totals(&changes), "Nothing has changed.");
        changes.commits = 1;
        assert_eq!(change_totals(&changes), "1 commit, no changed files");
        changes.files = 1200;
        changes.added_lines = 3400;
        assert_eq!(change_totals(&changes), "1 commit, 1,200 changed files, +3,400 −0 lines");
        changes.behind = 2;
        assert_eq!(
            change_notes(&changes),
            ["The revision has 2 commits that the checked-out commit does not have."]
        );
        let component = ComponentChanges { added: 1, renamed: 2, ..Default::default() };
        assert_eq!(changed_files(&component), "1 added, 2 renamed");
        let mut one = ChangeImpact { direct: 1, total: 1, ..Default::default() };
        assert_eq!(impact(&one), "1 file depends on it");
        one.total = 500;
        one.truncated = true;
        one.components = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(impact(&one), "more than 500 files depend on it, 1 directly: a, b, c, d, +1");
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
