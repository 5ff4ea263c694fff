//! Questions as a person meets them: which keys answer, who is notified, and what answers store.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, prompt, scripted, text_answer},
    sealed::{command, wait_for},
};

fn write(path: &str) -> Value {
    json!({"path": path, "content": "new\n"})
}

/// Returns the only request that waits.
fn waiting(cairn: &Scripted) -> Value {
    wait_for("a request", || {
        let (_, out, _) = cairn.cairn(&["approvals", "--json"]);
        let list: Value = serde_json::from_str(&out).ok()?;
        Some(list["data"][0].clone()).filter(|approval| !approval.is_null())
    })
}

fn digits(approval: &Value) -> String {
    let id = approval["approvalId"].as_str().unwrap();
    id[id.len() - 8..].to_owned()
}

/// A sentence that is typed when a question appears reaches the line alone.
#[test]
fn sentence_that_is_typed_answers_no_question() {
    let cairn = scripted(&json!([
        {"steps": [{"delayMs": 2000}, {"call": {"name": "write_file", "arguments": write("notes.txt")}}]},
        text_answer("Written."),
    ]));
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("\n● ");
    terminal.line("write it");
    terminal.see("thinking");
    terminal.text("Also ");
    terminal.see("Enter or Esc the text first");
    for part in ["ple", "ase ", "yes"] {
        terminal.text(part);
        std::thread::sleep(Duration::from_millis(600));
    }
    terminal.see("Also please yes");
    waiting(&cairn);
    terminal.key("Escape");
    terminal.see("y once · a this session · A always here");
    // An answer that outlives the call is selected first, and the selection can be dropped.
    terminal.text("E");
    terminal.see("Enter confirms");
    terminal.key("Escape");
    terminal.see("y once");
    terminal.text("y");
    terminal.see("Written.");
    assert_eq!(cairn.cairn(&["rules"]).1, "no rule was granted\n");
    assert_eq!(std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap(), "new\n");
}

/// A call without an approver of its own names its request, and so does an idle chat.
#[test]
fn waiting_call_and_idle_chat_name_the_request() {
    let cairn = scripted(&json!([text_answer("x")]));
    let Some(mut terminal) = prompt(&cairn, &[]) else { return };
    terminal.see("\n● ");
    terminal.text("half a line");
    terminal.see("half a line");
    let mut call = command(&cairn.daemon.home);
    call.args(["tools", "call", "write_file", &write("made.txt").to_string()]);
    call.current_dir(&cairn.folder).stdin(Stdio::null());
    let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let seen = terminal.see_after("waits for you: write_file made.txt", "half a line");
    assert!(seen.contains("'cairn approvals' in another terminal answers"), "{seen}");
    let id = digits(&waiting(&cairn));
    let (code, out, err) = cairn.cairn(&["approvals", "answer", &id, "yes"]);
    assert_eq!(code, 0, "{out}{err}");
    let output = call.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.starts_with("waiting for an answer until "), "{stderr}");
    assert!(stderr.contains("write_file made.txt"), "{stderr}");
    assert!(stderr.contains("'cairn approvals answer "), "{stderr}");
    assert!(cairn.folder.join("made.txt").exists());
}

/// `always` holds for the project, and the rule can be listed, narrowed and removed.
#[test]
fn rules_are_listed_with_their_project_narrowed_and_removed() {
    let cairn = scripted(&json!([
        calls("write_file", &write("one.txt")),
        text_answer("one"),
        calls("write_file", &write("two.txt")),
        text_answer("two"),
    ]));
    let detached = |request: &str| cairn.cairn(&["run", request, "--detach"]);
    detached("write");
    let approval = waiting(&cairn);
    let project = cairn.folder.canonicalize().unwrap();
    assert_eq!(approval["project"].as_str(), project.to_str(), "{approval:#}");
    let (_, details, _) = cairn.cairn(&["approvals", "show"]);
    assert!(details.contains(&format!("from now on in {}", project.display())), "{details}");
    let id = digits(&approval);
    assert_eq!(cairn.cairn(&["approvals", "answer", &id, "always"]).0, 0);
    let (_, rules, _) = cairn.cairn(&["rules"]);
    let line = format!("  1  write_file  in {}  by ", project.display());
    assert!(rules.starts_with(&line) && rules.lines().count() == 1, "{rules}");
    // The next session of the project needs no answer.
    wait_for("the first run", || cairn.folder.join("one.txt").exists().then_some(()));
    detached("write again");
    wait_for("the second run", || cairn.folder.join("two.txt").exists().then_some(()));
    let (code, _, err) = cairn.cairn(&["rules", "narrow", "1", "delete_file"]);
    assert!(code == 2 || code == 3, "{code} {err}");
    assert!(err.contains("is not known to cover less"), "{err}");
    assert_eq!(cairn.cairn(&["rules", "narrow", "write_file", "write_file(docs/**)"]).0, 0);
    let (_, rules, _) = cairn.cairn(&["rules", "list"]);
    assert!(rules.contains("write_file(docs/**)  in "), "{rules}");
    let (code, out, err) =
        cairn.cairn(&["rules", "remove", "write_file(docs/**)", "--project", "."]);
    assert_eq!((code, &*out), (0, "removed write_file(docs/**)\n"), "{err}");
    assert_eq!(cairn.cairn(&["rules"]).1, "no rule was granted\n");
    assert_ne!(cairn.cairn(&["rules", "remove", "1"]).0, 0);
}
