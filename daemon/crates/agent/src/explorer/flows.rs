//! Flows: the path of the first request or command of each main entrypoint. A tool traces them;
//! this module chooses where they start and which of them a summary has.

use cairn_protocol::explore::{Entrypoint, Flow};
use serde_json::json;

use super::{
    components, entrypoints,
    facts::Facts,
    manifests, paths,
    planner::{PlannedOp, Purpose, are_entrypoints_known, tool},
};

/// Most flows of a summary, and most programs whose flows are traced.
const MAX_FLOWS: usize = 4;
/// Most files of a library in which its main function is searched.
const MAX_LIBRARY_FILES: usize = 10;
/// Flows from which on a library adds none: those of programs say more.
const MAX_LIBRARY_FLOWS: usize = 2;
/// Fewest steps of a flow of a library, whose start is a guess by name.
const MIN_LIBRARY_STEPS: usize = 4;
/// Names of functions that a library's users, or a server, call for each request.
const REQUESTS: &[&str] = &[
    "__call__",
    "wsgi_app",
    "ServeHTTP",
    "dispatch!",
    "dispatch",
    "call",
    "handle",
    "handleRequest",
    "request",
    "execute",
    "run",
];

/// Location where a flow starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowStart {
    pub path: String,
    pub line: Option<u32>,
    /// Names of functions, of which the first that the file defines is the start.
    pub names: Vec<String>,
    /// True for a program; false for a file of a library.
    pub is_program: bool,
}

/// Determines the starts of flows as soon as all entrypoints are known.
pub fn determine_starts(facts: &mut Facts) {
    if facts.starts.is_none() && are_entrypoints_known(facts) {
        let entries = entrypoints::find(facts, &manifests::read_all(facts));
        facts.starts = Some(starts(facts, &entries));
    }
}

/// Returns the starts: those of programs in order of importance, then the files of a library that
/// connect most others.
fn starts(facts: &Facts, entries: &[Entrypoint]) -> Vec<FlowStart> {
    let program = |entry: &Entrypoint| FlowStart {
        path: entry.path.clone(),
        line: entry.line,
        names: named_function(entry).into_iter().collect(),
        is_program: true,
    };
    let mut starts: Vec<FlowStart> =
        entries.iter().filter(|entry| is_program(entry)).take(MAX_FLOWS).map(program).collect();
    if starts.len() < MAX_LIBRARY_FLOWS && entries.iter().any(|entry| !is_program(entry)) {
        let mut files: Vec<_> =
            facts.graph.files.iter().filter(|file| !paths::secondary(&file.path)).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.dependents + 2 * file.dependencies));
        starts.extend(files.into_iter().take(MAX_LIBRARY_FILES).map(|file| FlowStart {
            path: file.path.clone(),
            line: None,
            names: REQUESTS.iter().map(|name| (*name).to_owned()).collect(),
            is_program: false,
        }));
    }
    starts
}

fn is_program(entry: &Entrypoint) -> bool {
    ["main", "server", "script", "manifest"].contains(&entry.kind.as_str())
}

/// The function of `command 'flask' = flask.cli:main`.
fn named_function(entry: &Entrypoint) -> Option<String> {
    let (_, name) = entry.reason.rsplit_once(':').filter(|_| entry.kind == "manifest")?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
}

/// Requests a flow from each start.
pub fn requests(facts: &Facts) -> Vec<PlannedOp> {
    let groups = components::names_of(facts.parts.as_deref().unwrap_or_default());
    let request = |(at, start): (usize, &FlowStart)| {
        let mut arguments = json!({"path": start.path, "groups": groups});
        if let Some(line) = start.line {
            arguments["line"] = line.into();
        }
        if !start.names.is_empty() {
            arguments["names"] = json!(start.names);
        }
        tool(Purpose::Flow(at), "trace_flow", arguments)
    };
    facts.starts.iter().flatten().enumerate().map(request).collect()
}

/// Returns the flows of a summary. A path that another flow shares but for its first steps is
/// listed once.
pub fn find(facts: &Facts) -> Vec<Flow> {
    let starts = facts.starts.as_deref().unwrap_or_default();
    let mut flows: Vec<Flow> = Vec::new();
    for (at, flow) in &facts.flows {
        let is_program = starts.get(*at).is_some_and(|start| start.is_program);
        let is_admitted =
            is_program || flow.steps.len() >= MIN_LIBRARY_STEPS && flows.len() < MAX_LIBRARY_FLOWS;
        let end = |flow: &Flow| flow.steps.iter().rev().take(2).cloned().collect::<Vec<_>>();
        if is_admitted
            && flows.len() < MAX_FLOWS
            && flows.iter().all(|other| end(other) != end(flow))
        {
            flows.push(flow.clone());
        }
    }
    flows
}

#[cfg(test)]
mod tests {
    use cairn_protocol::explore::{FlowStep, GraphFile};

    use super::*;

    fn entry(kind: &str, path: &str, reason: &str) -> Entrypoint {
        Entrypoint { path: path.into(), line: None, kind: kind.into(), reason: reason.into() }
    }

    #[test]
    fn programs_start_flows_and_libraries_by_their_central_files() {
        let mut facts = Facts::default();
        let file = |path: &str, dependents, dependencies| GraphFile {
            path: path.into(),
            bytes: 1,
            dependents,
            dependencies,
        };
        facts.graph.files = vec![file("a.py", 9, 0), file("b.py", 5, 5), file("tests/c.py", 99, 9)];
        let command = entry("manifest", "x/cli.py", "command 'x' = x.cli:main");
        let library = entry("library", "x/__init__.py", "import x");
        let found = starts(&facts, &[command, library]);
        let paths: Vec<&str> = found.iter().map(|start| start.path.as_str()).collect();
        assert_eq!(paths, ["x/cli.py", "b.py", "a.py"]);
        assert_eq!(found[0].names, ["main"]);
        assert!(found[0].is_program && !found[1].is_program);
        let main = entry("main", "m.go", "func main: func main() {");
        let found = starts(&facts, &vec![main; 9]);
        assert_eq!(found.len(), MAX_FLOWS);
        assert!(found[0].names.is_empty());
        assert!(starts(&facts, &[]).is_empty());
    }

    #[test]
    fn equal_flows_are_listed_once_and_short_ones_of_libraries_not_at_all() {
        let flow = |entrypoint: &str, names: &[&str]| Flow {
            entrypoint: entrypoint.into(),
            steps: names
                .iter()
                .map(|name| FlowStep { name: (*name).into(), ..FlowStep::default() })
                .collect(),
        };
        let start =
            |is_program| FlowStart { path: "x".into(), line: None, names: vec![], is_program };
        let facts = Facts {
            starts: Some(vec![start(true), start(true), start(false), start(false)]),
            flows: [
                (0, flow("a", &["a", "b", "c"])),
                (1, flow("b", &["x", "b", "c"])),
                (2, flow("c", &["a", "b", "d"])),
                (3, flow("d", &["a", "b", "c", "d"])),
            ]
            .into(),
            ..Facts::default()
        };
        let found = find(&facts);
        let names: Vec<&str> = found.iter().map(|flow| flow.entrypoint.as_str()).collect();
        assert_eq!(names, ["a", "d"]);
    }
}
