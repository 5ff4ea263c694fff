//! Display of a chat: the status line, folded results, colours, and notifications.

use serde_json::json;

use crate::{
    chat::{Scripted, calls, scripted, text_answer},
    config_keys::ConfiguredDaemon,
    fake_model::{Answer, FakeModel},
    sealed::tree,
    terminal::{Setup, Terminal},
};

fn prompt(cairn: &Scripted, args: &[&str], setup: &Setup<'_>) -> Option<Terminal> {
    let args = [&["chat"], args].concat();
    let mut terminal = Terminal::start_with(&cairn.daemon.home, &cairn.folder, &args, setup)?;
    terminal.see("\n●");
    Some(terminal)
}

/// Adds a section to the configuration that a chat reads at its start.
fn configure(cairn: &Scripted, section: &str, value: serde_json::Value) {
    let path = cairn.daemon.home.join("config/config.json");
    let mut config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config[section] = value;
    std::fs::write(path, config.to_string()).unwrap();
}

/// A diff of a Rust file, and the approval that shows it.
fn change() -> serde_json::Value {
    calls(
        "write_file",
        &json!({"path": "src/a.rs", "content": "fn one() {}\nfn new() -> &'static str { \"x\" }\n"}),
    )
}

#[test]
fn escape_stops_the_model_and_alt_does_not() {
    let endless = json!({"steps": [{"text": "I begin\n"}, {"text": "and"}, "hang"]});
    let cairn = scripted(&json!([
        endless,
        {"steps": [{"call": {"name": "datetime", "arguments": {}}}, {"delayMs": 1500}]},
        {"expect": [{"anyContains": "pasted advice"}], "steps": [{"text": "Thanks."}]},
        change(),
    ]));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.line("talk");
    terminal.see("I begin");
    // Alt+B in one part, and an arrow.
    terminal.bytes(b"\x1bb");
    terminal.key("Left");
    // A typed text is cleared first.
    terminal.text("typed");
    terminal.see("› typed");
    terminal.key("Escape");
    let seen = terminal.see_gone("› typed");
    assert!(!seen.contains("stopped"), "{seen}");
    terminal.key("Escape");
    terminal.see("stopped");
    terminal.see_last("●");
    // Text that is pasted while the model works is sent as one message.
    terminal.line("what time is it?");
    terminal.see_after("what time", "thinking");
    terminal.paste("pasted advice\nin two lines");
    terminal.see("› pasted advice\\nin two lines");
    terminal.key("Enter");
    terminal.see("Thanks.");
    terminal.see_last("●");
    terminal.line("write");
    terminal.see("allow? y once");
    terminal.key("Escape");
    terminal.see_last("●");
    assert!(!std::fs::read_to_string(cairn.folder.join("src/a.rs")).unwrap().contains("new"));
}

#[test]
fn folded_output_is_displayed_completely_on_request() {
    if !std::process::Command::new("bwrap")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        return crate::sealed::missing("bubblewrap");
    }
    let cairn = scripted(&json!([
        calls("run_shell", &json!({"command": "seq 100 140"})),
        text_answer("Counted."),
    ]));
    let Some(mut terminal) = prompt(&cairn, &["--allow-bash"], &Setup::default()) else { return };
    terminal.line("count");
    terminal.see("y once");
    terminal.key("y");
    let seen = terminal.see("Counted.");
    assert!(seen.contains("… 33 more lines (Ctrl+O)") && !seen.contains("  120"), "{seen}");
    terminal.see_last("●");
    terminal.text("half a line");
    terminal.see_last("● half a line");
    terminal.key("C-o");
    let seen = terminal.see_after("Counted.", "  140");
    assert!(seen.contains("  120"), "{seen}");
    terminal.see_last("● half a line");
}

