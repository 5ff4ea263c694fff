//! The work queue of a run: each operation once, with a limit on their total number, first in,
//! first out.

use std::collections::{HashSet, VecDeque};

use cairn_protocol::command::ToolCall;

/// Queue of pending operations, each with a value of its agent, such as the purpose of the
/// operation. Equal calls are accepted once.
#[derive(Debug)]
pub struct OpQueue<T = ()> {
    pending: VecDeque<(ToolCall, T)>,
    seen: HashSet<String>,
    limit: usize,
}

/// Result of an offered operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// The operation was queued.
    Queued,
    /// The operation was offered before.
    Known,
    /// The run has reached its limit of operations.
    Full,
}

impl<T> OpQueue<T> {
    /// Creates a queue for at most `limit` operations in a run.
    pub fn new(limit: usize) -> Self {
        Self { pending: VecDeque::new(), seen: HashSet::new(), limit }
    }

    /// Offers an operation to the queue.
    pub fn offer(&mut self, call: ToolCall, value: T) -> Offered {
        let key = key(&call);
        if self.seen.contains(&key) {
            return Offered::Known;
        }
        if self.seen.len() >= self.limit {
            return Offered::Full;
        }
        self.seen.insert(key);
        self.pending.push_back((call, value));
        Offered::Queued
    }

    /// Removes and returns the next operation.
    pub fn take(&mut self) -> Option<(ToolCall, T)> {
        self.pending.pop_front()
    }

    /// Returns the number of pending operations.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns true if no operation is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Returns a key that is equal for equal calls: maps of JSON values are sorted by key.
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
    fn equal_calls_are_queued_once_up_to_limit() {
        let mut queue = OpQueue::new(2);
        let got: Vec<_> = [1, 1, 2, 3].map(|n| queue.offer(call(n), n)).into();
        assert_eq!(got, [Offered::Queued, Offered::Known, Offered::Queued, Offered::Full]);
        assert_eq!(queue.take(), Some((call(1), 1)));
        assert_eq!(queue.offer(call(1), 1), Offered::Known);
        assert_eq!(queue.len(), 1);
    }
}
