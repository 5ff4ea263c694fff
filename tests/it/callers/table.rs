//! Rules in every combination of lists, each about its own file or command, and the order in which
//! the guide says they apply.

use std::path::Path;

use serde_json::{Value, json};

/// Modes of a run.
pub const MODES: [&str; 4] = ["plan", "ask", "accept-edits", "auto"];

/// Effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Write,
    Read,
    Remove,
    Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
}

/// The lists that name the call of this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub kind: Kind,
    pub number: usize,
    pub final_deny: bool,
    pub overrides: bool,
    pub deny: bool,
    pub allow: bool,
    pub confirm: bool,
}

/// The verdict without an approver, and a part of its reason.
#[derive(Debug)]
pub struct Expected {
    pub verdict: Verdict,
    pub reason: &'static str,
}

/// Returns every combination for every kind.
pub fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    for kind in [Kind::Write, Kind::Read, Kind::Remove, Kind::Command] {
        for number in 0..32 {
            let bit = |at: usize| number >> at & 1 == 1;
            all.push(Row {
                kind,
                number,
                final_deny: bit(0),
                overrides: bit(1),
                deny: bit(2),
                allow: bit(3),
                confirm: bit(4),
            });
        }
    }
    all
}

/// Returns the combinations that one turn can try: a final denial ends it, so that one comes last.
pub fn rows_of_turn() -> Vec<Row> {
    let (last, mut all): (Vec<Row>, Vec<Row>) = rows().into_iter().partition(|row| row.final_deny);
    all.extend(last.first());
    all
}

fn path(row: &Row) -> String {
    let folder = match row.kind {
        Kind::Write => "new",
        Kind::Read => "read",
        Kind::Remove => "old",
        Kind::Command => "made",
    };
    format!("{folder}/n{}", row.number)
}

/// The tool and the arguments of the call of a row.
pub fn calls_of(row: &Row) -> (&'static str, Value) {
    let path = path(row);
    match row.kind {
        Kind::Write => ("write_file", json!({"path": path, "content": "new\n"})),
        Kind::Read => ("read_file", json!({ "path": path })),
        Kind::Remove => ("delete_file", json!({ "path": path })),
        Kind::Command => ("run_shell", json!({"command": format!("touch {path}")})),
    }
}

fn rule(row: &Row) -> String {
    let (tool, arguments) = calls_of(row);
    let subject = arguments.get("command").or(arguments.get("path"));
    format!("{tool}({})", subject.unwrap().as_str().unwrap())
}

/// Returns the configuration with all rules.
pub fn config() -> Value {
    let list = |is_listed: fn(&Row) -> bool| -> Vec<String> {
        rows().iter().filter(|row| is_listed(row)).map(rule).collect()
    };
    json!({"permissions": {
        "finalDeny": list(|row| row.final_deny),
        "overrides": list(|row| row.overrides),
        "deny": list(|row| row.deny),
        "allow": list(|row| row.allow),
    }, "safety": {"requireConfirmation": list(|row| row.confirm)}})
}

/// Creates a root with the files that are read and removed.
pub fn prepare(root: &Path) {
    std::fs::create_dir_all(root.join("made")).unwrap();
    for row in rows() {
        let file = root.join(path(&row));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        if matches!(row.kind, Kind::Read | Kind::Remove) {
            std::fs::write(file, "content\n").unwrap();
        }
    }
}

/// Returns true if the call of a row was made: by what it changed, and for a read by the audit.
pub fn effect_of(row: &Row, root: &Path, audited: Option<&(String, String)>) -> bool {
    let exists = root.join(path(row)).exists();
    match row.kind {
        Kind::Write | Kind::Command => exists,
        Kind::Remove => !exists,
        Kind::Read => audited.is_some_and(|(decision, _)| decision == "allow"),
    }
}

/// The order of `docs/guide/safety.md`, for a caller whose approver is absent or refuses.
pub fn expected(row: &Row, mode: &str, full_sandbox: bool) -> Expected {
    let answer = |verdict, reason| Expected { verdict, reason };
    if row.final_deny {
        return answer(Verdict::Deny, "finalDeny: ");
    }
    if mode == "plan" && row.kind != Kind::Read {
        return answer(Verdict::Deny, "mode plan");
    }
    if row.overrides {
        return answer(Verdict::Allow, "overrides: ");
    }
    if row.deny {
        return answer(Verdict::Deny, "deny: ");
    }
    if row.allow {
        return answer(Verdict::Allow, "allow: ");
    }
    if row.confirm {
        return answer(Verdict::Deny, "confirm: ");
    }
    let by_mode = match (mode, row.kind) {
        ("accept-edits", kind) => kind == Kind::Write,
        ("auto", Kind::Command) => full_sandbox,
        ("auto", kind) => kind != Kind::Read,
        _ => false,
    };
    match row.kind {
        Kind::Read => answer(Verdict::Allow, "default: read-only"),
        _ if by_mode => answer(Verdict::Allow, "mode "),
        Kind::Remove => answer(Verdict::Deny, "deleting needs an approval unless a rule allows it"),
        _ => answer(Verdict::Deny, "default: not read-only"),
    }
}
