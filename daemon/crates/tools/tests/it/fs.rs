//! `fs`: one call for many operations, subject to the rules of the tools it delegates to.

use cairn_harness::{Grants, Rules, Verdict};
use cairn_protocol::error::Reason;
use cairn_tools::ToolMode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow, within};

const FILES: &[(&str, &str)] =
    &[("a.txt", "one\ntwo\nthree\nfour\n"), ("src/b.txt", "b\n"), ("secret/k.txt", "k\n")];

/// Creates a workspace whose files have been read, so that edits of them need no approval.
async fn fixture_with_read_files(rules: Rules) -> Fixture {
    let fixture = Fixture::new(FILES, rules).await;
    for (file, _) in FILES {
        fixture.call("fs", json!({"action": "read", "path": file})).await.unwrap();
    }
    fixture
}

fn content(value: &Value) -> &str {
    value["content"].as_str().unwrap()
}

#[tokio::test]
async fn single_fs_operation_matches_dedicated_tool() {
    let fixture = fixture_with_read_files(allow(&["write_file", "edit_file"])).await;
    for (tool, action, arguments) in [
        ("read_file", "read", json!({"path": "a.txt", "limit": 2})),
        ("list_files", "list", json!({"pattern": "*.txt"})),
    ] {
        let mut unified = arguments.clone();
        unified["action"] = action.into();
        assert_eq!(
            fixture.call("fs", unified).await.unwrap(),
            fixture.call(tool, arguments).await.unwrap()
        );
    }
    let value = fixture
        .call("fs", json!({"action": "write", "path": "n.txt", "content": "new"}))
        .await
        .unwrap();
    assert_eq!(value["bytes_written"], 3);
    let edit = json!({"action": "edit", "path": "n.txt", "old_text": "new", "new_text": "newer"});
    fixture.call("fs", edit).await.unwrap();
    assert_eq!(fixture.read("n.txt").unwrap(), "newer");
    for (wrong, want) in [
        (json!({"path": "a.txt"}), "needs an action"),
        (json!({"action": "read", "path": "a.txt", "content": "x"}), "unknown field `content`"),
        (json!({"action": "write", "path": "a.txt"}), "missing field `content`"),
        (json!({"action": "ops"}), "needs an action"),
        (json!({"action": "read", "ops": []}), "arguments/ops"),
        (json!({"path": "a.txt", "ops": [{"action": "read"}]}), "belongs to an operation"),
        (json!({"ops": [{"action": "ops"}]}), "arguments/ops/0"),
    ] {
        let error = fixture.call("fs", wrong.clone()).await.unwrap_err();
        assert!(
            error.reason == Reason::InvalidParams && error.message.contains(want),
            "{wrong}: {error}"
        );
    }
}

#[tokio::test]
async fn batch_edits_use_original_line_numbers() {
    let fixture = fixture_with_read_files(allow(&["fs"])).await;
    let ops = json!({"ops": [
        {"action": "edit", "path": "a.txt", "start_line": 1, "new_text": "1\n1.5"},
        {"action": "edit", "path": "a.txt", "start_line": 3, "end_line": 4, "new_text": "3"},
        {"action": "write", "path": "new/c.txt", "content": "c"},
        {"action": "read", "path": "a.txt"},
        {"action": "edit", "path": "a.txt", "start_line": 2, "new_text": "half"},
        {"action": "list", "pattern": "*.md"},
    ]});
    let value = fixture.call("fs", ops).await.unwrap();
    assert_eq!(fixture.read("a.txt").unwrap(), "1\n1.5\nhalf\n3\n");
    assert_eq!(fixture.read("new/c.txt").unwrap(), "c");
    let text = content(&value);
    assert!(
        text.starts_with("batch: 6 ops across 2 files (a.txt, new/c.txt)\n1. edit a.txt: ok"),
        "{text}"
    );
    assert!(text.contains("4. read a.txt: ok\n1|1\n2|1.5\n3|half\n4|3\n5. edit"), "{text}");
    assert_eq!((&value["success"], &value["failed"]), (&json!(true), &json!(0)));
}

