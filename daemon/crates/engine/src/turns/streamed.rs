//! The text of an answer being received: published at once to subscribers, combined into records a
//! few times a second.

use std::time::{Duration, Instant};

use cairn_protocol::{event::AgentEvt, id::RunId};

/// Longest time that text waits for its record.
pub const EVERY: Duration = Duration::from_millis(250);
/// Bytes of pending text that become a record at once.
const ENOUGH: usize = 16 * 1024;

/// One stream of text: the answer's or the thinking's.
#[derive(Debug)]
pub struct Streamed {
    reasoning: bool,
    /// Text that is not in a record yet.
    waiting: String,
    since: Instant,
    /// Bytes published live so far.
    published_bytes: u64,
    /// Bytes in records so far.
    recorded_bytes: u64,
    /// Complete text so far.
    pub text: String,
}

impl Streamed {
    pub fn new(reasoning: bool) -> Self {
        Self {
            reasoning,
            waiting: String::new(),
            since: Instant::now(),
            published_bytes: 0,
            recorded_bytes: 0,
            text: String::new(),
        }
    }

    /// Appends a piece; returns the live event for it.
    pub fn push(&mut self, run: &RunId, piece: String) -> AgentEvt {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.push_str(&piece);
        self.text.push_str(&piece);
        let offset = self.published_bytes;
        self.published_bytes += piece.len() as u64;
        AgentEvt::TokenDelta { run_id: run.clone(), reasoning: self.reasoning, offset, text: piece }
    }

    /// Returns the time at which pending text must be recorded, if there is any.
    pub fn deadline(&self) -> Option<Instant> {
        (!self.waiting.is_empty())
            .then(|| if self.waiting.len() >= ENOUGH { self.since } else { self.since + EVERY })
    }

    /// Returns the pending text as a record.
    pub fn flush(&mut self, run: &RunId) -> Option<AgentEvt> {
        if self.waiting.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.waiting);
        let offset = self.recorded_bytes;
        self.recorded_bytes += text.len() as u64;
        Some(AgentEvt::Text { run_id: run.clone(), reasoning: self.reasoning, offset, text })
    }
}
