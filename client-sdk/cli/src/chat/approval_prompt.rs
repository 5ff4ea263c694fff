//! The approval prompt: its text, and the meaning of keys.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_protocol::approval::{Approval, ApprovalDecision, ApprovalResolveParams, Resolution};
use console::style;

use super::{
    diff::DiffPainter,
    form_prompt::{self, FormOutcome, FormPrompt},
    keys::Key,
};
use crate::render::output::plain;

/// Text in place of the keys while they do not work yet.
const NOT_ARMED: &str = "(one moment)";
/// Keys of a selected answer.
const CONFIRM: &str = "Enter confirms · Esc goes back";
/// Maximum characters of the reason of a refusal.
const MAX_REASON: usize = 2000;
/// Lines of a diff from which the head of its question is repeated below it.
const LONG_DIFF: usize = 12;

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
    if !approval.grants.is_empty() {
        row("grants", &format!("{}  (for a, A and E)", list(&approval.grants)));
    }
    if let Some(pattern) = approval.patterns.first() {
        row("pattern", &format!("{}  (for p and P)", list(pattern)));
    }
    if let Some(project) = approval.project.as_ref().filter(|_| !approval.grants.is_empty()) {
        // Its name is enough beside the chat that works in it.
        let name = project.rsplit('/').find(|part| !part.is_empty()).unwrap_or(project);
        row("project", &format!("{}  (for A and P)", plain(name)));
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

/// Describes the calls that rules allow, in one line.
fn list(rules: &[String]) -> String {
    rules.iter().map(|rule| granted(rule)).collect::<Vec<_>>().join(", ")
}

/// Describes the calls that a rule allows: a rule without a pattern covers all calls of its tool.
pub fn granted(rule: &str) -> String {
    if rule.is_empty() || rule.split_once('(').is_some() {
        return plain(rule);
    }
    format!("{}, every call of it", plain(rule))
}

/// An answer that outlives its call. One key selects it, a second one confirms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastingAnswer {
    Session,
    Always,
    PatternSession,
    PatternAlways,
    Everywhere,
}

impl LastingAnswer {
    const ALL: [Self; 5] =
        [Self::Session, Self::Always, Self::PatternSession, Self::PatternAlways, Self::Everywhere];

    fn key(self) -> char {
        match self {
            Self::Session => 'a',
            Self::Always => 'A',
            Self::PatternSession => 'p',
            Self::PatternAlways => 'P',
            Self::Everywhere => 'E',
        }
    }

    /// Returns the text of the keys' row.
    fn label(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Always => "always here",
            Self::PatternSession => "pattern this session",
            Self::PatternAlways => "pattern always here",
            Self::Everywhere => "everywhere",
        }
    }

    fn decision(self) -> ApprovalDecision {
        match self {
            Self::Session | Self::PatternSession => ApprovalDecision::Session,
            Self::Always | Self::PatternAlways => ApprovalDecision::Always,
            Self::Everywhere => ApprovalDecision::Everywhere,
        }
    }

    /// Returns the wider rule that the answer names; `None` if it grants the approval's own rules.
    fn pattern(self, approval: &Approval) -> Option<Vec<String>> {
        match self {
            Self::Session | Self::Always | Self::Everywhere => None,
            Self::PatternSession | Self::PatternAlways => approval.patterns.first().cloned(),
        }
    }

    /// Returns the rules that the answer stores; `None` if the approval does not offer it.
    fn rules(self, approval: &Approval) -> Option<&[String]> {
        if self.decision() == ApprovalDecision::Always && approval.project.is_none() {
            return None;
        }
        let rules = match self {
            Self::Session | Self::Always | Self::Everywhere => &approval.grants,
            Self::PatternSession | Self::PatternAlways => approval.patterns.first()?,
        };
        Some(rules.as_slice()).filter(|rules| !rules.is_empty())
    }
}

/// The step of a prompt.
#[derive(Debug, Clone, PartialEq)]
enum PromptStage {
    Choosing,
    Confirming(LastingAnswer),
    /// The reason of a refusal is typed.
    Refusing(String),
    /// A form is answered instead of a yes or no; `true` once it has received a key.
    Form(Box<FormPrompt>, bool),
}

/// An approval prompt that waits for keys.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPrompt {
    pub approval: Box<Approval>,
    stage: PromptStage,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyOutcome {
    /// The prompt took the key and stays open.
    Open,
    /// The key has no meaning for the prompt.
    Unused,
    /// The answer to send.
    Answer(ApprovalResolveParams),
}

impl ApprovalPrompt {
    pub fn new(approval: &Approval) -> Self {
        let stage = match approval.form.clone() {
            Some(form) => PromptStage::Form(Box::new(FormPrompt::new(form)), false),
            None => PromptStage::Choosing,
        };
        Self { approval: Box::new(approval.clone()), stage }
    }

    /// Returns true once a text for the prompt itself is being typed.
    pub fn takes_text(&self) -> bool {
        matches!(self.stage, PromptStage::Refusing(_) | PromptStage::Form(_, true))
    }

    pub fn is_form(&self) -> bool {
        matches!(self.stage, PromptStage::Form(..))
    }

    /// Drops a selected answer; returns false if none is selected.
    pub fn deselect(&mut self) -> bool {
        let is_selected = matches!(self.stage, PromptStage::Confirming(_));
        if is_selected {
            self.stage = PromptStage::Choosing;
        }
        is_selected
    }

