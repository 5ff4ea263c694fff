//! Rendering of turns: events in, lines out.

use cairn_protocol::{
    event::ToolOutcome,
    id::{RunId, SessionId},
    model::TokenUsage,
    turn::{ModelChoice, RunError},
};
use serde_json::json;

use super::*;
use crate::render::theme::Theme;

const DISPLAY: DisplayOptions = DisplayOptions {
    figures: true,
    calls: true,
    stream: true,
    progress: true,
    verbose: false,
    quiet: false,
    unfold: false,
};

fn view(rich: bool, display: DisplayOptions) -> View {
    View::new(
        TerminalCapabilities {
            rich,
            terminal: rich,
            status: rich,
            width: 40,
            theme: Theme::Unknown,
        },
        display,
    )
}

fn delta(offset: u64, text: &str) -> AgentEvt {
    AgentEvt::TokenDelta { run_id: RunId::new(), reasoning: false, offset, text: text.into() }
}

fn text(offset: u64, text: &str, reasoning: bool) -> AgentEvt {
    AgentEvt::Text { run_id: RunId::new(), reasoning, offset, text: text.into() }
}

fn answer() -> AgentEvt {
    AgentEvt::ModelAnswer(ModelAnswer {
        run_id: RunId::new(),
        model: ModelChoice::default(),
        calls: vec![],
        finish: None,
        usage: TokenUsage { input_tokens: 100, output_tokens: 20, ..TokenUsage::default() },
        tokens_per_second: 10.0,
        context_tokens: Some(1000),
        first_millis: 100,
        millis: 900,
        request_digest: String::new(),
        heard_seq: 0,
        raw: None,
        reasoning: None,
    })
}

fn completed(status: Outcome, error: Option<RunError>) -> AgentEvt {
    AgentEvt::RunCompleted {
        result: Box::new(RunResult {
            session_id: SessionId::new(),
            turn_id: "t".into(),
            run_id: RunId::new(),
            status,
            final_output: None,
            usage: TokenUsage::default(),
            tool_trace: vec![],
            error,
            metadata: BTreeMap::default(),
        }),
    }
}

/// Returns the text for standard output and standard error, without colours.
fn written(out: &[Out]) -> (String, String) {
    let mut answer = String::new();
    let mut note = String::new();
    for one in out {
        match one {
            Out::Answer(text) => answer.push_str(&console::strip_ansi_codes(text)),
            Out::Note(text) => note.push_str(&console::strip_ansi_codes(text)),
        }
    }
    (answer, note)
}

#[test]
fn text_is_displayed_once() {
    for order in [
        // Ephemeral events and then records; records only; missed ephemeral events; records that
        // end inside displayed text.
        vec![
            (true, 0, "one "),
            (true, 4, "two\n"),
            (false, 0, "one two\n"),
            (true, 8, "three"),
            (false, 8, "three"),
        ],
        vec![(false, 0, "one two\n"), (false, 8, "three")],
        vec![(true, 4, "two\n"), (false, 0, "one "), (true, 8, "three"), (false, 4, "two\nthree")],
        vec![(true, 0, "one two\nth"), (false, 0, "one "), (false, 4, "two\nthree")],
    ] {
        let mut view = view(false, DISPLAY);
        let mut out = Vec::new();
        for (ephemeral, offset, piece) in &order {
            out.extend(if *ephemeral {
                view.ephemeral(delta(*offset, piece))
            } else {
                view.record(text(*offset, piece, false))
            });
        }
        out.extend(view.record(answer()));
        // A late delta of a finished answer.
        out.extend(view.ephemeral(delta(8, "three")));
        assert_eq!(written(&out).0, "one two\nthree\n", "{order:?}");
    }
}

#[test]
fn output_of_running_command_is_in_the_status() {
    let mut view = view(true, DISPLAY);
    let output = |call_id: &str| AgentEvt::CommandOutput {
        call_id: call_id.into(),
        text: "Compiling a\nCompiling b\n".into(),
        dropped: 0,
    };
    // Output of a call that this view does not know is not shown.
    assert!(view.ephemeral(output("other")).is_empty());
    view.record(AgentEvt::ToolCall {
        call_id: "c".into(),
        name: "run_shell".into(),
        arguments: json!({"command": "make"}),
    });
    assert_eq!(view.status(None).len(), 1);
    assert!(view.ephemeral(output("c")).is_empty(), "nothing of it is permanent");
    let rows = view.status(None);
    assert!(rows[0].contains("│ Compiling a") && rows[1].contains("│ Compiling b"), "{rows:?}");
    assert!(rows[2].contains("run_shell make"), "{rows:?}");
    view.record(AgentEvt::ToolResult(ToolOutcome {
        call_id: "c".into(),
        name: "run_shell".into(),
        tag: "process".into(),
        output: Some(json!({"exit_code": 0, "stdout": "", "stderr": ""})),
        blob: None,
        error: None,
        truncated: false,
        millis: 3,
        changes: vec![],
    }));
    assert_eq!(view.status(None).len(), 1);
    let out = view.record(AgentEvt::BackgroundFinished {
        id: "bg_1".into(),
        command: "npm run dev".into(),
        state: cairn_protocol::background::BackgroundState::Exited,
        exit_code: Some(1),
        tail: String::new(),
    });
    assert_eq!(written(&out).1, "● background bg_1 exited (1)  npm run dev\n");
}

