//! Open questions beside the line that is typed: which of the two a key belongs to.
//!
//! No function reads a clock: the times of keys and of the drawing are values, so that a test can
//! play any sequence of them. A key belongs to the question only if the question is *armed*:
//!
//! * it was drawn at least [`ARMING_TIME`] before, so that it can have been read;
//! * the last key was pressed at least [`ARMING_TIME`] before, so that no key of a burst, of a word
//!   that is typed or of a paste without marks reaches it;
//! * no text is typed.
//!
//! Every other key belongs to the typed line.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use cairn_protocol::{
    approval::{Approval, ApprovalResolveParams},
    id::ApprovalId,
};
use console::style;

use super::{
    approval_prompt::{ApprovalPrompt, KeyOutcome},
    keys::{Key, KeyPress},
};

/// Time after a drawing, and after any key, in which a question takes no key.
pub const ARMING_TIME: Duration = Duration::from_millis(400);
/// Maximum bytes of a text that is sent to a running model.
const MAX_TYPED: usize = 16 * 1024;

/// The open questions, oldest first, and the typed line.
#[derive(Debug, Default)]
pub struct Questions {
    queue: VecDeque<ApprovalPrompt>,
    typed: String,
    /// Time at which the first question was drawn.
    drawn_at: Option<Instant>,
    last_key_at: Option<Instant>,
}

/// The effect of a key that the caller carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyEffect {
    /// Only what is drawn changes.
    None,
    /// The first question has its answer and is removed.
    Answer(ApprovalResolveParams),
    /// The typed line is complete.
    Submit(String),
    /// A paste is longer than a message to a running model may be.
    TooLong,
    /// Escape without a text, a selection or a form that it applies to.
    Stop,
    /// A key that concerns neither the question nor the line.
    Other(Key),
}

impl Questions {
    pub fn add(&mut self, approval: &Approval) {
        self.queue.push_back(ApprovalPrompt::new(approval));
    }

    /// Removes a question that was answered elsewhere; returns it if it was not drawn yet.
    pub fn remove(&mut self, id: &ApprovalId) -> Option<Box<Approval>> {
        let at = self.queue.iter().position(|prompt| prompt.approval.approval_id == *id)?;
        let is_drawn = at == 0 && self.drawn_at.is_some();
        if at == 0 {
            self.drawn_at = None;
        }
        let removed = self.queue.remove(at)?;
        (!is_drawn).then_some(removed.approval)
    }

    pub fn clear(&mut self) {
        self.queue.clear();
        self.drawn_at = None;
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn typed(&self) -> &str {
        &self.typed
    }

    pub fn take_typed(&mut self) -> String {
        std::mem::take(&mut self.typed)
    }

    /// Returns the first question if it was not drawn yet.
    pub fn undrawn(&self) -> Option<&Approval> {
        match (self.drawn_at, self.queue.front()) {
            (None, Some(prompt)) => Some(&prompt.approval),
            _ => None,
        }
    }

    /// Records that the first question is visible since `now`.
    pub fn mark_drawn(&mut self, now: Instant) {
        if !self.queue.is_empty() {
            self.drawn_at.get_or_insert(now);
        }
    }

    /// Returns true if a key that is pressed at `at` would belong to the first question.
    pub fn is_armed(&self, at: Instant) -> bool {
        let (Some(prompt), Some(drawn)) = (self.queue.front(), self.drawn_at) else { return false };
        let is_past = |since: Instant| at.saturating_duration_since(since) >= ARMING_TIME;
        // Whoever types the reason of a refusal, or a form, types quickly.
        let is_deliberate = prompt.takes_text() || self.last_key_at.is_none_or(is_past);
        self.typed.is_empty() && is_past(drawn) && is_deliberate
    }

    pub fn key(&mut self, press: KeyPress) -> KeyEffect {
        if let Key::Focus(_) = press.key {
            return KeyEffect::Other(press.key);
        }
        let is_armed = self.is_armed(press.at);
        self.last_key_at = self.last_key_at.max(Some(press.at));
        if matches!(press.key, Key::Interrupt | Key::Unfold | Key::End) {
            return KeyEffect::Other(press.key);
        }
        // Pasted text is typed text, and never answers: it is for a field or a reason at most.
        let is_paste = matches!(press.key, Key::Paste(_));
        if let Some(prompt) = self.queue.front_mut().filter(|_| is_armed)
            && (!is_paste || prompt.is_form() || prompt.takes_text())
        {
            match prompt.key(&press.key) {
                KeyOutcome::Open => return KeyEffect::None,
                KeyOutcome::Answer(params) => {
                    self.queue.pop_front();
                    // The next question has not been drawn.
                    self.drawn_at = None;
                    return KeyEffect::Answer(params);
                }
                KeyOutcome::Unused => {}
            }
        }
        self.line_key(press.key)
    }

    fn line_key(&mut self, key: Key) -> KeyEffect {
        match key {
            // Text over the daemon's limit cannot be typed.
            Key::Char(c) if self.typed.len() < MAX_TYPED => {
                self.deselect();
                self.typed.push(c);
            }
            Key::Paste(text) if self.typed.len() + text.len() <= MAX_TYPED => {
                self.deselect();
                self.typed.push_str(&text);
            }
            Key::Paste(_) => return KeyEffect::TooLong,
            Key::Backspace => {
                self.deselect();
                self.typed.pop();
            }
            Key::Clear => {
                self.deselect();
                self.typed.clear();
            }
            Key::Escape if !self.typed.is_empty() => self.typed.clear(),
            Key::Escape if self.deselect() => {}
            Key::Escape => return KeyEffect::Stop,
            Key::Enter => {
                let line = std::mem::take(&mut self.typed).trim().to_owned();
                return if line.is_empty() { KeyEffect::None } else { KeyEffect::Submit(line) };
            }
            _ => {}
        }
        KeyEffect::None
    }

    fn deselect(&mut self) -> bool {
        self.queue.front_mut().is_some_and(ApprovalPrompt::deselect)
    }

    /// Renders the row of the first question at the time `now`; `None` without one.
    pub fn row(&self, now: Instant) -> Option<String> {
        let prompt = self.queue.front()?;
        if !self.typed.is_empty() {
            let label = style("allow?").yellow().for_stderr();
            return Some(format!("{label} Enter or Esc the text first: its keys are no answer"));
        }
        let waiting = match self.queue.len() - 1 {
            0 => String::new(),
            more => style(format!("  (+{more} more)")).dim().for_stderr().to_string(),
        };
        Some(prompt.row(self.is_armed(now)) + &waiting)
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