#[test]
fn history_is_searched_and_the_status_line_leaves_with_the_line() {
    let cairn = scripted(&json!([text_answer("One."), text_answer("Two."), text_answer("Three.")]));
    tree(&cairn.folder, &[(".git/HEAD", "ref: refs/heads/topic\n")]);
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.see("scripted script · ask · topic\n●");
    terminal.line("first question");
    terminal.see("One.");
    terminal.see("scripted script · ctx 0% · ask · topic\n●");
    terminal.line("second question");
    terminal.see("Two.");
    terminal.see_last("●");
    terminal.key("C-r");
    terminal.text("fir");
    terminal.see("history 'fir': first question");
    terminal.key("Enter");
    terminal.see_last("● first question");
    terminal.key("Enter");
    terminal.see("Three.");
    let seen = terminal.see_last("●");
    assert_eq!(seen.matches("· topic").count(), 1, "{seen}");
}

#[test]
fn narrow_terminal_has_a_shorter_status_line() {
    let cairn = scripted(&json!([text_answer("One.")]));
    let branch = format!("ref: refs/heads/{}\n", "long-name-of-a-branch-".repeat(3));
    tree(&cairn.folder, &[(".git/HEAD", &branch)]);
    let setup = Setup { columns: 60, ..Setup::default() };
    let Some(mut terminal) = prompt(&cairn, &[], &setup) else { return };
    let seen = terminal.see("scripted script · ask\n●");
    assert!(!seen.contains("long-name"), "{seen}");
    terminal.text("/");
    let menu = terminal.see("show the providers");
    assert!(menu.lines().all(|line| line.chars().count() <= 60), "{menu}");
}

#[test]
fn narrowed_terminal_repeats_nothing_of_a_streamed_answer() {
    let words: String = (0..64).map(|n| format!("word{n:03} ")).collect();
    let cairn = scripted(&json!([{"steps": [{"text": words}, "hang"]}]));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.line("talk");
    terminal.see("word063");
    terminal.resize(60);
    // The status is drawn in the new width.
    terminal.text("typed");
    terminal.see("› typed");
    terminal.key("Escape");
    terminal.see_gone("› typed");
    terminal.key("Escape");
    terminal.see("stopped");
    let seen = terminal.see_last("●");
    // The terminal breaks the rows of the former width.
    let joined = seen.replace('\n', "");
    for n in 0..64 {
        assert_eq!(joined.matches(&format!("word{n:03}")).count(), 1, "word{n:03}: {seen}");
    }
    assert!(!seen.contains("writing") && !seen.contains("thinking"), "{seen}");
}

#[test]
fn commands_typed_during_a_turn_do_not_go_to_the_model() {
    let hang = |text: &str| json!({"steps": [{"text": text}, "hang"]});
    let cairn = scripted(&json!([hang("I begin.\n"), hang("endless\n")]));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.line("talk");
    terminal.see("I begin.");
    terminal.line("/help");
    terminal.see("three quick ones exit");
    terminal.line("!echo sum-$((20+22))");
    terminal.see("after this turn: !echo sum-$((20+22))");
    terminal.line("/mode plan");
    terminal.see("after this turn: /mode plan");
    terminal.key("Escape");
    terminal.see("stopped");
    let seen = terminal.see_after("stopped", "\nsum-42");
    assert!(!seen.contains("not sent"), "{seen}");
    terminal.see_after("sum-42", "· plan");
    terminal.line("again");
    terminal.see("endless");
    terminal.line("/exit");
    terminal.wait_exit(0);
}

#[test]
fn tables_links_and_code_fit_a_narrow_terminal() {
    let text = "| option | meaning |\n|---|---|\n| `--jobs` | how many files are read at the same time by the worker |\n\n\
        See [the guide](https://example.org/guide) for more.\n\n\
        ```rust\nfn wait_until_ready(timeout: Duration, interval: Duration) -> bool {}\n```\n";
    let cairn = scripted(&json!([text_answer(text)]));
    let setup = Setup { columns: 60, ..Setup::default() };
    let Some(mut terminal) = prompt(&cairn, &[], &setup) else { return };
    terminal.line("explain");
    let seen = terminal.see("-> bool {}");
    assert!(seen.contains("option │ meaning\n───────┼─"), "{seen}");
    assert!(
        seen.contains("--jobs │ how many files are read at the same time by the\n       │ worker"),
        "{seen}"
    );
    assert!(seen.contains("See the guide (https://example.org/guide) for more."), "{seen}");
    assert!(
        seen.contains(
            "  fn wait_until_ready(timeout: Duration, interval: Duration)\n      -> bool {}"
        ),
        "{seen}"
    );
}

