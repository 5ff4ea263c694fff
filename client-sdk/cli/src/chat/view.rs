//! What a turn's events look like: lines that stay, and a status.

use std::{collections::BTreeMap, time::Instant};

use cairn_protocol::{
    event::{AgentEvt, ModelAnswer, PlanItem, PlanStatus},
    turn::{Outcome, RunResult},
};
use console::style;

use super::{
    ask, calls, figures, inline,
    markdown::Markdown,
    screen::{Abilities, Out},
};
use crate::output::plain;

/// Frames of the status's mark.
const FRAMES: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is shown.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Figures about tokens.
    pub figures: bool,
    /// Tool calls.
    pub calls: bool,
    /// Text as it comes.
    pub stream: bool,
    /// How far the model is in reading its prompt.
    pub progress: bool,
    /// Results in full, the model's thinking where no colours tell it apart.
    pub verbose: bool,
    /// The answer alone.
    pub quiet: bool,
}

/// Text in the making.
enum Text {
    Rich(Box<Markdown>),
    /// As it comes, a line at a time.
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
    wanted: Wanted,
    abilities: Abilities,
    text: Text,
    thinking: String,
    /// Bytes of this answer's text and thinking that are shown.
    shown: [u64; 2],
    doing: Doing,
    /// Calls that run: what they are and what they are about.
    running: BTreeMap<String, (String, String)>,
    /// A diff was shown to be approved.
    diff_shown: bool,
    frame: usize,
    /// How the turn ended.
    pub result: Option<Box<RunResult>>,
}

impl View {
    pub fn new(abilities: Abilities, wanted: Wanted) -> Self {
        let text = if abilities.rich {
            Text::Rich(Box::new(Markdown::new(abilities.width)))
        } else {
            Text::Plain(String::new())
        };
        Self {
            wanted,
            abilities,
            text,
            thinking: String::new(),
            shown: [0; 2],
            doing: Doing::Thinking,
            running: BTreeMap::new(),
            diff_shown: false,
            frame: 0,
            result: None,
        }
    }

    /// Something that is told live only.
    pub fn live(&mut self, evt: AgentEvt) -> Vec<Out> {
        match evt {
            AgentEvt::TokenDelta { reasoning, offset, text, .. } => {
                match &mut self.doing {
                    Doing::Writing { pieces, .. } => *pieces += 1,
                    doing => *doing = Doing::Writing { since: Instant::now(), pieces: 0 },
                }
                if self.wanted.stream { self.piece(reasoning, offset, &text) } else { vec![] }
            }
            AgentEvt::PromptProgress { processed, total, context_tokens, .. } => {
                if self.wanted.progress {
                    self.doing = Doing::Reading(figures::reading(processed, total, context_tokens));
                }
                vec![]
            }
            _ => vec![],
        }
    }

    /// A record.
    pub fn take(&mut self, evt: AgentEvt) -> Vec<Out> {
        match evt {
            AgentEvt::Text { reasoning, offset, text, .. } => self.piece(reasoning, offset, &text),
            AgentEvt::ModelAnswer(answer) => self.answered(&answer),
            AgentEvt::ToolCall { call_id, name, arguments } => {
                self.running.insert(call_id, (plain(&name), calls::about(&arguments)));
                vec![]
            }
            AgentEvt::ToolResult(outcome) => {
                let about = self.running.remove(&outcome.call_id).map(|(_, about)| about).unwrap_or_default();
                let text = calls::ended(&outcome, &about, self.wanted.verbose);
                self.note_if(self.wanted.calls, text)
            }
            AgentEvt::ApprovalRequired { approval } => {
                self.diff_shown |= approval.preview.diff.is_some();
                self.note_if(true, ask::question(&approval))
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
            AgentEvt::Steered { text, .. } => {
                self.note_if(true, format!("{} {}\n", style("you:").dim().for_stderr(), plain(&text)))
            }
            AgentEvt::Compacted { tokens_before, tokens_after, .. } => {
                let text =
                    format!("the conversation is summed up: {tokens_before} tokens became {tokens_after}");
                self.note_if(true, format!("{}\n", style(text).dim().for_stderr()))
            }
            AgentEvt::PlanUpdate { items } => self.note_if(self.wanted.calls, plan(&items)),
            AgentEvt::TurnDiff { diff, paths, .. } => self.changed(&diff, &paths),
            AgentEvt::GitCommit { commit, message, .. } => {
                let text =
                    format!("● committed {}  {}\n", plain(crate::event::short(&commit)), plain(&message));
                self.note_if(true, text)
            }
            AgentEvt::Interrupted { .. } => {
                self.note_if(true, "the daemon ended while this was going on\n".into())
            }
            AgentEvt::RunCompleted { result } => self.ended(result),
            _ => vec![],
        }
    }

    /// The rows of the status: the row that is being written, and what goes on.
    pub fn status(&mut self, typed: Option<&str>) -> Vec<String> {
        self.frame = (self.frame + 1) % FRAMES.len();
        let mut rows = Vec::new();
        let pending = match &self.text {
            Text::Rich(markdown) => markdown.pending(),
            Text::Plain(line) if self.abilities.terminal => plain(line),
            Text::Plain(_) => String::new(),
        };
        let thought = || style(plain(&self.thinking)).dim().for_stderr().to_string();
        match (pending.is_empty(), self.thinking.is_empty()) {
            (false, _) => rows.push(pending),
            (true, false) => rows.push(tail(&thought(), &self.thinking, self.abilities.width)),
            (true, true) => {}
        }
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
            let more = if names.is_empty() { String::new() } else { format!(" and {} more", names.len()) };
            return format!("{first}{more}");
        }
        match &self.doing {
            Doing::Thinking => "thinking".into(),
            Doing::Reading(text) => text.clone(),
            Doing::Writing { since, pieces } => {
                let seconds = since.elapsed().as_secs_f64();
                if seconds < 0.2 { "writing".into() } else { figures::writing(*pieces as f64 / seconds) }
            }
        }
    }

