//! Pending work at the end of the input: answers, and the backlog of subscriptions.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cairn_client_sdk::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::runs::{Received, Runs};

/// Maximum number of tracked requests. The daemon refuses requests over its limits, so more cannot
/// be open.
const MAX_REQUESTS: usize = 16 * 1024;
/// Maximum bytes of a result that is searched for a subscription id.
const MAX_SCANNED: usize = 1024;

/// Open requests and subscriptions.
#[derive(Debug, Default)]
pub struct PendingWork {
    open: Mutex<OpenWork>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct OpenWork {
    /// Number of requests by id, as JSON.
    requests: HashMap<String, u32>,
    /// Subscriptions whose backlog is incomplete.
    backlogs: HashSet<String>,
    runs: Runs,
}

/// The requests and subscriptions that a message of the daemon completes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Completion {
    answered: Vec<String>,
    started_backlogs: Vec<String>,
    finished_backlog: Option<String>,
    runs: Vec<Received>,
}

#[derive(Deserialize)]
struct MessageIds {
    #[serde(rename = "subscriptionId", default)]
    subscription: Option<String>,
    /// Names a request that its client cancelled and that will not be answered, as in the Model
    /// Context Protocol.
    #[serde(rename = "requestId", default)]
    request: Option<Box<RawValue>>,
}

/// The id of an answer to an unreadable message.
const NULL_ID: &str = "null";

impl PendingWork {
    fn open(&self) -> MutexGuard<'_, OpenWork> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a message to the daemon.
    pub fn record_sent(&self, text: &str) {
        let mut open = self.open();
        let all = match Frame::parse_batch(text) {
            Ok(all) if !all.is_empty() => all,
            _ => return open.add(NULL_ID),
        };
        for message in all {
            open.runs.record_sent(&message);
            let ids = || message.params.and_then(message_ids);
            match (message.method.as_deref(), message.id) {
                (Some("orchestrate.unsubscribe"), id) => {
                    if let Some(subscription) = ids().and_then(|n| n.subscription) {
                        open.backlogs.remove(&subscription);
                    }
                    open.add(id.map_or(NULL_ID, RawValue::get));
                }
                (Some(_), Some(id)) => open.add(id.get()),
                (Some("notifications/cancelled"), None) => {
                    if let Some(id) = ids().and_then(|n| n.request) {
                        open.remove(id.get());
                    }
                }
                // A notification, or an answer to the daemon.
                (Some(_), None) | (None, Some(_)) => {}
                (None, None) => open.add(NULL_ID),
            }
        }
    }

    /// Parses a message of the daemon; its effect is recorded by [`Self::complete`] once the reader
    /// has it.
    pub fn parse_completion(&self, text: &str) -> Completion {
        let mut completion = Completion::default();
        for message in Frame::parse_batch(text).unwrap_or_default() {
            completion.runs.extend(Received::of(&message));
            match (message.method.as_deref(), message.id) {
                (Some("orchestrate.synced" | "orchestrate.gone"), _) => {
                    completion.finished_backlog =
                        message.params.and_then(message_ids).and_then(|n| n.subscription);
                }
                (None, Some(id)) => {
                    completion.answered.push(id.get().to_owned());
                    let short = message.result.filter(|result| result.get().len() <= MAX_SCANNED);
                    completion
                        .started_backlogs
                        .extend(short.and_then(message_ids).and_then(|n| n.subscription));
                }
                // An error with a null id belongs to no known request.
                (None, None) => completion.answered.push(NULL_ID.into()),
                (Some(_), _) => {}
            }
        }
        completion
    }

