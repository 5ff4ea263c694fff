//! Agent turns as a user types them: single ones, and at the prompt.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    sealed::{Daemon, command, tree},
    terminal::Terminal,
};

const FILES: &[(&str, &str)] =
    &[("src/a.rs", "fn one() {}\nfn two() {}\n"), ("notes.txt", "old\n"), (".git/HEAD", "x")];

/// A daemon whose model answers from a script.
pub struct Scripted {
    pub daemon: Daemon,
    pub folder: PathBuf,
    pub _dir: tempfile::TempDir,
}

/// Starts a daemon with these answers, and creates a folder to work in.
pub fn scripted(answers: &Value) -> Scripted {
    configured(answers, &json!({}))
}

/// Starts such a daemon with further settings.
pub fn configured(answers: &Value, settings: &Value) -> Scripted {
    with_context(16384, answers, settings)
}

/// Starts such a daemon, whose model has a context of so many tokens.
pub fn with_context(tokens: u32, answers: &Value, settings: &Value) -> Scripted {
    let dir = tempfile::tempdir().unwrap();
    let (home, folder) = (dir.path().join("home"), dir.path().join("repo"));
    tree(&folder, FILES);
    let script = dir.path().join("script.json");
    let text = json!({"model": "script", "contextTokens": tokens, "answers": answers});
    tree(dir.path(), &[("script.json", &text.to_string())]);
    let mut config = settings.clone();
    config["llm"] = json!({"provider": "scripted", "endpoint": script});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    Scripted { daemon, folder, _dir: dir }
}

impl Scripted {
    /// Returns exit code, standard output and standard error of `cairn chat`.
    pub fn chat(&self, args: &[&str], piped: Option<&str>) -> (i32, String, String) {
        cairn(&self.daemon.home, &self.folder, &[&["chat"], args].concat(), piped)
    }

    pub fn cairn(&self, args: &[&str]) -> (i32, String, String) {
        cairn(&self.daemon.home, &self.folder, args, None)
    }
}

fn cairn(home: &Path, folder: &Path, args: &[&str], piped: Option<&str>) -> (i32, String, String) {
    let mut command = command(home);
    command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = match piped {
        None => command.output().unwrap(),
        Some(text) => {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Returns an answer of text.
pub fn text_answer(text: &str) -> Value {
    json!({"steps": [{"text": text}, {"usage": {"inputTokens": 100, "outputTokens": 20}}]})
}

/// Returns an answer that requests a tool call.
pub fn calls(name: &str, arguments: &Value) -> Value {
    json!({"steps": [{"call": {"name": name, "arguments": arguments}}, {"usage": {"inputTokens": 10, "outputTokens": 2}}]})
}

#[test]
fn prompt_prints_one_answer() {
    let cairn = scripted(&json!([
        {"expect": [{"anyContains": "what is it?"}], "steps": [{"text": "It **is** a\n"}, {"text": "repository"}]},
        {"expect": [{"anyContains": "+new line"}], "steps": [{"text": "fine"}]},
        text_answer("from the pipe"),
    ]));
    let (code, out, err) = cairn.chat(&["-p", "what is it?"], None);
    assert_eq!((code, &*out), (0, "It **is** a\nrepository\n"), "{err}");
    assert!(err.contains("● prompt eval: ") && err.contains("for the first time"), "{err}");
    // Piped input is the context, or the prompt if there is none.
    let (code, out, err) = cairn.chat(&["-q", "-p", "review this"], Some("diff\n+new line\n"));
    assert_eq!((code, &*out, &*err), (0, "fine\n", ""));
    let (code, out, _) = cairn.chat(&[], Some("what now?"));
    assert_eq!((code, &*out), (0, "from the pipe\n"));
    // Without a terminal there is no interactive prompt.
    let (code, _, err) = cairn.chat(&[], None);
    assert!(code == 2 && err.contains("there is no terminal for a chat"), "{err}");
}

#[test]
fn json_output_is_one_record_per_line_and_ends_with_the_result() {
    let cairn = scripted(&json!([
        calls("read_file", &json!({"path": "src/a.rs"})),
        text_answer("two functions")
    ]));
    let (code, out, err) = cairn.chat(&["--json", "-p", "how many?"], None);
    assert_eq!(code, 0, "{err}");
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|l| l["evt"]["type"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"turn_accepted"));
    assert_eq!(kinds.last(), Some(&"run_completed"));
    assert!(kinds.contains(&"tool_call") && kinds.contains(&"tool_result"), "{kinds:?}");
    assert!(!kinds.contains(&"token_delta"), "{kinds:?}");
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["status"], &result["finalOutput"]),
        (&json!("completed"), &json!("two functions"))
    );
    assert_eq!(lines[lines.len() - 2]["evt"]["result"], *result);
    let (code, _, err) = cairn.chat(&["--json"], None);
    assert!(
        code == 2 && serde_json::from_str::<Value>(&err).unwrap()["error"]["reason"] == "usage",
        "{err}"
    );
}