    fn offered(&self) -> impl Iterator<Item = LastingAnswer> + '_ {
        LastingAnswer::ALL.into_iter().filter(|answer| answer.rules(&self.approval).is_some())
    }

    /// Renders the prompt's row. Its keys are named when it is armed, which means that they work.
    pub fn row(&self, is_armed: bool) -> String {
        let label = |text: &str| style(text.to_owned()).yellow().for_stderr();
        match &self.stage {
            PromptStage::Form(form, _) if is_armed => form.row(),
            PromptStage::Form(..) => format!("{} {NOT_ARMED}", label("answer?")),
            PromptStage::Refusing(reason) => {
                format!("{} {}", label("why not? (Enter to skip)"), plain(reason))
            }
            PromptStage::Choosing if !is_armed => format!("{} {NOT_ARMED}", label("allow?")),
            PromptStage::Choosing => {
                let lasting: String = self
                    .offered()
                    .map(|answer| format!(" · {} {}", answer.key(), answer.label()))
                    .collect();
                format!("{} y once{lasting} · n no", label("allow?"))
            }
            PromptStage::Confirming(answer) => {
                let keys = if is_armed { CONFIRM } else { NOT_ARMED };
                let rules = list(answer.rules(&self.approval).unwrap_or_default());
                format!("{} {keys}: {rules}", label(&format!("allow {}?", answer.label())))
            }
        }
    }

    pub fn key(&mut self, key: &Key) -> KeyOutcome {
        let outcome = match &mut self.stage {
            PromptStage::Form(form, is_touched) => {
                *is_touched = true;
                match form.key(key.clone()) {
                    FormOutcome::Open => return KeyOutcome::Open,
                    FormOutcome::Filled(values) => {
                        ApprovalResolveParams { values, ..self.params(ApprovalDecision::Once) }
                    }
                    FormOutcome::Declined => self.params(ApprovalDecision::Deny),
                }
            }
            PromptStage::Refusing(reason) => {
                match key {
                    // Further characters are ignored.
                    Key::Char(c) if reason.chars().count() < MAX_REASON => reason.push(*c),
                    Key::Paste(text) if reason.len() + text.len() <= MAX_REASON => {
                        reason.extend(text.chars().filter(|c| !c.is_control()));
                    }
                    Key::Backspace => drop(reason.pop()),
                    Key::Escape if reason.is_empty() => self.stage = PromptStage::Choosing,
                    Key::Clear | Key::Escape => reason.clear(),
                    Key::Enter => {
                        let reason = Some(reason.trim().to_owned()).filter(|r| !r.is_empty());
                        let params = self.params(ApprovalDecision::Deny);
                        return KeyOutcome::Answer(ApprovalResolveParams { reason, ..params });
                    }
                    _ => {}
                }
                return KeyOutcome::Open;
            }
            PromptStage::Choosing => return self.choose(key),
            PromptStage::Confirming(answer) => match key {
                Key::Enter => {
                    let answer = *answer;
                    let pattern = answer.pattern(&self.approval);
                    ApprovalResolveParams { pattern, ..self.params(answer.decision()) }
                }
                // Another answer may be selected instead.
                key => return self.choose(key),
            },
        };
        KeyOutcome::Answer(outcome)
    }

    fn choose(&mut self, key: &Key) -> KeyOutcome {
        let Key::Char(c) = key else { return KeyOutcome::Unused };
        let selected = self.offered().find(|answer| answer.key() == *c);
        if let Some(answer) = selected {
            self.stage = PromptStage::Confirming(answer);
            return KeyOutcome::Open;
        }
        match c {
            'y' | 'Y' => KeyOutcome::Answer(self.params(ApprovalDecision::Once)),
            'n' | 'N' => {
                self.stage = PromptStage::Refusing(String::new());
                KeyOutcome::Open
            }
            _ => KeyOutcome::Unused,
        }
    }

    fn params(&self, decision: ApprovalDecision) -> ApprovalResolveParams {
        ApprovalResolveParams {
            approval_id: self.approval.approval_id.clone(),
            decision,
            reason: None,
            pattern: None,
            values: BTreeMap::new(),
        }
    }
}

/// Renders the outcome of an approval in one line.
pub fn answered(resolution: &Resolution, mine: bool) -> String {
    let text = match resolution.decision {
        ApprovalDecision::Once => "allowed once",
        ApprovalDecision::Session => "allowed for this session",
        ApprovalDecision::Always => "allowed from now on in this project",
        ApprovalDecision::Everywhere => "allowed from now on in every project",
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
    use cairn_protocol::{
        approval::Preview,
        id::{ApprovalId, SessionId},
        time::Timestamp,
    };

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
            project: Some(text("p")),
            grants: vec![text("g")],
            patterns: vec![vec![text("w")]],
            form: None,
            created_at: Timestamp::now(),
            expires_at: Timestamp::now(),
            resolution: None,
            shortened: false,
        };
        let got = console::strip_ansi_codes(&question(&approval, &mut diffs())).into_owned();
        assert!(!got.contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{7}']), "{got:?}");
        assert_eq!(got.matches("\\u{202e}").count(), 12, "{got}");
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
            project: Some("/work/site".into()),
            grants: vec!["run_shell(make *)".into()],
            patterns: vec![vec!["run_shell(make test *)".into()]],
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
  grants   run_shell(make *)  (for a, A and E)
  pattern  run_shell(make test *)  (for p and P)
  project  site  (for A and P)
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
