//! Knowledge of projects, as a model, a person and another project meet it.

use serde_json::{Value, json};

use crate::{
    chat::calls,
    hooks::Scene,
    sealed::{cairn, commit_all, tree},
};

/// An entry that a model saves in one project reaches no other one: neither its prompt, nor its
/// tools, nor the command line there. General entries reach both.
#[test]
fn entry_of_one_project_does_not_reach_another() {
    let load = |expect: Value| {
        let call = calls("memory_load", &json!({"keywords": "deploy"}));
        json!({"expect": expect, "steps": call["steps"]})
    };
    let answers = json!([
        calls("memory_save", &json!({"keywords": "deploy", "content": "push at once"})),
        {"expect": [{"lastContains": "created"}], "steps": [{"text": "saved"}]},
        load(json!([{"noneContains": "deploy"}, {"anyContains": "general-words"}])),
        {"expect": [{"noneContains": "push at once"}], "steps": [{"text": "absent"}]},
        load(json!([{"anyContains": "deploy"}, {"anyContains": "general-words"}])),
        {"expect": [{"anyContains": "push at once"}], "steps": [{"text": "present"}]},
        load(json!([{"anyContains": "deploy"}])),
        {"expect": [{"anyContains": "push at once"}], "steps": [{"text": "present too"}]},
    ]);
    // An entry of an earlier version lies in the folder itself.
    let files = [("home/memory/general-words.md", "of all projects\n")];
    let scene = Scene::new(&answers, &json!({}), &files);
    std::fs::remove_dir_all(scene.path("repo/.git")).unwrap();
    commit_all(&scene.path("repo"));
    let other = scene.path("other");
    tree(&other, &[(".git/HEAD", "x"), ("a.txt", "a\n")]);
    let in_other = |args: &[&str]| {
        let (code, out, err) = cairn(&scene.daemon.home, &other, args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    };
    let here = |args: &[&str]| {
        let (code, out, err) = scene.cairn(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    };
    assert_eq!(here(&["chat", "-q", "-p", "save it"]), "saved\n");
    assert_eq!(in_other(&["chat", "-q", "-p", "look"]), "absent\n");
    assert_eq!(here(&["chat", "-q", "-p", "look"]), "present\n");
    // A work tree has the entries of its repository.
    assert_eq!(here(&["chat", "-q", "--worktree", "b", "-p", "look"]), "present too\n");
    assert!(here(&["memory"]).contains("deploy"));
    let list = in_other(&["memory"]);
    assert!(list.contains("general-words") && list.contains("general, "), "{list}");
    assert!(!list.contains("deploy"), "{list}");
    let repo = scene.path("repo").to_string_lossy().into_owned();
    assert!(in_other(&["memory", "--project", &repo]).contains("deploy"));
    in_other(&["memory", "save", "deploy", "--text", "ask first"]);
    assert_eq!(here(&["memory", "show", "deploy"]), "push at once\n");
    // An entry that a person writes for all projects is read in each.
    here(&["memory", "--general", "save", "style", "--text", "no emoji"]);
    assert_eq!(in_other(&["memory", "show", "style"]), "no emoji\n");
    let (code, _, err) = scene.cairn(&["memory", "delete", "style"]);
    assert!(code != 0 && err.contains("general entry"), "{code} {err}");
    here(&["memory", "--general", "delete", "style"]);
    assert!(!here(&["memory", "--general"]).contains("style"));
}
