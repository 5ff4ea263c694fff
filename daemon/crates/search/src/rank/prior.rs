//! The factor of a path: code ranks before tests, documents and examples, unless the query asks for
//! them.

use crate::parsed::{ParsedQuery, QueryKind};

/// Factor of tests, documents, examples and vendored code that the query does not ask for.
const SECONDARY_FACTOR: f32 = 0.3;
/// Number of words up to which a query with a word such as `tests` asks for tests; a longer query
/// that is not a question may merely mention them.
const SHORT_QUERY: f32 = 4.0;

/// The kinds of files that a query asks for.
pub struct QueryTopics {
    lower: String,
    tests: bool,
    docs: bool,
    examples: bool,
    /// Factor of the kinds that it asks for.
    requested: f32,
}

const TESTS: [&str; 10] = [
    "test",
    "tests",
    "testing",
    "spec",
    "specs",
    "fixture",
    "fixtures",
    "mock",
    "bench",
    "benchmark",
];
const DOCS: [&str; 7] =
    ["doc", "docs", "documentation", "readme", "changelog", "guide", "tutorial"];
const EXAMPLES: [&str; 4] = ["example", "examples", "sample", "demo"];
/// First words of questions: a question of any length asks for tests if it contains a word for
/// them.
const QUESTIONS: [&str; 15] = [
    "where", "which", "what", "how", "who", "why", "when", "is", "are", "does", "do", "can",
    "show", "find", "list",
];

impl QueryTopics {
    pub fn new(parsed: &ParsedQuery) -> Self {
        let lower = parsed.title.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let has = |accepted: &[&str]| words.iter().any(|w| accepted.contains(w));
        let first = words.first().copied().unwrap_or_default();
        let is_about_use = parsed.kind == QueryKind::Use;
        let (tests, docs, examples) = (has(&TESTS), is_about_use || has(&DOCS), has(&EXAMPLES));
        let share = match is_about_use || QUESTIONS.contains(&first) {
            true => 1.0,
            false => (SHORT_QUERY / words.len().max(1) as f32).min(1.0),
        };
        Self {
            tests,
            docs,
            examples,
            requested: SECONDARY_FACTOR + (1.0 - SECONDARY_FACTOR) * share,
            lower,
        }
    }
}

/// True for tests, documents, examples, vendored code and data files.
pub fn is_secondary(path: &str) -> bool {
    Classes::of(&path.to_lowercase(), path).any()
}

/// True for documents by folder, extension or name, among them changelogs and style sheets.
pub fn is_document(path: &str) -> bool {
    Classes::of(&path.to_lowercase(), path).document
}

/// The factor of a path for a query.
pub fn prior(path: &str, topics: &QueryTopics) -> f32 {
    let lower = path.to_lowercase();
    if !topics.lower.is_empty() && topics.lower.contains(&lower) {
        return 1.0;
    }
    let classes = Classes::of(&lower, path);
    let mut factor = 1.0;
    for (is, requested) in [
        (classes.test, topics.tests),
        (classes.document, topics.docs),
        (classes.example, topics.examples),
        (classes.foreign, false),
        (classes.data, false),
    ] {
        if is {
            factor *= if requested { topics.requested } else { SECONDARY_FACTOR };
        }
    }
    factor
}

/// The classes of files that rank after the code of a repository.
#[derive(Debug, Clone, Copy)]
struct Classes {
    test: bool,
    document: bool,
    example: bool,
    /// Vendored, generated or outdated code, and stubs.
    foreign: bool,
    data: bool,
}

const TEST_FOLDERS: [&str; 9] =
    ["spec", "specs", "__tests__", "testdata", "fixtures", "e2e", "bench", "benches", "benchmarks"];
const EXAMPLE_FOLDERS: [&str; 15] = [
    "example",
    "examples",
    "sample",
    "samples",
    "demo",
    "demos",
    "tutorial",
    "tutorials",
    "docs_src",
    "playground",
    "playgrounds",
    "snippets",
    "cookbook",
    "quickstart",
    "quickstarts",
];
const FOREIGN_FOLDERS: [&str; 21] = [
    "vendor",
    "vendored",
    "_vendor",
    "third_party",
    "third-party",
    "thirdparty",
    "3rdparty",
    "node_modules",
    "bower_components",
    "deps",
    "extern",
    "external",
    "externals",
    "bundled",
    "dist",
    "generated",
    "gen",
    "deprecated",
    "obsolete",
    "stubs",
    "typings",
];
/// Extensions of scripts whose names may begin with the command `test`.
const SCRIPTS: [&str; 4] = ["sh", "bash", "zsh", "fish"];

