//! Recorded answers, results and texts that a replayed turn receives.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::event::ToolOutcome;

/// The recorded side of one turn.
#[derive(Debug, Default)]
pub(crate) struct ReplaySource(Mutex<Remaining>);

#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// Steering texts of clients before the answer of each number.
    pub steering: Vec<Vec<(u64, String)>>,
    /// Number of answers requested so far.
    pub answers_requested: usize,
    /// Ids of the calls of each answer: recorded bytes without ids would get new ones.
    pub ids: Vec<Vec<String>>,
    /// Results by id of the call.
    pub results: HashMap<String, (ToolOutcome, serde_json::Value)>,
    /// Summaries of condensed conversations, in order.
    pub summaries: VecDeque<String>,
    /// Current results of read-only calls that differ: call, recorded, current.
    pub differs: Vec<(String, serde_json::Value, serde_json::Value)>,
}

impl ReplaySource {
    pub fn new(parts: Remaining) -> Self {
        Self(Mutex::new(parts))
    }

    pub fn parts(&self) -> MutexGuard<'_, Remaining> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the texts before the next answer, each once.
    pub fn take_steering(&self) -> Vec<(u64, String)> {
        let mut parts = self.parts();
        let at = parts.answers_requested;
        parts.steering.get_mut(at).map(std::mem::take).unwrap_or_default()
    }
}
