//! Edits of files in every form: no byte outside of the edit changes, and new lines have the form
//! of the file.

use cairn_harness::Grants;
use cairn_protocol::turn::ExecutionMode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, allow};

/// Form of a file.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    step: &'static str,
    ends: &'static [&'static str],
    bom: bool,
    encoding: Encoding,
    has_final_end: bool,
    is_decomposed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

const PLAIN: Form = Form {
    name: "plain",
    step: "    ",
    ends: &["\n"],
    bom: false,
    encoding: Encoding::Utf8,
    has_final_end: true,
    is_decomposed: false,
};

const FORMS: [Form; 12] = [
    PLAIN,
    Form { name: "tabs", step: "\t", ..PLAIN },
    Form { name: "CRLF", ends: &["\r\n"], ..PLAIN },
    Form { name: "tabs and CRLF", step: "\t", ends: &["\r\n"], ..PLAIN },
    Form { name: "CR", ends: &["\r"], ..PLAIN },
    Form { name: "mixed ends", ends: &["\n", "\r\n", "\r\n"], ..PLAIN },
    Form { name: "mark", bom: true, ..PLAIN },
    Form { name: "mark and CRLF", bom: true, ends: &["\r\n"], ..PLAIN },
    Form { name: "UTF-16 LE", bom: true, encoding: Encoding::Utf16Le, ends: &["\r\n"], ..PLAIN },
    Form { name: "UTF-16 BE", bom: true, encoding: Encoding::Utf16Be, step: "\t", ..PLAIN },
    Form { name: "no final end", has_final_end: false, step: "\t", ..PLAIN },
    Form { name: "decomposed", is_decomposed: true, ..PLAIN },
];

