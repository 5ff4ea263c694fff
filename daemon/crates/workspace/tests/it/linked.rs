//! Repositories whose git folder or objects lie outside of the declared root.

use cairn_workspace::{
    Roots,
    git::{
        NewWorktree, add_worktree, discard_worktree, git_log, git_status, has_branch,
        remove_worktree,
    },
};

use crate::gits::{git, repository};

#[test]
fn linked_work_trees_submodules_and_borrowed_objects_have_their_git() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().canonicalize().unwrap();
    let main = base.join("main");
    std::fs::create_dir(&main).unwrap();
    repository(&main);
    let at = |name: &str| base.join(name).to_str().unwrap().to_owned();
    git(&main, &["worktree", "add", "-q", &at("linked")]);
    git(&base, &["clone", "-q", "--shared", &at("main"), &at("borrowing")]);
    let super_project = base.join("super");
    std::fs::create_dir(&super_project).unwrap();
    repository(&super_project);
    let allow = "protocol.file.allow=always";
    git(&super_project, &["-c", allow, "submodule", "--quiet", "add", &at("main"), "part"]);
    for name in ["linked", "borrowing", "super/part"] {
        let alone = Roots::new(vec![]).declare(&base.join(name)).unwrap();
        assert!(git_status(&alone, ".").unwrap().is_repository, "{name}");
        assert!(!git_log(&alone, 5).unwrap().is_empty(), "{name}");
    }
    // A copy of the file elsewhere is not what the repository names in turn.
    let forged = base.join("forged");
    std::fs::create_dir(&forged).unwrap();
    std::fs::copy(base.join("linked/.git"), forged.join(".git")).unwrap();
    let alone = Roots::new(vec![]).declare(&forged).unwrap();
    assert!(!git_status(&alone, ".").unwrap().is_repository);
    // Objects of another user are not borrowed.
    let objects = main.join(".git/objects");
    if std::os::unix::fs::chown(&objects, Some(12_345), None).is_ok() {
        let alone = Roots::new(vec![]).declare(&base.join("borrowing")).unwrap();
        assert!(git_log(&alone, 5).unwrap().is_empty());
    }
}

#[test]
fn branch_whose_deletion_was_interrupted_is_removed_with_its_work_tree() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().canonicalize().unwrap();
    let main = base.join("main");
    std::fs::create_dir(&main).unwrap();
    repository(&main);
    let root = Roots::new(vec![]).declare(&main).unwrap();
    let (path, branch) = (base.join("task"), "cairn/task".to_owned());
    let new = NewWorktree { path: path.clone(), branch: branch.clone(), base: None };
    add_worktree(&root, new).unwrap();
    std::fs::write(main.join(".git/refs/heads/cairn/task.lock"), "").unwrap();
    // A removal does not know whose lock it is; the daemon's next start does.
    assert!(remove_worktree(&root, path.clone(), branch.clone()).is_err());
    discard_worktree(&root, path.clone(), branch.clone()).unwrap();
    assert!(!has_branch(&root, branch).unwrap());
    assert!(!path.exists());
    assert_eq!(git(&main, &["for-each-ref", "refs/heads/cairn"]), "");
}
