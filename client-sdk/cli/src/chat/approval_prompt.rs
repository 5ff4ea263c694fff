//! The approval prompt: its text, and the meaning of keys.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalResolveParams, Resolution},
    id::ApprovalId,
};
use console::style;
use serde_json::Value;

use super::{
    diff::DiffPainter,
    form_prompt::{self, FormOutcome, FormPrompt},
    keys::Key,
};
use crate::render::output::plain;

/// Keys of the prompt with their meaning.
pub const KEYS: &str = "y once · a this session · A always · n no";
/// Lines of a diff from which the head of its question is repeated below it.
const LONG_DIFF: usize = 12;
/// Additional keys of a prompt that offers a wider rule.
const PATTERN_KEYS: &str = " · p pattern this session · P always";

/// Renders the prompt of an approval.
pub fn question(approval: &Approval, diffs: &mut DiffPainter) -> String {
    let preview = &approval.preview;
    let mut out = String::new();
    let head = style(format!("▲ {}", plain(&approval.tool))).yellow().bold().for_stderr();
    // Most summaries repeat the tool's name.
    let summary = preview.summary.strip_prefix(&approval.tool).unwrap_or(&preview.summary);
    if let Some(form) = &approval.form {
        return format!("{head}\n{}", form_prompt::question(form));
    }
    let _infallible = writeln!(out, "{head} {}", plain(summary.trim_start()));
    let mut row = |name: &str, value: &str| {
        let name = style(format!("{name:<8}")).dim().for_stderr();
        let _infallible = writeln!(out, "  {name} {value}");
    };
    if let Some(command) = &preview.command {
        let lines: Vec<String> = command.lines().map(plain).collect();
        row("command", &style(lines.join("\n           ")).bold().for_stderr().to_string());
    }
    if let Some(folder) = &preview.folder {
        row("folder", &plain(folder));
    }
    if !preview.paths.is_empty() {
        let paths: Vec<String> = preview.paths.iter().map(|p| plain(p)).collect();
        row("paths", &paths.join(", "));
    }
    if preview.network {
        row("network", "yes");
    }
    if !preview.domains.is_empty() {
        let domains: Vec<String> = preview.domains.iter().map(|d| plain(d)).collect();
        row("domains", &domains.join(", "));
    }
    row("because", &plain(&approval.rule));
    let one_line = |rules: &str| rules.lines().map(granted).collect::<Vec<_>>().join(", ");
    row("grants", &format!("{}  (what a and A allow)", one_line(&approval.grants)));
    if let Some(pattern) = approval.patterns.first() {
        row("pattern", &format!("{}  (what p and P allow)", one_line(pattern)));
    }
    for warning in preview.warnings.iter().filter(|w| **w != approval.rule) {
        row("warning", &style(plain(warning)).red().for_stderr().to_string());
    }
    if let Some(diff) = &preview.diff {
        // The complete diff, because an approved change must have been shown.
        out.push_str(&diffs.render(diff, usize::MAX, ""));
        if diff.lines().count() > LONG_DIFF {
            // The head may have left the screen.
            let _infallible = writeln!(out, "{head} {}", plain(summary.trim_start()));
        }
    }
    out
}

/// Describes the calls that a rule allows: a rule without a pattern covers all calls of its tool.
pub fn granted(rule: &str) -> String {
    if rule.is_empty() || rule.split_once('(').is_some() {
        return plain(rule);
    }
    format!("{}, every call of it", plain(rule))
}

/// An approval prompt that waits for a key.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPrompt {
    pub approval: ApprovalId,
    /// The form that is answered instead of a yes or no.
    form: Option<FormPrompt>,
    /// The reason of a refusal, while it is typed.
    pub reason: Option<String>,
    /// The wider rule that `p` and `P` grant.
    pub pattern: Option<String>,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyOutcome {
    /// The prompt stays open.
    Open,
    /// The decision, and its reason if the user gave one.
    Answer(ApprovalDecision, Option<String>),
    /// The answer that grants the wider rule.
    Pattern(ApprovalDecision, String),
    /// The values of a form.
    Values(BTreeMap<String, Value>),
}

impl KeyOutcome {
    /// Returns the answer to send.
    pub fn answer(self, approval: &ApprovalId) -> Option<ApprovalResolveParams> {
        let params = |decision| ApprovalResolveParams {
            approval_id: approval.clone(),
            decision,
            reason: None,
            pattern: None,
            values: BTreeMap::new(),
        };
        Some(match self {
            Self::Open => return None,
            Self::Answer(decision, reason) => ApprovalResolveParams { reason, ..params(decision) },
            Self::Pattern(decision, pattern) => {
                ApprovalResolveParams { pattern: Some(pattern), ..params(decision) }
            }
            Self::Values(values) => {
                ApprovalResolveParams { values, ..params(ApprovalDecision::Once) }
            }
        })
    }
}

