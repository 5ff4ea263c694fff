//! A run with its own policy finds only content that it may read.

use serde_json::{Value, json};

use crate::sealed::{Daemon, commit_all, ends, tree};

/// Creates a tree with two projects; the run may read one of them and one document.
fn two_projects(root: &std::path::Path) {
    tree(
        root,
        &[
            ("hidden/Cargo.toml", "[package]\nname = \"hidden\"\nversion = \"1.0.0\"\n"),
            ("hidden/src/main.rs", "fn main() {\n    println!(\"quagmire ledger\");\n}\n"),
            ("shown/app/package.json", "{\"name\": \"app\", \"main\": \"main.js\"}\n"),
            ("shown/app/main.js", "const ledger = require('./ledger');\nledger.open();\n"),
            (
                "shown/app/ledger.js",
                "function open() { return 'ledger'; }\nmodule.exports = { open };\n",
            ),
            ("shown/other.js", "const quagmire = 'ledger';\n"),
            ("docs/guide.md", "# Guide\n\nHow the ledger is kept.\n"),
            ("docs/quagmire.md", "# Quagmire\n\nThe ledger again.\n"),
        ],
    );
    commit_all(root);
    tree(
        root,
        &[("hidden/quagmire.rs", "fn changed() {}\n"), ("shown/app/ledger.js", "// changed\n")],
    );
}

async fn explored(policy: Value) -> Vec<Value> {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    two_projects(dir.path());
    let mut raw = daemon.client().await;
    let mut params = json!({"root": dir.path(), "goals": ["where is the ledger kept"]});
    if !policy.is_null() {
        params["policy"] = policy;
    }
    let receipt = raw.ok("orchestrate.explore.start", params).await;
    let records = raw.follow(receipt["sessionId"].as_str().unwrap(), 0).await;
    assert!(ends(&records[records.len() - 1]));
    records
}

#[tokio::test]
async fn explore_with_paths_is_restricted_to_them() {
    let records = explored(json!({"paths": ["shown/app", "docs/guide.md"]})).await;
    let denied: Vec<&Value> = records.iter().filter(|r| r["evt"]["type"] == "error").collect();
    assert!(denied.is_empty(), "{denied:#?}");
    let results = records.iter().filter(|r| r["evt"]["type"] == "result").map(Value::to_string);
    let leaks: Vec<String> =
        results.filter(|text| text.contains("hidden") || text.contains("quagmire")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let summary = &records[records.len() - 1]["evt"]["summary"];
    assert_eq!(
        summary["languages"],
        json!({"JSON": 1, "JavaScript": 3, "Markdown": 3}),
        "{summary}"
    );
    assert!(summary["entrypoints"].to_string().contains("shown/app/main.js"), "{summary}");
    // Every kind of operation on the complete root ran, restricted to the paths.
    for op in [
        "fs_list_dir",
        "search_grep",
        "search_hybrid",
        "rank_files",
        "list_folders",
        "git_log",
        "git_status",
    ] {
        let result = records.iter().find(|r| r["evt"]["type"] == "result" && r["evt"]["op"] == op);
        let result = result.unwrap_or_else(|| panic!("{op} has no result"));
        let names = result["evt"]["data"].to_string();
        let names_one = names.contains("shown")
            || names.contains("guide.md")
            || op == "rank_files"
            || op == "search_grep";
        assert!(names_one, "{op} found nothing: {names}");
    }
}

#[tokio::test]
async fn explore_without_paths_covers_the_root() {
    let records = explored(Value::Null).await;
    let text = serde_json::to_string(&records).unwrap();
    assert!(text.contains("hidden/src/main.rs") && text.contains("docs/quagmire.md"));
    let summary = &records[records.len() - 1]["evt"]["summary"];
    assert!(summary["languages"]["Rust"].is_u64(), "{summary}");
}

#[tokio::test]
async fn explore_with_missing_paths_completes_empty() {
    let records = explored(json!({"paths": ["nowhere"]})).await;
    let end = &records[records.len() - 1]["evt"];
    assert_eq!(end["type"], "completed", "{end}");
    assert_eq!(end["summary"]["languages"], json!({}), "{end}");
    assert_eq!(end["summary"]["entrypoints"], json!([]), "{end}");
}
