//! How much a path counts: code first, unless the query asks for tests, documents or examples, and little else.

/// Factor for tests, docs, examples and vendored code the query does not ask for.
const ASIDE: f32 = 0.3;
/// Words up to which a query with a word for tests wants tests; one that says more, and is no question, may only mention them.
const FEW: f32 = 4.0;

/// What the words of a query ask for beside their meaning.
pub struct Asked {
    lower: String,
    tests: bool,
    docs: bool,
    examples: bool,
    /// Factor for what it asks for.
    wanted: f32,
}

const TESTS: [&str; 10] =
    ["test", "tests", "testing", "spec", "specs", "fixture", "fixtures", "mock", "bench", "benchmark"];
const DOCS: [&str; 7] = ["doc", "docs", "documentation", "readme", "changelog", "guide", "tutorial"];
const EXAMPLES: [&str; 4] = ["example", "examples", "sample", "demo"];
/// What a question begins with: a word for tests in one is what is asked for, however long it is.
const QUESTIONS: [&str; 15] = [
    "where", "which", "what", "how", "who", "why", "when", "is", "are", "does", "do", "can", "show", "find",
    "list",
];

impl Asked {
    pub fn of(query: &str) -> Self {
        let lower = query.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let has = |any: &[&str]| words.iter().any(|w| any.contains(w));
        let first = words.first().copied().unwrap_or_default();
        let (tests, docs, examples) = (has(&TESTS), has(&DOCS), has(&EXAMPLES));
        let share = match QUESTIONS.contains(&first) {
            true => 1.0,
            false => (FEW / words.len().max(1) as f32).min(1.0),
        };
        Self { tests, docs, examples, wanted: ASIDE + (1.0 - ASIDE) * share, lower }
    }
}

/// What in a query is written as an identifier, lower-cased: a word with `_` or a capital inside, one that is called, or
/// the only word there is; of a qualified one its last part.
pub fn identifiers(query: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let alone = !query.trim().contains(char::is_whitespace);
    let mut found = Vec::new();
    for word in query.split(char::is_whitespace) {
        let (bare, called) = match word.find('(') {
            Some(at) => (&word[..at], true),
            None => (word.trim_end_matches(|c| !part(c)), false),
        };
        let marked = called || ["::", "->", "."].iter().any(|m| bare.contains(m));
        let Some(name) = bare.rsplit(|c| !part(c)).next().filter(|n| n.len() > 2) else { continue };
        if alone || marked || name.contains('_') || name.chars().skip(1).any(char::is_uppercase) {
            found.push(name.to_lowercase());
        }
    }
    found
}

/// Whether a path is a test, document, example, vendored or data file.
pub fn is_aside(path: &str) -> bool {
    prior(path, &Asked::of("")) < 1.0
}

/// How much a path counts: code first, unless the query asks for something else.
pub fn prior(path: &str, asked: &Asked) -> f32 {
    let lower = path.to_lowercase();
    if !asked.lower.is_empty() && asked.lower.contains(&lower) {
        return 1.0;
    }
    let (folders, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let has = |words: &[&str]| folders.split('/').any(|f| words.contains(&f));
    let stem = name.split('.').next().unwrap_or(name);
    let test =
        has(&["spec", "specs", "__tests__", "testdata", "fixtures", "e2e", "bench", "benches", "benchmarks"])
            || folders
                .split('/')
                .any(|folder| of_tests(folder, &["test", "tests", "testing", "testutil", "testutils"]))
            || of_tests(stem, &["test", "tests"])
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
    let example =
        has(&["example", "examples", "sample", "samples", "demo", "demos", "tutorial", "tutorials"]);
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
    let data = matches!(ending, "json" | "yaml" | "yml" | "toml" | "lock" | "cfg" | "ini" | "xml" | "csv");
    let mut factor = 1.0;
    for (is, wanted) in
        [(test, asked.tests), (doc, asked.docs), (example, asked.examples), (vendored, false), (data, false)]
    {
        if is {
            factor *= if wanted { asked.wanted } else { ASIDE };
        }
    }
    factor
}

/// Whether the first or the last part of a name is one of these words: `test_server`, `macro_tests`, `test-utils`.
fn of_tests(name: &str, any: &[&str]) -> bool {
    let mut parts = name.split(['_', '-']);
    parts.next().is_some_and(|first| any.contains(&first))
        || parts.next_back().is_some_and(|last| any.contains(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_from_words() {
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
    fn what_is_aside_counts_less_unless_asked_for() {
        let p = |path, query| prior(path, &Asked::of(query));
        assert_eq!(p("src/server.rs", "start server"), 1.0);
        for path in ["src/contest.rs", "src/latest_run.rs", "src/attest/sign.rs", "src/protest.go"] {
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
        assert_eq!(p("tests/server.rs", "where are the tests of a server that keeps connections"), 1.0);
        assert!(p("tests/server.rs", "\u{e9}\u{e9}\u{e9}") < 1.0 && p("tests/server.rs", " : ") < 1.0);
        let both = p("src/server.rs", "keep open connections with the server and run the tests");
        assert_eq!(both, 1.0);
    }
}