    pub fn complete(&self, completion: Completion) {
        if completion == Completion::default() {
            return;
        }
        let mut open = self.open();
        completion.runs.into_iter().for_each(|received| open.runs.record_received(received));
        completion.answered.iter().for_each(|id| open.remove(id));
        open.backlogs.extend(completion.started_backlogs);
        if let Some(id) = completion.finished_backlog {
            open.backlogs.remove(&id);
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// Returns the number of open requests and subscriptions.
    pub fn count(&self) -> usize {
        let open = self.open();
        open.requests.len() + open.backlogs.len() + open.runs.count()
    }

    /// Returns the number of followed runs that have not ended.
    pub fn running(&self) -> usize {
        self.open().runs.count()
    }

    /// Waits until no followed run is running.
    pub async fn wait_for_runs(&self) {
        loop {
            let changed = self.changed.notified();
            if self.running() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Waits until nothing is pending.
    pub async fn wait_until_empty(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl OpenWork {
    fn add(&mut self, id: &str) {
        if self.requests.len() < MAX_REQUESTS {
            *self.requests.entry(id.to_owned()).or_default() += 1;
        }
    }

    fn remove(&mut self, id: &str) {
        if let Some(count) = self.requests.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.requests.remove(id);
            }
        }
    }
}

fn message_ids(value: &RawValue) -> Option<MessageIds> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends (`>`) and receives (`<`) each message, and returns the number of pending items after
    /// it.
    fn counts(exchange: &[&str]) -> Vec<usize> {
        let pending = PendingWork::default();
        let count = |line: &&str| {
            match line.split_at(1) {
                (">", text) => pending.record_sent(text),
                (_, text) => pending.complete(pending.parse_completion(text)),
            }
            pending.count()
        };
        exchange.iter().map(count).collect()
    }

    #[test]
    fn pending_work_is_counted() {
        for (exchange, expected) in [
            (&[r#">{"id":1,"method":"a"}"#, r#"<{"id":1,"result":{}}"#][..], &[1, 0][..]),
            (&[r#">{"method":"a"}"#, r#">{"id":7,"result":{}}"#], &[0, 0]),
            (
                &[
                    r#">{"id":"x","method":"a"}"#,
                    r#"<{"id":1,"result":{}}"#,
                    r#"<{"id":"x","error":{}}"#,
                ],
                &[1, 1, 0],
            ),
            // Requests and notifications of the daemon answer nothing.
            (
                &[r#">{"id":1,"method":"a"}"#, r#"<{"id":1,"method":"b"}"#, r#"<{"method":"c"}"#],
                &[1, 1, 1],
            ),
            (
                &[
                    r#">{"id":1,"method":"a"}"#,
                    r#">{"id":1,"method":"a"}"#,
                    r#"<{"id":1,"result":0}"#,
                ],
                &[1, 1, 1],
            ),
            (
                &[
                    r#">[{"id":1,"method":"a"},{"method":"b"},{"id":2,"method":"a"}]"#,
                    r#"<[{"id":1,"result":0},{"id":2,"error":0}]"#,
                ],
                &[2, 0],
            ),
            (&[">half {", r#"<{"id":null,"error":{}}"#], &[1, 0]),
            (
                &[">[]", ">7", r#"<{"id":null,"error":{}}"#, r#"<{"id":null,"error":{}}"#],
                &[1, 1, 1, 0],
            ),
            (
                &[
                    r#">{"id":1,"method":"orchestrate.subscribe"}"#,
                    r#"<{"id":1,"result":{"subscriptionId":"sub_1","headSeq":3}}"#,
                    r#"<{"method":"orchestrate.event","params":{"subscriptionId":"sub_1"}}"#,
                    r#"<{"method":"orchestrate.synced","params":{"subscriptionId":"sub_1","seq":3}}"#,
                ],
                &[1, 1, 1, 0],
            ),
            (
                &[
                    r#"<{"id":1,"result":{"subscriptionId":"sub_1"}}"#,
                    r#">{"id":2,"method":"orchestrate.unsubscribe","params":{"subscriptionId":"sub_1"}}"#,
                    r#"<{"id":2,"result":{}}"#,
                ],
                &[1, 1, 0],
            ),
            (
                &[
                    r#">{"id":5,"method":"a"}"#,
                    r#">{"method":"notifications/cancelled","params":{"requestId":5}}"#,
                ],
                &[1, 0],
            ),
        ] {
            assert_eq!(counts(exchange), expected, "{exchange:?}");
        }
    }
}
