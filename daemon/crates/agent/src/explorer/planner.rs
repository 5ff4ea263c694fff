//! The plan: maps the known facts to the next operations. Pure; the queue accepts equal operations
//! once.

use std::collections::BTreeSet;

use cairn_protocol::{command::ToolCall, explore::AgentOp};
use serde_json::{Value, json};

use super::{changes, components, concepts, conventions, facts::Facts, flows, manifests, paths};

/// Seconds to wait for the index; the explore then continues with its current state.
const INDEX_WAIT: u32 = 18;
/// Most manifests, readmes and workflows that are read.
const MAX_READ: usize = 70;
/// Most lines that are read of each.
const READ_LINES: u32 = 400;
/// Lines around a hit, which show if it is compiled for tests only.
const PROBE_CONTEXT: u32 = 4;
/// Files that one look-up by name requests, and most look-ups.
const LOOK_UP: usize = 150;
const LOOK_UPS: usize = 6;
/// Most lines that a probe returns.
const PROBE_LINES: u32 = 300;

/// Levels of folders that parts of the repository may be in: Java's packages are deep.
const FOLDER_DEPTH: u32 = 8;
/// Files of the graph of imports.
pub const GRAPH_FILES: u32 = 1000;
/// Most files that are read for the roles of parts.
const MAX_ROLE_FILES: usize = 60;
/// Most parts whose roots are looked up.
const MAX_ROLE_PARTS: usize = 15;
/// Most lines that are read of each: the comment of the main definition may be far down.
const ROLE_LINES: u32 = 1_500;
/// Commits whose files are counted.
const COMMITS: u32 = 1000;
/// Steps of imports and files of the dependents of a changed file.
const IMPACT_DEPTH: u32 = 3;
const IMPACT_FILES: u32 = 500;

/// A search for entrypoints.
pub struct Probe {
    /// Regular expression of the search.
    pub pattern: &'static str,
    /// Names of the files to search, as globs.
    pub globs: &'static [&'static str],
    /// Kind of a hit: `main` or `server`.
    pub kind: &'static str,
    /// Reason why a hit is an entrypoint.
    pub reason: &'static str,
}

/// Lines that start and end conditional parts of a C file, which show if a main function far below
/// is compiled for tests only.
pub const CONDITIONALS: &str = r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b";
/// Most lines that one search for conditionals returns.
const CONDITIONAL_LINES: u32 = 10_000;

/// The reason of a call that opens a port in JavaScript.
pub const LISTENS: &str = "starts listening";

pub const PROBES: &[Probe] = &[
    Probe {
        pattern: r"^\s*(pub\s+)?(async\s+)?fn main\s*\(\s*\)",
        globs: &["*.rs"],
        kind: "main",
        reason: "fn main",
    },
    Probe {
        pattern: r"^func main\s*\(\s*\)",
        globs: &["*.go"],
        kind: "main",
        reason: "func main of package main",
    },
    Probe {
        pattern: r"^\s*(int|void|auto|WMAIN|signed)?\s*w?main\s*\((\s*void\s*|\s*int\b.*|\s*)\)?\s*\{?\s*$",
        globs: &["*.c", "*.cc", "*.cpp", "*.cxx"],
        kind: "main",
        reason: "main function",
    },
    Probe {
        pattern: r"\bstatic\s+(final\s+)?void\s+main\s*\(",
        globs: &["*.java"],
        kind: "main",
        reason: "public static void main",
    },
    Probe {
        pattern: r"@SpringBootApplication\b",
        globs: &["*.java", "*.kt"],
        kind: "server",
        reason: "Spring Boot application",
    },
    Probe {
        pattern: r#"^if __name__ == ['"]__main__['"]"#,
        globs: &["*.py"],
        kind: "script",
        reason: "runs when executed (__main__ guard)",
    },
    Probe {
        pattern: r"^\w+\s*(:\s*\w+\s*)?=\s*(Flask|FastAPI|Starlette|Sanic|Bottle|Quart)\(",
        globs: &["*.py"],
        kind: "server",
        reason: "creates the web application",
    },
    Probe {
        pattern: r"\bget_(asgi|wsgi)_application\s*\(\)|^app\s*=\s*Celery\(",
        globs: &["*.py"],
        kind: "server",
        reason: "application object of a server",
    },
    Probe {
        pattern: r"\b(bootstrapApplication|platformBrowserDynamic|createRoot|createApp)\s*\(",
        globs: &["main.ts", "main.tsx", "main.js", "main.jsx", "index.tsx", "index.jsx"],
        kind: "main",
        reason: "starts the application in the browser",
    },
    Probe {
        pattern: r"\b(app|server|fastify|httpServer|http)\.listen\s*\(",
        globs: &["*.js", "*.ts", "*.mjs", "*.cjs"],
        kind: "server",
        reason: LISTENS,
    },
    Probe {
        pattern: r"^\s*(public\s+)?(suspend\s+)?fun main\s*\(",
        globs: &["*.kt"],
        kind: "main",
        reason: "fun main",
    },
    Probe {
        pattern: r"^\s*def main\s*\(\s*args\s*:\s*Array\[String\]|^object \w+ extends App\b",
        globs: &["*.scala"],
        kind: "main",
        reason: "def main",
    },
    Probe { pattern: r"^@main\b", globs: &["*.swift"], kind: "main", reason: "@main type" },
    Probe {
        pattern: r"\bstatic\s+(async\s+)?(void|int|Task(<int>)?)\s+Main\s*\(",
        globs: &["*.cs"],
        kind: "main",
        reason: "static Main",
    },
];