    /// A piece of text at its place: what was shown of it already is left out.
    fn piece(&mut self, reasoning: bool, offset: u64, text: &str) -> Vec<Out> {
        let shown = &mut self.shown[usize::from(reasoning)];
        let Some(known) = shown.checked_sub(offset).and_then(|n| usize::try_from(n).ok()) else {
            // What lies between comes as a record.
            return vec![];
        };
        let Some(fresh) = text.get(known.min(text.len())..).filter(|f| !f.is_empty()) else { return vec![] };
        *shown += fresh.len() as u64;
        if reasoning {
            return self.thought(fresh);
        }
        let mut out = self.end_thought();
        out.push(Out::Answer(match &mut self.text {
            Text::Rich(markdown) => markdown.push(fresh),
            Text::Plain(line) => {
                line.push_str(fresh);
                let whole = line.rfind('\n').map_or(0, |at| at + 1);
                let whole: String = line.drain(..whole).collect();
                safe(whole, self.abilities.terminal)
            }
        }));
        out
    }

    fn thought(&mut self, text: &str) -> Vec<Out> {
        if self.wanted.quiet || !(self.abilities.rich || self.wanted.verbose) {
            return vec![];
        }
        self.thinking.push_str(text);
        let Some(at) = self.thinking.rfind('\n') else { return vec![] };
        let whole: String = self.thinking.drain(..=at).collect();
        vec![Out::Note(self.dimmed(&whole))]
    }

    fn end_thought(&mut self) -> Vec<Out> {
        let rest = std::mem::take(&mut self.thinking);
        if rest.is_empty() { vec![] } else { vec![Out::Note(self.dimmed(&rest))] }
    }

    fn dimmed(&self, text: &str) -> String {
        let looks =
            inline::Looks { base: console::Style::new().dim().for_stderr(), first: String::new(), hang: 0 };
        let rows = text.lines().flat_map(|line| inline::words(&plain(line), &looks, self.abilities.width));
        rows.map(|row| row + "\n").collect()
    }

    fn end_text(&mut self) -> Vec<Out> {
        let mut out = self.end_thought();
        let rest = match &mut self.text {
            Text::Rich(markdown) => markdown.finish(),
            Text::Plain(line) if line.is_empty() => String::new(),
            Text::Plain(line) => safe(std::mem::take(line) + "\n", self.abilities.terminal),
        };
        out.push(Out::Answer(rest));
        out
    }

    fn answered(&mut self, answer: &ModelAnswer) -> Vec<Out> {
        let mut out = self.end_text();
        self.shown = [0; 2];
        self.doing = Doing::Thinking;
        if self.wanted.figures {
            let lines = [figures::prompt_eval(answer), figures::summary(answer)];
            // Dark blue, of the sixteen colours that a terminal's own theme has.
            let text: String =
                lines.into_iter().flatten().map(|l| format!("{}\n", style(l).blue().for_stderr())).collect();
            out.extend(self.note_if(true, text));
        }
        out
    }

    fn changed(&mut self, diff: &str, paths: &[String]) -> Vec<Out> {
        let (added, taken) = calls::changed(diff);
        let paths: Vec<String> = paths.iter().map(|p| plain(p)).collect();
        let mut text = format!(
            "{} changed {}  (+{added} −{taken})\n",
            style("●").green().for_stderr(),
            paths.join(", ")
        );
        if !self.diff_shown {
            text.push_str(&calls::diff(
                diff,
                if self.wanted.verbose { usize::MAX } else { calls::DIFF_LINES },
            ));
        }
        self.note_if(true, text)
    }

    fn ended(&mut self, result: Box<RunResult>) -> Vec<Out> {
        let mut out = self.end_text();
        let said = match (result.status, &result.error) {
            (Outcome::Completed, _) => String::new(),
            (Outcome::Cancelled, _) => format!("{}\n", style("stopped").yellow().for_stderr()),
            (_, Some(error)) => {
                let hint = if error.hint.is_empty() {
                    String::new()
                } else {
                    format!("hint: {}\n", plain(&error.hint))
                };
                format!("{} {}\n{hint}", style("error:").red().for_stderr(), plain(&error.message))
            }
            (Outcome::Denied, None) => format!("{}\n", style("denied").red().for_stderr()),
            (Outcome::TimedOut, None) => format!("{}\n", style("out of time").red().for_stderr()),
            (Outcome::Failed, None) => format!("{}\n", style("failed").red().for_stderr()),
        };
        self.result = Some(result);
        // A failure is told in any case.
        out.push(Out::Note(said));
        out
    }

    fn note_if(&self, wanted: bool, text: String) -> Vec<Out> {
        if wanted && !self.wanted.quiet && !text.is_empty() { vec![Out::Note(text)] } else { vec![] }
    }
}

/// What a pipe gets as it is, and a terminal without what drives it.
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

/// The end of a long row.
fn tail(styled: &str, text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count < width {
        return styled.to_owned();
    }
    let end: String = text.chars().skip(count.saturating_sub(width.saturating_sub(2) / 2)).collect();
    style(format!("…{}", plain(&end))).dim().for_stderr().to_string()
}

/// The list of things to do.
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
