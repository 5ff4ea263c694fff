//! Chats in work trees of their own, with real git as the judge.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, scripted, text_answer},
    sealed::{commit_all, git, program, tree},
};

/// Creates a repository whose hook leaves a mark.
fn repository(answers: &Value) -> Scripted {
    let cairn = scripted(answers);
    fs::remove_dir_all(cairn.folder.join(".git")).ok();
    tree(&cairn.folder, &[("notes.txt", "old\n")]);
    git(&cairn.folder, &["init", "-q", "-b", "main"]);
    commit_all(&cairn.folder);
    let mark = cairn.folder.parent().unwrap().join("hook-ran");
    let hook = cairn.folder.join(".git/hooks/post-checkout");
    program(&hook, &format!("#!/bin/sh\ntouch {}\n", mark.display()));
    cairn
}

fn created(cairn: &Scripted) -> Vec<Value> {
    let (code, out, err) = cairn.cairn(&["--json", "worktrees"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["data"].as_array().unwrap().clone()
}

#[test]
fn chat_works_in_a_worktree_whose_changes_are_applied() {
    let write = json!({"path": "new.txt", "content": "new\n"});
    let cairn = repository(&json!([calls("write_file", &write), text_answer("done")]));
    let mark = cairn.folder.parent().unwrap().join("hook-ran");
    let chat = ["--worktree", "fix/retry", "--mode", "accept-edits", "-p", "write"];
    let (code, _, err) = cairn.chat(&chat, None);
    assert_eq!(code, 0, "{err}");
    assert!(!cairn.folder.join("new.txt").exists(), "the repository itself is unchanged");
    assert!(!mark.exists(), "no hook of the repository runs");
    let all = created(&cairn);
    let path = PathBuf::from(all[0]["path"].as_str().unwrap());
    assert_eq!((all.len(), &all[0]["branch"]), (1, &json!("fix/retry")));
    assert_eq!((&all[0]["uncommitted"], &all[0]["commits"]), (&json!(1), &json!(0)));
    assert_eq!(fs::read_to_string(path.join("new.txt")).unwrap(), "new\n");
    // Real git sees a work tree on that branch.
    let listed = git(&cairn.folder, &["worktree", "list", "--porcelain"]);
    assert!(listed.contains(&format!("worktree {}", path.display())), "{listed}");
    assert_eq!(git(&path, &["branch", "--show-current"]).trim(), "fix/retry");
    assert_eq!(git(&path, &["status", "--porcelain"]).trim(), "?? new.txt");
    let folder = path.to_str().unwrap();
    let (_, diff, _) = cairn.cairn(&["worktrees", "diff", folder]);
    assert!(diff.contains("+++ b/new.txt") && diff.contains("+new"), "{diff}");
    let (code, out, err) = cairn.cairn(&["worktrees", "apply", folder]);
    assert_eq!((code, out.as_str()), (0, "applied changes of 1 files\n"), "{err}");
    assert_eq!(fs::read_to_string(cairn.folder.join("new.txt")).unwrap(), "new\n");
    // A file that the user has written since is not replaced.
    fs::write(cairn.folder.join("new.txt"), "mine\n").unwrap();
    assert_eq!(cairn.cairn(&["worktrees", "apply", folder]).0, 1);
    assert_eq!(fs::read_to_string(cairn.folder.join("new.txt")).unwrap(), "mine\n");
    // Unsaved work is not removed without a word.
    let (code, _, err) = cairn.cairn(&["worktrees", "remove", folder]);
    assert!(code != 0 && err.contains("1 files with uncommitted changes"), "{code} {err}");
    let (code, out, err) = cairn.cairn(&["worktrees", "remove", folder, "--discard"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("with the branch fix/retry") && !path.exists(), "{out}");
    assert!(created(&cairn).is_empty());
    assert_eq!(git(&cairn.folder, &["worktree", "list"]).lines().count(), 1);
    git(&cairn.folder, &["fsck", "--strict"]);
    // Control: git itself runs the hook.
    git(&cairn.folder, &["worktree", "add", "-q", "../control"]);
    assert!(mark.exists());
}

#[test]
fn commits_survive_the_removal_of_their_worktree() {
    let cairn = repository(&json!([text_answer("a"), text_answer("b")]));
    assert_eq!(cairn.chat(&["--worktree", "-p", "go"], None).0, 0);
    let path = PathBuf::from(created(&cairn)[0]["path"].as_str().unwrap());
    let branch = created(&cairn)[0]["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("cairn/"), "{branch}");
    fs::write(path.join("work.txt"), "work\n").unwrap();
    commit_all(&path);
    let (code, out, _) = cairn.cairn(&["worktrees", "remove", path.to_str().unwrap()]);
    assert!(code == 0 && out.contains("remains, because it has commits"), "{out}");
    let content = git(&cairn.folder, &["show", &format!("{branch}:work.txt")]);
    assert_eq!(content, "work");
    // A folder that was deleted by hand can still be removed from the list.
    assert_eq!(cairn.chat(&["--worktree", "other", "-p", "go"], None).0, 0);
    let path = PathBuf::from(created(&cairn)[0]["path"].as_str().unwrap());
    fs::remove_dir_all(&path).unwrap();
    let (_, list, _) = cairn.cairn(&["worktrees"]);
    assert!(list.contains("its folder cannot be read"), "{list}");
    assert_eq!(cairn.cairn(&["worktrees", "remove", path.to_str().unwrap()]).0, 0);
    assert!(created(&cairn).is_empty());
}

#[test]
fn wrong_names_and_folders_are_refused() {
    let cairn = repository(&json!([]));
    for (args, expected) in [
        (&["--worktree", "a..b", "-p", "x"][..], "is no name for a branch"),
        (&["--worktree", "main", "-p", "x"], "already exists"),
        (&["--worktree", "x", "--base", "absent", "-p", "x"], "the worktree"),
        (&["--base", "main", "-p", "x"], "--worktree"),
    ] {
        let (code, _, err) = cairn.chat(args, None);
        assert!(code != 0 && err.contains(expected), "{args:?}: {code} {err}");
    }
    assert!(created(&cairn).is_empty());
    let folder = cairn.folder.to_str().unwrap();
    let (code, _, err) = cairn.cairn(&["worktrees", "remove", folder, "--discard"]);
    assert!(code != 0 && err.contains("is not a work tree that was created here"), "{err}");
    assert!(cairn.folder.join("notes.txt").exists());
    fs::remove_dir_all(cairn.folder.join(".git")).unwrap();
    let (code, _, err) = cairn.chat(&["--worktree", "-p", "x"], None);
    assert!(code != 0 && err.contains("is not a repository"), "{err}");
}