/// The fact that the result of an operation becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Entries of a folder; `is_root` for the root's own.
    Listing {
        is_root: bool,
    },
    /// The text of a file.
    Text {
        path: String,
    },
    Languages,
    GitStatus,
    GitLog,
    /// Changes since the requested revision.
    Changes,
    /// Files that depend on a changed file.
    Impact {
        path: String,
    },
    /// The state of the index after the wait for it.
    Index,
    Ranking,
    Folders,
    /// Imports between the files of the root.
    Graph,
    /// Imports between the parts of the repository.
    Groups,
    /// The path of the first request or command from an entrypoint, by its index in
    /// [`Facts::starts`].
    Flow(usize),
    /// Files that exist, by name.
    LookUp(LookUp),
    /// Lines that a probe finds, by its index in [`PROBES`].
    Probe(usize),
    /// Conditional parts of C files.
    Conditionals,
    /// Definitions of a name.
    Definition {
        name: String,
    },
    /// Locations that answer a question.
    Question {
        query: String,
    },
    /// None: only the model that planned the operation receives the result.
    ForModel,
}

/// A look-up of files by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookUp {
    Manifests,
    /// Files that manifests name.
    NamedFiles,
    /// Files that describe the parts of the repository.
    Roots,
}

/// An operation of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedOp {
    pub op: AgentOp,
    pub purpose: Purpose,
}

impl PlannedOp {
    /// An operation of a model's plan; what it finds also becomes a fact if it is of a known kind.
    pub fn of_model(op: AgentOp) -> Self {
        let purpose = match &op {
            AgentOp::ListDir { .. } => Purpose::Listing { is_root: false },
            AgentOp::ReadSpan { path, .. } => Purpose::Text { path: path.clone() },
            AgentOp::Hybrid { query, .. } | AgentOp::Semantic { query, .. } => {
                Purpose::Question { query: query.clone() }
            }
            _ => Purpose::ForModel,
        };
        Self { op, purpose }
    }
}

/// Goals that the plan always covers.
const KNOWN_GOALS: &[(&str, &str)] = &[
    ("structure", "map structure"),
    ("readme", "summarize readmes"),
    ("entrypoint", "identify entrypoints"),
    ("entry point", "identify entrypoints"),
];

/// The planner: the goals, and those of them that are separate questions.
#[derive(Debug)]
pub struct Planner {
    pub goals: Vec<String>,
    questions: Vec<String>,
}

pub fn tool(purpose: Purpose, name: &str, arguments: Value) -> PlannedOp {
    PlannedOp { op: AgentOp::Tool { name: name.into(), arguments }, purpose }
}

/// Finds files by name over the complete index: a count of non-empty lines reads only files that
/// match.
fn look_up(purpose: LookUp, globs: &[impl serde::Serialize]) -> PlannedOp {
    tool(
        Purpose::LookUp(purpose),
        "search_grep",
        json!({"pattern": ".", "isRegex": true, "countOnly": true, "filters": {"globs": globs}}),
    )
}

fn read(path: &str) -> PlannedOp {
    read_to(path, READ_LINES)
}

fn read_to(path: &str, end_line: u32) -> PlannedOp {
    let op = AgentOp::ReadSpan { path: path.into(), start_line: 1, end_line, context: None };
    PlannedOp { op, purpose: Purpose::Text { path: path.into() } }
}

