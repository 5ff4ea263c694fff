//! Names that lead elsewhere: links, other spellings, and what changes between check and use.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{Form, answers, has_programs, play};
use crate::{hooks::Scene, sealed::tree};

const SECRET: &str = "the-secret-of-another-folder";

/// Lays links and other names of a folder beside the project, or of one in it as the control.
fn prepare(repo: &Path, target: &Path) {
    tree(target, &[("secret.txt", &format!("{SECRET}\n")), ("sub/secret.txt", SECRET)]);
    symlink(target.join("secret.txt"), repo.join("file-link")).unwrap();
    symlink(target, repo.join("folder-link")).unwrap();
    symlink("folder-link", repo.join("second-link")).unwrap();
    symlink(target.join("new.txt"), repo.join("dangling")).unwrap();
    fs::create_dir(repo.join("deep")).unwrap();
    symlink("../folder-link/sub", repo.join("deep/link")).unwrap();
}

fn reading(target: &str) -> Vec<Form> {
    let read = |path: &str| Form::new(path, "read_file", &json!({"path": path}));
    let shell = |line: &str| Form::shell(line, line);
    vec![
        read("file-link"),
        read("folder-link/secret.txt"),
        read("second-link/secret.txt"),
        read("deep/link/secret.txt"),
        read(&format!("{target}/secret.txt")),
        Form::new("grep", "grep", &json!({"pattern": "of-another", "path": "folder-link"})),
        Form::new("search", "search_code", &json!({"query": SECRET})),
        Form::new("list", "list_files", &json!({"path": "second-link"})),
        shell("cat file-link folder-link/secret.txt"),
        shell("cat second-link/../secret.txt deep/link/secret.txt"),
        shell(&format!("cat {target}/secret.txt")),
        shell("cat /proc/self/root/{DIR}/outside/secret.txt"),
        shell("ln file-link hard; cat hard; cp -rL folder-link copied; cat copied/secret.txt"),
    ]
}

fn writing(target: &str) -> Vec<Form> {
    let write = |path: &str| Form::write(path, path, "evil\n");
    let shell = |line: &str| Form::shell(line, line);
    vec![
        write("file-link"),
        write("folder-link/new.txt"),
        write("second-link/sub/new.txt"),
        write("dangling"),
        write(&format!("{target}/new.txt")),
        Form::new(
            "patch",
            "apply_patch",
            &json!({"patch":
            "*** Begin Patch\n*** Add File: folder-link/patched.txt\n+evil\n*** End Patch\n"}),
        ),
        Form::new("delete", "delete_file", &json!({"path": "deep/link/secret.txt"})),
        shell("echo evil > file-link; echo evil > folder-link/new.txt; echo evil > dangling"),
        shell("mv folder-link/secret.txt folder-link/moved.txt; rm -rf folder-link/sub"),
        shell(&format!("echo evil > {target}/new.txt")),
        shell("ln -s $PWD/../outside x; echo evil > x/new.txt; rm x"),
    ]
}

/// A hostile path between the model's call and the daemon: a folder that becomes a link and back.
fn swap(repo: &Path, target: &Path, stop: &AtomicBool) {
    let (name, plain, link) = (repo.join("swap"), repo.join("plain"), repo.join("link"));
    while !stop.load(Ordering::Relaxed) {
        let _may_race = fs::remove_file(&link);
        let _may_race = symlink(target, &link);
        let _may_race = fs::rename(&name, &plain);
        let _may_race = fs::rename(&link, &name);
        let _may_race = fs::rename(&name, &link);
        let _may_race = fs::rename(&plain, &name);
    }
}

/// Everything below a folder as text, to compare.
fn snapshot(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => all.push((
                    path.to_string_lossy().into_owned(),
                    fs::read_to_string(&path).unwrap_or_default(),
                )),
            }
        }
    }
    all.sort();
    all
}

fn allow_all() -> Value {
    json!({"permissions": {"allow": ["*"]}})
}

/// The control: the same links lead to a folder of the project.
#[test]
fn links_lead_no_tool_out_of_the_project() {
    if !has_programs(&["bwrap"]) {
        return;
    }
    for is_control in [false, true] {
        let name = if is_control { "{DIR}/repo/inside" } else { "{DIR}/outside" };
        let forms: Vec<Form> = reading(name).into_iter().chain(writing(name)).collect();
        let scene = Scene::new(&answers(&forms), &allow_all(), &[]);
        let target = scene.path(if is_control { "repo/inside" } else { "outside" });
        prepare(&scene.path("repo"), &target);
        let before = snapshot(&target);
        let results = play(&scene, &forms, &["--mode", "auto"]);
        let read: Vec<String> = results
            .iter()
            .zip(&forms)
            .filter(|(result, form)| form.name != "search" && result.to_string().contains(SECRET))
            .map(|(result, form)| format!("{}: {result}", form.name))
            .collect();
        if is_control {
            assert!(read.len() >= 7, "{read:#?}");
            assert_ne!(snapshot(&target), before);
        } else {
            assert!(read.is_empty(), "{read:#?}");
            assert_eq!(snapshot(&target), before, "{results:#?}");
        }
    }
}

/// A folder is swapped for a link while calls are judged and made.
#[test]
fn link_swapped_between_check_and_use_leads_nowhere() {
    if !has_programs(&["bwrap"]) {
        return;
    }
    let forms: Vec<Form> = (0..36)
        .map(|n| match n % 4 {
            0 => Form::new("read", "read_file", &json!({"path": "swap/secret.txt"})),
            1 => Form::write("write", &format!("swap/new-{n}.txt"), "evil\n"),
            2 => Form::shell("run", "cat swap/secret.txt; echo evil > swap/from-command.txt"),
            _ => Form::new("grep", "grep", &json!({"pattern": "secret", "path": "swap"})),
        })
        .collect();
    let scene = Scene::new(&answers(&forms), &allow_all(), &[]);
    let (repo, outside) = (scene.path("repo"), scene.path("outside"));
    tree(&outside, &[("secret.txt", SECRET)]);
    tree(&repo, &[("swap/secret.txt", "plain words, no secret\n")]);
    let before = snapshot(&outside);
    let stop = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        scope.spawn(|| swap(&repo, &outside, &stop));
        let results = play(&scene, &forms, &["--mode", "auto"]);
        stop.store(true, Ordering::Relaxed);
        results
    });
    assert!(!results.iter().any(|result| result.to_string().contains(SECRET)), "{results:#?}");
    assert_eq!(snapshot(&outside), before, "{results:#?}");
    // The control: in moments without the link, the same calls work.
    assert!(
        results.iter().any(|result| result.to_string().contains("plain words")),
        "{results:#?}"
    );
}
