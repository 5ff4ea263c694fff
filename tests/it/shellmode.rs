//! `cairn chat --shell`: the user's own shell, with `>` for the model.

use serde_json::json;

use crate::{
    chat::{scripted, text_answer},
    terminal::Terminal,
};

#[test]
fn shell_mode_runs_lines_and_sends_marked_ones_to_the_model() {
    let cairn = scripted(&json!([
        {"expect": [{"anyContains": "The user's shell is in"}, {"anyContains": "what is here"}], "steps": [{"text": "Two functions."}]},
        text_answer("Still here."),
    ]));
    let Some(mut terminal) =
        Terminal::start(&cairn.daemon.home, &cairn.folder, &["chat", "--shell"])
    else {
        return;
    };
    terminal.see("> MESSAGE goes to the model");
    let at = |folder: &str| format!("/{folder} $");
    terminal.see(&at("repo"));
    terminal.line("echo sum-$((20+22))");
    terminal.see("\nsum-42");
    terminal.line("cd src");
    terminal.see(&at("repo/src"));
    terminal.line("export WORD='two words'");
    terminal.line("echo \"[$WORD] in $(basename $PWD)\"");
    terminal.see("[two words] in src");
    terminal.line("unset WORD");
    terminal.line("echo \"<$WORD>\"; cat a.rs | head -n 1");
    terminal.see("<>\nfn one() {}");
    terminal.line("cd nowhere");
    terminal.see("cd: ");
    terminal.line("exit 7");
    terminal.see("exit 7");
    terminal.line("> what is here");
    // Input typed before the prompt appears again is retained, but not submitted.
    terminal.see_after("Two functions.", &at("repo/src"));
    terminal.line("/tools");
    terminal.see("run_shell");
    // Ctrl+C ends the command and nothing else.
    terminal.line("echo began; sleep 600; echo never-$((1+1))");
    terminal.see("\nbegan");
    terminal.key("C-c");
    terminal.line("echo after");
    let seen = terminal.see("\nafter");
    assert!(!seen.contains("never-2"), "{seen}");
    terminal.line("> and now");
    terminal.see_after("Still here.", &at("repo/src"));
    terminal.line("/exit");
    terminal.wait_exit(0);
}

/// `ui.shell` of the user's own configuration.
#[test]
fn configuration_makes_the_chat_a_shell() {
    let cairn = scripted(&json!([]));
    let file = cairn.daemon.home.join("config/config.json");
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["ui"] = json!({"shell": true});
    std::fs::write(&file, config.to_string()).unwrap();
    let Some(mut terminal) = Terminal::start(&cairn.daemon.home, &cairn.folder, &["chat"]) else {
        return;
    };
    terminal.see("> MESSAGE goes to the model");
    terminal.line("echo sum-$((20+22))");
    terminal.see("\nsum-42");
    terminal.line("/exit");
    terminal.wait_exit(0);
}