/// Requests the changes between a revision and the work tree.
pub fn compare(since: &str) -> PlannedOp {
    tool(Purpose::Changes, "git_changes", json!({"since": since}))
}

fn impact(path: &str) -> PlannedOp {
    let purpose = Purpose::Impact { path: path.to_owned() };
    let arguments = json!({"path": path, "depth": IMPACT_DEPTH, "k": IMPACT_FILES});
    tool(purpose, "find_impact", arguments)
}

fn list(path: &str, depth: u32) -> PlannedOp {
    let op = AgentOp::ListDir { path: path.into(), depth };
    PlannedOp { op, purpose: Purpose::Listing { is_root: path == "." } }
}

impl Planner {
    /// Creates a planner for goals. Known ones select operations, others become searches; without
    /// goals the known ones apply.
    pub fn new(goals: &[String]) -> Self {
        let covered = |goal: &str| {
            let goal = goal.to_lowercase();
            KNOWN_GOALS.iter().any(|(word, _)| goal.contains(word))
                && goal.split_whitespace().count() <= 4
        };
        let questions = goals
            .iter()
            .filter(|g| !g.trim().is_empty() && !covered(g))
            .take(20)
            .cloned()
            .collect();
        let mut all: Vec<String> = goals.to_vec();
        if all.is_empty() {
            all = ["map structure", "summarize readmes", "identify entrypoints"]
                .map(str::to_owned)
                .into();
        }
        Self { goals: all, questions }
    }

    /// Returns the next operations for the known facts. They may include operations that were
    /// planned before.
    pub fn next(&self, facts: &Facts) -> Vec<PlannedOp> {
        let mut ops = first_look();
        if !facts.limited {
            // A listing of the root omits entries at this depth if there are many others.
            ops.push(list(".github/workflows", 1));
        }
        if facts.looked {
            ops.extend(self.after_listing(facts));
        }
        if facts.index_waited {
            ops.extend(self.after_index(facts));
        }
        ops
    }

    fn after_listing(&self, facts: &Facts) -> Vec<PlannedOp> {
        files_to_read(facts).into_iter().map(read).collect()
    }

    fn after_index(&self, facts: &Facts) -> Vec<PlannedOp> {
        let mut ops = vec![
            look_up(LookUp::Manifests, manifests::GLOBS),
            // A replay compares the tree with it.
            tool(Purpose::ForModel, "list_contents", json!({})),
            tool(Purpose::Ranking, "rank_files", json!({"k": 120})),
            tool(Purpose::Folders, "list_folders", json!({"depth": FOLDER_DEPTH})),
            tool(Purpose::Graph, "code_graph", json!({"k": GRAPH_FILES})),
        ];
        for (index, probe) in PROBES.iter().enumerate() {
            ops.push(tool(
                Purpose::Probe(index),
                "search_grep",
                json!({
                    "pattern": probe.pattern,
                    "isRegex": true,
                    "k": PROBE_LINES,
                    "contextLines": PROBE_CONTEXT,
                    "filters": {"globs": probe.globs},
                }),
            ));
        }
        ops.extend(concepts::names(facts).into_iter().map(|(name, ..)| {
            let purpose = Purpose::Definition { name: name.to_owned() };
            tool(purpose, "search_symbols", json!({"query": name, "match": "exact", "k": 10}))
        }));
        ops.extend(changes::files_with_dependents(facts).into_iter().map(impact));
        ops.extend(conditionals(facts));
        ops.extend(flows::requests(facts));
        ops.extend(self.questions.iter().map(|query| PlannedOp {
            op: AgentOp::Hybrid { query: query.clone(), k: 5 },
            purpose: Purpose::Question { query: query.clone() },
        }));
        // Files that manifests name are looked up together, once all manifests are read.
        let reading = files_to_read(facts).into_iter().any(|p| !facts.texts.contains_key(p));
        if !reading && facts.lookups.contains(&LookUp::Manifests) {
            ops.extend(after_manifests(facts));
            let named = unknown_files(facts);
            if !facts.lookups.contains(&LookUp::NamedFiles) {
                let chunks = named.chunks(LOOK_UP).take(LOOK_UPS);
                ops.extend(chunks.map(|globs| look_up(LookUp::NamedFiles, globs)));
            }
        }
        ops
    }
}

