//! Definitions that a name finds, and their order.

use std::fs;

use cairn_protocol::search::SymbolsParams;

use crate::fixture::{TestRoot, write_file};

const FILES: &[(&str, &str)] = &[
    (
        "src/http/parser.rs",
        "pub struct Parser;\nimpl Parser {\n    pub fn parse_header_block(&self) {}\n    pub fn run(&self) {}\n}\npub const PARSER: u8 = 1;\n",
    ),
    ("src/http/mod.rs", "pub fn connect() {}\n"),
    (
        "src/server.rs",
        "pub struct Server;\nimpl Server {\n    pub fn run(&self) {}\n    fn parse_header(&self) {}\n}\n",
    ),
    ("src/query.rs", "pub fn run() {}\npub fn execute_query() {}\n"),
    ("tests/parser_test.rs", "fn parser() {}\nfn parse_header_block() {}\n"),
    ("web/app.ts", "export class App { parseHeader(): void {} executeQuery() { return 1; } }\n"),
    ("lib/store.rb", "module Store\n  class Cache\n    def fetch_all(key)\n    end\n  end\nend\n"),
    (
        "lib/store.cpp",
        "void Store::open() { work(); }\nnamespace disk { class Store { void close() { work(); } }; }\n",
    ),
    ("src/Orders.cs", "namespace Shop.Orders { class Order { public int Total { get; set; } } }\n"),
    ("docs/guide.md", "# Guide\n\n## Parser\n\nText.\n\n## Getting started\n\nMore.\n"),
];

fn index() -> TestRoot {
    let root = TestRoot::new(FILES);
    root.build();
    root
}

fn query_symbols(root: &TestRoot, params: serde_json::Value) -> Vec<String> {
    let params: SymbolsParams = serde_json::from_value(params).unwrap();
    let show = |s: cairn_protocol::search::SymbolItem| {
        let inside = s.container.map(|c| format!("{c}.")).unwrap_or_default();
        format!("{} {inside}{}", s.path.rsplit('/').next().unwrap(), s.name)
    };
    root.indexes.symbols(&params).unwrap().items.into_iter().map(show).collect()
}

#[test]
fn answer_with_a_changed_file_is_incomplete() {
    let root = index();
    let params: SymbolsParams =
        serde_json::from_value(serde_json::json!({"query": "Parser"})).unwrap();
    let complete = || root.indexes.symbols(&params).unwrap().complete;
    assert!(complete(), "the control");
    let file = FILES
        .iter()
        .find(|(path, _)| path.ends_with("/parser.rs") || *path == "parser.rs")
        .unwrap();
    write_file(&root.top(), file.0, format!("// a line above\n{}", file.1));
    assert!(!complete(), "the index was not notified yet");
    root.build();
    assert!(complete());
}

#[test]
fn results_are_ordered_by_match_and_location() {
    let root = index();
    for (query, expected) in [
        // Equal names before other case; then code before tests, types before constants, headings
        // last.
        (
            "Parser",
            &["parser.rs Parser", "guide.md Parser", "parser.rs PARSER", "parser_test.rs parser"][..],
        ),
        (
            "parser",
            &["parser_test.rs parser", "parser.rs Parser", "parser.rs PARSER", "guide.md Parser"],
        ),
        ("Server::run", &["server.rs Server.run", "parser.rs Parser.run", "query.rs run"]),
        ("Parser.run", &["parser.rs Parser.run", "query.rs run", "server.rs Server.run"]),
        // A container may be a file or a folder.
        ("query::run", &["query.rs run", "parser.rs Parser.run", "server.rs Server.run"]),
        ("http::connect()", &["mod.rs connect"]),
        ("Store::open", &["store.cpp Store.open"]),
        ("disk::Store", &["store.cpp disk.Store", "store.rb Store"]),
        ("Cache#fetch_all", &["store.rb Cache.fetch_all"]),
        ("Store::", &["store.cpp disk.Store", "store.rb Store"]),
        ("Shop.Orders", &["Orders.cs Shop.Orders"]),
        ("Order.Total", &["Orders.cs Order.Total"]),
        ("execute_query", &["query.rs execute_query", "app.ts App.executeQuery"]),
        ("executeQuery", &["app.ts App.executeQuery", "query.rs execute_query"]),
        // A part of an identifier in another spelling.
        (
            "parseHead",
            &[
                "app.ts App.parseHeader",
                "server.rs Server.parse_header",
                "parser.rs Parser.parse_header_block",
                "parser_test.rs parse_header_block",
            ],
        ),
        ("fetchal", &["store.rb Cache.fetch_all"]),
        ("block", &["parser.rs Parser.parse_header_block", "parser_test.rs parse_header_block"]),
        // A typo.
        ("exceute_query", &["app.ts App.executeQuery", "query.rs execute_query"]),
        ("Servr", &["server.rs Server"]),
        ("getting started", &["guide.md Guide.Getting started"]),
        ("nothing_like_it", &[]),
    ] {
        let results = query_symbols(&root, serde_json::json!({"query": query}));
        let first_results: Vec<&str> =
            results.iter().map(|f| f.as_str()).take(expected.len().max(1)).collect();
        let expected: Vec<String> = expected.iter().map(|w| (*w).to_owned()).collect();
        let without_prefix = |s: &str| s.replace("Guide.Parser", "Parser");
        assert_eq!(
            first_results.into_iter().map(without_prefix).collect::<Vec<_>>(),
            expected,
            "{query}: {results:?}"
        );
    }
}

#[test]
fn match_modes_and_filters_are_applied() {
    let root = index();
    let count = |p: serde_json::Value| query_symbols(&root, p).len();
    assert_eq!(
        query_symbols(&root, serde_json::json!({"query": "run", "match": "exact"})).len(),
        3
    );
    assert_eq!(count(serde_json::json!({"query": "RUN", "match": "exact"})), 0);
    assert_eq!(count(serde_json::json!({"query": "parse_header", "match": "prefix"})), 4);
    assert_eq!(count(serde_json::json!({"query": "parse_haeder", "match": "prefix"})), 0);
    assert_eq!(count(serde_json::json!({"query": "parse_haeder", "match": "fuzzy"})), 2);
    assert_eq!(count(serde_json::json!({"query": "parse", "k": 2})), 2);
    let only = serde_json::json!({"query": "parser", "filters": {"kinds": ["section"]}});
    assert_eq!(query_symbols(&root, only), ["guide.md Guide.Parser"]);
    let within = serde_json::json!({"query": "run", "path": "src/query.rs"});
    assert_eq!(query_symbols(&root, within), ["query.rs run"]);
    // A removed file is no longer returned, even before the index notices.
    fs::remove_file(root.top().join("src/query.rs")).unwrap();
    assert_eq!(count(serde_json::json!({"query": "run"})), 2);
}

#[test]
fn new_name_is_found_after_a_change() {
    let root = index();
    assert!(query_symbols(&root, serde_json::json!({"query": "brandNew"})).is_empty());
    write_file(&root.top(), "src/query.rs", "pub fn brand_new_thing() {}\n");
    root.build();
    assert_eq!(
        query_symbols(&root, serde_json::json!({"query": "brandNew"})),
        ["query.rs brand_new_thing"]
    );
}
