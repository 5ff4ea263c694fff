//! Entrypoints, where execution starts, with the reason for each.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::explore::Entrypoint;

use super::{
    facts::{Facts, Hit},
    library,
    manifests::{Manifest, Start},
    paths,
    planner::{LISTENS, PROBES},
};

/// Most entrypoints of a summary.
const MAX: usize = 25;
/// Most of one kind, so that fifty scripts do not hide one server.
const MAX_OF_KIND: usize = 12;

/// Kinds, the strongest claim first.
const KINDS: &[&str] = &["manifest", "main", "server", "container", "library", "script"];

/// Returns entrypoints in order of importance.
pub fn find(facts: &Facts, manifests: &[Manifest]) -> Vec<Entrypoint> {
    let mut entries: BTreeMap<String, Entrypoint> = BTreeMap::new();
    for manifest in manifests {
        for start in &manifest.starts {
            if let Some(path) = resolve(facts, start) {
                offer(
                    &mut entries,
                    Entrypoint {
                        path,
                        line: None,
                        kind: start.kind.into(),
                        reason: start.reason.clone(),
                    },
                );
            }
        }
    }
    let named: BTreeSet<String> = entries.keys().cloned().collect();
    for hit in facts.hits.iter().filter(|hit| starts(hit, &named) && !switched_off(facts, hit)) {
        let probe = &PROBES[hit.probe];
        let reason = format!("{}: {}", probe.reason, shortened(hit.text.trim()));
        offer(
            &mut entries,
            Entrypoint {
                path: hit.path.clone(),
                line: Some(hit.line),
                kind: probe.kind.into(),
                reason,
            },
        );
    }
    for path in facts.known_files().filter(|path| is_launcher(path)) {
        let reason = format!("launcher in {}/", paths::folder(path));
        offer(
            &mut entries,
            Entrypoint { path: path.into(), line: None, kind: "script".into(), reason },
        );
    }
    for entry in library::modules(facts, manifests) {
        offer(&mut entries, entry);
    }
    sorted(facts, entries.into_values().collect())
}

/// Returns true for a script in the top-level folder of programs that users run.
fn is_launcher(path: &str) -> bool {
    let name = paths::file_name(path);
    // Commands of npm are named by its manifest.
    let script = !name.contains('.')
        || [".sh", ".bash", ".py", ".rb", ".pl"].iter().any(|e| name.ends_with(e));
    ["bin", "exe"].contains(&paths::folder(path)) && script && !name.starts_with('_')
}

/// Names of files that start a server.
const STARTERS: &[&str] = &["server", "app", "main", "index", "start", "www", "cli", "run"];

/// Returns true if a hit is an entrypoint: not in a comment, not compiled for tests alone, and in
/// Rust at a path where cargo looks for one.
fn starts(hit: &Hit, named: &BTreeSet<String>) -> bool {
    let text = hit.text.trim_start();
    let comment = ["//", "*", "/*", "#!", "\"", "--"].iter().any(|c| text.starts_with(c));
    let switched = |line: &String| line.trim_start().starts_with("#if") && names_a_switch(line);
    let name = paths::file_name(&hit.path);
    let cargo_looks = name == "main.rs"
        || paths::parts(&hit.path).any(|p| p == "bin" || p == "examples")
        || named.contains(&hit.path);
    // A library may listen anywhere.
    let stem = name.split('.').next().unwrap_or(name);
    let may_listen = PROBES[hit.probe].reason != LISTENS || STARTERS.contains(&stem);
    // Go builds these for its tests alone, and a main function in them is text.
    let go_test = name.ends_with("_test.go");
    !comment
        && !go_test
        && may_listen
        && !hit.before.iter().any(switched)
        && (!name.ends_with(".rs") || cargo_looks)
}

/// Returns true if a line names a macro that is defined to compile a file's own tests or its
/// demonstration.
fn names_a_switch(line: &str) -> bool {
    let line = line.to_ascii_uppercase();
    ["TEST", "MAIN", "BENCH", "STANDALONE", "DEMO"].iter().any(|word| line.contains(word))
}

