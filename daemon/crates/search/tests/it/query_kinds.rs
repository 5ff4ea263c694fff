//! Kinds of queries on a small repository: names, paths, questions about use, issues, and queries
//! of unusual size or content.

use cairn_protocol::error::Reason;
use cairn_protocol::search::{QueryKind, SearchAnswer, SearchParams};
use cairn_search::CancelFlag;
use serde_json::json;

use crate::fixture::{TestRoot, hybrid, lexical};

const SESSIONS: &str = "\
class SessionStore:
    def save(self, session):
        if not self.signer.matches(session.cookie):
            raise ValueError(\"signature of the cookie does not match\")
        self.sessions[session.id] = session

    def load(self, session_id):
        return self.sessions.get(session_id)
";
const REDIRECTS: &str = "\
def redirect_to(response, location):
    response.status = 302
    response.headers['Location'] = location
    return response
";
const SESSION_TESTS: &str = "\
def test_session_of_stranger_is_refused(store):
    store.save(StrangerSession())

class StrangerSession:
    cookie = 'forged'
";
const DOCKER: &str = "\
# Deployment

## Run with docker

Build the image with `docker build .` and start it with `docker run -p 80:80`.
";
const JEMALLOC: &str = "\
/* Expires keys in the background. */
void expire_keys_background(void) {
    background_thread_expire(keys);
}
";
const EXPIRE: &str = "\
/* Removes keys whose time has passed, in the background of the event loop. */
void active_expire_cycle(int type) {
    for (int i = 0; i < db_count; i++) expire_keys(db + i);
}
";

fn repository() -> TestRoot {
    let root = TestRoot::new(&[
        ("web/sessions.py", SESSIONS),
        ("web/responses.py", REDIRECTS),
        ("tests/test_sessions.py", SESSION_TESTS),
        ("docs/deployment.md", DOCKER),
        ("src/docker.py", "def run_with_docker(image):\n    start(image)\n"),
        ("deps/jemalloc/background.c", JEMALLOC),
        ("src/expire.c", EXPIRE),
    ]);
    root.build();
    root
}

fn explained(root: &TestRoot, query: &str) -> SearchAnswer {
    hybrid(&root.indexes, &SearchParams { explain: true, ..SearchParams::new(query) })
}

/// The kind of a query, and the path and definition of its first result.
fn first(root: &TestRoot, query: &str) -> (QueryKind, String, Option<String>) {
    let mut answer = explained(root, query);
    let item = answer.items.remove(0);
    (answer.kind.unwrap(), item.path, item.symbol.map(|s| s.name))
}

#[test]
fn definition_of_a_name_comes_first_even_in_tests() {
    let root = repository();
    for (query, path, name) in [
        ("StrangerSession", "tests/test_sessions.py", "StrangerSession"),
        ("class StrangerSession", "tests/test_sessions.py", "StrangerSession"),
        (
            "test_session_of_stranger_is_refused",
            "tests/test_sessions.py",
            "test_session_of_stranger_is_refused",
        ),
        ("SessionStore", "web/sessions.py", "SessionStore"),
        ("SessionStore.save", "web/sessions.py", "save"),
        ("expire_keys_background", "deps/jemalloc/background.c", "expire_keys_background"),
    ] {
        let (kind, found, symbol) = first(&root, query);
        assert_eq!((kind, found.as_str()), (QueryKind::Identifier, path), "{query}");
        assert_eq!(symbol.as_deref(), Some(name), "{query}");
        let params = SearchParams::new(query);
        assert_eq!(lexical(&root.indexes, &params).items[0].path, path, "{query}");
    }
}

#[test]
fn definition_in_tests_is_among_few_results_of_many_files_with_the_parts_of_its_name() {
    let body = |n: usize| {
        format!("fn refused_values_{n}(option: Values) {{\n    refuse(option.values, {n});\n}}\n")
    };
    let files: Vec<(String, String)> =
        (0..80).map(|n| (format!("src/refused_values_{n}.rs"), body(n).repeat(3))).collect();
    let mut tree: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    let test = "fn values_refused_by_option() {\n    check(1);\n}\n";
    tree.push(("tests/options.rs", test));
    let root = TestRoot::new(&tree);
    root.build();
    for k in [3, 10, 100] {
        let params = SearchParams { k, ..SearchParams::new("values_refused_by_option") };
        let answer = hybrid(&root.indexes, &params);
        assert_eq!(answer.items[0].path, "tests/options.rs", "{k}");
        assert!(answer.items.len() > 1, "other results are after it: {k}");
    }
}

#[test]
fn question_about_use_finds_documents_and_other_questions_find_code() {
    let root = repository();
    let (kind, path, _) = first(&root, "how do I run this with docker");
    assert_eq!((kind, path.as_str()), (QueryKind::Use, "docs/deployment.md"));
    let (kind, path, _) = first(&root, "where is the image run with docker");
    assert_eq!((kind, path.as_str()), (QueryKind::Text, "src/docker.py"));
    let (_, path, _) = first(&root, "how does expiration of keys work in the background");
    assert_eq!(path, "src/expire.c", "vendored code comes later");
    let (kind, path, _) = first(&root, "web/responses.py:2");
    assert_eq!((kind, path.as_str()), (QueryKind::Path, "web/responses.py"));
}

#[test]
fn issue_is_answered_by_what_it_names() {
    let root = repository();
    let environment = "## Environment\n- docker: 24.0, image of the background thread\n";
    let issue = format!(
        "Login is lost\n\n## Describe the bug\nSometimes I have to enter my password again.\n\n\
         ```\nTraceback (most recent call last):\n  File \"/srv/app/web/sessions.py\", line 4, in save\n\
         ValueError: signature of the cookie does not match\n```\n{environment}"
    );
    let (kind, path, _) = first(&root, &issue);
    assert_eq!((kind, path.as_str()), (QueryKind::Issue, "web/sessions.py"));
    let missing = issue.replace("web/sessions.py", "web/gone.py").replace("in save", "in vanish");
    assert_eq!(first(&root, &missing).1, "web/sessions.py", "by the message alone");
    // The same text without its names and its message: the positive control.
    let vague =
        format!("Login is lost\n\n{}{environment}", "It happens again and again.\n".repeat(12));
    let answer = explained(&root, &vague);
    let shares = |name: &str| {
        answer.items.iter().flat_map(|i| &i.explain).any(|share| share.feature == name)
    };
    assert!(!shares("namedPath") && !shares("fileNames"), "{:?}", answer.items);
}

#[test]
fn unusual_queries_are_answered_or_refused() {
    let root = repository();
    let log = "2026-01-01 10:00:00 ERROR web/sessions.py:4 cookie of session 17 does not match\n";
    let long: String = log.repeat(64 * 1024 / log.len());
    let answer = explained(&root, &long);
    assert_eq!(
        (answer.kind, answer.items[0].path.as_str()),
        (Some(QueryKind::Issue), "web/sessions.py")
    );
    // One line of thousands of different words, names and paths.
    let mut line = String::from("SessionStore ");
    for n in 0.. {
        line.push_str(&format!("word{n} readName{n} src/dir{n}/file.py:{n} "));
        if line.len() > 63 * 1024 {
            break;
        }
    }
    let params = SearchParams { max_tokens: Some(2000), ..SearchParams::new(&line) };
    let answer = hybrid(&root.indexes, &params);
    assert!(answer.packed.is_some_and(|packed| packed.tokens <= 2000));
    for query in ["e", "the of and", "关系", "a\0b", "\u{202e}abc", "?", "()", "::", "`"] {
        let answer = explained(&root, query);
        assert!(answer.complete, "{query:?}");
    }
    let params: SearchParams =
        serde_json::from_value(json!({"query": "x".repeat(64 * 1024 + 1)})).unwrap();
    let refused = root.indexes.hybrid(&params, &CancelFlag::new(), &|_| {}).unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidParams);
    assert!(refused.message.contains("65536"), "{}", refused.message);
}

#[test]
fn repository_of_one_file_and_one_without_a_grammar_are_searched() {
    let one = TestRoot::new(&[("only.py", SESSIONS)]);
    one.build();
    assert_eq!(first(&one, "SessionStore").1, "only.py");
    let other = TestRoot::new(&[
        ("a.cob", "PROCEDURE DIVISION.\n    PERFORM CALCULATE-INTEREST.\n"),
        ("b.cob", "PROCEDURE DIVISION.\n    DISPLAY GREETING.\n"),
    ]);
    other.build();
    assert_eq!(first(&other, "CALCULATE-INTEREST").1, "a.cob");
    assert_eq!(first(&other, "where is the greeting displayed").1, "b.cob");
}
