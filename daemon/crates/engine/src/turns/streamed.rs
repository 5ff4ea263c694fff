//! The text of an answer on its way: told at once to whoever watches, put together into records a few times a second.

use std::time::{Duration, Instant};

use cairn_protocol::{event::AgentEvt, id::RunId};

/// How long text waits at most before it is a record.
pub const EVERY: Duration = Duration::from_millis(250);
/// Bytes of text that become a record at once.
const ENOUGH: usize = 16 * 1024;

/// One stream of text: the answer's or the thinking's.
#[derive(Debug)]
pub struct Streamed {
    reasoning: bool,
    /// What no record holds yet.
    waiting: String,
    since: Instant,
    /// Bytes told live.
    told: u64,
    /// Bytes in records.
    kept: u64,
    /// All of it.
    pub text: String,
}

impl Streamed {
    /// Nothing yet.
    pub fn new(reasoning: bool) -> Self {
        Self {
            reasoning,
            waiting: String::new(),
            since: Instant::now(),
            told: 0,
            kept: 0,
            text: String::new(),
        }
    }

    /// Takes a piece; the answer is what to tell live.
    pub fn push(&mut self, run: &RunId, piece: String) -> AgentEvt {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.push_str(&piece);
        self.text.push_str(&piece);
        let offset = self.told;
        self.told += piece.len() as u64;
        AgentEvt::TokenDelta { run_id: run.clone(), reasoning: self.reasoning, offset, text: piece }
    }

    /// When what waits is due, if anything waits.
    pub fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty())
            .then(|| if self.waiting.len() >= ENOUGH { self.since } else { self.since + EVERY })
    }

    /// What waits, as a record.
    pub fn flush(&mut self, run: &RunId) -> Option<AgentEvt> {
        if self.waiting.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.waiting);
        let offset = self.kept;
        self.kept += text.len() as u64;
        Some(AgentEvt::Text { run_id: run.clone(), reasoning: self.reasoning, offset, text })
    }
}
