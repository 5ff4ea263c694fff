//! `cairn history`: search in earlier sessions, for people and for models.

use serde_json::{Value, json};

use crate::chat::{calls, scripted, text_answer};

#[test]
fn earlier_sessions_are_found_by_words_and_by_file() {
    let write = json!({"path": "src/backoff.txt", "content": "new\n"});
    let cairn = scripted(&json!([
        calls("write_file", &write),
        text_answer("The delay doubles now."),
        calls("search_sessions", &json!({"query": "overflow"})),
        text_answer("found"),
    ]));
    let args = ["--mode", "accept-edits", "-p", "Why does the retry overflow?"];
    assert_eq!(cairn.chat(&args, None).0, 0);
    let (code, out, err) = cairn.cairn(&["history", "retry", "over"]);
    assert!(code == 0 && out.contains("Why does the retry overflow?"), "{out}{err}");
    let (code, out, _) = cairn.cairn(&["--json", "history", "--file", "backoff.txt", "--here"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    let entry = &answer["data"][0];
    assert_eq!(
        (code, &entry["kind"], &entry["text"]),
        (0, &json!("file"), &json!("src/backoff.txt"))
    );
    let (code, out, _) = cairn.cairn(&["history", "doubles", "--kind", "answer"]);
    assert!(code == 0 && out.contains("The delay doubles now."), "{out}");
    let (code, out, err) = cairn.cairn(&["history", "doubles", "--kind", "command"]);
    assert!(code == 1 && out.is_empty() && err.contains("nothing was found"), "{out}{err}");
    let (code, _, err) = cairn.cairn(&["history", "x", "--kind", "loud"]);
    assert!(code == 2 && err.contains("the kinds are question"), "{err}");
    assert_eq!(cairn.cairn(&["history"]).0, 2);
    // A model finds the same, of its own root.
    let (code, out, err) = cairn.chat(&["--json", "-p", "go on"], None);
    assert_eq!(code, 0, "{err}");
    let result = out.lines().find(|line| line.contains("\"tool_result\"")).unwrap();
    assert!(result.contains("Why does the retry overflow?"), "{result}");
}
