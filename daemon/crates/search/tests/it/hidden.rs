//! Hidden files on request.

use cairn_protocol::error::Reason;
use cairn_protocol::search::{GrepParams, SearchFilters, SearchParams, SymbolsParams};
use cairn_search::CancelFlag;

use crate::fixture::{TestRoot, hybrid, paths, write_file};

const TREE: &[(&str, &str)] = &[
    ("src/deploy.rs", "/// Deploys the release.\npub fn deploy_release() {}\n"),
    (
        ".github/workflows/release.yml",
        "name: release\njobs:\n  deploy_release:\n    runs-on: linux\n",
    ),
    ("sub/.env.sample", "DEPLOY_RELEASE_TOKEN=deploy_release\n"),
    (".git/description", "deploy_release\n"),
    ("zz.txt", "deploy_release\n"),
];

fn filters(hidden: bool) -> Option<SearchFilters> {
    Some(SearchFilters { hidden, ..SearchFilters::default() })
}

fn search(root: &TestRoot, hidden: bool) -> Vec<String> {
    let params = SearchParams { filters: filters(hidden), ..SearchParams::new("deploy release") };
    let answer = hybrid(&root.indexes, &params);
    assert!(answer.complete, "{:?}", answer.degraded);
    let mut paths = paths(answer.items);
    paths.sort();
    paths.dedup();
    paths
}

fn grep_params(hidden: bool) -> GrepParams {
    serde_json::from_value(serde_json::json!({
        "pattern": "deploy_release", "filters": {"hidden": hidden},
    }))
    .unwrap()
}

fn grep(root: &TestRoot, params: &GrepParams) -> Vec<String> {
    let answer = root.indexes.grep(params, &CancelFlag::new()).unwrap();
    assert!(answer.complete);
    answer.items.into_iter().map(|item| item.path).collect()
}

#[test]
fn hidden_files_are_found_only_on_request() {
    let root = TestRoot::new(TREE);
    root.build();
    assert_eq!(search(&root, false), ["src/deploy.rs", "zz.txt"]);
    let all = [".github/workflows/release.yml", "src/deploy.rs", "sub/.env.sample", "zz.txt"];
    assert_eq!(search(&root, true), all);
    assert_eq!(grep(&root, &grep_params(true)), all);
    assert_eq!(grep(&root, &grep_params(false)), ["src/deploy.rs", "zz.txt"]);
    // A request with hidden files changes no other answer.
    assert_eq!(search(&root, false), ["src/deploy.rs", "zz.txt"]);
    let packed = SearchParams {
        filters: filters(true),
        max_tokens: Some(500),
        ..SearchParams::new("deploy release jobs")
    };
    let text = hybrid(&root.indexes, &packed).packed.unwrap().text;
    assert!(text.contains(".github/workflows/release.yml") && text.contains("runs-on"), "{text}");
}

#[test]
fn changes_of_hidden_files_are_seen_by_the_next_request() {
    let root = TestRoot::new(TREE);
    root.build();
    assert_eq!(search(&root, true).len(), 4);
    write_file(&root.top(), ".config/new.toml", "deploy_release = true\n");
    std::fs::remove_file(root.top().join("sub/.env.sample")).unwrap();
    let all = [".config/new.toml", ".github/workflows/release.yml", "src/deploy.rs", "zz.txt"];
    assert_eq!(grep(&root, &grep_params(true)), all);
    assert_eq!(search(&root, true), all);
}

#[test]
fn pages_of_grep_continue_across_hidden_files() {
    let root = TestRoot::new(TREE);
    root.build();
    let mut pages = Vec::new();
    let mut params = GrepParams { k: 1, ..grep_params(true) };
    loop {
        let answer = root.indexes.grep(&params, &CancelFlag::new()).unwrap();
        pages.extend(answer.items.into_iter().map(|item| item.path));
        let Some(cursor) = answer.next_cursor else { break };
        params.cursor = Some(cursor);
        assert!(pages.len() < 10, "{pages:?}");
    }
    let all = [".github/workflows/release.yml", "src/deploy.rs", "sub/.env.sample", "zz.txt"];
    assert_eq!(pages, all);
}

#[test]
fn index_of_hidden_files_is_reused_and_deleted_with_its_root() {
    let mut root = TestRoot::new(TREE);
    root.build();
    let folder = root.indexes.hidden_folder(&root.id);
    assert!(!folder.exists());
    assert_eq!(search(&root, true).len(), 4);
    assert!(folder.exists());
    root.reopen();
    root.build();
    assert_eq!(search(&root, true).len(), 4);
    assert!(root.indexes.remove_root(&root.id).unwrap());
    assert!(!folder.exists() && !root.index_folder().join(root.id.to_string()).exists());
    let params = SearchParams { filters: filters(true), ..SearchParams::new("deploy") };
    let refused = root.indexes.lexical(&params, &CancelFlag::new(), &|_| {}).unwrap_err();
    assert_eq!(refused.reason, Reason::NoRoots);
}

#[test]
fn symbols_refuse_hidden_files() {
    let root = TestRoot::new(TREE);
    root.build();
    let params: SymbolsParams =
        serde_json::from_value(serde_json::json!({"query": "a", "filters": {"hidden": true}}))
            .unwrap();
    assert_eq!(root.indexes.symbols(&params).unwrap_err().reason, Reason::InvalidParams);
}
