//! Views of a complete root: folders and the graph of imports.

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use serde_json::{Value, json};

use crate::fixture::{Fixture, within};

const FILES: &[(&str, &str)] = &[
    ("app/__init__.py", ""),
    ("app/web/pages.py", "from app.db import store\n"),
    ("app/web/page.js", "export const x = 1;\n"),
    ("app/web/deep/er/x.py", "X = 1\n"),
    ("app/db/store.py", "from app.web import pages\n"),
    ("setup.py", "import app.db.store\n"),
];

async fn fixture() -> Fixture {
    let fixture = Fixture::new(FILES, Rules::default()).await;
    fixture.index();
    fixture
}

fn folders(answer: &Value) -> Vec<(&str, u64, &str)> {
    let folders = answer["folders"].as_array().unwrap().iter();
    folders
        .map(|entry| {
            let files = entry["files"].as_u64().unwrap();
            (entry["path"].as_str().unwrap(), files, entry["role"].as_str().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn folders_are_listed_by_depth() {
    let fixture = fixture().await;
    let one = fixture.call("list_folders", json!({})).await.unwrap();
    assert_eq!(folders(&one), [(".", 1, "python"), ("app", 5, "python")]);
    let two = fixture.call("list_folders", json!({"depth": 2})).await.unwrap();
    let want = [
        (".", 1, "python"),
        ("app", 5, "python"),
        ("app/db", 1, "python"),
        ("app/web", 3, "python"),
    ];
    assert_eq!(folders(&two), want);
    let deep = fixture.call("list_folders", json!({"depth": 1000})).await.unwrap();
    assert_eq!(folders(&deep).len(), 6);
    let limited =
        fixture.with("list_folders", json!({"depth": 2}), within(&["app/db"])).await.unwrap();
    assert_eq!(folders(&limited), [("app", 1, "python"), ("app/db", 1, "python")]);
    let wrong = fixture.call("list_folders", json!({"depth": -1})).await.unwrap_err();
    assert_eq!(wrong.reason, Reason::InvalidParams);
}

#[tokio::test]
async fn contents_are_hashes_of_granted_files() {
    let fixture = fixture().await;
    let all = fixture.call("list_contents", json!({})).await.unwrap();
    let files = all["files"].as_object().unwrap();
    assert_eq!(files.len(), FILES.len());
    // The first digits of `sha256sum` of an empty file.
    assert_eq!(files["app/__init__.py"], "e3b0c44298fc1c14");
    let limited = fixture.with("list_contents", json!({}), within(&["app/db"])).await.unwrap();
    assert_eq!(
        limited["files"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["app/db/store.py"]
    );
}

#[tokio::test]
async fn graph_shows_only_granted_paths() {
    let fixture = fixture().await;
    let groups = json!({"groups": ["app/db", "app/web", "none"]});
    let all = fixture.call("code_graph", groups.clone()).await.unwrap();
    assert_eq!(all["groups"][0]["dependsOn"][0]["name"], "app/web");
    assert_eq!(all["groups"][1]["dependsOn"][0]["name"], "app/db");
    assert_eq!(all["groups"][2]["files"], 0);
    let limited = fixture.with("code_graph", groups, within(&["app/web"])).await.unwrap();
    assert!(!limited.to_string().contains("store.py"), "{limited}");
    assert_eq!(limited["groups"][0]["files"], 0);
    assert_eq!(limited["groups"][1]["dependsOn"], json!([]));
}

#[tokio::test]
async fn too_many_groups_are_refused() {
    let fixture = fixture().await;
    for (count, is_refused) in [(0, false), (100, false), (101, true)] {
        let arguments = json!({"groups": vec!["app"; count]});
        let answer = fixture.with("code_graph", arguments, Grants::default()).await;
        let reason = answer.err().map(|failure| failure.reason);
        assert_eq!(reason, is_refused.then_some(Reason::InvalidParams), "{count}");
    }
}

const CALLS: &[(&str, &str)] = &[
    (
        "open.py",
        "from secret import inner\n\n\ndef outer():\n    inner()\n\n\ndef top():\n    outer()\n",
    ),
    ("secret.py", "import open\n\n\ndef inner():\n    open.top()\n"),
];

#[tokio::test]
async fn relations_of_hidden_definitions_are_refused() {
    let fixture = Fixture::new(CALLS, Rules::default()).await;
    fixture.index();
    for (name, arguments) in [
        ("find_references", json!({"symbol": "inner"})),
        ("find_references", json!({"path": "secret.py", "line": 4})),
        ("find_calls", json!({"symbol": "inner"})),
        ("find_calls", json!({"symbol": "inner", "direction": "callees"})),
        ("find_impact", json!({"path": "secret.py"})),
    ] {
        let all = fixture.call(name, arguments.clone()).await;
        assert!(all.is_ok(), "{name} {arguments} {all:?}");
        let hidden = fixture.with(name, arguments.clone(), within(&["open.py"])).await;
        let failure = hidden.expect_err(name);
        // The gate itself refuses a path that the run may not read.
        let is_by_name = arguments.get("path").is_none();
        let expected = if is_by_name { Reason::PathNotFound } else { Reason::ToolDenied };
        assert_eq!(failure.reason, expected, "{name} {arguments} {failure:?}");
    }
}

#[tokio::test]
async fn relations_leave_out_hidden_files() {
    let fixture = Fixture::new(CALLS, Rules::default()).await;
    fixture.index();
    for (name, arguments) in [
        ("find_references", json!({"symbol": "top"})),
        ("find_calls", json!({"symbol": "top", "depth": 3})),
        ("find_calls", json!({"symbol": "top", "direction": "callees", "depth": 3})),
        ("find_impact", json!({"path": "open.py"})),
    ] {
        let all = fixture.call(name, arguments.clone()).await.unwrap();
        assert!(all.to_string().contains("secret.py"), "{name} {arguments} {all}");
        let limited = fixture.with(name, arguments.clone(), within(&["open.py"])).await.unwrap();
        assert!(!limited.to_string().contains("secret.py"), "{name} {arguments} {limited}");
    }
    let callees = json!({"symbol": "top", "direction": "callees", "depth": 3});
    let limited = fixture.with("find_calls", callees, within(&["open.py"])).await.unwrap();
    assert_eq!(limited["items"].as_array().unwrap().len(), 1, "{limited}");
}
