//! `fs`: one call for many operations, subject to the rules of the tools it delegates to.

use cairn_harness::{Grants, Rules, Verdict};
use cairn_protocol::error::Reason;
use cairn_tools::ToolMode;
use serde_json::{Value, json};

use crate::place::{Place, allow, within};

const FILES: &[(&str, &str)] =
    &[("a.txt", "one\ntwo\nthree\nfour\n"), ("src/b.txt", "b\n"), ("secret/k.txt", "k\n")];

/// Creates a workspace whose files have been read, so that edits of them need no approval.
async fn read_place(rules: Rules) -> Place {
    let place = Place::new(FILES, rules).await;
    for (file, _) in FILES {
        place.call("fs", json!({"action": "read", "path": file})).await.unwrap();
    }
    place
}

fn content(value: &Value) -> &str {
    value["content"].as_str().unwrap()
}

#[tokio::test]
async fn one_operation_answers_as_its_tool_does() {
    let place = read_place(allow(&["write_file", "edit_file"])).await;
    for (tool, action, arguments) in [
        ("read_file", "read", json!({"path": "a.txt", "limit": 2})),
        ("list_files", "list", json!({"pattern": "*.txt"})),
    ] {
        let mut unified = arguments.clone();
        unified["action"] = action.into();
        assert_eq!(place.call("fs", unified).await.unwrap(), place.call(tool, arguments).await.unwrap());
    }
    let told = place.call("fs", json!({"action": "write", "path": "n.txt", "content": "new"})).await.unwrap();
    assert_eq!(told["bytes_written"], 3);
    let edit = json!({"action": "edit", "path": "n.txt", "old_text": "new", "new_text": "newer"});
    place.call("fs", edit).await.unwrap();
    assert_eq!(place.read("n.txt").unwrap(), "newer");
    for (wrong, want) in [
        (json!({"path": "a.txt"}), "needs an action"),
        (json!({"action": "read", "path": "a.txt", "content": "x"}), "unknown field `content`"),
        (json!({"action": "write", "path": "a.txt"}), "missing field `content`"),
        (json!({"action": "ops"}), "needs an action"),
        (json!({"action": "read", "ops": []}), "arguments/ops"),
        (json!({"path": "a.txt", "ops": [{"action": "read"}]}), "belongs to an operation"),
        (json!({"ops": [{"action": "ops"}]}), "arguments/ops/0"),
    ] {
        let error = place.call("fs", wrong.clone()).await.unwrap_err();
        assert!(error.reason == Reason::InvalidParams && error.message.contains(want), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn a_batch_edits_by_the_lines_that_were() {
    let place = read_place(allow(&["fs"])).await;
    let ops = json!({"ops": [
        {"action": "edit", "path": "a.txt", "start_line": 1, "new_text": "1\n1.5"},
        {"action": "edit", "path": "a.txt", "start_line": 3, "end_line": 4, "new_text": "3"},
        {"action": "write", "path": "new/c.txt", "content": "c"},
        {"action": "read", "path": "a.txt"},
        {"action": "edit", "path": "a.txt", "start_line": 2, "new_text": "half"},
        {"action": "list", "pattern": "*.md"},
    ]});
    let told = place.call("fs", ops).await.unwrap();
    assert_eq!(place.read("a.txt").unwrap(), "1\n1.5\nhalf\n3\n");
    assert_eq!(place.read("new/c.txt").unwrap(), "c");
    let text = content(&told);
    assert!(text.starts_with("batch: 6 ops across 2 files (a.txt, new/c.txt)\n1. edit a.txt: ok"), "{text}");
    assert!(text.contains("4. read a.txt: ok\n1|1\n2|1.5\n3|half\n4|3\n5. edit"), "{text}");
    assert_eq!((&told["success"], &told["failed"]), (&json!(true), &json!(0)));
}

#[tokio::test]
async fn a_failure_stops_a_batch_unless_it_goes_on() {
    let place = read_place(allow(&["fs"])).await;
    let ops = |go_on: bool| {
        json!({"continue_on_error": go_on, "ops": [
            {"action": "write", "path": format!("first-{go_on}.txt"), "content": "x"},
            {"action": "edit", "path": "a.txt", "old_text": "missing", "new_text": "y"},
            {"action": "write", "path": format!("last-{go_on}.txt"), "content": "x"},
        ]})
    };
    let told = place.call("fs", ops(false)).await.unwrap();
    assert!(
        content(&told).contains("2. edit a.txt: error invalid_params: old_text is not in 'a.txt'"),
        "{told}"
    );
    assert!(content(&told).contains("3. write last-false.txt: not run"), "{told}");
    assert!(place.read("first-false.txt").is_some() && place.read("last-false.txt").is_none());
    let told = place.call("fs", ops(true)).await.unwrap();
    assert_eq!((&told["success"], &told["failed"]), (&json!(false), &json!(1)));
    assert!(place.read("first-true.txt").is_some() && place.read("last-true.txt").is_some());
    // An operation whose planning fails stops the later ones too.
    let late = json!({"ops": [{"action": "read", "path": "none.txt"}, {"action": "write", "path": "z.txt", "content": "z"}]});
    let told = place.call("fs", late).await.unwrap();
    assert!(content(&told).contains("1. read none.txt: error path_not_found"), "{told}");
    assert!(place.read("z.txt").is_none());
}

#[tokio::test]
async fn a_batch_has_bounds() {
    let place = read_place(allow(&["fs"])).await;
    let reads = |n: usize, path: &dyn Fn(usize) -> String| json!({"ops": (0..n).map(|at| json!({"action": "read", "path": path(at)})).collect::<Vec<_>>()});
    assert!(place.call("fs", reads(50, &|_| "a.txt".into())).await.is_ok());
    assert_eq!(
        place.call("fs", reads(51, &|_| "a.txt".into())).await.unwrap_err().reason,
        Reason::InvalidParams
    );
    let error = place.call("fs", reads(21, &|at| format!("f{at}"))).await.unwrap_err();
    assert!(error.message.contains("name 21 files, 20 are allowed"), "{error}");
    std::fs::write(place.path("long.txt"), "x".repeat(1500) + "\n" + &"y".repeat(1500)).unwrap();
    let told = place.call("fs", reads(1, &|_| "long.txt".into())).await.unwrap();
    assert!(content(&told).contains("cut at 2048 bytes") && content(&told).len() < 2400, "{told}");
}

#[tokio::test]
async fn rules_for_the_tools_bind_what_stands_for_them() {
    let write = |path: &str| json!({"ops": [{"action": "read", "path": "a.txt"}, {"action": "write", "path": path, "content": "x"}]});
    // No rule allows it, and no approver is connected.
    let place = read_place(Rules::default()).await;
    assert_eq!(place.call("fs", write("n.txt")).await.unwrap_err().reason, Reason::NoApprover);
    assert!(place.call("fs", json!({"ops": [{"action": "read", "path": "a.txt"}]})).await.is_ok());
    // The rule of the split tool allows it, but not at every path.
    let rules = Rules { deny: vec!["write_file(secret)".parse().unwrap()], ..allow(&["write_file"]) };
    let place = read_place(rules).await;
    let error = place.call("fs", write("secret/n.txt")).await.unwrap_err();
    assert!(error.message.contains("deny: write_file(secret)"), "{error}");
    place.call("fs", write("n.txt")).await.unwrap();
    assert!(place.read("n.txt").is_some() && place.read("secret/n.txt").is_none());
    // A rule for `fs` does not override one for the split tool, and applies by itself.
    let rules = Rules { deny: vec!["write_file(secret)".parse().unwrap()], ..allow(&["fs"]) };
    let place = read_place(rules).await;
    assert!(
        place.call("fs", write("secret/n.txt")).await.is_err()
            && place.call("fs", write("n.txt")).await.is_ok()
    );
    let rules = Rules { final_deny: vec!["fs(secret)".parse().unwrap()], ..allow(&["*"]) };
    let place = Place::new(FILES, rules).await;
    assert!(place.call("fs", json!({"action": "read", "path": "secret/k.txt"})).await.is_err());
    assert!(place.call("fs", json!({"action": "read", "path": "a.txt"})).await.is_ok());
    // G10, P8: a deletion needs an approval if only the default allows it; here no approver
    // answers. A rule of the user's is honoured.
    let delete = json!({"ops": [{"action": "delete", "path": "a.txt"}]});
    let place = read_place(Rules { default: Verdict::Allow, ..allow(&[]) }).await;
    assert!(place.call("fs", delete.clone()).await.is_err() && place.read("a.txt").is_some());
    let place = read_place(allow(&["delete_file"])).await;
    assert!(place.call("fs", delete).await.is_ok() && place.read("a.txt").is_none());
}

#[tokio::test]
async fn a_run_keeps_to_its_paths_and_tools() {
    let place = Place::new(FILES, allow(&["fs"])).await;
    let read = |path: &str| json!({"ops": [{"action": "read", "path": path}]});
    let error = place.with("fs", read("a.txt"), within(&["src"])).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    assert!(place.with("fs", read("src/b.txt"), within(&["src"])).await.is_ok());
    let list = json!({"action": "list", "pattern": "*.txt"});
    assert_eq!(content(&place.with("fs", list, within(&["src"])).await.unwrap()), "src/b.txt");
    let ops = |op: &str| Grants { ops: Some(vec![op.into()]), ..Grants::default() };
    assert!(place.with("fs", read("a.txt"), ops("read_file")).await.is_err());
    assert!(place.with("fs", read("a.txt"), ops("fs")).await.is_ok());
}

#[tokio::test]
async fn the_mode_says_what_models_are_offered() {
    for (mode, fs, split) in
        [(ToolMode::Split, false, true), (ToolMode::Unified, true, false), (ToolMode::Both, true, true)]
    {
        let place = Place::with_deps(&[], Rules::default(), |deps| cairn_tools::Deps { mode, ..deps }).await;
        let specs = place.harness.registry().specs();
        let offered = |name: &str| specs.iter().any(|s| s.name == name && !s.hidden);
        assert_eq!(
            (offered("fs"), offered("write_file"), offered("read_file")),
            (fs, split, split),
            "{mode:?}"
        );
        assert!(offered("search_code"));
    }
}