/// Requests the imports between the parts of the repository, then the files that tell their roles.
fn after_manifests(facts: &Facts) -> Vec<PlannedOp> {
    let parts = match &facts.parts {
        Some(parts) if !parts.is_empty() => parts,
        _ => return vec![],
    };
    let names = components::names_of(parts);
    let roots: Vec<String> = parts
        .iter()
        .take(MAX_ROLE_PARTS)
        .flat_map(|part| {
            let folder = escaped(&part.path);
            manifests::MODULE_ROOTS.iter().map(move |root| format!("/{folder}/{root}"))
        })
        .collect();
    let mut ops = vec![tool(Purpose::Groups, "code_graph", json!({"k": 1, "groups": names}))];
    if !facts.lookups.contains(&LookUp::Roots) {
        ops.extend(roots.chunks(LOOK_UP).take(2).map(|globs| look_up(LookUp::Roots, globs)));
    }
    if facts.has_groups && facts.lookups.contains(&LookUp::Roots) {
        let files = components::files_to_read(facts, parts);
        ops.extend(files.iter().take(MAX_ROLE_FILES).map(|path| read_to(path, ROLE_LINES)));
    }
    ops
}

/// The files that manifests name and that are not known to exist, as globs.
fn unknown_files(facts: &Facts) -> Vec<String> {
    let mut seen = BTreeSet::new();
    manifests::named_files(facts)
        .filter(|path| !facts.exists(path) && seen.insert(path.clone()))
        .map(|path| format!("/{path}"))
        .collect()
}

/// True once all that the entrypoints follow from is known.
pub fn are_entrypoints_known(facts: &Facts) -> bool {
    facts.parts.is_some()
        && facts.probed.len() == PROBES.len()
        && (facts.has_conditionals || conditionals(facts).is_empty())
        && (facts.lookups.contains(&LookUp::NamedFiles) || unknown_files(facts).is_empty())
}

