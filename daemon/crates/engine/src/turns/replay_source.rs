//! What a replayed turn is given in place of the world: recorded answers, results and words.

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
    /// What clients said before the answer of each number.
    pub said: Vec<Vec<(u64, String)>>,
    /// Answers asked for so far.
    pub asked: usize,
    /// Ids of the calls of each answer: where the recorded bytes hold none, they would be made anew.
    pub ids: Vec<Vec<String>>,
    /// Results by call.
    pub results: HashMap<String, (ToolOutcome, serde_json::Value)>,
    /// Summaries of condensed conversations, in order.
    pub summaries: VecDeque<String>,
    /// What the same reading calls give now, where it differs: call, recorded, now.
    pub differs: Vec<(String, serde_json::Value, serde_json::Value)>,
}

impl ReplaySource {
    pub fn new(parts: Remaining) -> Self {
        Self(Mutex::new(parts))
    }

    pub fn parts(&self) -> MutexGuard<'_, Remaining> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said before the next answer, each thing once.
    pub fn said(&self) -> Vec<(u64, String)> {
        let mut parts = self.parts();
        let at = parts.asked;
        parts.said.get_mut(at).map(std::mem::take).unwrap_or_default()
    }
}
