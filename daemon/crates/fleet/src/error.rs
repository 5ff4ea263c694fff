//! Failures of calls that need the broker or another daemon.

use cairn_protocol::error::{Failure, Reason};

/// The broker did not answer, or refused.
pub fn unreachable(action: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Reason::BrokerUnreachable, format!("{action}: {error}"))
}

/// Text of an error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
