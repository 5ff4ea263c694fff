//! Runs that the requests of a client started and that have not ended. Only runs of sessions that
//! it follows are pending: the end of another run is not received.

use std::collections::{BTreeSet, HashMap};

use cairn_client_sdk::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum number of tracked requests and sessions.
const MAX_TRACKED: usize = 4096;
/// Maximum bytes of an event that can be the end of a run.
const MAX_EVENT: usize = 16 * 1024 * 1024;
/// Maximum bytes of an answer that can name a run or a subscription.
const MAX_ANSWER: usize = 4096;

#[derive(Debug, Default)]
pub struct Runs {
    /// Open requests that matter, by id, as JSON.
    requests: HashMap<String, Tracked>,
    /// Sessions by their subscription.
    followed: HashMap<String, String>,
    sessions: HashMap<String, SessionRuns>,
}

#[derive(Debug)]
enum Tracked {
    Start,
    Subscribe { session: String },
}

#[derive(Debug, Default)]
struct SessionRuns {
    /// Positions in the log at which pending runs were accepted. They end in this order.
    pending: BTreeSet<u64>,
    /// Position of the latest end.
    last_end: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ids {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    subscription_id: Option<String>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    evt: Option<EventType>,
}

#[derive(Deserialize)]
struct EventType {
    #[serde(rename = "type")]
    kind: String,
}

fn ids(value: &RawValue) -> Option<Ids> {
    serde_json::from_str(value.get()).ok()
}

/// A message of the daemon that matters.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    RunEnd { session: String, seq: u64 },
    Gone { subscription: String },
    Answer { id: String, session: Option<String>, subscription: Option<String>, seq: u64 },
}

impl Received {
    /// Parses a message; `None` if it cannot change the pending runs.
    pub fn of(message: &Frame<'_>) -> Option<Self> {
        match (message.method.as_deref(), message.id) {
            (Some("orchestrate.event"), _) => {
                let params = message.params.filter(|params| params.get().len() <= MAX_EVENT)?;
                let Ids { session_id, seq, evt, .. } = ids(params)?;
                let kind = evt?.kind;
                let ends = matches!(&*kind, "run_completed" | "completed" | "interrupted");
                ends.then_some(Self::RunEnd { session: session_id?, seq })
            }
            (Some("orchestrate.gone"), _) => {
                Some(Self::Gone { subscription: ids(message.params?)?.subscription_id? })
            }
            (None, Some(id)) => {
                let answer = message.result.filter(|result| result.get().len() <= MAX_ANSWER);
                let Ids { session_id, subscription_id, seq, .. } =
                    answer.and_then(ids).unwrap_or_default();
                let id = id.get().to_owned();
                Some(Self::Answer { id, session: session_id, subscription: subscription_id, seq })
            }
            _ => None,
        }
    }
}

impl Runs {
    /// Records a request of the client.
    pub fn record_sent(&mut self, message: &Frame<'_>) {
        if self.requests.len() >= MAX_TRACKED {
            return;
        }
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else { return };
        let params = || message.params.and_then(ids);
        let tracked = match method {
            "orchestrate.run.start" | "orchestrate.explore.start" | "session.resume" => {
                Tracked::Start
            }
            "orchestrate.subscribe" => match params().and_then(|ids| ids.session_id) {
                Some(session) => Tracked::Subscribe { session },
                None => return,
            },
            "orchestrate.unsubscribe" => {
                if let Some(subscription) = params().and_then(|ids| ids.subscription_id) {
                    self.unfollow(&subscription);
                }
                return;
            }
            _ => return,
        };
        self.requests.insert(id.get().to_owned(), tracked);
    }

    /// Records a message of the daemon.
    pub fn record_received(&mut self, received: Received) {
        match received {
            Received::RunEnd { session, seq } => self.record_end(session, seq),
            Received::Gone { subscription } => self.unfollow(&subscription),
            Received::Answer { id, session, subscription, seq } => {
                let Some(tracked) = self.requests.remove(&id) else { return };
                self.record_answer(tracked, session, subscription, seq);
            }
        }
    }

