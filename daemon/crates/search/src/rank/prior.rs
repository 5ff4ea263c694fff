//! The factor of a path: code ranks before tests, documents and examples, unless the query asks for
//! them.

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
    pub fn new(query: &str) -> Self {
        let lower = query.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let has = |accepted: &[&str]| words.iter().any(|w| accepted.contains(w));
        let first = words.first().copied().unwrap_or_default();
        let (tests, docs, examples) = (has(&TESTS), has(&DOCS), has(&EXAMPLES));
        let share = match QUESTIONS.contains(&first) {
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

/// The identifiers of a query in lower case: words with `_` or an inner capital, called or
/// qualified names, and the only word of a query. Of a qualified name the last part counts.
pub fn identifiers(query: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let alone = !query.trim().contains(char::is_whitespace);
    let mut identifiers_found = Vec::new();
    for word in query.split(char::is_whitespace) {
        let (bare, called) = match word.find('(') {
            Some(at) => (&word[..at], true),
            None => (word.trim_end_matches(|c| !part(c)), false),
        };
        let marked = called || ["::", "->", "."].iter().any(|m| bare.contains(m));
        let Some(name) = bare.rsplit(|c| !part(c)).next().filter(|n| n.len() > 2) else { continue };
        if alone || marked || name.contains('_') || name.chars().skip(1).any(char::is_uppercase) {
            identifiers_found.push(name.to_lowercase());
        }
    }
    identifiers_found
}

/// True for tests, documents, examples, vendored code and data files.
pub fn is_secondary(path: &str) -> bool {
    prior(path, &QueryTopics::new("")) < 1.0
}

/// The factor of a path for a query.
pub fn prior(path: &str, topics: &QueryTopics) -> f32 {
    let lower = path.to_lowercase();
    if !topics.lower.is_empty() && topics.lower.contains(&lower) {
        return 1.0;
    }
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let has = |words: &[&str]| folders.split('/').any(|f| words.contains(&f));
    let stem = name.split('.').next().unwrap_or(name);
    let test = has(&[
        "spec",
        "specs",
        "__tests__",
        "testdata",
        "fixtures",
        "e2e",
        "bench",
        "benches",
        "benchmarks",
    ]) || folders.split('/').any(|folder| {
        has_test_word(folder, &["test", "tests", "testing", "testutil", "testutils"])
    }) || has_test_word(stem, &["test", "tests"])
        || ["_spec", "_bench"].iter().any(|e| stem.ends_with(e))
        || path.ends_with("Test.java")
        || path.ends_with("Tests.java")
        || name.contains(".test.")
        || name.contains(".spec.")
        || name == "conftest.py";
    let ending = name.rsplit('.').next().unwrap_or("");
    let doc = has(&["doc", "docs", "documentation"])
        || matches!(ending, "md" | "rst" | "txt" | "adoc" | "html" | "css" | "svg" | "po")
        || ["changelog", "changes", "history", "news", "readme", "license"].contains(&stem);
    let example = has(&[
        "example",
        "examples",
        "sample",
        "samples",
        "demo",
        "demos",
        "tutorial",
        "tutorials",
    ]);
    let vendored = has(&[
        "vendor",
        "vendored",
        "third_party",
        "third-party",
        "node_modules",
        "dist",
        "generated",
        "gen",
    ]);
    let data =
        matches!(ending, "json" | "yaml" | "yml" | "toml" | "lock" | "cfg" | "ini" | "xml" | "csv");
    let mut factor = 1.0;
    for (is, requested) in [
        (test, topics.tests),
        (doc, topics.docs),
        (example, topics.examples),
        (vendored, false),
        (data, false),
    ] {
        if is {
            factor *= if requested { topics.requested } else { SECONDARY_FACTOR };
        }
    }
    factor
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
    fn identifiers_are_distinguished_from_words() {
        for (query, names) in [
            ("parse", vec!["parse"]),
            ("the name of a file", vec![]),
            ("where is parse_header used", vec!["parse_header"]),
            ("how does Server::accept work", vec!["accept"]),
            ("MailQueue::push_back", vec!["push_back"]),
            ("call getName() first", vec!["getname"]),
            ("reads the file.", vec![]),
        ] {
            assert_eq!(identifiers(query), names, "{query}");
        }
    }

    #[test]
    fn secondary_files_rank_lower_unless_the_query_names_them() {
        let p = |path, query| prior(path, &QueryTopics::new(query));
        assert_eq!(p("src/server.rs", "start server"), 1.0);
        for path in ["src/contest.rs", "src/latest_run.rs", "src/attest/sign.rs", "src/protest.go"]
        {
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
