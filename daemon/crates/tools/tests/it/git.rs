//! `git_diff`.

use std::path::Path;

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use serde_json::{Value, json};

use crate::fixture::{Fixture, within};

/// Creates a repository at `folder` whose every file is committed.
fn commit(folder: &Path) -> git2::Repository {
    let repo = git2::Repository::init(folder).unwrap();
    let mut index = repo.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = index.write_tree().unwrap();
    let who = git2::Signature::now("a", "a@b.c").unwrap();
    repo.commit(Some("HEAD"), &who, &who, "first", &repo.find_tree(tree).unwrap(), &[]).unwrap();
    repo
}

async fn fixture() -> Fixture {
    let files = [
        ("repo/a.txt", "one\ntwo\n"),
        ("repo/sub/b.txt", "b\n"),
        ("repo/c.txt", "c\n"),
        ("x.txt", "x\n"),
    ];
    Fixture::new(&files, Rules::default()).await
}

fn files(value: &Value) -> Vec<&str> {
    value["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect()
}

#[tokio::test]
async fn git_diff_reports_staged_and_unstaged_changes() {
    let fixture = fixture().await;
    let none = fixture.call("git_diff", json!({})).await.unwrap();
    assert_eq!(none["is_repository"], false);
    let repo = commit(&fixture.path("repo"));
    let clean = fixture.call("git_diff", json!({"path": "repo"})).await.unwrap();
    assert_eq!(clean, json!({"is_repository": true, "diff": "", "files": [], "truncated": false}));
    std::fs::write(fixture.path("repo/a.txt"), "one\n2\n").unwrap();
    std::fs::write(fixture.path("repo/new.txt"), "n\n").unwrap();
    std::fs::remove_file(fixture.path("repo/sub/b.txt")).unwrap();
    let changed = fixture.call("git_diff", json!({"path": "repo"})).await.unwrap();
    assert_eq!(files(&changed), ["repo/a.txt", "repo/sub/b.txt"]);
    let text = changed["diff"].as_str().unwrap();
    assert!(
        text.contains("--- a/repo/a.txt\n+++ b/repo/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"),
        "{text}"
    );
    // A deleted file is requested by its own path, and by its folder.
    for path in ["repo/sub/b.txt", "repo/sub"] {
        let one = fixture.call("git_diff", json!({"path": path})).await.unwrap();
        assert_eq!(files(&one), ["repo/sub/b.txt"], "{path}");
    }
    let staged = || fixture.call("git_diff", json!({"path": "repo", "staged": true}));
    assert_eq!(files(&staged().await.unwrap()), [""; 0]);
    let mut index = repo.index().unwrap();
    index.add_path(Path::new("a.txt")).unwrap();
    index.write().unwrap();
    assert_eq!(files(&staged().await.unwrap()), ["repo/a.txt"]);
    let cut = fixture.call("git_diff", json!({"path": "repo", "max_bytes": 40})).await.unwrap();
    assert!(cut["truncated"] == true && cut["diff"].as_str().unwrap().len() <= 40, "{cut}");
    let error = fixture.call("git_diff", json!({"path": "../.."})).await.unwrap_err();
    assert_eq!(error.reason, Reason::PathOutsideRoots, "{error}");
}

#[tokio::test]
async fn git_diff_runs_no_repository_program_and_respects_paths() {
    let fixture = fixture().await;
    let repo = commit(&fixture.path("repo"));
    let ran = fixture.path("ran");
    let program = format!("touch {}; cat", ran.display());
    for key in [
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "core.fsmonitor",
    ] {
        repo.config().unwrap().set_str(key, &program).unwrap();
    }
    std::fs::write(fixture.path("repo/.gitattributes"), "* diff=x filter=x\n").unwrap();
    for file in ["repo/a.txt", "repo/c.txt"] {
        std::fs::write(fixture.path(file), "changed\n").unwrap();
    }
    let all = fixture.with("git_diff", json!({"path": "repo"}), Grants::default()).await.unwrap();
    assert_eq!(files(&all), ["repo/a.txt", "repo/c.txt"]);
    assert!(!ran.exists());
    // Control: the same programs run under git itself.
    let control =
        std::process::Command::new("git").args(["diff"]).current_dir(fixture.path("repo")).output();
    assert!(control.is_err() || ran.exists());
    let narrow =
        fixture.with("git_diff", json!({"path": "repo"}), within(&["repo/a.txt"])).await.unwrap();
    assert_eq!(files(&narrow), ["repo/a.txt"]);
    let error =
        fixture.with("git_diff", json!({"path": "x.txt"}), within(&["repo"])).await.unwrap_err();
    assert_eq!(error.reason, Reason::ToolDenied, "{error}");
}

#[tokio::test]
async fn git_status_is_limited_to_paths_of_run() {
    let fixture = fixture().await;
    commit(&fixture.path("repo"));
    std::fs::write(fixture.path("repo/a.txt"), "other\n").unwrap();
    std::fs::write(fixture.path("repo/sub/b.txt"), "other\n").unwrap();
    let changes = |value: &Value| -> Vec<String> {
        let all = value["changes"].as_array().unwrap().iter();
        all.map(|change| change["path"].as_str().unwrap().to_owned()).collect()
    };
    let all = fixture.call("git_status", json!({"path": "repo"})).await.unwrap();
    assert_eq!(
        (changes(&all), all["top"].as_str()),
        (vec!["a.txt".into(), "sub/b.txt".into()], Some("repo"))
    );
    let some =
        fixture.with("git_status", json!({"path": "repo"}), within(&["repo/sub"])).await.unwrap();
    assert_eq!(changes(&some), ["sub/b.txt"]);
    // A path of the run that only the repository contains.
    let none = fixture.with("git_status", json!({"path": "repo"}), within(&["sub"])).await;
    assert!(none.is_err() || changes(&none.unwrap()).is_empty());
}

#[tokio::test]
async fn git_changes_shows_only_the_paths_of_the_run() {
    let fixture = fixture().await;
    commit(&fixture.path("."));
    std::fs::write(fixture.path("x.txt"), "y\n").unwrap();
    std::fs::write(fixture.path("repo/a.txt"), "y\n").unwrap();
    let paths = |value: &Value| -> Vec<String> {
        let files = value["files"].as_array().unwrap();
        files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    let all = fixture.call("git_changes", json!({"since": "HEAD"})).await.unwrap();
    assert_eq!(paths(&all), ["repo/a.txt", "x.txt"]);
    let limited = fixture.with("git_changes", json!({"since": "HEAD"}), within(&["repo"])).await;
    assert_eq!(paths(&limited.unwrap()), ["repo/a.txt"]);
    let error = fixture.call("git_changes", json!({"since": "-x"})).await.unwrap_err();
    assert_eq!(error.reason, Reason::RevisionNotFound, "{error}");
}