impl ApprovalPrompt {
    pub fn new(approval: &Approval) -> Self {
        Self {
            approval: approval.approval_id.clone(),
            form: approval.form.clone().map(FormPrompt::new),
            reason: None,
            pattern: approval.patterns.first().cloned(),
        }
    }

    /// Returns true if the user types a text of which Escape has another meaning than an end.
    pub fn is_typing(&self) -> bool {
        self.form.is_some() || self.reason.as_ref().is_some_and(|reason| !reason.is_empty())
    }

    /// Renders the prompt's row.
    pub fn row(&self) -> String {
        if let Some(form) = &self.form {
            return form.row();
        }
        match &self.reason {
            None => {
                let wider = if self.pattern.is_some() { PATTERN_KEYS } else { "" };
                format!("{} {KEYS}{wider}", style("allow?").yellow().for_stderr())
            }
            Some(reason) => {
                format!(
                    "{} {}",
                    style("why not? (Enter to skip)").yellow().for_stderr(),
                    plain(reason)
                )
            }
        }
    }

    pub fn key(&mut self, key: Key) -> KeyOutcome {
        use ApprovalDecision::{Always, Deny, Once, Session};
        if let Some(form) = &mut self.form {
            return match form.key(key) {
                FormOutcome::Open => KeyOutcome::Open,
                FormOutcome::Filled(values) => KeyOutcome::Values(values),
                FormOutcome::Declined => KeyOutcome::Answer(Deny, None),
            };
        }
        let Some(reason) = &mut self.reason else {
            return match key {
                Key::Char('y' | 'Y') => KeyOutcome::Answer(Once, None),
                Key::Char('a') => KeyOutcome::Answer(Session, None),
                Key::Char('A') => KeyOutcome::Answer(Always, None),
                Key::Char(c @ ('p' | 'P')) => match &self.pattern {
                    Some(pattern) => KeyOutcome::Pattern(
                        if c == 'p' { Session } else { Always },
                        pattern.clone(),
                    ),
                    None => KeyOutcome::Open,
                },
                Key::Char('n' | 'N') => {
                    self.reason = Some(String::new());
                    KeyOutcome::Open
                }
                _ => KeyOutcome::Open,
            };
        };
        match key {
            // Further characters are ignored.
            Key::Char(c) if reason.chars().count() < 2000 => reason.push(c),
            Key::Backspace => drop(reason.pop()),
            Key::Clear => reason.clear(),
            Key::Enter => {
                let reason = Some(reason.trim().to_owned()).filter(|r| !r.is_empty());
                return KeyOutcome::Answer(Deny, reason);
            }
            _ => {}
        }
        KeyOutcome::Open
    }
}