#[test]
fn chat_continues_in_its_folder() {
    let cairn = scripted(&json!([
        text_answer("Hello Ada"),
        {"expect": [{"messages": 3}], "steps": [{"text": "Ada"}]},
        text_answer("no memory"),
    ]));
    let (code, _, err) = cairn.chat(&["--continue", "-p", "who?"], None);
    assert!(code == 3 && err.contains("no chat is stored in"), "{err}");
    assert_eq!(cairn.chat(&["-p", "I am Ada"], None).0, 0);
    let mut files = std::fs::read_dir(cairn.daemon.home.join("chats")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none() && !cairn.folder.join(".cairn_session").exists());
    let session_file: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions()) & 0o777;
    assert_eq!((session_file.as_object().unwrap().len(), mode), (2, 0o600));
    let (code, out, err) = cairn.chat(&["--continue", "-p", "who am I?"], None);
    assert_eq!((code, &*out), (0, "Ada\n"), "{err}");
    let then: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(then["sessionId"], session_file["sessionId"]);
    assert!(then["seq"].as_u64() > session_file["seq"].as_u64());
    // A chat without a session file leaves an existing file unchanged.
    assert_eq!(cairn.chat(&["--no-local-session", "-p", "anew"], None).0, 0);
    assert_eq!(serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap(), then);
}