/// Returns true if a hit is in a part of its file that is compiled only when such a macro is
/// defined, at any distance above it.
fn switched_off(facts: &Facts, hit: &Hit) -> bool {
    let Some(lines) = facts.conditionals.get(&hit.path) else { return false };
    // For each open conditional: true if it tests such a macro, and true if this is the part
    // without it.
    let mut open: Vec<(bool, bool)> = Vec::new();
    for (_, text) in lines.iter().take_while(|(line, _)| *line < hit.line) {
        let word = text.trim_start().trim_start_matches('#').trim_start();
        let negated =
            word.starts_with("ifndef") || word.contains("!defined") || word.contains("! defined");
        if word.starts_with("endif") {
            open.pop();
        } else if word.starts_with("if") {
            open.push((names_a_switch(text), negated));
        } else if let Some(last) = open.last_mut() {
            *last = if word.starts_with("elif") {
                (names_a_switch(text), negated)
            } else {
                (last.0, !last.1)
            };
        }
    }
    open.iter().any(|(switch, negated)| *switch && !negated)
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Returns the file that a start refers to.
pub fn resolve(facts: &Facts, start: &Start) -> Option<String> {
    start.candidates.iter().find(|path| facts.exists(path)).cloned()
}

/// Adds one entry per file: the stronger kind wins, and the line of a weaker one is retained.
fn offer(entries: &mut BTreeMap<String, Entrypoint>, new: Entrypoint) {
    let Some(old) = entries.get_mut(&new.path) else {
        entries.insert(new.path.clone(), new);
        return;
    };
    let line = old.line.or(new.line);
    // A main function behind a "library" or a default guess is the better claim.
    if rank(&new.kind) < rank(&old.kind) {
        *old = Entrypoint { line: new.line.or(line), ..new };
    } else {
        old.line = line;
    }
}

/// True for a program that developers of the project run.
fn is_tool(path: &str) -> bool {
    const TOOLS: &[&str] = &[
        "scripts",
        "script",
        "tools",
        "tool",
        "hack",
        "misc",
        "ci",
        ".github",
        "util",
        "utils",
        "dev",
        "sandbox",
        "playground",
        "cmake",
        "packaging",
        "projects",
        "docker",
        "support",
        "xtask",
        "gen",
        "codegen",
        "generate",
        "generators",
        "release",
    ];
    paths::parts(paths::folder(path)).any(|f| TOOLS.contains(&f.to_ascii_lowercase().as_str()))
}

fn rank(kind: &str) -> usize {
    KINDS.iter().position(|k| *k == kind).unwrap_or(KINDS.len())
}

fn sorted(facts: &Facts, mut all: Vec<Entrypoint>) -> Vec<Entrypoint> {
    let central =
        |path: &str| facts.ranking.iter().position(|t| t.path == path).unwrap_or(usize::MAX);
    // A program among tests, examples or tools of developers counts only if there is nothing else.
    let is_own = |e: &Entrypoint| !paths::secondary(&e.path) && !is_tool(&e.path);
    let facade = library::facade(facts);
    all.extend(facade.filter(|file| all.iter().all(|known| known.path != file.path)));
    let is_start = |e: &Entrypoint| is_own(e) && !["script", "container"].contains(&&*e.kind);
    if !all.iter().any(is_start) {
        let new = library::used_in_readme(facts);
        all.retain(|known| new.iter().all(|entry| entry.path != known.path));
        all.extend(new);
    }
    if all.iter().any(is_own) {
        all.retain(is_own);
    }
    let languages = library::Languages::new(facts);
    let is_major = |e: &Entrypoint| !languages.is_minor(&e.path);
    if all.iter().any(|e| is_start(e) && is_major(e)) {
        all.retain(is_major);
    }
    // Scripts matter where there is nothing else.
    let is_program =
        |e: &Entrypoint| ["manifest", "main", "server", "library"].contains(&e.kind.as_str());
    if all.iter().any(is_program) {
        all.retain(|e| e.kind != "script" || paths::file_name(&e.path) == "manage.py");
    }
    // The image of a container starts one of the programs.
    if all.iter().any(|e| e.kind != "container") {
        all.retain(|e| e.kind != "container");
    }
    all.sort_by_cached_key(|e| {
        (
            paths::secondary(&e.path),
            rank(&e.kind),
            paths::depth(&e.path),
            central(&e.path),
            e.path.clone(),
        )
    });
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    all.retain(|e| {
        let seen = count.entry(e.kind.clone()).or_default();
        *seen += 1;
        *seen <= MAX_OF_KIND
    });
    all.truncate(MAX);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_entrypoints_rank_first_and_tests_are_excluded() {
        let mut facts = Facts::new("x".into());
        let hit = |probe, path: &str, line| Hit {
            probe,
            path: path.into(),
            line,
            text: "fn main() {".into(),
            before: vec![],
        };
        facts.hits = vec![
            hit(0, "src/main.rs", 3),
            hit(0, "examples/a.rs", 1),
            hit(0, "server/src/main.rs", 9),
            hit(0, "tools/src/main.rs", 9),
            hit(0, "xtask/src/main.rs", 9),
            hit(0, "src/glue.rs", 9),
            hit(0, "build.rs", 1),
        ];
        facts.texts.insert(
            "Cargo.toml".into(),
            "[package]\nname='x'\n[[bin]]\nname='x'\npath='src/main.rs'".into(),
        );
        facts.files.insert("src/main.rs".into());
        let entries = find(&facts, &crate::explorer::manifests::read_all(&facts));
        let got: Vec<_> =
            entries.iter().map(|e| (e.path.as_str(), e.kind.as_str(), e.line)).collect();
        assert_eq!(
            got,
            [("src/main.rs", "manifest", Some(3)), ("server/src/main.rs", "main", Some(9))]
        );
    }

    #[test]
    fn mains_in_tests_and_comments_are_ignored() {
        let hit = |text: &str, before: &str| Hit {
            probe: 2,
            path: "a.c".into(),
            line: 9,
            text: text.into(),
            before: vec![before.into()],
        };
        assert!(starts(&hit("int main(void) {", ""), &BTreeSet::new()));
        assert!(!starts(&hit("int main(void) {", "#ifdef CRC_TEST_MAIN"), &BTreeSet::new()));
        assert!(!starts(&hit(" * int main(void)", ""), &BTreeSet::new()));
        let in_test = Hit { path: "x/cmd_test.go".into(), ..hit("func main() {", "") };
        assert!(!starts(&in_test, &BTreeSet::new()));
    }

    #[test]
    fn conditional_far_above_main_is_detected() {
        let text = "#ifndef GUARD_H\n#if defined(X) && X > 1\n#else\n#endif\n#ifdef SIPHASH_TEST\n#if X\n#endif\nHERE\n#else\nTHERE\n#endif\nEND\n\
                    #if !defined(UNIT_TEST)\nREAL\n#else\nFAKE\n#endif\n#ifndef NO_MAIN\nWANTED\n#endif\n#endif";
        let numbered = || (1..).zip(text.lines());
        let mut facts = Facts::new("x".into());
        let directives =
            numbered().filter(|(_, l)| l.starts_with('#')).map(|(n, l)| (n, l.to_owned()));
        facts.conditionals.insert("a.c".into(), directives.collect());
        for (mark, off) in [
            ("HERE", true),
            ("THERE", false),
            ("END", false),
            ("REAL", false),
            ("FAKE", true),
            ("WANTED", false),
        ] {
            let line = numbered().find(|(_, l)| *l == mark).unwrap().0;
            let hit = |path: &str| Hit {
                probe: 2,
                path: path.into(),
                line,
                text: mark.into(),
                before: vec![],
            };
            assert_eq!(switched_off(&facts, &hit("a.c")), off, "{mark}");
            assert!(!switched_off(&facts, &hit("b.c")));
        }
    }

    #[test]
    fn examples_are_used_when_nothing_else_exists() {
        let mut facts = Facts::new("x".into());
        facts.hits = vec![Hit {
            probe: 0,
            path: "examples/a.rs".into(),
            line: 1,
            text: "fn main() {}".into(),
            before: vec![],
        }];
        assert_eq!(find(&facts, &[]).len(), 1);
        facts.hits[0].path = "tools/src/main.rs".into();
        assert_eq!(find(&facts, &[]).len(), 1);
        assert!(find(&Facts::default(), &[]).is_empty());
    }

    #[test]
    fn scripts_and_containers_count_where_no_program_is() {
        let entry = |kind: &str, path: &str| Entrypoint {
            path: path.into(),
            line: None,
            kind: kind.into(),
            reason: String::new(),
        };
        let kinds = |all: Vec<Entrypoint>| -> Vec<String> {
            sorted(&Facts::default(), all).into_iter().map(|entry| entry.kind).collect()
        };
        let script = || entry("script", "run.py");
        let image = || entry("container", "Dockerfile");
        assert_eq!(kinds(vec![script(), image()]), ["script"]);
        assert_eq!(kinds(vec![script(), image(), entry("main", "main.go")]), ["main"]);
        assert_eq!(kinds(vec![image()]), ["container"]);
        let many = (0..50).map(|n| entry("main", &format!("m{n}.go"))).collect();
        assert_eq!(kinds(many).len(), MAX_OF_KIND);
    }
}