/// Renders the outcome of an approval in one line.
pub fn answered(resolution: &Resolution, mine: bool) -> String {
    let text = match resolution.decision {
        ApprovalDecision::Once => "allowed once",
        ApprovalDecision::Session => "allowed for this session",
        ApprovalDecision::Always => "allowed from now on",
        ApprovalDecision::Deny => "denied",
    };
    let reason = resolution.reason.as_ref().map(|r| format!(": {}", plain(r))).unwrap_or_default();
    let by = match resolution.by.as_str() {
        // The reason of the daemon repeats who did not answer.
        "deadline" => ", because the time limit for an answer was reached".to_owned(),
        "cancelled" => ", because the turn ended".to_owned(),
        "no_approver" => ", because no client was connected that answers approvals".to_owned(),
        _ if mine => reason,
        by => format!(" by {}{reason}", plain(by)),
    };
    format!("{}\n", style(format!("  {text}{by}")).dim().for_stderr())
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{approval::Preview, id::SessionId, time::Timestamp};

    use super::*;
    use crate::{chat::screen::TerminalCapabilities, render::theme::Theme};

    fn diffs() -> DiffPainter {
        DiffPainter::new(TerminalCapabilities {
            rich: false,
            terminal: false,
            status: false,
            width: 80,
            theme: Theme::Unknown,
        })
    }

    fn prompt(pattern: Option<&str>) -> ApprovalPrompt {
        let pattern = pattern.map(str::to_owned);
        ApprovalPrompt { approval: ApprovalId::new(), form: None, reason: None, pattern }
    }

    #[test]
    fn each_key_has_one_meaning() {
        use ApprovalDecision::{Always, Deny, Once, Session};
        for (keys, expected) in [
            ("y", Some((Once, None))),
            ("a", Some((Session, None))),
            ("A", Some((Always, None))),
            ("x q", None),
            ("n", None),
            ("n\n", Some((Deny, None))),
            ("nnot nox\u{8}w\n", Some((Deny, Some("not now")))),
        ] {
            let mut prompt = prompt(None);
            let mut got = KeyOutcome::Open;
            for c in keys.chars() {
                assert_eq!(got, KeyOutcome::Open, "{keys:?}");
                got = prompt.key(match c {
                    '\n' => Key::Enter,
                    '\u{8}' => Key::Backspace,
                    c => Key::Char(c),
                });
            }
            let expected = expected
                .map_or(KeyOutcome::Open, |(d, r)| KeyOutcome::Answer(d, r.map(str::to_owned)));
            assert_eq!(got, expected, "{keys:?}");
        }
        let mut with_pattern = prompt(Some("run_shell(go test *)"));
        assert!(with_pattern.row().contains("p pattern"));
        for (key, decision) in [('p', Session), ('P', Always)] {
            let got = with_pattern.key(Key::Char(key)).answer(&ApprovalId::nil()).unwrap();
            assert_eq!(got.decision, decision);
            assert_eq!(got.pattern.as_deref(), Some("run_shell(go test *)"));
        }
        assert_eq!(prompt(None).key(Key::Char('p')), KeyOutcome::Open);
    }

    #[test]
    fn invisible_characters_are_escaped_in_prompt() {
        let hidden = "\u{202e}\u{2066}\u{1b}]52;c;eA==\u{7}";
        let text = |before: &str| format!("{before}{hidden}");
        let approval = Approval {
            approval_id: ApprovalId::new(),
            session_id: SessionId::new(),
            run_id: None,
            tool: text("run_shell"),
            arguments: serde_json::Value::Null,
            preview: Preview {
                summary: text("s"),
                command: Some(text("c")),
                folder: Some(text("f")),
                diff: Some(text("+d")),
                paths: vec![text("p")],
                network: false,
                domains: vec![text("d")],
                bound: vec![],
                warnings: vec![text("w")],
            },
            rule: text("r"),
            grants: text("g"),
            patterns: vec![text("w")],
            form: None,
            created_at: Timestamp::now(),
            expires_at: Timestamp::now(),
            resolution: None,
            shortened: false,
        };
        let got = console::strip_ansi_codes(&question(&approval, &mut diffs())).into_owned();
        assert!(!got.contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{7}']), "{got:?}");
        assert_eq!(got.matches("\\u{202e}").count(), 11, "{got}");
    }

    #[test]
    fn complete_preview_is_displayed() {
        let approval = Approval {
            approval_id: ApprovalId::new(),
            session_id: SessionId::new(),
            run_id: None,
            tool: "run_shell".into(),
            arguments: serde_json::Value::Null,
            preview: Preview {
                summary: "runs make".into(),
                command: Some("make \u{1b}[2J test".into()),
                folder: Some("sub".into()),
                diff: Some("-a\n+b\n".into()),
                paths: vec!["a.rs".into(), "b.rs".into()],
                network: true,
                domains: vec!["crates.io".into()],
                bound: vec![],
                warnings: vec!["no sandbox".into()],
            },
            rule: "default".into(),
            grants: "run_shell(make *)".into(),
            patterns: vec!["run_shell(make test *)".into()],
            form: None,
            created_at: Timestamp::now(),
            expires_at: Timestamp::now(),
            resolution: None,
            shortened: false,
        };
        let got = console::strip_ansi_codes(&question(&approval, &mut diffs())).into_owned();
        let expected = "\
▲ run_shell runs make
  command  make \\u{1b}[2J test
  folder   sub
  paths    a.rs, b.rs
  network  yes
  domains  crates.io
  because  default
  grants   run_shell(make *)  (what a and A allow)
  pattern  run_shell(make test *)  (what p and P allow)
  warning  no sandbox
  -a
  +b
";
        assert_eq!(got, expected);
        let mut resolution = Resolution {
            decision: ApprovalDecision::Deny,
            by: "viewer".into(),
            reason: Some("no".into()),
            pattern: None,
            at: Timestamp::now(),
        };
        assert_eq!(
            console::strip_ansi_codes(&answered(&resolution, false)),
            "  denied by viewer: no\n"
        );
        resolution.by = "deadline".into();
        assert_eq!(
            console::strip_ansi_codes(&answered(&resolution, false)),
            "  denied, because the time limit for an answer was reached\n"
        );
    }
}
