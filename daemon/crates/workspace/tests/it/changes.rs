//! Changes between a revision and the work tree.

use cairn_protocol::{error::Reason, git::GitFileChange};
use cairn_workspace::git::git_changes;

use crate::{
    gits::{git, repository},
    pipe, put, root,
};

fn lines(files: &[GitFileChange]) -> Vec<(&str, &str, u64, u64)> {
    let of = |f: &'_ GitFileChange| (f.added_lines, f.deleted_lines);
    files.iter().map(|f| (f.path.as_str(), f.status.as_str(), of(f).0, of(f).1)).collect()
}

#[test]
fn committed_uncommitted_and_untracked_changes_are_counted() {
    let (dir, root) = root();
    repository(dir.path());
    git(dir.path(), &["tag", "v1"]);
    let long = "line\n".repeat(40);
    put(dir.path(), "moved.rs", &long);
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-qm", "third"]);
    let clean = git_changes(&root, "HEAD").unwrap();
    assert!(clean.files.is_empty() && clean.commits.is_empty() && !clean.truncated, "{clean:?}");
    put(dir.path(), "a.rs", "fn a() { 2 }\nfn c() {}\n");
    std::fs::remove_file(dir.path().join("b.rs")).unwrap();
    put(dir.path(), "new/deep/x.rs", "1\n2\n3\n");
    std::fs::write(dir.path().join("data.bin"), [0, 159, 146, 150, 0, 1]).unwrap();
    let changes = git_changes(&root, "v1").unwrap();
    assert_eq!(
        lines(&changes.files),
        [
            ("a.rs", "modified", 2, 1),
            ("b.rs", "deleted", 0, 1),
            ("data.bin", "added", 0, 0),
            ("moved.rs", "added", 40, 0),
            ("new/deep/x.rs", "added", 3, 0),
        ]
    );
    assert_eq!((changes.ahead, changes.behind, changes.truncated), (1, 0, false));
    assert_eq!(changes.commits[0].subject, "third");
    assert_eq!(changes.base, git(dir.path(), &["rev-parse", "v1"]));
    // A rename that is not staged is found too.
    std::fs::rename(dir.path().join("moved.rs"), dir.path().join("there.rs")).unwrap();
    let changes = git_changes(&root, "HEAD").unwrap();
    let renamed = changes.files.iter().find(|file| file.status == "renamed").unwrap();
    assert_eq!(
        (renamed.path.as_str(), renamed.previous_path.as_deref()),
        ("there.rs", Some("moved.rs"))
    );
}

#[test]
fn other_branch_is_behind() {
    let (dir, root) = root();
    repository(dir.path());
    git(dir.path(), &["checkout", "-qb", "side", "HEAD~1"]);
    put(dir.path(), "side.rs", "x\n");
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-qm", "other branch"]);
    let changes = git_changes(&root, "main").unwrap();
    assert_eq!((changes.ahead, changes.behind), (1, 1));
    assert_eq!(lines(&changes.files), [("a.rs", "modified", 1, 1), ("side.rs", "added", 1, 0)]);
}

#[test]
fn unknown_revisions_are_refused() {
    let (dir, root) = root();
    let refused = |revision: &str| git_changes(&root, revision).unwrap_err();
    let none = refused("HEAD");
    assert_eq!(none.reason, Reason::RevisionNotFound);
    assert!(none.message.contains("is not the top folder of a git repository"), "{none}");
    git(dir.path(), &["init", "-q"]);
    assert_eq!(refused("HEAD").reason, Reason::RevisionNotFound);
    repository(dir.path());
    let tree = git(dir.path(), &["rev-parse", "HEAD^{tree}"]);
    for revision in ["nosuch", "v9", "HEAD~9", "0123456789", "main@{u}", &tree, "--all", "a..b"] {
        let failure = refused(revision);
        assert_eq!(failure.reason, Reason::RevisionNotFound, "{revision}");
        assert!(failure.message.contains(revision), "{failure}");
    }
}

#[test]
fn hostile_repository_runs_no_program_and_does_not_block() {
    let (dir, root) = root();
    repository(dir.path());
    let ran = dir.path().join("ran");
    let program = format!("touch {}; cat", ran.display());
    for key in ["diff.external", "core.fsmonitor", "filter.x.clean", "diff.x.textconv"] {
        git(dir.path(), &["config", key, &program]);
    }
    put(dir.path(), ".gitattributes", "* filter=x diff=x\n");
    put(dir.path(), "a.rs", "changed\n");
    pipe(&dir.path().join("b.rs.pipe"));
    let changes = git_changes(&root, "HEAD").unwrap();
    assert!(changes.files.iter().any(|file| file.path == "a.rs"), "{changes:?}");
    assert!(!ran.exists());
}