#[tokio::test]
async fn batch_stops_at_failure_unless_continue_on_error() {
    let fixture = fixture_with_read_files(allow(&["fs"])).await;
    let ops = |go_on: bool| {
        json!({"continue_on_error": go_on, "ops": [
            {"action": "write", "path": format!("first-{go_on}.txt"), "content": "x"},
            {"action": "edit", "path": "a.txt", "old_text": "missing", "new_text": "y"},
            {"action": "write", "path": format!("last-{go_on}.txt"), "content": "x"},
        ]})
    };
    let value = fixture.call("fs", ops(false)).await.unwrap();
    assert!(
        content(&value).contains("2. edit a.txt: error invalid_params: old_text is not in 'a.txt'"),
        "{value}"
    );
    assert!(content(&value).contains("3. write last-false.txt: not run"), "{value}");
    assert!(fixture.read("first-false.txt").is_some() && fixture.read("last-false.txt").is_none());
    let value = fixture.call("fs", ops(true)).await.unwrap();
    assert_eq!((&value["success"], &value["failed"]), (&json!(false), &json!(1)));
    assert!(fixture.read("first-true.txt").is_some() && fixture.read("last-true.txt").is_some());
    // An operation whose planning fails stops the later ones too.
    let late = json!({"ops": [{"action": "read", "path": "none.txt"}, {"action": "write", "path": "z.txt", "content": "z"}]});
    let value = fixture.call("fs", late).await.unwrap();
    assert!(content(&value).contains("1. read none.txt: error path_not_found"), "{value}");
    assert!(fixture.read("z.txt").is_none());
}

#[tokio::test]
async fn batch_limits_are_enforced() {
    let fixture = fixture_with_read_files(allow(&["fs"])).await;
    let reads = |n: usize, path: &dyn Fn(usize) -> String| json!({"ops": (0..n).map(|at| json!({"action": "read", "path": path(at)})).collect::<Vec<_>>()});
    assert!(fixture.call("fs", reads(50, &|_| "a.txt".into())).await.is_ok());
    assert_eq!(
        fixture.call("fs", reads(51, &|_| "a.txt".into())).await.unwrap_err().reason,
        Reason::InvalidParams
    );
    let error = fixture.call("fs", reads(21, &|at| format!("f{at}"))).await.unwrap_err();
    assert!(error.message.contains("name 21 files; the limit is 20"), "{error}");
    std::fs::write(fixture.path("long.txt"), "x".repeat(1500) + "\n" + &"y".repeat(1500)).unwrap();
    let value = fixture.call("fs", reads(1, &|_| "long.txt".into())).await.unwrap();
    assert!(
        content(&value).contains("truncated at 2048 bytes") && content(&value).len() < 2400,
        "{value}"
    );
}

#[tokio::test]
async fn rules_of_single_tools_apply_to_fs_operations() {
    let write = |path: &str| json!({"ops": [{"action": "read", "path": "a.txt"}, {"action": "write", "path": path, "content": "x"}]});
    // No rule allows it, and no approver is connected.
    let fixture = fixture_with_read_files(Rules::default()).await;
    assert_eq!(fixture.call("fs", write("n.txt")).await.unwrap_err().reason, Reason::NoApprover);
    assert!(
        fixture.call("fs", json!({"ops": [{"action": "read", "path": "a.txt"}]})).await.is_ok()
    );
    // The rule of the split tool allows it, but not at every path.
    let rules =
        Rules { deny: vec!["write_file(secret)".parse().unwrap()], ..allow(&["write_file"]) };
    let fixture = fixture_with_read_files(rules).await;
    let error = fixture.call("fs", write("secret/n.txt")).await.unwrap_err();
    assert!(error.message.contains("deny: write_file(secret)"), "{error}");
    fixture.call("fs", write("n.txt")).await.unwrap();
    assert!(fixture.read("n.txt").is_some() && fixture.read("secret/n.txt").is_none());
    // A rule for `fs` does not override one for the split tool, and applies by itself.
    let rules = Rules { deny: vec!["write_file(secret)".parse().unwrap()], ..allow(&["fs"]) };
    let fixture = fixture_with_read_files(rules).await;
    assert!(
        fixture.call("fs", write("secret/n.txt")).await.is_err()
            && fixture.call("fs", write("n.txt")).await.is_ok()
    );
    let rules = Rules { final_deny: vec!["fs(secret)".parse().unwrap()], ..allow(&["*"]) };
    let fixture = Fixture::new(FILES, rules).await;
    assert!(fixture.call("fs", json!({"action": "read", "path": "secret/k.txt"})).await.is_err());
    assert!(fixture.call("fs", json!({"action": "read", "path": "a.txt"})).await.is_ok());
    // G10, P8: a deletion needs an approval if only the default allows it; here no approver
    // answers. A rule of the user's is honoured.
    let delete = json!({"ops": [{"action": "delete", "path": "a.txt"}]});
    let fixture = fixture_with_read_files(Rules { default: Verdict::Allow, ..allow(&[]) }).await;
    assert!(fixture.call("fs", delete.clone()).await.is_err() && fixture.read("a.txt").is_some());
    let fixture = fixture_with_read_files(allow(&["delete_file"])).await;
    assert!(fixture.call("fs", delete).await.is_ok() && fixture.read("a.txt").is_none());
}

