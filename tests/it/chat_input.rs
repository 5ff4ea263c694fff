//! Input of a chat: typed lines, mentions, pictures, pastes, and choices from lists.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, scripted, text_answer},
    fake_model::{Answer, FakeModel},
    sealed::{Daemon, tree},
    terminal::{Setup, Terminal},
};

/// The start of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

fn prompt(cairn: &Scripted, args: &[&str], setup: &Setup<'_>) -> Option<Terminal> {
    let args = [&["chat"], args].concat();
    let mut terminal = Terminal::start_with(&cairn.daemon.home, &cairn.folder, &args, setup)?;
    terminal.see("\n●");
    Some(terminal)
}

/// Returns an answer to a request that must contain a text.
fn expecting(part: &str, answer: &str) -> Value {
    json!({"expect": [{"lastContains": part}], "steps": [{"text": answer}, {"usage": {"inputTokens": 10, "outputTokens": 2}}]})
}

/// Adds keys to the configuration that a chat reads at its start.
fn configure(home: &Path, more: &Value) {
    let path = home.join("config/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    std::fs::write(path, config.to_string()).unwrap();
}

#[test]
fn mentioned_files_and_folders_go_to_the_model() {
    let cairn = scripted(&json!([
        expecting("<file path=\"src/a.rs\">\nfn one() {}\nfn two() {}", "Two functions."),
        expecting("<folder path=\"src\">\nsrc/a.rs", "One file."),
        expecting("Its content is not attached", "It is large."),
    ]));
    tree(&cairn.folder, &[("big.txt", &"row\n".repeat(60_000)), (".gitignore", "target/\n")]);
    tree(&cairn.folder, &[("target/made.txt", "x"), ("docs/guide page.md", "Text.\n")]);
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    // The menu finds a file by parts of its path, without ignored ones.
    terminal.text("explain @");
    let menu = terminal.see("@src/");
    assert!(menu.contains("@notes.txt") && !menu.contains("target"), "{menu}");
    terminal.text("sa.rs");
    terminal.see("@src/a.rs");
    terminal.key("Tab");
    terminal.see_last("● explain @src/a.rs");
    terminal.key("Enter");
    let seen = terminal.see("Two functions.");
    assert!(seen.contains("attached src/a.rs (2 lines)"), "{seen}");
    terminal.see_last("●");
    terminal.line("and @src, ada@example.org?");
    let seen = terminal.see("One file.");
    assert!(seen.contains("attached the listing of src (1 entries)"), "{seen}");
    terminal.see_last("●");
    terminal.line("what is in @big.txt");
    let seen = terminal.see("It is large.");
    assert!(seen.contains("big.txt is attached by its name, because it is too large"), "{seen}");
}

#[test]
fn key_switches_the_mode_and_a_plan_is_executed() {
    let write = json!({"path": "new.txt", "content": "new\n"});
    let cairn = scripted(&json!([
        text_answer("First this, then that."),
        {"expect": [{"lastContains": "Carry it out"}], "steps": [
            {"call": {"name": "write_file", "arguments": write}},
        ]},
        text_answer("It is written."),
    ]));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.see(" · ask");
    for mode in ["accept-edits", "auto", "plan"] {
        terminal.key("BTab");
        terminal.see(&format!(" · {mode}"));
    }
    // A typed text stays.
    terminal.text("write it");
    terminal.key("BTab");
    terminal.see(" · ask");
    terminal.see_last("● write it");
    terminal.key("C-u");
    terminal.line("/mode loud");
    terminal.see("there is no mode 'loud'");
    terminal.line("/mode plan");
    terminal.see("plan: nothing is changed");
    terminal.line("write it");
    terminal.see("First this, then that.");
    terminal.see("carry it out, and edit files without asking");
    assert!(!cairn.folder.join("new.txt").exists());
    terminal.key("Down");
    terminal.key("Enter");
    terminal.see("It is written.");
    terminal.see(" · accept-edits");
    assert!(cairn.folder.join("new.txt").exists());
    terminal.line("/cost");
    terminal.see("2 turns · ");
}

#[test]
fn mentions_outside_the_folder_and_protected_ones_are_refused() {
    let cairn = scripted(&json!([text_answer("Fine.")]));
    tree(cairn.folder.parent().unwrap(), &[("secret.txt", "S3CRET")]);
    let inside = cairn.folder.join("inner.txt");
    std::os::unix::fs::symlink(cairn.folder.parent().unwrap().join("secret.txt"), inside).unwrap();
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.line("read @../secret.txt");
    terminal.see("only files inside");
    // The line stays, so that it can be changed.
    terminal.see_last("● read @../secret.txt");
    terminal.key("C-u");
    terminal.line("read @/etc/passwd");
    terminal.see("@/etc/passwd: only files inside");
    terminal.key("C-u");
    terminal.line("read @inner.txt");
    let seen = terminal.see("@inner.txt cannot be attached");
    assert!(!seen.contains("S3CRET"), "{seen}");
    terminal.key("C-u");
    terminal.line("a word such as @param is text");
    terminal.see("Fine.");
}

#[test]
fn command_menu_has_descriptions_and_chooses_with_arrows() {
    let cairn = scripted(&json!([]));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.text("/");
    let menu = terminal.see("show the providers");
    assert!(menu.contains("/undo") && menu.contains("show the granted rules"), "{menu}");
    terminal.text("prss");
    let menu = terminal.see("● /prss\n/compress  replace the conversation with a summary");
    assert!(!menu.contains("show the providers"), "{menu}");
    terminal.key("Tab");
    terminal.see_last("● /compress");
    terminal.key("C-u");
    terminal.text("/");
    terminal.see("show the providers");
    terminal.key("Down");
    terminal.key("Enter");
    terminal.see_last("● /model");
    terminal.key("C-u");
    // A typed command is sent as it is.
    terminal.text("/plan");
    terminal.see("show the model's plan");
    terminal.key("Enter");
    terminal.see("there is no plan");
    terminal.see_last("●");
    // A path is no command: no menu.
    terminal.text("see src/");
    terminal.see_last("● see src/");
}

/// A daemon whose model is a server that stores its requests.
fn with_model(model: &FakeModel) -> (tempfile::TempDir, Daemon, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (home, folder) = (dir.path().join("home"), dir.path().join("repo"));
    tree(&folder, &[("notes.txt", "old\n"), (".git/HEAD", "ref: refs/heads/main\n")]);
    let config =
        json!({"llm": {"provider": "openai-compatible", "endpoint": model.address, "model": "m"}});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    (dir, daemon, folder)
}

#[test]
fn pictures_by_path_command_and_clipboard_go_to_the_model() {
    let model = FakeModel::start(|_, _| Answer::Text("I see it."));
    let (dir, daemon, folder) = with_model(&model);
    std::fs::write(folder.join("two words.png"), PNG).unwrap();
    std::fs::write(folder.join("photo.png"), b"GIF89a......").unwrap();
    std::fs::write(folder.join("text.png"), "no picture").unwrap();
    std::fs::File::create(folder.join("big.png")).unwrap().set_len(50 << 20).unwrap();
    // A clipboard with a picture.
    let programs = dir.path().join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(dir.path().join("clip.png"), PNG).unwrap();
    let script = format!("#!/bin/sh\ncat '{}'\n", dir.path().join("clip.png").display());
    std::fs::write(programs.join("wl-paste"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.join("wl-paste"), mode).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let variables = [("PATH", path.as_str())];
    let setup = Setup { variables: &variables, ..Setup::default() };
    let Some(mut terminal) = Terminal::start_with(&daemon.home, &folder, &["chat"], &setup) else {
        return;
    };
    terminal.see("\n●");
    let sent = || model.latest().body["messages"].to_string();
    terminal.paste(&format!("{}/two\\ words.png", folder.display()));
    terminal.key("Enter");
    let seen = terminal.see("I see it.");
    assert!(seen.contains("attached two words.png (PNG, "), "{seen}");
    terminal.see_last("●");
    assert!(sent().contains("data:image/png;base64,iVBORw0KGgo"), "{}", sent());
    terminal.line("/image photo.png");
    terminal.see("photo.png (GIF, 12 B) goes with the next message");
    terminal.see_last("●");
    terminal.line("/paste");
    terminal.see("clipboard (PNG, ");
    terminal.see_last("●");
    terminal.line("compare them");
    terminal.see_after("compare them", "I see it.");
    terminal.see_last("●");
    assert!(sent().contains("data:image/gif;base64,"), "{}", sent());
    assert_eq!(sent().matches("data:image/png").count(), 2, "{}", sent());
    let before = model.requests().len();
    terminal.line("look at big.png");
    let seen = terminal.see("a picture may have at most");
    assert!(seen.contains("scale it down first"), "{seen}");
    terminal.key("C-u");
    terminal.line("/image text.png");
    terminal.see("text.png is not a PNG, JPEG, GIF or WebP picture");
    assert_eq!(model.requests().len(), before);
}

#[test]
fn large_paste_is_folded_and_sent_complete() {
    let model = FakeModel::start(|_, _| Answer::Text("Read."));
    let (_dir, daemon, folder) = with_model(&model);
    let Some(mut terminal) = Terminal::start(&daemon.home, &folder, &["chat"]) else { return };
    terminal.see("\n●");
    let text: String = (0..1234).map(|n| format!("row {n}\n")).collect();
    terminal.text("see ");
    terminal.paste(&text);
    terminal.see_last("● see [pasted text #1, 1,234 lines]");
    terminal.key("Enter");
    terminal.see("Read.");
    terminal.see_last("●");
    let messages = model.latest().body["messages"].to_string();
    assert!(messages.contains("row 0\\nrow 1\\n") && messages.contains("row 1233"), "{messages}");
    // Two pastes of 5 MB are over the limit of a message.
    let big = "x".repeat(5 << 20);
    terminal.paste(&big);
    terminal.see_last("● [pasted text #1, 1 line]");
    terminal.paste(&big);
    terminal.see("a message may have at most 8");
    terminal.see("● [pasted text #1, 1 line]");
}

#[test]
fn custom_commands_of_a_project_need_trust() {
    let cairn = scripted(&json!([
        expecting("Explain src/a.rs to a child.", "Simple."),
        expecting("Mine.", "Yours."),
    ]));
    let command =
        "---\ndescription: Explain a file\nargument-hint: PATH WHOM\n---\nExplain $1 to $2.\n";
    tree(&cairn.folder, &[(".claude/commands/explain.md", command)]);
    tree(&cairn.daemon.home, &[("config/commands/mine.md", "Mine.\n")]);
    {
        let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
        let seen = terminal.see("1 commands of this folder are not used");
        assert!(seen.contains("cairn trust"), "{seen}");
        terminal.line("/explain src/a.rs");
        terminal.see("there is no command /explain");
        terminal.see_last("●");
    }
    let folder = cairn.folder.canonicalize().unwrap();
    configure(&cairn.daemon.home, &json!({"trust": {"folders": [folder]}}));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.line("/help");
    terminal.see("/explain PATH WHOM                      Explain a file");
    terminal.see_last("●");
    terminal.text("/exp");
    terminal.see("Explain a file");
    terminal.key("Tab");
    terminal.see_last("● /explain");
    terminal.line("src/a.rs 'a child'");
    terminal.see("Simple.");
    terminal.see_last("●");
    terminal.line("/mine");
    terminal.see("Yours.");
}

#[test]
fn earlier_chats_and_models_are_chosen_from_a_list() {
    let cairn = scripted(&json!([
        text_answer("Hello Ada"),
        text_answer("Hello Bob"),
        {"expect": [{"anyContains": "I am Ada"}, {"noneContains": "I am Bob"}], "steps": [{"text": "You are Ada."}]},
        {"expect": [{"anyContains": "I am Bob"}], "steps": [{"text": "You are Bob."}]},
    ]));
    assert_eq!(cairn.chat(&["-p", "I am Ada"], None).0, 0);
    assert_eq!(cairn.chat(&["-p", "I am Bob"], None).0, 0);
    let (code, _, err) = cairn.chat(&["--resume"], Some("x"));
    assert!(code == 2 && err.contains("--resume requires a terminal"), "{err}");
    let args = ["chat", "--resume"];
    let Some(mut terminal) = Terminal::start(&cairn.daemon.home, &cairn.folder, &args) else {
        return;
    };
    let list = terminal.see("1 turn   I am Ada");
    assert!(list.contains("1 turn   I am Bob"), "{list}");
    terminal.text("ada");
    terminal.key("Enter");
    terminal.see("continuing 'I am Ada'");
    terminal.see_last("●");
    terminal.line("who am I?");
    terminal.see("You are Ada.");
    terminal.see_last("●");
    // Escape changes nothing.
    terminal.line("/resume");
    terminal.see_after("/resume", "I am Bob");
    terminal.key("Escape");
    terminal.see_last("●");
    terminal.line("/resume");
    terminal.see_after("/resume", "I am Bob");
    terminal.key("Enter");
    terminal.see("continuing 'I am Bob'");
    terminal.see_last("●");
    terminal.line("and me?");
    terminal.see("You are Bob.");
    terminal.see_last("●");
    terminal.line("/model");
    terminal.see_after("/model", "16,384 tokens");
    terminal.key("Enter");
    terminal.see("scripted script, 16,384 tokens of context");
}