/// A line: its level of indentation, and its text.
type Line = (usize, &'static str);

const LINES: [Line; 8] = [
    (0, "def f(x):"),
    (1, "if x:"),
    (2, "return 'caf\u{e9}'"),
    (1, "return 2"),
    (0, ""),
    (0, "def g(y):"),
    (1, "return y"),
    (0, "print(f(1), '\u{e9}')"),
];

/// Lines `start..end` that others replace.
struct Edit {
    name: &'static str,
    start: usize,
    end: usize,
    new: &'static [Line],
}

const EDITS: [Edit; 6] = [
    Edit { name: "change", start: 3, end: 4, new: &[(1, "return 3")] },
    Edit { name: "insert", start: 6, end: 6, new: &[(1, "y += 1  # \u{fc}")] },
    Edit { name: "remove", start: 1, end: 3, new: &[] },
    Edit { name: "first line", start: 0, end: 1, new: &[(0, "def f(x, \u{fc}):")] },
    Edit { name: "last line", start: 7, end: 8, new: &[(0, "print(f(2))")] },
    Edit {
        name: "deeper block",
        start: 1,
        end: 4,
        new: &[(1, "for y in x:"), (2, "if y:"), (3, "return '\u{fc}'"), (1, "return 3")],
    },
];

fn text_of(line: Line, step: &str) -> String {
    step.repeat(line.0) + line.1
}

impl Form {
    fn encoded(&self, text: &str) -> Vec<u8> {
        let decomposed = text.replace('\u{e9}', "e\u{301}").replace('\u{fc}', "u\u{308}");
        let text = if self.is_decomposed { decomposed.as_str() } else { text };
        match self.encoding {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }

    fn mark(&self) -> Vec<u8> {
        if self.bom { self.encoded("\u{feff}") } else { vec![] }
    }

    /// Returns lines of the file, from the one with this number on.
    fn part(&self, lines: &[Line], first: usize, is_last: bool) -> Vec<u8> {
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            text.push_str(&text_of(*line, self.step));
            if !is_last || at + 1 < lines.len() || self.has_final_end {
                text.push_str(self.ends[(first + at) % self.ends.len()]);
            }
        }
        self.encoded(&text)
    }

    fn file(&self) -> Vec<u8> {
        [self.mark(), self.part(&LINES, 0, true)].concat()
    }
}

/// Returns lines as a caller has them: with its own step and plain ends.
fn given(lines: &[Line], step: &str) -> String {
    let lines: Vec<String> = lines.iter().map(|line| text_of(*line, step)).collect();
    lines.join("\n")
}

/// A tool that writes, with its arguments for an edit.
struct Writer {
    tool: &'static str,
    /// True if letters are written as given where the lines around them match byte for byte.
    is_exact: bool,
    arguments: fn(&Form, &Edit) -> Value,
}

/// Lines around an edit that a caller gives with it.
fn around(edit: &Edit) -> (&'static [Line], &'static [Line]) {
    let above = &LINES[edit.start.saturating_sub(1)..edit.start];
    let below = &LINES[edit.end..(edit.end + 1).min(LINES.len())];
    (above, below)
}

fn by_text(_: &Form, edit: &Edit) -> Value {
    let (above, below) = around(edit);
    let old = [above, &LINES[edit.start..edit.end], below].concat();
    let new = [above, edit.new, below].concat();
    json!({"path": "f", "old_text": given(&old, "    "), "new_text": given(&new, "    ")})
}

fn complete(form: &Form, edit: &Edit) -> Value {
    let all = [&LINES[..edit.start], edit.new, &LINES[edit.end..]].concat();
    let end = if form.has_final_end { "\n" } else { "" };
    json!({"path": "f", "content": given(&all, form.step) + end})
}

fn by_lines(form: &Form, edit: &Edit) -> Value {
    let new = given(edit.new, form.step);
    json!({"action": "edit", "path": "f", "start_line": edit.start + 1, "end_line": edit.end,
        "new_text": new})
}

fn hunk(edit: &Edit) -> String {
    let (above, below) = around(edit);
    let mut hunk = String::new();
    let mut push = |sign: char, lines: &[Line]| {
        for line in lines {
            hunk.push(sign);
            hunk.push_str(&text_of(*line, "    "));
            hunk.push('\n');
        }
    };
    push(' ', above);
    push('-', &LINES[edit.start..edit.end]);
    push('+', edit.new);
    push(' ', below);
    hunk
}

fn patch(_: &Form, edit: &Edit) -> Value {
    let hunk = hunk(edit);
    json!({"patch": format!("*** Begin Patch\n*** Update File: f\n@@\n{hunk}*** End Patch\n")})
}

fn unified(_: &Form, edit: &Edit) -> Value {
    let (above, below) = around(edit);
    let shared = above.len() + below.len();
    let (old, new) = (edit.end - edit.start + shared, edit.new.len() + shared);
    let start = edit.start + 1 - above.len();
    let hunk = hunk(edit);
    json!({"patch": format!("--- a/f\n+++ b/f\n@@ -{start},{old} +{start},{new} @@\n{hunk}")})
}

const WRITERS: [Writer; 5] = [
    Writer { tool: "edit_file", is_exact: false, arguments: by_text },
    Writer { tool: "write_file", is_exact: false, arguments: complete },
    Writer { tool: "fs", is_exact: false, arguments: by_lines },
    Writer { tool: "apply_patch", is_exact: false, arguments: patch },
    Writer { tool: "apply_patch", is_exact: true, arguments: unified },
];

#[tokio::test]
async fn bytes_outside_of_an_edit_stay_and_new_lines_have_the_form_of_the_file() {
    let fixture = Fixture::new(&[], allow(&["*"])).await;
    for form in &FORMS {
        for edit in &EDITS {
            for writer in &WRITERS {
                let case = format!("{} {} {}", writer.tool, form.name, edit.name);
                std::fs::write(fixture.path("f"), form.file()).unwrap();
                fixture.call("read_file", json!({"path": "f"})).await.unwrap();
                let arguments = (writer.arguments)(form, edit);
                let got = fixture.call(writer.tool, arguments.clone()).await;
                let got = got.unwrap_or_else(|e| panic!("{case}: {e}\n{arguments}"));
                assert_eq!(got["success"], true, "{case}: {got}");
                let after = std::fs::read(fixture.path("f")).unwrap();
                check((&case, writer.is_exact), form, edit, &after);
            }
        }
    }
}

fn check((case, is_exact): (&str, bool), form: &Form, edit: &Edit, after: &[u8]) {
    let head = [form.mark(), form.part(&LINES[..edit.start], 0, false)].concat();
    let is_last = edit.end == LINES.len();
    let tail = form.part(&LINES[edit.end..], edit.end, !is_last);
    let text = String::from_utf8_lossy(after);
    let middle = after.strip_prefix(&head[..]).and_then(|rest| rest.strip_suffix(&tail[..]));
    let middle = middle.unwrap_or_else(|| panic!("{case}: other bytes changed: {text:?}"));
    if form.ends.len() == 1 {
        let mut expected = form.part(edit.new, edit.start, is_last);
        let middle = String::from_utf8_lossy(middle);
        if is_exact && form.is_decomposed && middle.contains('\u{fc}') {
            expected = Form { is_decomposed: false, ..*form }.part(edit.new, edit.start, is_last);
        }
        assert_eq!(middle, String::from_utf8_lossy(&expected), "{case}: {text:?}");
    } else {
        let plain = String::from_utf8_lossy(middle).replace("\r\n", "\n");
        let expected = given(edit.new, form.step);
        assert_eq!(plain.trim_end_matches('\n'), expected, "{case}: {text:?}");
    }
}

#[tokio::test]
async fn edit_without_an_unambiguous_form_changes_nothing() {
    let text = "all:\n\techo one\n\t\techo two\n";
    let fixture = Fixture::new(&[("Makefile", text)], allow(&["*"])).await;
    fixture.call("read_file", json!({"path": "Makefile"})).await.unwrap();
    let old = "        echo one\n                echo two";
    for (tool, arguments) in [
        ("edit_file", json!({"path": "Makefile", "old_text": old, "new_text": "      echo three"})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: Makefile\n@@\n         echo \
                one\n+      echo three\n*** End Patch"}),
        ),
    ] {
        let error = fixture.call(tool, arguments).await.unwrap_err();
        assert!(error.message.contains("no unambiguous form"), "{tool}: {error}");
        assert!(error.message.contains("\"\\techo one\""), "{tool}: {error}");
        assert_eq!(fixture.read("Makefile").as_deref(), Some(text), "{tool}");
    }
}

#[tokio::test]
async fn form_is_reported_by_reading_and_writing() {
    let fixture = Fixture::new(&[], allow(&["*"])).await;
    std::fs::write(fixture.path("f"), b"\xef\xbb\xbfa:\r\n\tb\r\n").unwrap();
    let read = fixture.call("read_file", json!({"path": "f"})).await.unwrap();
    assert_eq!(read["content"], "1|a:\n2|\tb\n");
    let form = "UTF-8 with a byte order mark; CRLF line ends; indented by tabs";
    assert_eq!(read["form"], form);
    let written = fixture.call("write_file", json!({"path": "f", "content": "a:\n    c\n"}));
    let written = written.await.unwrap();
    let notes = json!([
        "the file retains UTF-8 with a byte order mark, CRLF line ends",
        "the file is indented by tabs, and new lines begin with spaces: they were written as given",
    ]);
    assert_eq!(written["notes"], notes, "{written}");
    std::fs::write(fixture.path("f"), "a:\n\tb\n").unwrap();
    let accepting = Grants { mode: ExecutionMode::AcceptEdits, ..Grants::default() };
    let edit = json!({"path": "f", "old_text": "a:", "new_text": "a:\n    c"});
    let edited = fixture.with("edit_file", edit, accepting).await.unwrap();
    assert!(edited["notes"][0].as_str().unwrap().contains("indented by tabs"), "{edited}");
}
