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

#[tokio::test]
async fn diffs_of_other_programs_are_applied() {
    let fixture = Fixture::new(&[], allow(&["*"])).await;
    let hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    let converted = |text: &str| text.replace('\n', "\r\n");
    for (patch, before, after) in [
        // GNU diff, with dates, of two folders, and of a backup.
        (
            format!("--- f\t2020-01-31 10:00:00 +0100\n+++ f\t2020-02-01 10:00:00 +0100\n{hunk}"),
            "a\nb\n",
            "a\nc\n",
        ),
        (format!("diff -ru old/f new/f\n--- old/f\n+++ new/f\n{hunk}"), "a\nb\n", "a\nc\n"),
        (format!("--- f.orig\n+++ f\n{hunk}"), "a\nb\n", "a\nc\n"),
        // svn, and a mail of git.
        (
            format!(
                "Index: f\n{}\n--- f\t(revision 1)\n+++ f\t(working copy)\n{hunk}",
                "=".repeat(67)
            ),
            "a\nb\n",
            "a\nc\n",
        ),
        (
            format!(
                "From 1 Mon\nSubject: x\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n{hunk}-- \n2.47\n\n"
            ),
            "a\nb\n",
            "a\nc\n",
        ),
        // A patch whose line ends were converted, and a file whose line ends were.
        (converted(&format!("--- a/f\n+++ b/f\n{hunk}")), "a\nb\n", "a\nc\n"),
        (format!("--- a/f\n+++ b/f\n{hunk}"), "a\r\nb\r\n", "a\r\nc\r\n"),
        (converted(&format!("--- a/f\n+++ b/f\n{hunk}")), "a\r\nb\r\n", "a\r\nc\r\n"),
        // A mark of the file that the patch does not have.
        (format!("--- a/f\n+++ b/f\n{hunk}"), "\u{feff}a\nb\n", "\u{feff}a\nc\n"),
        // The end of the file is not marked.
        (format!("--- a/f\n+++ b/f\n{hunk}"), "a\nb", "a\nc"),
    ] {
        std::fs::write(fixture.path("f"), before).unwrap();
        fixture.call("read_file", json!({"path": "f"})).await.unwrap();
        let got = fixture.call("apply_patch", json!({"patch": patch})).await;
        got.unwrap_or_else(|e| panic!("{patch}: {e}"));
        assert_eq!(fixture.read("f").as_deref(), Some(after), "{patch}");
    }
    let epoch = "--- g\t1970-01-01 00:00:00 +0000\n+++ g\t2020-02-01 10:00:00 +0100\n@@ -0,0 +1 \
        @@\n+new\n";
    fixture.call("apply_patch", json!({"patch": epoch})).await.unwrap();
    assert_eq!(fixture.read("g").as_deref(), Some("new\n"));
}

#[tokio::test]
async fn renames_copies_and_modes_change_all_or_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let files = [("a.sh", "one\n"), ("b", "two\n")];
    let fixture = Fixture::new(&files, allow(&["*"])).await;
    let set_mode = |path: &str, mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(fixture.path(path), mode).unwrap();
    };
    let mode = |path: &str| fixture.path(path).metadata().unwrap().permissions().mode() & 0o777;
    set_mode("a.sh", 0o750);
    for (path, _) in files {
        fixture.call("read_file", json!({"path": path})).await.unwrap();
    }
    // The last part cannot be written: its folder is a file.
    let rename = "diff --git a/a.sh b/c.sh\nrename from a.sh\nrename to c.sh\n";
    let executable = "diff --git a/b b/b\nold mode 100644\nnew mode 100755\n";
    let impossible = "--- /dev/null\n+++ b/b/x\n@@ -0,0 +1 @@\n+x\n";
    let patch = json!({"patch": format!("{rename}{executable}{impossible}")});
    fixture.call("apply_patch", patch).await.unwrap_err();
    assert_eq!((fixture.read("a.sh").as_deref(), mode("a.sh")), (Some("one\n"), 0o750));
    assert!(!fixture.path("c.sh").exists() && mode("b") & 0o111 == 0);
    let deletion = "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n";
    fixture.call("apply_patch", json!({"patch": deletion})).await.unwrap_err();
    assert_eq!(fixture.read("b").as_deref(), Some("two\n"));
    let got = fixture.call("apply_patch", json!({"patch": format!("{rename}{executable}")}));
    let got = got.await.unwrap();
    assert_eq!(got["notes"], json!(["undoing the turn does not restore the mode of 'b'"]));
    assert!(!fixture.path("a.sh").exists() && mode("c.sh") & 0o100 != 0 && mode("b") & 0o100 != 0);
    let copy =
        "diff --git a/b b/d\ncopy from b\ncopy to d\n--- a/b\n+++ b/d\n@@ -1 +1 @@\n-two\n+2\n";
    fixture.set_rules(Rules { deny: vec!["read_file(b)".parse().unwrap()], ..allow(&["*"]) });
    let error = fixture.call("apply_patch", json!({"patch": copy})).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
    fixture.set_rules(allow(&["*"]));
    fixture.call("apply_patch", json!({"patch": copy})).await.unwrap();
    assert_eq!(
        (fixture.read("b").as_deref(), fixture.read("d").as_deref()),
        (Some("two\n"), Some("2\n"))
    );
}