#[test]
fn mode_of_flags_and_configuration_decides_about_edits() {
    let write =
        |n: u32| calls("write_file", &json!({"path": format!("new-{n}.txt"), "content": "new\n"}));
    let cairn = scripted(&json!([
        write(0),
        text_answer("the plan"),
        write(1),
        text_answer("done"),
        write(2),
        write(3),
        text_answer("done"),
        text_answer("no progress"),
    ]));
    let has = |n: u32| cairn.folder.join(format!("new-{n}.txt")).exists();
    // Without a terminal nobody can approve.
    let (code, out, err) = cairn.chat(&["--mode", "plan", "-p", "write"], None);
    assert_eq!((code, out.as_str(), has(0)), (0, "the plan\n", false), "{err}");
    assert_eq!(cairn.chat(&["--mode", "accept-edits", "-p", "write"], None).0, 0);
    assert!(has(1));
    assert_eq!(cairn.chat(&["--mode", "loud", "-p", "write"], None).0, 2);
    // A project can only make the mode stricter.
    std::fs::write(cairn.folder.join(".cairn.json"), r#"{"chat": {"mode": "auto"}}"#).unwrap();
    assert_eq!(cairn.chat(&["-p", "write"], None).0, 3);
    assert!(!has(2));
    let own = cairn.daemon.home.join("config/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&own).unwrap()).unwrap();
    config["chat"] = json!({"mode": "accept-edits", "promptProgress": false});
    std::fs::write(&own, config.to_string()).unwrap();
    std::fs::remove_file(cairn.folder.join(".cairn.json")).unwrap();
    assert_eq!(cairn.chat(&["-p", "write"], None).0, 0);
    assert!(has(3));
    let (code, out, err) = cairn.chat(&["--json", "-p", "hello"], None);
    assert_eq!(code, 0, "{err}");
    let accepted = r#""promptProgress":false"#;
    assert!(out.contains(accepted) && out.contains(r#""mode":"accept-edits""#), "{out}");
    let (_, out, _) = cairn.cairn(&["audit", "--tool", "write_file"]);
    assert!(out.contains("deny ") && out.contains("allow  write_file            ok"), "{out}");
}

/// `diagnostics.timeoutSeconds` limits each of them.
#[test]
fn formatter_and_check_run_after_edits() {
    let upper = "tr a-z A-Z < \"$0\" > /tmp/upper && cat /tmp/upper > \"$0\"";
    let settings = |mode: &str, seconds: u64, check: &str| {
        json!({
            "format": {"commands": {"txt": ["sh", "-c", upper]}},
            "diagnostics": {"mode": mode, "command": check, "timeoutSeconds": seconds},
        })
    };
    let write = json!({"path": "new.txt", "content": "abc\n"});
    let check = "cat new.txt; echo 1 error; exit 7";
    for (settings, expected) in [
        (settings("auto", 60, check), r#""exit_code":7,"output":"ABC\n1 error\n""#),
        (settings("auto", 1, "sleep 60"), r#""diagnostics":{"#),
        (settings("off", 60, check), r#""formatter":["#),
    ] {
        let answers = json!([calls("write_file", &write), text_answer("done")]);
        let cairn = configured(&answers, &settings);
        let args = ["--json", "--mode", "accept-edits", "-p", "write"];
        let (code, out, err) = cairn.chat(&args, None);
        assert_eq!(code, 0, "{err}");
        let line = out.lines().find(|line| line.contains("tool_result")).unwrap();
        assert!(line.contains(expected), "{line}");
        assert!(line.contains(r#""changed":true"#), "{line}");
        let is_off = settings["diagnostics"]["mode"] == "off";
        assert_eq!(line.contains("diagnostics"), !is_off, "{line}");
        assert_eq!(std::fs::read_to_string(cairn.folder.join("new.txt")).unwrap(), "ABC\n");
    }
}

#[test]
fn dry_run_makes_no_call_and_denial_sets_the_exit_code() {
    let write = json!({"path": "notes.txt", "content": "new\n"});
    let cairn = scripted(&json!([
        calls("write_file", &write),
        text_answer("done"),
        calls("write_file", &write),
        text_answer("x")
    ]));
    let (code, _, err) = cairn.chat(&["--dry-run", "-p", "write"], None);
    assert!(code == 0 && err.contains("● write_file notes.txt  (dry run: not executed)"), "{err}");
    // There is no approver: the turn ends.
    let (code, _, err) = cairn.chat(&["-p", "write"], None);
    assert!(code == 3 && err.contains("error: "), "{code} {err}");
    assert_eq!(std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap(), "old\n");
    // The same call succeeds if the user approves in advance.
    let (code, out, err) = cairn.cairn(&["tools", "call", "write_file", &write.to_string()]);
    assert!(code == 3 && err.contains("error: "), "{code} {out} {err}");
    let (code, _, err) = cairn.cairn(&["tools", "call", "write_file", &write.to_string(), "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap(), "new\n");
    let (code, out, _) = cairn.cairn(&["audit", "--tool", "write_file"]);
    assert!(
        code == 0 && out.contains("deny ") && out.contains("allow  write_file            ok"),
        "{out}"
    );
}

#[test]
fn failures_include_a_hint() {
    let fault =
        |kind: &str, text: &str| json!({"steps": [{"fault": {"kind": kind, "text": text}}]});
    let cairn = scripted(&json!([
        fault("modelNotFound", "qwen9"),
        fault("unavailable", "connection refused")
    ]));
    let (code, _, err) = cairn.chat(&["-p", "x"], None);
    assert!(
        code == 1 && err.contains("qwen9") && err.contains("hint: 'cairn models'"),
        "{code} {err}"
    );
    let (code, _, err) = cairn.chat(&["-p", "x"], None);
    assert!(
        code == 1
            && err.contains("connection refused")
            && err.contains("hint: start the model server"),
        "{err}"
    );
    let away =
        ["-p", "x", "--provider", "ollama", "-m", "qwen9", "--endpoint", "http://127.0.0.1:9"];
    let (code, _, err) = cairn.chat(&away, None);
    assert!(
        code == 1 && err.contains("127.0.0.1:9") && err.contains("hint: start the model server"),
        "{err}"
    );
    let (code, _, err) = cairn.chat(&["-p", "x", "--provider", "olama"], None);
    assert!(code == 3 && err.contains("olama") && err.contains("hint: "), "{code} {err}");
    let (code, _, err) = cairn.chat(&["-p", "x", "--shell"], None);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
}

#[test]
fn tools_models_and_prompts_are_listed() {
    let cairn = scripted(&json!([text_answer("x")]));
    let (code, out, _) = cairn.cairn(&["tools"]);
    assert!(code == 0 && out.contains("read_file") && out.contains("write_file"), "{out}");
    let (_, out, _) = cairn.cairn(&["rules"]);
    assert_eq!(out, "no rule was granted\n");
    assert_eq!(cairn.cairn(&["tools", "call", "no_such_tool"]).0, 3);
    assert_eq!(cairn.cairn(&["tools", "call", "read_file", "{"]).0, 2);
    let (code, out, _) = cairn.cairn(&["tools", "call", "read_file", r#"{"path": "src/a.rs"}"#]);
    assert!(code == 0 && out.contains("1|fn one() {}"), "{out}");
    let (code, out, _) = cairn.cairn(&["tools", "call", "datetime", "--json"]);
    assert!(code == 0 && serde_json::from_str::<Value>(&out).unwrap()["ok"] == true, "{out}");
    let (code, out, err) = cairn.cairn(&["models"]);
    assert!(code == 0 && out.contains("ollama") && out.contains("not available: "), "{out}{err}");
    assert_eq!(cairn.cairn(&["models", "nobody"]).0, 3);
    let (code, out, _) = cairn.chat(&["--show-system-prompt", "--system", "You count."], None);
    assert!(code == 0 && out.contains("You count."), "{out}");
    let (code, _, _) = cairn.chat(&["--list-models"], None);
    assert_eq!(code, 0);
}

#[test]
fn conversation_is_summarised_and_logged() {
    // Progress events that pass while a reader still has records to read are not delivered late, so
    // several are sent.
    let progress = std::iter::repeat_n(
        [json!({"progress": {"processed": 10, "total": 40}}), json!({"delayMs": 100})],
        10,
    );
    let answer = [
        json!({"reasoning": "hm\n"}),
        json!({"text": "Hello Ada"}),
        json!({"usage": {"inputTokens": 40, "outputTokens": 3}}),
    ];
    let steps: Vec<Value> = progress.flatten().chain(answer).collect();
    let cairn = scripted(&json!([
        {"steps": steps},
        text_answer("The user is Ada."),
        {"expect": [{"anyContains": "The user is Ada."}], "steps": [{"text": "Ada"}]},
    ]));
    let log = cairn.folder.join("chat.log");
    let flags = ["-p", "I am Ada", "--verbose", "--log-file", log.to_str().unwrap()];
    let (code, out, err) = cairn.chat(&flags, Some(&"much to read ".repeat(1500)));
    assert_eq!((code, &*out), (0, "Hello Ada\n"), "{err}");
    assert!(err.contains("hm\n"), "{err}");
    let logged = std::fs::read_to_string(&log).unwrap();
    for part in [
        "thinking 25% · ctx 0%\n",
        " [prompt_eval] 40 tok (0 cached) · ",
        "(43/16384)\n",
        " [turn] ",
    ] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&log.metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    let (code, out, err) = cairn.chat(&["--continue", "--compress", "-p", "who am I?"], None);
    assert_eq!((code, &*out), (0, "Ada\n"), "{err}");
    assert!(err.contains("summarized: "), "{err}");
}

/// Starts the prompt in a terminal; `None` after a notice if no terminal is available.
pub fn prompt(cairn: &Scripted, args: &[&str]) -> Option<Terminal> {
    Terminal::start(&cairn.daemon.home, &cairn.folder, &[&["chat"], args].concat())
}

#[test]
fn interactive_chat_answers_and_has_help_and_history() {
    let words =
        "# Head\n\nSome **bold** words and `code`:\n\n```rust\nfn main() {}\n```\n- one\n- two\n";
    let cairn = scripted(&json!([
        {"steps": [{"text": words}, {"delayMs": 100}, {"text": "- three\n"}, {"usage": {"inputTokens": 100, "outputTokens": 20}}]},
        text_answer("Again."),
    ]));
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("/help shows the commands");
    terminal.see("\n● ");
    terminal.line("say something");
    let seen = terminal.see("last: ");
    let from = seen.find("● say something").unwrap();
    let want = "\
● say something
Head

Some bold words and code:

  fn main() {}
• one
• two
• three
● prompt eval: # tok · ctx #%
● #% / # tokens  last: #tk/s
scripted script · ctx 0% · ask
●";
    // Colours are used, but only in the right positions.
    assert_eq!(figureless(&terminal.see_after("last: ", "\n●")[from..]).trim_end(), want);
    assert!(terminal.colours().contains("\u{1b}[1mbold"), "{}", terminal.colours());

    terminal.line("/help");
    let help = terminal.see("/provider [list|current|NAME [MODEL]]");
    assert!(help.contains("/exit, /quit"), "{help}");
    terminal.line("/nonsense");
    terminal.see("there is no command /nonsense");
    terminal.line("/provider current");
    terminal.see("scripted script");
    // The line before the last but one, from the history.
    for _ in 0..4 {
        terminal.key("Up");
    }
    terminal.see_last("● say something");
    terminal.key("Enter");
    terminal.see("Again.");
    let history = std::fs::read_to_string(cairn.daemon.home.join("chat_history")).unwrap();
    assert!(history.contains("say something"), "{history}");
    terminal.see_last("●");
    terminal.key("C-d");
    terminal.wait_exit(0);
}

#[test]
fn approval_key_runs_tool_and_undo_reverts_it() {
    let write = |text: &str| json!({"path": "notes.txt", "content": text});
    let cairn = scripted(&json!([
        calls("write_file", &write("new\n")), text_answer("Written."),
        calls("write_file", &write("newer\n")),
        {"expect": [{"anyContains": "not today"}], "steps": [{"text": "I leave it."}]},
    ]));
    let note = || std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap();
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("\n● ");
    terminal.line("write it");
    let question = terminal.see("y once · a this session · A always here");
    for part in ["▲ write_file", "  -old", "  +new", "because", "grants"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    assert_eq!(note(), "old\n");
    terminal.key("y");
    let done = terminal.see("Written.");
    assert!(done.contains("allowed once") && done.contains("● write_file notes.txt"), "{done}");
    assert_eq!(note(), "new\n");
    terminal.see("● changed notes.txt  (+1 −1)");
    terminal.see_last("●");
    terminal.line("/undo");
    terminal.see("restored notes.txt");
    terminal.see_last("●");
    assert_eq!(note(), "old\n");
    // A denial has a reason, which the model receives.
    terminal.line("write more");
    terminal.see_after("write more", "y once · a this session");
    terminal.key("n");
    terminal.see("why not?");
    terminal.line("not today");
    terminal.see("I leave it.");
    assert_eq!(note(), "old\n");
    terminal.see("denied: not today");
}

#[test]
fn command_changes_are_displayed_and_undone() {
    if !std::process::Command::new("bwrap")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        return crate::sealed::missing("bubblewrap");
    }
    let command = "sed -i s/old/new/ notes.txt; rm src/a.rs; mkdir made; echo by hand > made/b.txt";
    let cairn =
        scripted(&json!([calls("run_shell", &json!({"command": command})), text_answer("Done.")]));
    let tree = || {
        let read = |name: &str| std::fs::read_to_string(cairn.folder.join(name)).ok();
        ["notes.txt", "src/a.rs", "made/b.txt"].map(read)
    };
    let before = tree();
    let Some(mut terminal) = prompt(&cairn, &["--allow-bash"]) else { return };
    terminal.see("\n● ");
    terminal.line("change it");
    terminal.see("y once");
    terminal.key("y");
    terminal.see("Done.");
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(tree(), [some("new\n"), None, some("by hand\n")]);
    terminal.see("● changed made/b.txt, notes.txt, src/a.rs");
    terminal.see_last("●");
    terminal.line("/undo");
    terminal.see("restored made/b.txt, notes.txt, src/a.rs");
    assert_eq!(tree(), before);
}

#[test]
fn approval_is_resolved_by_another_client() {
    let write = json!({"path": "notes.txt", "content": "new\n"});
    let cairn = scripted(&json!([calls("write_file", &write), text_answer("Written.")]));
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("\n● ");
    terminal.line("write it");
    terminal.see("y once");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut raw = cairn.daemon.client().await;
        let waiting = raw.ok("approval.list", json!({})).await;
        let id = &waiting["data"][0]["approvalId"];
        raw.ok("approval.resolve", json!({"approvalId": id, "decision": "once"})).await;
    });
    terminal.see("allowed once by it");
    terminal.see("Written.");
    assert_eq!(std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap(), "new\n");
}

#[test]
fn ctrl_c_stops_the_model_clears_the_line_and_exits() {
    let endless = json!({"steps": [{"text": "I begin\n"}, {"text": "and"}, "hang"]});
    let cairn = scripted(&json!([
        endless,
        {"steps": [{"call": {"name": "datetime", "arguments": {}}}, {"delayMs": 1500}]},
        {"expect": [{"anyContains": "be brief"}], "steps": [{"text": "Brief."}]},
        endless
    ]));
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("\n● ");
    terminal.line("talk");
    terminal.see("I begin");
    terminal.key("C-c");
    terminal.see("stopped");
    terminal.see_last("●");
    // A line typed while the model runs is sent to it before its next answer.
    terminal.line("what time is it?");
    terminal.see("thinking");
    terminal.line("be brief");
    terminal.see("you: be brief");
    terminal.see("Brief.");
    terminal.see_last("●");
    terminal.text("half a thought");
    terminal.see_last("● half a thought");
    terminal.key("C-c");
    terminal.see_last("●");
    terminal.line("talk again");
    terminal.see_after("talk again", "I begin");
    for _ in 0..3 {
        terminal.key("C-c");
    }
    // The first one stops the model, the third one exits in any state.
    terminal.wait_exit(130);
}

/// Removes the figures that differ between runs from a capture.
fn figureless(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim_end();
        if line.starts_with("● ") && (line.contains("last: ") || line.contains("prompt eval: ")) {
            let mut last = ' ';
            for c in line.chars() {
                let c = if c.is_ascii_digit() || (c == '.' && last == '#') { '#' } else { c };
                if c != '#' || last != '#' {
                    out.push(c);
                }
                last = c;
            }
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    // A prompt that was read at once has no rate.
    out.replace(" · # ms · # t/s", "")
}

#[test]
fn quiet_chat_exits_with_the_first_interrupt() {
    let endless = json!({"steps": [{"text": "I begin\n"}, {"text": "and"}, "hang"]});
    let cairn = scripted(&json!([endless]));
    let Some(mut terminal) = prompt(&cairn, &["-q"]) else { return };
    terminal.see("●");
    terminal.line("talk");
    terminal.see("I begin");
    terminal.key("C-c");
    terminal.wait_exit(130);
}

/// The mode `auto` is about commands, and a list of domains about the web.
#[test]
fn mode_and_domains_decide_about_the_offered_tools() {
    let expecting =
        |expect: Value, text: &str| json!({"expect": expect, "steps": [{"text": text}]});
    let answers = json!([
        expecting(json!([{"offersNot": "run_shell"}, {"offersTool": "web_search"}]), "one"),
        expecting(json!([{"offersTool": "run_shell"}]), "two"),
    ]);
    let cairn = with_context(200_000, &answers, &json!({"network": {"domains": ["example.org"]}}));
    assert_eq!(cairn.chat(&["-p", "a"], None).1, "one\n");
    assert_eq!(cairn.chat(&["--mode", "auto", "-p", "b"], None).1, "two\n");
    let answers = json!([expecting(json!([{"offersNot": "web_search"}]), "three")]);
    let cairn = with_context(200_000, &answers, &json!({}));
    assert_eq!(cairn.chat(&["-p", "a"], None).1, "three\n");
}
