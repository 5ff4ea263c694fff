//! Rendering of a turn's events: permanent lines, and a status.

use std::{collections::BTreeMap, time::Instant};

use cairn_protocol::{
    approval::Approval,
    event::{AgentEvt, ModelAnswer, PlanItem, PlanStatus},
    turn::{Outcome, RunResult},
};
use console::style;

use super::{
    approval_prompt, calls,
    diff::DiffPainter,
    figures, inline,
    live_output::LiveOutput,
    markdown::Markdown,
    screen::{Out, TerminalCapabilities},
    tasks,
};
use crate::{exit::hint_for_people, render::output::plain};

/// Maximum bytes of a result that is stored for Ctrl+O.
const MAX_FOLDED: usize = 1024 * 1024;
/// Frames of the spinner.
const FRAMES: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[derive(Debug, Clone, Copy)]
pub struct DisplayOptions {
    /// True to display token usage.
    pub figures: bool,
    /// True to display tool calls.
    pub calls: bool,
    /// Text while it is written.
    pub stream: bool,
    /// Progress of reading the prompt.
    pub progress: bool,
    /// Complete results, and the model's reasoning even where colours cannot distinguish it.
    pub verbose: bool,
    /// True to display only the answer.
    pub quiet: bool,
    /// True if Ctrl+O displays the omitted lines.
    pub unfold: bool,
}

impl DisplayOptions {
    /// Returns the text after a number of omitted lines.
    fn unfold_hint(self) -> &'static str {
        if self.unfold { " (Ctrl+O)" } else { "" }
    }
}

/// A result with its complete text, for Ctrl+O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedResult {
    title: String,
    text: String,
}

impl FoldedResult {
    /// Renders the complete result.
    pub fn render(&self) -> String {
        format!("{}{}", style(&self.title).dim().for_stderr(), self.text)
    }
}