    fn record_answer(
        &mut self,
        tracked: Tracked,
        session: Option<String>,
        subscription: Option<String>,
        seq: u64,
    ) {
        if self.sessions.len() >= MAX_TRACKED {
            return;
        }
        match (tracked, session, subscription) {
            (Tracked::Start, Some(session), _) => {
                let runs = self.sessions.entry(session).or_default();
                if runs.last_end <= seq {
                    runs.pending.insert(seq);
                }
            }
            (Tracked::Subscribe { session }, _, Some(subscription)) => {
                self.followed.insert(subscription, session);
            }
            _ => {}
        }
    }

    fn record_end(&mut self, session: String, seq: u64) {
        if self.sessions.len() >= MAX_TRACKED {
            return;
        }
        let runs = self.sessions.entry(session).or_default();
        runs.last_end = runs.last_end.max(seq);
        if let Some(first) = runs.pending.first().copied().filter(|first| *first < seq) {
            runs.pending.remove(&first);
        }
    }

    fn unfollow(&mut self, subscription: &str) {
        self.followed.remove(subscription);
    }

    /// Returns the number of runs whose end is still to be received.
    pub fn count(&self) -> usize {
        let is_followed = |session: &str| self.followed.values().any(|own| own == session);
        let open = self.sessions.iter().filter(|(session, _)| is_followed(session));
        open.map(|(_, runs)| runs.pending.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(exchange: &[&str]) -> Vec<usize> {
        let mut runs = Runs::default();
        let count = |line: &&str| {
            let (direction, text) = line.split_at(1);
            for message in Frame::parse_batch(text).unwrap() {
                match direction {
                    ">" => runs.record_sent(&message),
                    _ => Received::of(&message).into_iter().for_each(|m| runs.record_received(m)),
                }
            }
            runs.count()
        };
        exchange.iter().map(count).collect()
    }

    const FOLLOW: [&str; 2] = [
        r#">{"id":1,"method":"orchestrate.subscribe","params":{"sessionId":"s"}}"#,
        r#"<{"id":1,"result":{"subscriptionId":"f"}}"#,
    ];
    const START: &str = r#">{"id":2,"method":"orchestrate.run.start","params":{"sessionId":"s"}}"#;
    const STARTED: &str = r#"<{"id":2,"result":{"sessionId":"s","runId":"r","seq":4}}"#;
    const FINISHED: &str = r#"<{"method":"orchestrate.event","params":{"sessionId":"s","subscriptionId":"f","seq":9,"evt":{"type":"run_completed"}}}"#;

    #[test]
    fn followed_run_is_pending_until_it_ends() {
        let [subscribe, subscribed] = FOLLOW;
        let other = FINISHED.replace("run_completed", "text");
        assert_eq!(
            counts(&[subscribe, subscribed, START, STARTED, &other, FINISHED]),
            [0, 0, 0, 1, 1, 0]
        );
        // The end can overtake the answer.
        assert_eq!(counts(&[subscribe, subscribed, START, FINISHED, STARTED]), [0; 5]);
        // The end of an earlier run, from the backlog, ends none.
        let earlier = FINISHED.replace('9', "3");
        assert_eq!(counts(&[subscribe, subscribed, START, STARTED, &earlier])[4], 1);
    }

    #[test]
    fn run_that_is_not_followed_or_not_started_is_not_pending() {
        let [subscribe, subscribed] = FOLLOW;
        assert_eq!(counts(&[START, STARTED]), [0, 0]);
        let refused = r#"<{"id":2,"error":{"code":1}}"#;
        assert_eq!(counts(&[subscribe, subscribed, START, refused]), [0; 4]);
        let leave =
            r#">{"id":3,"method":"orchestrate.unsubscribe","params":{"subscriptionId":"f"}}"#;
        assert_eq!(counts(&[subscribe, subscribed, START, STARTED, leave])[4], 0);
    }
}