/// A path as a glob that matches it alone.
fn escaped(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    for c in path.chars() {
        if "*?[]{}\\".contains(c) {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

/// Determines the parts of the repository as soon as all that they follow from is known.
pub fn determine_parts(facts: &mut Facts) {
    let is_known = facts.parts.is_none()
        && facts.has_folders
        && facts.has_graph
        && facts.lookups.contains(&LookUp::Manifests)
        && files_to_read(facts).into_iter().all(|path| facts.texts.contains_key(path));
    if is_known {
        facts.parts = Some(components::parts(facts, &manifests::read_all(facts)));
    }
}

/// Requests the conditionals of the C files that have a main function, once all of these are known.
fn conditionals(facts: &Facts) -> Vec<PlannedOp> {
    let Some(main) = PROBES.iter().position(|p| p.globs.contains(&"*.c")) else { return vec![] };
    if !facts.probed.contains(&main) {
        return vec![];
    }
    let files: BTreeSet<String> = facts
        .hits
        .iter()
        .filter(|hit| hit.probe == main && !paths::secondary(&hit.path))
        .map(|hit| format!("/{}", hit.path))
        .collect();
    let files: Vec<String> = files.into_iter().collect();
    let request = |globs: &[String]| {
        let arguments = json!({
            "pattern": CONDITIONALS,
            "isRegex": true,
            "k": CONDITIONAL_LINES,
            "filters": {"globs": globs},
        });
        tool(Purpose::Conditionals, "search_grep", arguments)
    };
    files.chunks(LOOK_UP).map(request).collect()
}

fn first_look() -> Vec<PlannedOp> {
    vec![
        list(".", 3),
        tool(Purpose::GitStatus, "git_status", json!({"path": "."})),
        tool(Purpose::Index, "index_build", json!({"timeoutSeconds": INDEX_WAIT})),
        tool(Purpose::Languages, "count_languages", json!({})),
        tool(Purpose::GitLog, "git_log", json!({"limit": COMMITS})),
    ]
}

/// Returns the files to read, the product's own and outermost first.
fn files_to_read(facts: &Facts) -> Vec<&str> {
    let mut all: Vec<&str> = facts.known_files().filter(|p| worth_reading(p)).collect();
    all.sort_by_key(|p| (paths::secondary(p) && !is_guide(p), paths::depth(p), *p));
    all.truncate(MAX_READ);
    all
}

fn worth_reading(path: &str) -> bool {
    let name = paths::file_name(path).to_ascii_lowercase();
    let readme = name.starts_with("readme") && paths::depth(path) == 0;
    let workflow = path.starts_with(".github/workflows/")
        && (name.ends_with(".yml") || name.ends_with(".yaml"));
    let is_version = [".nvmrc", ".node-version", ".ruby-version", ".python-version"]
        .contains(&path)
        || ["rust-toolchain.toml", "global.json"].contains(&path);
    readme || workflow || is_version || is_guide(path) || manifests::is_manifest(path)
}

/// True for a document that describes the structure of the project or the rules of its
/// contributors.
fn is_guide(path: &str) -> bool {
    let name = paths::file_name(path).to_ascii_lowercase();
    let is_map = ["architecture.", "design.", "impl.", "overview.", "structure."]
        .iter()
        .any(|start| name.starts_with(start));
    let is_text = [".md", ".rst", ".txt"].iter().any(|end| name.ends_with(end));
    conventions::is_contributing(path) || (is_map && is_text && paths::depth(path) < 3)
}

/// Returns the tool call of an operation.
pub fn call_of(op: &AgentOp) -> ToolCall {
    let (name, arguments) = match op {
        AgentOp::IndexRepo { .. } => ("index_build", json!({})),
        AgentOp::ListDir { path, depth } => ("fs_list_dir", json!({"path": path, "depth": depth})),
        AgentOp::Grep { pattern, path_prefix } => {
            let mut arguments = json!({"pattern": pattern, "isRegex": true, "k": 50});
            if let Some(prefix) = path_prefix {
                arguments["pathPrefix"] = prefix.as_str().into();
            }
            ("search_grep", arguments)
        }
        AgentOp::Semantic { query, k } => ("search_semantic", json!({"query": query, "k": k})),
        AgentOp::Hybrid { query, k } => ("search_hybrid", json!({"query": query, "k": k})),
        AgentOp::ReadSpan { path, start_line, end_line, context } => {
            let mut arguments = json!({"path": path, "start": start_line, "end": end_line});
            if let Some(context) = context {
                arguments["context"] = (*context).into();
            }
            ("content_get_span", arguments)
        }
        AgentOp::Summarize { paths } => ("summarize", json!({"paths": paths})),
        AgentOp::Tool { name, arguments } => {
            return ToolCall { name: name.clone(), arguments: arguments.clone() };
        }
    };
    ToolCall { name: name.into(), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_goals_are_covered_and_others_become_queries() {
        let planner = Planner::new(&[
            "map structure".into(),
            "how are sessions resumed after a crash".into(),
        ]);
        assert_eq!(planner.questions, ["how are sessions resumed after a crash"]);
        assert_eq!(Planner::new(&[]).goals.len(), 3);
    }

    #[test]
    fn plan_grows_with_facts() {
        let planner = Planner::new(&[]);
        let mut facts = Facts::new("x".into());
        let first = planner.next(&facts).len();
        facts.looked = true;
        facts.listed.insert("Cargo.toml".into(), cairn_protocol::content::EntryKind::File);
        let second = planner.next(&facts);
        assert_eq!(second.len(), first + 1);
        let last = &second.last().unwrap().purpose;
        assert_eq!(last, &Purpose::Text { path: "Cargo.toml".into() });
        facts.index_waited = true;
        assert!(planner.next(&facts).len() > second.len() + PROBES.len());
    }

    #[test]
    fn files_named_by_manifests_are_looked_up_before_all_are_read() {
        let mut facts = Facts::new("x".into());
        facts.looked = true;
        facts.index_waited = true;
        for n in 0..2 * MAX_READ {
            facts.files.insert(format!("playground/p{n}/package.json"));
        }
        facts.files.insert("package.json".into());
        facts.lookups.insert(LookUp::Manifests);
        for path in files_to_read(&facts).into_iter().map(str::to_owned).collect::<Vec<_>>() {
            facts.texts.insert(path, r#"{"bin": "bin/x.js"}"#.into());
        }
        let reads_bin =
            |op: &PlannedOp| call_of(&op.op).arguments.to_string().contains("/bin/x.js");
        assert!(Planner::new(&[]).next(&facts).iter().any(reads_bin));
    }

    #[test]
    fn globs_of_parts_match_them_alone() {
        assert_eq!(escaped("app/[id]/{a,b}*?"), r"app/\[id\]/\{a,b\}\*\?");
        assert_eq!(escaped("src/a-b_c.d"), "src/a-b_c.d");
    }

    #[test]
    fn patterns_are_valid() {
        for pattern in PROBES.iter().map(|probe| probe.pattern).chain([CONDITIONALS]) {
            assert!(regex::Regex::new(pattern).is_ok(), "{pattern}");
        }
    }
}
