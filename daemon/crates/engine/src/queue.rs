//! The work queue of a run: each operation once, at most so many in all, first come first served.

use std::collections::{HashSet, VecDeque};

use cairn_protocol::command::ToolCall;

/// Operations that wait. Equal calls are taken once.
#[derive(Debug)]
pub struct OpQueue {
    waiting: VecDeque<ToolCall>,
    seen: HashSet<String>,
    limit: usize,
}

/// What became of an offered operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// It waits.
    Taken,
    /// It was offered before.
    Known,
    /// The run has had as many as it may.
    Full,
}

impl OpQueue {
    /// A queue for at most `limit` operations in a run.
    pub fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), seen: HashSet::new(), limit }
    }

    /// Offers an operation.
    pub fn offer(&mut self, call: ToolCall) -> Offered {
        let key = key(&call);
        if self.seen.contains(&key) {
            return Offered::Known;
        }
        if self.seen.len() >= self.limit {
            return Offered::Full;
        }
        self.seen.insert(key);
        self.waiting.push_back(call);
        Offered::Taken
    }

    /// The next one.
    pub fn take(&mut self) -> Option<ToolCall> {
        self.waiting.pop_front()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The same for equal calls: maps of JSON values are sorted by key.
pub(crate) fn key(call: &ToolCall) -> String {
    format!("{} {}", call.name, call.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: u32) -> ToolCall {
        ToolCall { name: "t".into(), arguments: serde_json::json!({"n": n}) }
    }

    #[test]
    fn equal_calls_are_taken_once_and_the_limit_holds() {
        let mut queue = OpQueue::new(2);
        let got: Vec<_> = [1, 1, 2, 3].map(|n| queue.offer(call(n))).into();
        assert_eq!(got, [Offered::Taken, Offered::Known, Offered::Taken, Offered::Full]);
        assert_eq!(queue.take(), Some(call(1)));
        assert_eq!(queue.offer(call(1)), Offered::Known);
        assert_eq!(queue.len(), 1);
    }
}