/// Text whose last line is unfinished.
enum Text {
    Rich(Box<Markdown>),
    /// Plain text, emitted line by line.
    Plain(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Doing {
    Thinking,
    Reading(String),
    Writing { since: Instant, pieces: u64 },
}

/// The view of one turn.
pub struct View {
    display: DisplayOptions,
    capabilities: TerminalCapabilities,
    text: Text,
    thinking: String,
    /// Displayed bytes of this answer's text and reasoning.
    displayed: [u64; 2],
    doing: Doing,
    /// Running calls with their tool and description.
    running: BTreeMap<String, (String, String)>,
    live: LiveOutput,
    diffs: DiffPainter,
    /// The complete text of the last result that was displayed in part.
    folded: Option<FoldedResult>,
    /// A diff was shown for approval.
    diff_displayed: bool,
    frame: usize,
    /// The outcome of the turn.
    pub result: Option<Box<RunResult>>,
}

impl View {
    pub fn new(capabilities: TerminalCapabilities, display: DisplayOptions) -> Self {
        let text = if capabilities.rich {
            Text::Rich(Box::new(Markdown::new(capabilities.width, capabilities.theme)))
        } else {
            Text::Plain(String::new())
        };
        Self {
            display,
            capabilities,
            text,
            thinking: String::new(),
            displayed: [0; 2],
            doing: Doing::Thinking,
            running: BTreeMap::new(),
            live: LiveOutput::default(),
            diffs: DiffPainter::new(capabilities),
            folded: None,
            diff_displayed: false,
            frame: 0,
            result: None,
        }
    }

    /// Sets the columns of the rows that follow.
    pub fn resize(&mut self, width: usize) {
        self.capabilities.width = width;
        if let Text::Rich(markdown) = &mut self.text {
            markdown.resize(width);
        }
    }

    /// Renders an ephemeral event.
    pub fn ephemeral(&mut self, evt: AgentEvt) -> Vec<Out> {
        match evt {
            AgentEvt::TokenDelta { reasoning, offset, text, .. } => {
                match &mut self.doing {
                    Doing::Writing { pieces, .. } => *pieces += 1,
                    doing => *doing = Doing::Writing { since: Instant::now(), pieces: 0 },
                }
                if self.display.stream { self.piece(reasoning, offset, &text) } else { vec![] }
            }
            AgentEvt::CommandOutput { call_id, text, dropped } => {
                if self.display.calls && self.running.contains_key(&call_id) {
                    self.live.push(&text, dropped);
                }
                vec![]
            }
            AgentEvt::PromptProgress { processed, total, context_tokens, .. } => {
                if self.display.progress {
                    self.doing = Doing::Reading(figures::reading(processed, total, context_tokens));
                }
                vec![]
            }
            _ => vec![],
        }
    }

    /// Returns the output of a record.
    pub fn record(&mut self, evt: AgentEvt) -> Vec<Out> {
        match evt {
            AgentEvt::Text { reasoning, offset, text, .. } => self.piece(reasoning, offset, &text),
            AgentEvt::ModelAnswer(answer) => self.finish_answer(&answer),
            AgentEvt::ToolCall { call_id, name, arguments } => {
                self.running.insert(call_id, (plain(&name), calls::about(&arguments)));
                vec![]
            }
            AgentEvt::ToolResult(outcome) => {
                self.live.clear();
                let about = self
                    .running
                    .remove(&outcome.call_id)
                    .map(|(_, about)| about)
                    .unwrap_or_default();
                let hint = self.display.unfold_hint();
                let text = calls::finished_call(&outcome, &about, self.display.verbose, hint);
                let title = format!("● {} {about}\n", plain(&outcome.name));
                self.fold(title, calls::unfolded(&outcome));
                self.note_if(self.display.calls, text)
            }
            AgentEvt::ApprovalRequired { approval } => {
                let text = self.question(&approval);
                self.note_if(true, text)
            }
            AgentEvt::Warning { op, message } => {
                let text = format!(
                    "{} {}: {}\n",
                    style("warning:").yellow().for_stderr(),
                    plain(&op),
                    plain(&message)
                );
                self.note_if(true, text)
            }
            // The agent's own note: its first line names the file.
            AgentEvt::Steered { text, .. } if text.starts_with("Instructions from ") => {
                let line = text.lines().next().unwrap_or_default().trim_end_matches(':');
                self.note_if(true, format!("{}\n", style(plain(line)).dim().for_stderr()))
            }
            AgentEvt::Steered { text, .. } => self
                .note_if(true, format!("{} {}\n", style("you:").dim().for_stderr(), plain(&text))),
            AgentEvt::Compacted { tokens_before, tokens_after, .. } => {
                let text = format!(
                    "the conversation was summarized: {tokens_before} tokens became {tokens_after}"
                );
                self.note_if(true, format!("{}\n", style(text).dim().for_stderr()))
            }
            AgentEvt::PlanUpdate { items } => self.note_if(self.display.calls, plan(&items)),
            AgentEvt::TurnDiff { diff, paths, .. } => self.changed(&diff, &paths),
            AgentEvt::GitCommit { commit, message, .. } => {
                let text = format!(
                    "● committed {}  {}\n",
                    plain(crate::render::event::short(&commit)),
                    plain(&message)
                );
                self.note_if(true, text)
            }
            AgentEvt::BackgroundFinished { id, command, state, exit_code, .. } => {
                let how = tasks::state(state, exit_code);
                let text = format!("● background {} {how}  {}\n", plain(&id), plain(&command));
                self.note_if(self.display.calls, text)
            }
            AgentEvt::Interrupted { .. } => {
                self.note_if(true, "the daemon stopped during this operation\n".into())
            }
            AgentEvt::RunCompleted { result } => self.finish(result),
            _ => vec![],
        }
    }

    /// Renders the text of a question.
    pub fn question(&mut self, approval: &Approval) -> String {
        self.diff_displayed |= approval.preview.diff.is_some();
        approval_prompt::question(approval, &mut self.diffs)
    }

    /// Renders the status: the unfinished row and the current activity.
    pub fn status(&mut self, typed: Option<&str>) -> Vec<String> {
        self.frame = (self.frame + 1) % FRAMES.len();
        let mut rows = Vec::new();
        let pending = match &self.text {
            Text::Rich(markdown) => markdown.pending(),
            Text::Plain(line) if self.capabilities.terminal => plain(line),
            Text::Plain(_) => String::new(),
        };
        let styled = || style(plain(&self.thinking)).dim().for_stderr().to_string();
        match (pending.is_empty(), self.thinking.is_empty()) {
            (false, _) => rows.push(pending),
            (true, false) => rows.push(tail(&styled(), &self.thinking, self.capabilities.width)),
            (true, true) => {}
        }
        rows.extend(self.live.rows(self.capabilities.width));
        let mut line = format!(
            "{} {}",
            style(FRAMES[self.frame]).cyan().for_stderr(),
            style(self.activity()).dim().for_stderr()
        );
        if let Some(typed) = typed.filter(|t| !t.is_empty()) {
            line.push_str(&format!("  › {}", plain(typed)));
        }
        rows.push(line);
        rows
    }

    fn activity(&self) -> String {
        let mut names: Vec<String> = self
            .running
            .values()
            .map(|(name, about)| format!("{name} {about}").trim_end().to_owned())
            .collect();
        if let Some(first) = names.pop() {
            let more =
                if names.is_empty() { String::new() } else { format!(" and {} more", names.len()) };
            return format!("{first}{more}");
        }
        match &self.doing {
            Doing::Thinking => "thinking".into(),
            Doing::Reading(text) => text.clone(),
            Doing::Writing { since, pieces } => {
                let seconds = since.elapsed().as_secs_f64();
                if seconds < 0.2 {
                    "writing".into()
                } else {
                    figures::writing(*pieces as f64 / seconds)
                }
            }
        }
    }

    /// Renders a text delta at an offset, skipping the part that is already displayed.
    fn piece(&mut self, reasoning: bool, offset: u64, text: &str) -> Vec<Out> {
        let displayed = &mut self.displayed[usize::from(reasoning)];
        let Some(known) = displayed.checked_sub(offset).and_then(|n| usize::try_from(n).ok())
        else {
            // The missing text will come as a record.
            return vec![];
        };
        let Some(fresh) = text.get(known.min(text.len())..).filter(|f| !f.is_empty()) else {
            return vec![];
        };
        *displayed += fresh.len() as u64;
        if reasoning {
            return self.reasoning_delta(fresh);
        }
        let mut out = self.end_thought();
        out.push(Out::Answer(match &mut self.text {
            Text::Rich(markdown) => markdown.push(fresh),
            Text::Plain(line) => {
                line.push_str(fresh);
                let complete = line.rfind('\n').map_or(0, |at| at + 1);
                let complete: String = line.drain(..complete).collect();
                safe(complete, self.capabilities.terminal)
            }
        }));
        out
    }

    fn reasoning_delta(&mut self, text: &str) -> Vec<Out> {
        if self.display.quiet || !(self.capabilities.rich || self.display.verbose) {
            return vec![];
        }
        self.thinking.push_str(text);
        let Some(at) = self.thinking.rfind('\n') else { return vec![] };
        let complete: String = self.thinking.drain(..=at).collect();
        vec![Out::Note(self.dimmed(&complete))]
    }

    fn end_thought(&mut self) -> Vec<Out> {
        let rest = std::mem::take(&mut self.thinking);
        if rest.is_empty() { vec![] } else { vec![Out::Note(self.dimmed(&rest))] }
    }

    fn dimmed(&self, text: &str) -> String {
        let line_style = inline::LineStyle {
            base: console::Style::new().dim().for_stderr(),
            first: String::new(),
            hang: 0,
        };
        let rows = text
            .lines()
            .flat_map(|line| inline::words(&plain(line), &line_style, self.capabilities.width));
        rows.map(|row| row + "\n").collect()
    }

    fn end_text(&mut self) -> Vec<Out> {
        let mut out = self.end_thought();
        let rest = match &mut self.text {
            Text::Rich(markdown) => markdown.finish(),
            Text::Plain(line) if line.is_empty() => String::new(),
            Text::Plain(line) => safe(std::mem::take(line) + "\n", self.capabilities.terminal),
        };
        out.push(Out::Answer(rest));
        out
    }

    fn finish_answer(&mut self, answer: &ModelAnswer) -> Vec<Out> {
        let mut out = self.end_text();
        self.displayed = [0; 2];
        self.doing = Doing::Thinking;
        if self.display.figures {
            let lines = [figures::prompt_eval(answer), figures::summary(answer)];
            // Dark blue of the sixteen colours, which follow the terminal's theme.
            let text: String = lines
                .into_iter()
                .flatten()
                .map(|l| format!("{}\n", style(l).blue().for_stderr()))
                .collect();
            out.extend(self.note_if(true, text));
        }
        out
    }

    fn changed(&mut self, diff: &str, paths: &[String]) -> Vec<Out> {
        let (added, removed) = calls::changed(diff);
        let paths: Vec<String> = paths.iter().map(|p| plain(p)).collect();
        let mut text = format!(
            "{} changed {}  (+{added} −{removed})\n",
            style("●").green().for_stderr(),
            paths.join(", ")
        );
        if !self.diff_displayed {
            let max = if self.display.verbose { usize::MAX } else { calls::DIFF_LINES };
            text.push_str(&self.diffs.render(diff, max, self.display.unfold_hint()));
            let complete = self.diffs.render(diff, usize::MAX, "");
            self.fold(format!("● changed {}\n", paths.join(", ")), Some(complete));
        }
        self.note_if(true, text)
    }

    fn finish(&mut self, result: Box<RunResult>) -> Vec<Out> {
        let mut out = self.end_text();
        let text = match (result.status, &result.error) {
            (Outcome::Completed, _) => String::new(),
            (Outcome::Cancelled, _) => format!("{}\n", style("stopped").yellow().for_stderr()),
            (_, Some(error)) => {
                let hint = hint_for_people(&error.reason).unwrap_or(&error.hint);
                let hint = if hint.is_empty() {
                    String::new()
                } else {
                    format!("hint: {}\n", plain(hint))
                };
                format!("{} {}\n{hint}", style("error:").red().for_stderr(), plain(&error.message))
            }
            (Outcome::Denied, None) => format!("{}\n", style("denied").red().for_stderr()),
            (Outcome::TimedOut, None) => format!("{}\n", style("out of time").red().for_stderr()),
            (Outcome::Failed, None) => format!("{}\n", style("failed").red().for_stderr()),
        };
        self.result = Some(result);
        // Failures are always shown.
        out.push(Out::Note(text));
        out
    }

    /// Stores a result for Ctrl+O.
    fn fold(&mut self, title: String, text: Option<String>) {
        if let Some(text) = text.filter(|text| self.display.unfold && text.len() <= MAX_FOLDED) {
            self.folded = Some(FoldedResult { title, text });
        }
    }

    /// Returns the last result that was displayed in part.
    pub fn take_folded(&mut self) -> Option<FoldedResult> {
        self.folded.take()
    }

    fn note_if(&self, enabled: bool, text: String) -> Vec<Out> {
        if enabled && !self.display.quiet && !text.is_empty() {
            vec![Out::Note(text)]
        } else {
            vec![]
        }
    }
}

/// Removes terminal control characters if the output is a terminal.
fn safe(text: String, terminal: bool) -> String {
    if !terminal {
        return text;
    }
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => plain(line.strip_suffix('\r').unwrap_or(line)) + "\n",
            None => plain(line),
        })
        .collect()
}

/// Returns the end of a long row.
fn tail(styled: &str, text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count < width {
        return styled.to_owned();
    }
    let end: String =
        text.chars().skip(count.saturating_sub(width.saturating_sub(2) / 2)).collect();
    style(format!("…{}", plain(&end))).dim().for_stderr().to_string()
}

/// Renders the plan as a list.
pub fn plan(items: &[PlanItem]) -> String {
    let row = |item: &PlanItem| {
        let mark = match item.status {
            PlanStatus::Done => "☑",
            PlanStatus::InProgress => "▸",
            PlanStatus::Pending => "☐",
        };
        format!("  {mark} {}\n", plain(&item.text))
    };
    items.iter().map(row).collect()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
