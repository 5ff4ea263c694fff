//! Summaries for the tests of every rendering.

#![expect(clippy::unwrap_used, reason = "a fixture that is no summary fails its test")]

use cairn_protocol::{
    changes::{ChangeCommit, ChangeImpact, ChangeRisk, ComponentChanges, ExploreChanges},
    explore::{
        Citation, Component, Concept, Convention, Entrypoint, ExploreDetails, ExploreStats,
        ExploreSummary, Finding, Flow, FlowStep, GitFacts, Hotspot, LayoutEntry, Overview, Project,
        ProjectCommands, Statement, TopFile,
    },
    git::GitFileChange,
};

/// Texts that would do harm in some output.
pub const HOSTILE: &[&str] = &[
    "</script><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)",
    "\u{1b}[31m\u{1b}]52;c;cm0=\u{7}",
    "rm \u{202e}ecilop",
    "a\n# title\n\n```\n<b>x</b>\n",
    "a | b || c \\| d",
    "`code` ``two`` $math$ [x](javascript:alert(1)) ![y](http://127.0.0.1/z)",
    "]]> --> <!-- &amp; %%{init: {}}%% \"]; click c0 \"javascript:x\"",
    "end",
    "",
    " \t ",
    "関係 שלום 👩\u{200d}🔬",
];

fn parse(json: &str) -> ExploreSummary {
    serde_json::from_str(json).unwrap()
}

/// A repository with 14 components, two of which depend on each other.
pub fn helix() -> ExploreSummary {
    parse(include_str!("../tests/fixtures/explore-helix.json"))
}

/// A repository with many cycles.
pub fn flask() -> ExploreSummary {
    parse(include_str!("../tests/fixtures/explore-flask.json"))
}

fn hostile_overview(text: &str) -> Overview {
    let citations = vec![Citation { path: text.to_owned(), line: 3 }];
    let statements = vec![Statement { text: text.to_owned(), citations }];
    Overview { statements, dropped_citations: 1, dropped_statements: 2 }
}

/// A summary with this text in each field.
pub fn hostile(text: &str) -> ExploreSummary {
    let own = || text.to_owned();
    let component = |depends_on: Vec<String>| Component {
        name: own(),
        path: own(),
        kind: own(),
        role: own(),
        evidence: Some(own()),
        files: 3,
        lines: 4,
        key_files: vec![own(), own()],
        depends_on,
    };
    let other = Component { path: "other".into(), ..component(vec![own()]) };
    let step = FlowStep { name: own(), path: own(), line: 3, component: Some(own()) };
    let project = Project { name: own(), manifest: own(), kind: own(), description: Some(own()) };
    ExploreSummary {
        repo_name: own(),
        languages: [(own(), 5), ("Rust".to_owned(), 5)].into(),
        entrypoints: vec![own()],
        top_files: vec![own()],
        followups: vec![own(), own()],
        details: ExploreDetails {
            description: Some(own()),
            purpose: Some(own()),
            overview: Some(hostile_overview(text)),
            components: vec![component(vec!["other".into(), "missing<".into()]), other],
            secondary: vec![component(vec![])],
            flows: vec![Flow { entrypoint: own(), steps: vec![step.clone(), step] }],
            conventions: vec![Convention { text: own(), source: own() }],
            concepts: vec![Concept { name: own(), kind: own(), path: own(), line: 1, files: 2 }],
            hotspots: vec![Hotspot { path: own(), commits: 2, subjects: vec![own()] }],
            projects: vec![project],
            entrypoints: vec![Entrypoint {
                path: own(),
                line: Some(1),
                kind: own(),
                reason: own(),
            }],
            top_files: vec![TopFile {
                path: own(),
                score: 0.5,
                referring_files: 2,
                symbols: vec![own()],
                reason: own(),
            }],
            commands: ProjectCommands {
                build: vec![own()],
                test: vec![own()],
                run: vec![own()],
                lint: vec![own()],
                format: vec![own()],
                sources: [(own(), own())].into(),
            },
            layout: vec![LayoutEntry { path: own(), files: 2, role: own() }],
            findings: vec![Finding { goal: own(), places: vec![own()] }],
            git: Some(GitFacts {
                branch: Some(own()),
                head: Some(own()),
                changed_files: 2,
                active_files: vec![own()],
                recent: vec![own()],
            }),
            changes: Some(hostile_changes(text)),
            stats: ExploreStats { files: 3, symbols: 4, ..Default::default() },
        },
    }
}

/// Changes with this text in each field.
fn hostile_changes(text: &str) -> ExploreChanges {
    let own = || text.to_owned();
    ExploreChanges {
        since: own(),
        base: own(),
        commits: 9,
        behind: 1,
        files: 2,
        added_lines: 3,
        deleted_lines: 4,
        components: vec![ComponentChanges {
            name: own(),
            path: own(),
            commits: 1,
            renamed: 2,
            ..Default::default()
        }],
        changed_files: vec![GitFileChange {
            path: own(),
            previous_path: Some(own()),
            status: own(),
            ..Default::default()
        }],
        subjects: vec![ChangeCommit { id: own(), subject: own() }],
        impact: vec![ChangeImpact {
            path: own(),
            direct: 1,
            total: 2,
            truncated: true,
            dependents: vec![own()],
            components: vec![own()],
        }],
        risks: vec![ChangeRisk { path: own(), kind: own(), reason: own() }],
        truncated: true,
    }
}

/// Changes of three components since a revision.
pub fn changes() -> ExploreChanges {
    parse_changes(include_str!("../tests/fixtures/changes.json"))
}

fn parse_changes(json: &str) -> ExploreChanges {
    serde_json::from_str(json).unwrap()
}

/// Components `n0`, `n1`, … with dependencies between them.
pub fn components(count: usize, edges: &[(usize, usize)]) -> Vec<Component> {
    let depends_on = |at: usize| {
        edges.iter().filter(|(from, _)| *from == at).map(|(_, to)| format!("p{to}")).collect()
    };
    (0..count)
        .map(|at| Component {
            name: format!("n{at}"),
            path: format!("p{at}"),
            kind: ["program", "library", "module"][at % 3].into(),
            role: format!("role {at}"),
            depends_on: depends_on(at),
            ..Default::default()
        })
        .collect()
}

/// A summary of components alone.
pub fn of_components(components: Vec<Component>) -> ExploreSummary {
    let details = ExploreDetails { components, ..Default::default() };
    ExploreSummary { repo_name: "sample".into(), details, ..Default::default() }
}

/// Three rings of five components, connected by edges in both directions.
pub fn cyclic() -> Vec<Component> {
    let ring = |at: usize| (at, at / 5 * 5 + (at + 1) % 5);
    let mut edges: Vec<(usize, usize)> = (0..15).map(ring).collect();
    edges.extend([(0, 5), (5, 10), (10, 0), (7, 2), (2, 7), (14, 3), (4, 4)]);
    components(15, &edges)
}

/// Three hundred components with six hundred dependencies.
pub fn many() -> Vec<Component> {
    let edges: Vec<(usize, usize)> =
        (0..600).map(|at| (at % 300, (at * 7 + at / 300 + 1) % 300)).collect();
    components(300, &edges)
}

/// Compares with a file of a crate's fixtures; `CAIRN_UPDATE=1` writes it.
pub fn assert_golden(crate_folder: &str, name: &str, actual: &str) {
    let path = std::path::Path::new(crate_folder).join("tests/fixtures").join(name);
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let changed = expected.lines().zip(actual.lines()).find(|(before, after)| before != after);
    assert!(expected == actual, "{name} differs, run with CAIRN_UPDATE=1: {changed:#?}");
}