#[tokio::test]
async fn edit_of_read_content_needs_no_approval() {
    let edit = |old: &str| json!({"path": "a.txt", "old_text": old, "new_text": "1"});
    let fs_edit =
        |old: &str| json!({"action": "edit", "path": "a.txt", "old_text": old, "new_text": "2"});
    // No approver is connected: what needs one fails.
    let fixture = Fixture::new(FILES, Rules::default()).await;
    let error = fixture.call("edit_file", edit("one")).await.unwrap_err();
    assert_eq!(error.reason, Reason::NoApprover, "it was not read");
    fixture.call("read_file", json!({"path": "a.txt", "limit": 1})).await.unwrap();
    fixture.call("edit_file", edit("one")).await.unwrap();
    fixture.call("fs", fs_edit("two")).await.unwrap();
    assert_eq!(fixture.read("a.txt").unwrap(), "1\n2\nthree\nfour\n");
    std::fs::write(fixture.path("a.txt"), "one of another program\n").unwrap();
    let error = fixture.call("edit_file", edit("one")).await.unwrap_err();
    assert_eq!(error.reason, Reason::NoApprover, "it has changed since");
    // Other changes, and a rule that requires a confirmation, are not affected.
    let write = json!({"path": "a.txt", "content": "x"});
    fixture.call("read_file", json!({"path": "a.txt"})).await.unwrap();
    assert!(fixture.call("write_file", write).await.is_err());
    let rules = Rules { confirm: vec!["edit_file".parse().unwrap()], ..Rules::default() };
    let fixture = fixture_with_read_files(rules).await;
    assert!(fixture.call("edit_file", edit("one")).await.is_err());
    assert!(fixture.call("fs", fs_edit("one")).await.is_err());
}

#[tokio::test]
async fn run_is_limited_to_its_paths_and_tools() {
    let fixture = Fixture::new(FILES, allow(&["fs"])).await;
    let read = |path: &str| json!({"ops": [{"action": "read", "path": path}]});
    let error = fixture.with("fs", read("a.txt"), within(&["src"])).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    assert!(fixture.with("fs", read("src/b.txt"), within(&["src"])).await.is_ok());
    let list = json!({"action": "list", "pattern": "*.txt"});
    assert_eq!(content(&fixture.with("fs", list, within(&["src"])).await.unwrap()), "src/b.txt");
    let ops = |op: &str| Grants { ops: Some(vec![op.into()]), ..Grants::default() };
    assert!(fixture.with("fs", read("a.txt"), ops("read_file")).await.is_err());
    assert!(fixture.with("fs", read("a.txt"), ops("fs")).await.is_ok());
}

#[tokio::test]
async fn tool_mode_selects_offered_tools() {
    for (mode, fs, split) in [
        (ToolMode::Split, false, true),
        (ToolMode::Unified, true, false),
        (ToolMode::Both, true, true),
    ] {
        let fixture =
            Fixture::with_deps(&[], Rules::default(), |deps| cairn_tools::Deps { mode, ..deps })
                .await;
        let specs = fixture.harness.registry().specs();
        let offered = |name: &str| specs.iter().any(|s| s.name == name && !s.hidden);
        assert_eq!(
            (offered("fs"), offered("write_file"), offered("read_file")),
            (fs, split, split),
            "{mode:?}"
        );
        assert!(offered("search_code"));
    }
}

#[tokio::test]
async fn lists_and_matches_have_their_fields() {
    let fixture = Fixture::new(FILES, Rules::default()).await;
    let list =
        fixture.call("list_files", json!({"pattern": "*.txt", "max_results": 2})).await.unwrap();
    assert_eq!(list["files"], json!(["a.txt", "secret/k.txt"]));
    assert_eq!((&list["total_matches"], &list["truncated"]), (&json!(3), &json!(true)));
    fixture.index();
    let search = json!({"pattern": "^two$", "path": "a.txt", "context_lines": 1});
    let found = fixture.call("search_files", search).await.unwrap();
    let expected = json!([{
        "file": "a.txt", "line": 2, "content": "two",
        "context_before": ["one"], "context_after": ["three"],
    }]);
    assert_eq!(found["matches"], expected, "{found}");
    assert_eq!((&found["total_matches"], &found["truncated"]), (&json!(1), &json!(false)));
}