#[test]
fn turn_is_rendered_in_lines() {
    let mut view = view(true, DISPLAY);
    let mut out = view.record(text(0, "I look\nfirst", true));
    out.extend(view.record(text(0, "Reading **it**:\n", false)));
    out.extend(view.record(answer()));
    let arguments = json!({"path": "src/a.rs"});
    out.extend(view.record(AgentEvt::ToolCall {
        call_id: "c".into(),
        name: "read_file".into(),
        arguments,
    }));
    assert!(view.status(None)[0].contains("read_file src/a.rs"));
    out.extend(view.record(AgentEvt::ToolResult(ToolOutcome {
        call_id: "c".into(),
        name: "read_file".into(),
        tag: "file".into(),
        output: Some(json!({"content": "1|a", "start_line": 1, "end_line": 42})),
        blob: None,
        error: None,
        truncated: false,
        millis: 3,
        changes: vec![],
    })));
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".into();
    let paths = vec!["x".into()];
    out.extend(view.record(AgentEvt::TurnDiff { turn_id: "t".into(), diff, paths }));
    let message = "no approver".into();
    let hint = "start it".into();
    let error = RunError { reason: "model_unavailable".into(), message, retryable: true, hint };
    out.extend(view.record(completed(Outcome::Failed, Some(error))));
    let (answer, note) = written(&out);
    assert_eq!(answer, "Reading it:\n");
    let expected = "\
I look
first
● prompt eval: 100 tok · 100 ms · 1000.0 t/s · ctx 12%
● 12% / 120 tokens  last: 10.0tk/s
● read_file src/a.rs  (42 lines)
● changed x  (+1 −1)
  --- a/x
  +++ b/x
  @@ -1 +1 @@
  -a
  +b
error: no approver
hint: start the model server, or choose another model: 'cairn setup' finds them
";
    assert_eq!(note, expected);
    assert_eq!(view.result.unwrap().status, Outcome::Failed);
}

#[test]
fn quiet_shows_only_answer_and_failures() {
    let mut view = view(false, DisplayOptions { quiet: true, ..DISPLAY });
    let mut out = view.record(text(0, "thought", true));
    out.extend(view.record(text(0, "said", false)));
    out.extend(view.record(answer()));
    out.extend(view.record(AgentEvt::Warning { op: "model".into(), message: "slow".into() }));
    let error =
        RunError { reason: "r".into(), message: "m".into(), retryable: false, hint: String::new() };
    out.extend(view.record(completed(Outcome::Denied, Some(error))));
    assert_eq!(written(&out), ("said\n".into(), "error: m\n".into()));
}

#[test]
fn status_shows_current_activity() {
    let plain = |rows: Vec<String>| -> Vec<String> {
        rows.iter().map(|r| console::strip_ansi_codes(r).chars().skip(2).collect()).collect()
    };
    let mut view = view(true, DISPLAY);
    assert_eq!(plain(view.status(None)), ["thinking"]);
    let progress = || AgentEvt::PromptProgress {
        run_id: RunId::new(),
        processed: 50,
        total: 200,
        context_tokens: Some(1000),
    };
    view.ephemeral(progress());
    assert_eq!(plain(view.status(Some("and"))), ["thinking 25% · ctx 5%  › and"]);
    view.ephemeral(delta(0, "xx half a line"));
    assert_eq!(plain(view.status(None)), [" half a line", "writing"]);
    let mut view = self::view(true, DisplayOptions { progress: false, ..DISPLAY });
    view.ephemeral(progress());
    assert_eq!(plain(view.status(None)), ["thinking"]);
}

#[test]
fn control_sequences_are_escaped_on_terminals_only() {
    let evil = "a\u{1b}[2Jb\n";
    for (terminal, expected) in [(true, "a\\u{1b}[2Jb\n"), (false, evil)] {
        let capabilities = TerminalCapabilities {
            rich: false,
            terminal,
            status: false,
            width: 80,
            theme: Theme::Unknown,
        };
        let out = View::new(capabilities, DISPLAY).record(text(0, evil, false));
        assert_eq!(out, [Out::Answer(expected.into())]);
    }
}

#[test]
fn text_waits_for_its_record_without_streaming() {
    let mut view = view(false, DisplayOptions { stream: false, ..DISPLAY });
    assert!(view.ephemeral(delta(0, "one two\n")).is_empty());
    let out = view.record(text(0, "one two\n", false));
    assert_eq!(written(&out).0, "one two\n");
}
