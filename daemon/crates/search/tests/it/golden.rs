//! Expected first results on a small corpus: identifiers, paths, questions, filters, diversity,
//! copies.

use cairn_protocol::search::{SearchItem, SearchParams};

use crate::fixture::{TestRoot, hybrid, paths};

const CORPUS: &str = include_str!("golden/corpus.txt");

fn corpus() -> TestRoot {
    let files: Vec<(&str, &str)> =
        CORPUS.split("=== ").skip(1).map(|file| file.split_once('\n').unwrap()).collect();
    let root = TestRoot::new(&files);
    root.build();
    root
}

fn search(root: &TestRoot, params: serde_json::Value) -> Vec<SearchItem> {
    let params: SearchParams = serde_json::from_value(params).unwrap();
    hybrid(&root.indexes, &params).items
}

fn describe_item(item: &SearchItem) -> String {
    format!("{} {}", item.path, item.symbol.as_ref().map_or("-", |s| s.name.as_str()))
}

#[test]
fn expected_result_comes_first() {
    let root = corpus();
    let mut wrong = Vec::new();
    for (query, first) in [
        // Identifiers, in the spelling of their language and in another.
        ("retry_with_backoff", "src/mail/queue.rs retry_with_backoff"),
        ("retryWithBackoff", "src/mail/queue.rs retry_with_backoff"),
        ("verify_password", "web/login.ts verifyPassword"),
        ("MailQueue::push_back", "src/mail/queue.rs push_back"),
        ("escapeHtml", "web/render.ts escapeHtml"),
        ("parse_address", "src/mail/address.rs parse_address"),
        // Paths.
        ("src/store/checkout.py", "src/store/checkout.py"),
        ("limit.go", "server/limit.go"),
        // Questions.
        ("how is a letter sent again when the server refuses it", "src/mail/queue.rs"),
        ("where is the password of a user checked", "web/login.ts verifyPassword"),
        ("lower the price for regular customers", "src/store/cart.py"),
        ("fill in the values of a template", "web/render.ts renderTemplate"),
        ("what does it cost altogether", "src/store/cart.py"),
        // Quoted messages.
        ("the card has expired", "src/store/checkout.py"),
        // Tests and documents only if the query asks for them.
        ("may a client make another request", "server/limit.go"),
        ("test that the third request is refused", "server/limit_test.go"),
        ("documentation of the size of a letter", "docs/limits.md Size of a letter"),
    ] {
        let items = search(&root, serde_json::json!({"query": query, "k": 5}));
        let all: Vec<String> = items.iter().map(describe_item).collect();
        // A short window may be shown completely; then only the file is compared.
        if all.first().is_none_or(|a| a != first && a.split(' ').next() != Some(first)) {
            wrong.push(format!("{query}: {first} is not the first of {all:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn results_are_definitions_with_an_explanation() {
    let root = corpus();
    let query = serde_json::json!({"query": "retry with backoff", "k": 3, "explain": true, "includeText": true});
    let items = search(&root, query);
    let first = &items[0];
    assert_eq!((first.start_line, first.end_line), (15, 29), "{first:?}");
    assert!(first.text.as_ref().unwrap().starts_with("    pub fn retry_with_backoff"));
    let sum: f64 = first.explain.iter().map(|s| s.share).sum();
    assert!((sum - first.score).abs() < 1e-4, "{sum} of {}: {:?}", first.score, first.explain);
    assert!(first.explain.iter().any(|s| s.feature == "nameMeaning" && s.share > 0.0));
    assert!(items.windows(2).all(|w| w[0].score >= w[1].score));
}

#[test]
fn filters_are_applied_and_copies_appear_once() {
    let root = corpus();
    let filtered = |filters: serde_json::Value| -> Vec<String> {
        let params =
            serde_json::json!({"query": "total price of the items in a cart", "filters": filters});
        paths(search(&root, params))
    };
    let python = filtered(serde_json::json!({"languages": ["python"]}));
    assert!(!python.is_empty() && python.iter().all(|p| p.ends_with(".py")), "{python:?}");
    let below = filtered(serde_json::json!({"pathPrefix": "src/mail"}));
    assert!(below.iter().all(|p| p.starts_with("src/mail/")), "{below:?}");
    let globs = filtered(serde_json::json!({"globs": ["**/*.ts", "!web/login.ts"]}));
    assert!(globs.iter().all(|p| p == "web/render.ts"), "{globs:?}");
    let kinds =
        search(&root, serde_json::json!({"query": "letter", "filters": {"kinds": ["method"]}}));
    assert!(
        kinds.iter().all(|i| i.symbol.as_ref().is_some_and(|s| s.kind == "method")),
        "{kinds:?}"
    );
    // The copy below `vendor` is a duplicate.
    let copies = search(&root, serde_json::json!({"query": "parse_address", "k": 20}));
    let copies: Vec<String> =
        copies.iter().map(describe_item).filter(|t| t.ends_with(" parse_address")).collect();
    assert_eq!(copies, ["src/mail/address.rs parse_address"]);
}

#[test]
fn results_are_diversified_on_request() {
    let root = corpus();
    let query = "price of items";
    let first = |more: serde_json::Value| -> Vec<String> {
        let mut params = serde_json::json!({"query": query, "k": 4});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        paths(search(&root, params))
    };
    let plain = first(serde_json::json!({}));
    let spread = first(serde_json::json!({"diversify": true}));
    let files = |paths: &[String]| paths.iter().collect::<std::collections::BTreeSet<_>>().len();
    let few =
        [serde_json::json!({"k": 2}), serde_json::json!({"k": 2, "diversify": true})].map(&first);
    assert!(files(&few[0]) < files(&few[1]), "{few:?}");
    assert_eq!(plain[0], spread[0]);
    let all = first(serde_json::json!({"mmr": 1.0}));
    assert_eq!(all, plain, "full relevance preserves the order");
    let unlike = first(serde_json::json!({"mmr": 0.3}));
    assert_eq!(unlike[0], plain[0]);
    for _ in 0..3 {
        assert_eq!(first(serde_json::json!({})), plain, "the same query has the same answer");
    }
}
