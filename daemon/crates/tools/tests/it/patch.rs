//! `apply_patch`, and the forms of `edit_file`.

use cairn_harness::{Grants, Rules};
use cairn_protocol::{error::Reason, turn::ExecutionMode};
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow};

const FILES: &[(&str, &str)] =
    &[("a.rs", "fn a() {\n    one();\n}\n"), ("b.rs", "fn b() {}\n"), ("c.rs", "fn c() {}\n")];

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}\n*** End Patch\n")})
}

fn accepting() -> Grants {
    Grants { mode: ExecutionMode::AcceptEdits, ..Grants::default() }
}

#[tokio::test]
async fn patch_of_several_files_is_applied_completely() {
    let fixture = Fixture::new(FILES, allow(&["apply_patch"])).await;
    let body = "*** Update File: a.rs\n@@ fn a() {\n-    one();\n+    two();\n*** Add File: \
        new/d.rs\n+fn d() {}\n*** Update File: b.rs\n*** Move to: moved.rs\n@@\n-fn b() {}\n+fn \
        moved() {}";
    for path in ["a.rs", "b.rs"] {
        fixture.call("read_file", json!({"path": path})).await.unwrap();
    }
    let got = fixture.call("apply_patch", patch(body)).await.unwrap();
    assert_eq!(got["success"], true, "{got}");
    assert_eq!(fixture.read("a.rs").as_deref(), Some("fn a() {\n    two();\n}\n"));
    assert_eq!(fixture.read("new/d.rs").as_deref(), Some("fn d() {}\n"));
    assert_eq!(fixture.read("moved.rs").as_deref(), Some("fn moved() {}\n"));
    assert_eq!(fixture.read("b.rs"), None);
}

#[tokio::test]
async fn patch_that_fails_in_one_file_changes_none() {
    let fixture = Fixture::new(FILES, allow(&["*"])).await;
    for (body, reason) in [
        ("*** Update File: a.rs\n@@\n-    one();\n*** Update File: b.rs\n@@\n-gone\n", "a hunk"),
        ("*** Update File: a.rs\n@@\n-    one();\n*** Add File: c.rs\n+x", "exists already"),
        ("*** Update File: a.rs\n@@\n-    one();\n*** Delete File: none.rs", "does not exist"),
        ("*** Update File: a.rs\n@@\n-    one();\n*** Delete File: a.rs", "twice"),
        ("*** Update File: a.rs\n@@\n-    one();\n*** Add File: ../x.rs\n+x", "x.rs"),
    ] {
        let error = fixture.with("apply_patch", patch(body), accepting()).await.unwrap_err();
        assert!(error.message.contains(reason), "{body}: {error}");
        assert_eq!(fixture.read("a.rs").as_deref(), Some(FILES[0].1), "{body}");
    }
    assert!(!fixture.beside("x.rs").exists());
}

#[tokio::test]
async fn rules_about_single_tools_apply_to_the_files_of_a_patch() {
    let rules = |deny: &str| Rules { deny: vec![deny.parse().unwrap()], ..allow(&["apply_patch"]) };
    let fixture = Fixture::new(FILES, Rules::default()).await;
    let body = "*** Update File: a.rs\n@@\n-    one();\n+    two();\n*** Delete File: b.rs";
    for deny in ["edit_file(a.rs)", "delete_file", "*(b.rs)", "apply_patch"] {
        fixture.set_rules(rules(deny));
        let error = fixture.with("apply_patch", patch(body), accepting()).await.unwrap_err();
        assert_eq!(error.reason, Reason::ToolDenied, "{deny}: {error}");
    }
    // In the mode that accepts edits, a removal and a protected file need an approval.
    fixture.set_rules(Rules::default());
    for body in [body, "*** Add File: .envrc\n+x"] {
        let error = fixture.with("apply_patch", patch(body), accepting()).await.unwrap_err();
        assert_eq!(error.reason, Reason::NoApprover, "{error}");
    }
    let edit = "*** Update File: a.rs\n@@\n-    one();\n+    two();";
    fixture.with("apply_patch", patch(edit), accepting()).await.unwrap();
    assert_eq!(fixture.read("b.rs").as_deref(), Some("fn b() {}\n"));
}

#[tokio::test]
async fn edit_file_takes_several_pieces_and_reports_tolerated_white_space() {
    let fixture = Fixture::new(FILES, Rules::default()).await;
    let edit = |arguments: Value| fixture.with("edit_file", arguments, accepting());
    let got = edit(json!({"path": "a.rs", "edits": [
        {"old_text": "fn a()", "new_text": "fn z()"},
        {"old_text": "one();", "new_text": "two();"},
    ]}));
    assert_eq!(got.await.unwrap()["replacements"], 2);
    let old = "fn z() {\n  two();";
    let got = edit(json!({"path": "a.rs", "old_text": old, "new_text": "fn z() {\n  three();"}));
    let got = got.await.unwrap();
    assert_eq!(got["matched_with_other_white_space"], json!(["fn z() {\n    two();"]), "{got}");
    for wrong in [
        json!({"path": "a.rs"}),
        json!({"path": "a.rs", "old_text": "a"}),
        json!({"path": "a.rs", "old_text": "a", "new_text": "b", "edits": [
            {"old_text": "x", "new_text": "y"},
        ]}),
        json!({"path": "a.rs", "edits": []}),
    ] {
        let error = edit(wrong.clone()).await.unwrap_err();
        assert_eq!(error.reason, Reason::InvalidParams, "{wrong}: {error}");
    }
}