#[test]
fn diffs_have_the_colours_of_the_theme_and_none_with_no_color() {
    let cairn = scripted(&json!([change(), change(), change(), change()]));
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("dark", &[], &["48;5;22", "38;5;176"], &["48;5;194"]),
        ("light", &[], &["48;5;194", "38;5;90"], &["48;5;22m"]),
        ("auto", &[("COLORFGBG", "0;15")], &["48;5;194"], &["48;5;22m"]),
        ("dark", &[("NO_COLOR", "1")], &[], &["48;5;", "38;5;", "\u{1b}[3"]),
    ];
    for (theme, variables, expected, absent) in cases {
        configure(&cairn, "chat", json!({"theme": theme}));
        let setup = Setup { variables, ..Setup::default() };
        let Some(mut terminal) = prompt(&cairn, &[], &setup) else { return };
        terminal.line("write");
        let text = terminal.see("allow? y once");
        let colours = terminal.colours();
        assert!(text.contains("  +fn new() -> &'static str { \"x\" }"), "{text}");
        for part in *expected {
            assert!(colours.contains(part), "{theme} {variables:?} {part}: {colours:?}");
        }
        for part in *absent {
            assert!(!colours.contains(part), "{theme} {variables:?} {part}: {colours:?}");
        }
        terminal.key("C-c");
        terminal.see_last("●");
    }
}

#[test]
fn user_is_notified_while_the_terminal_has_no_focus() {
    let cairn = scripted(&json!([change(), text_answer("Done."), change()]));
    configure(&cairn, "chat", json!({"notify": "osc9"}));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.record();
    terminal.line("write");
    terminal.see("allow? y once");
    // The terminal reports that it lost the focus.
    terminal.bytes(b"\x1b[O");
    terminal.see_raw("\u{1b}]9;cairn: write_file waits for your answer\u{7}");
    terminal.key("y");
    terminal.see("Done.");
    terminal.see_last("●");
    let raw = terminal.see_raw("\u{1b}]9;cairn: the answer is complete\u{7}");
    // The terminal is asked for its focus during a turn alone.
    assert!(raw.contains("\u{1b}[?1004h"), "{raw:?}");
    terminal.see_raw("\u{1b}[?1004l");
    drop(terminal);
    configure(&cairn, "chat", json!({"notify": "off"}));
    let Some(mut terminal) = prompt(&cairn, &[], &Setup::default()) else { return };
    terminal.record();
    terminal.line("again");
    terminal.see("allow? y once");
    terminal.bytes(b"\x1b[O");
    terminal.key("n");
    terminal.see("why not?");
    terminal.key("Enter");
    let raw = terminal.see_raw("denied");
    assert!(!raw.contains("\u{1b}]9;") && !raw.contains('\u{7}'), "{raw:?}");
}

/// `chat.notify` and `chat.theme` are refused if they are unknown.
#[test]
fn unknown_settings_of_the_chat_are_refused() {
    let model = FakeModel::start(|_, _| Answer::Text("hi"));
    let fixture = ConfiguredDaemon::new();
    for (key, value) in [("notify", "horn"), ("theme", "blue")] {
        fixture.write(&json!({"chat": {key: value}, "llm": {"endpoint": model.address}}));
        let (code, out, err) = fixture.cairn(&["chat", "-p", "hi"]);
        assert!(code != 0 && err.contains(&format!("chat.{key}")), "{code} {out}{err}");
    }
}
