//! Detects loops of a model: the same calls with the same results.

use std::collections::VecDeque;

use cairn_protocol::model::{Message, ToolUse};

/// Number of recent rounds that are stored.
const WINDOW: usize = 12;
/// Longest loop that is detected, in rounds.
const LONGEST: usize = 3;
/// Repetitions after which the model is warned.
const WARN_AFTER: usize = 3;
/// Repetitions after which the turn fails.
const FAIL_AFTER: usize = 4;

/// Result of the check of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The round does not complete a loop.
    Fresh,
    /// A loop: the warning for the model.
    Repeated(String),
    /// The loop continues although the model was warned.
    Stuck(String),
}

/// The recent rounds of a turn.
#[derive(Debug, Default)]
pub struct Guard {
    rounds: VecDeque<(String, String)>,
    is_warned: bool,
}

impl Guard {
    /// Checks a round: calls and their results.
    pub fn look(&mut self, calls: &[ToolUse], results: &[Message]) -> Seen {
        let call_text = calls
            .iter()
            .map(|c| format!("{} {}", c.name, c.arguments))
            .collect::<Vec<_>>()
            .join("\n");
        let result_texts = results.iter().map(|m| match m {
            Message::Tool { content, .. } => content.as_str(),
            _ => "",
        });
        let round = (call_text, result_texts.collect::<Vec<_>>().join("\n"));
        if self.rounds.len() == WINDOW + LONGEST {
            self.rounds.pop_front();
        }
        self.rounds.push_back(round);
        let times = (1..=LONGEST).map(|length| self.times(length)).max().unwrap_or(1);
        let names = calls.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        if times >= FAIL_AFTER {
            return Seen::Stuck(format!(
                "the same calls ({names}) returned the same results {times} times"
            ));
        }
        if times >= WARN_AFTER && !self.is_warned {
            self.is_warned = true;
            return Seen::Repeated(format!(
                "You have made the same calls ({names}) {times} times and got the same results. Try \
                something else, or answer with what you know."
            ));
        }
        Seen::Fresh
    }

    /// Returns how often the latest `length` rounds are repeated at the end.
    fn times(&self, length: usize) -> usize {
        let rounds: Vec<_> = self.rounds.iter().rev().collect();
        let Some(last) = rounds.get(..length) else { return 1 };
        // Equal rounds are a loop of length one.
        if length > 1 && last.iter().all(|r| *r == last[0]) {
            return 1;
        }
        rounds.chunks_exact(length).take_while(|chunk| *chunk == last).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(guard: &mut Guard, call: &str, result: &str) -> Seen {
        let calls =
            [ToolUse { id: "c".into(), name: call.into(), arguments: serde_json::json!({}) }];
        let results = [Message::Tool {
            call_id: "c".into(),
            name: call.into(),
            content: result.into(),
            failed: false,
        }];
        guard.look(&calls, &results)
    }

    #[test]
    fn repetition_is_warned_about_and_then_fails() {
        for circle in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
            let mut guard = Guard::default();
            let seen: Vec<Seen> = (0..5 * circle.len())
                .map(|i| round(&mut guard, circle[i % circle.len()], "same"))
                .collect();
            let warned_at = seen.iter().position(|s| matches!(s, Seen::Repeated(_)));
            let failed_at = seen.iter().position(|s| matches!(s, Seen::Stuck(_)));
            assert_eq!(warned_at, Some(3 * circle.len() - 1), "{circle:?}");
            assert_eq!(failed_at, Some(4 * circle.len() - 1), "{circle:?}");
        }
    }

    #[test]
    fn changing_results_are_no_repetition() {
        let mut guard = Guard::default();
        for n in 0..40 {
            // A build that is repeated while files change: its results differ.
            assert_eq!(round(&mut guard, "run_shell", &format!("{} errors", 40 - n)), Seen::Fresh);
        }
        let mut guard = Guard::default();
        for n in 0..40 {
            let call = ["read", "edit", "test", "read2"][n % 4];
            assert_eq!(round(&mut guard, call, &n.to_string()), Seen::Fresh);
        }
    }
}