impl Classes {
    /// The classes of a path, given in lower case as well.
    fn of(lower: &str, path: &str) -> Self {
        let (folders, name) = lower.rsplit_once('/').unwrap_or(("", lower));
        let has = |words: &[&str]| folders.split('/').any(|f| words.contains(&f));
        let stem = name.split('.').next().unwrap_or(name);
        let ending = name.rsplit('.').next().unwrap_or("");
        let test = has(&TEST_FOLDERS)
            || folders.split('/').any(|folder| {
                has_test_word(folder, &["test", "tests", "testing", "testutil", "testutils"])
            })
            || (has_test_word(stem, &["test", "tests"]) && !SCRIPTS.contains(&ending))
            || ["_spec", "_bench"].iter().any(|e| stem.ends_with(e))
            || path.ends_with("Test.java")
            || path.ends_with("Tests.java")
            || name.contains(".test.")
            || name.contains(".spec.")
            || name == "conftest.py";
        let document = has(&["doc", "docs", "documentation"])
            || matches!(ending, "md" | "rst" | "txt" | "adoc" | "html" | "css" | "svg" | "po")
            || ["changelog", "changes", "history", "news", "readme", "license"].contains(&stem);
        let data = matches!(
            ending,
            "json" | "yaml" | "yml" | "toml" | "lock" | "cfg" | "ini" | "xml" | "csv"
        );
        let (example, foreign) = (has(&EXAMPLE_FOLDERS), has(&FOREIGN_FOLDERS));
        Self { test, document, example, foreign, data }
    }

    fn any(self) -> bool {
        self.test || self.document || self.example || self.foreign || self.data
    }
}

/// True if the first or last part of a name is one of the words: `test_server`, `macro_tests`,
/// `test-utils`.
fn has_test_word(name: &str, accepted: &[&str]) -> bool {
    let mut parts = name.split(['_', '-']);
    parts.next().is_some_and(|first| accepted.contains(&first))
        || parts.next_back().is_some_and(|last| accepted.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secondary_files_rank_lower_unless_the_query_names_them() {
        let p = |path, query| prior(path, &QueryTopics::new(&ParsedQuery::new(query)));
        assert_eq!(p("src/server.rs", "start server"), 1.0);
        for path in [
            "src/contest.rs",
            "src/latest_run.rs",
            "src/attest/sign.rs",
            "src/protest.go",
            "lib/test_server.bash",
        ] {
            assert_eq!(p(path, "start server"), 1.0, "{path}");
        }
        for path in [
            "tests/server.rs",
            "src/server_test.go",
            "docs/server.md",
            "vendor/x/server.go",
            "test_server.py",
            "src/server/tests.rs",
            "crates/server/src/macro_tests/calls.rs",
            "crates/test-utils/src/lib.rs",
            "server/testutil/start.go",
            "deps/jemalloc/src/server.c",
            "playground/hmr/server.ts",
            "docs_src/server.py",
        ] {
            assert!(p(path, "start server") < 1.0, "{path}");
        }
        assert_eq!(p("tests/server.rs", "server tests"), 1.0);
        assert_eq!(p("tests/server.rs", "tests/server.rs of the server that starts and ends"), 1.0);
        let long = p("tests/server.rs", "keep open connections with the server and run the tests");
        assert!(long > p("tests/server.rs", "start server") && long < 0.7, "{long}");
        assert_eq!(
            p("tests/server.rs", "where are the tests of a server that keeps connections"),
            1.0
        );
        assert!(
            p("tests/server.rs", "\u{e9}\u{e9}\u{e9}") < 1.0 && p("tests/server.rs", " : ") < 1.0
        );
        let both = p("src/server.rs", "keep open connections with the server and run the tests");
        assert_eq!(both, 1.0);
    }
}
