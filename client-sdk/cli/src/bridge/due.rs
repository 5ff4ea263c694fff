//! What is still to come once the input has ended: answers, and the backlog of subscriptions.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// Requests that are kept in mind at most. The daemon refuses what is over its limits, so that no more are open.
const MOST: usize = 16 * 1024;
/// The longest result that is looked at for a subscription.
const SHORT: usize = 1024;

/// Open requests and subscriptions.
#[derive(Debug, Default)]
pub struct Due {
    open: Mutex<Open>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    /// How many requests have this id, as JSON.
    requests: HashMap<String, u32>,
    /// Subscriptions whose backlog has not all come.
    backlogs: HashSet<String>,
}

/// What a message of the daemon settles.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    answered: Vec<String>,
    begun: Vec<String>,
    ended: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "subscriptionId", default)]
    subscription: Option<String>,
    /// Of a call that its client takes back and that is then not answered, as in the Model Context Protocol.
    #[serde(rename = "requestId", default)]
    request: Option<Box<RawValue>>,
}

/// The id of an answer to what could not be read.
const NOBODY: &str = "null";

impl Due {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message goes to the daemon.
    pub fn sent(&self, text: &str) {
        let mut open = self.open();
        let all = match messages(text) {
            Some(all) if !all.is_empty() => all,
            _ => return open.add(NOBODY),
        };
        for message in all {
            let named = || message.params.and_then(named);
            match (message.method.as_deref(), message.id) {
                (Some("orchestrate.unsubscribe"), id) => {
                    if let Some(left) = named().and_then(|n| n.subscription) {
                        open.backlogs.remove(&left);
                    }
                    open.add(id.map_or(NOBODY, RawValue::get));
                }
                (Some(_), Some(id)) => open.add(id.get()),
                (Some("notifications/cancelled"), None) => {
                    if let Some(id) = named().and_then(|n| n.request) {
                        open.remove(id.get());
                    }
                }
                // A notification, or an answer to the daemon.
                (Some(_), None) | (None, Some(_)) => {}
                (None, None) => open.add(NOBODY),
            }
        }
    }

    /// Reads a message of the daemon; what it settles is settled when its reader has it.
    pub fn told(&self, text: &str) -> Told {
        let mut told = Told::default();
        for message in messages(text).unwrap_or_default() {
            match (message.method.as_deref(), message.id) {
                (Some("orchestrate.synced" | "orchestrate.gone"), _) => {
                    told.ended = message.params.and_then(named).and_then(|n| n.subscription);
                }
                (None, Some(id)) => {
                    told.answered.push(id.get().to_owned());
                    let short = message.result.filter(|result| result.get().len() <= SHORT);
                    told.begun.extend(short.and_then(named).and_then(|n| n.subscription));
                }
                // An error whose id is null has none to this reader.
                (None, None) => told.answered.push(NOBODY.into()),
                (Some(_), _) => {}
            }
        }
        told
    }

    /// What was told is done.
    pub fn settle(&self, told: Told) {
        if told == Told::default() {
            return;
        }
        let mut open = self.open();
        told.answered.iter().for_each(|id| open.remove(id));
        open.backlogs.extend(told.begun);
        if let Some(id) = told.ended {
            open.backlogs.remove(&id);
        }
        drop(open);
        self.changed.notify_waiters();
    }

    /// How much is open.
    pub fn count(&self) -> usize {
        let open = self.open();
        open.requests.len() + open.backlogs.len()
    }

    /// Waits until nothing is open.
    pub async fn none(&self) {
        loop {
            let changed = self.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }
}

impl Open {
    fn add(&mut self, id: &str) {
        if self.requests.len() < MOST {
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

fn messages(text: &str) -> Option<Vec<Message<'_>>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    serde_json::from_str(text).ok().map(|one| vec![one])
}

fn named(value: &RawValue) -> Option<Named> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends (`>`) and hears (`<`) each message; how much is open after it.
    fn counts(talk: &[&str]) -> Vec<usize> {
        let due = Due::default();
        let count = |line: &&str| {
            match line.split_at(1) {
                (">", text) => due.sent(text),
                (_, text) => due.settle(due.told(text)),
            }
            due.count()
        };
        talk.iter().map(count).collect()
    }

    #[test]
    fn what_is_open() {
        for (talk, want) in [
            (&[r#">{"id":1,"method":"a"}"#, r#"<{"id":1,"result":{}}"#][..], &[1, 0][..]),
            (&[r#">{"method":"a"}"#, r#">{"id":7,"result":{}}"#], &[0, 0]),
            (
                &[r#">{"id":"x","method":"a"}"#, r#"<{"id":1,"result":{}}"#, r#"<{"id":"x","error":{}}"#],
                &[1, 1, 0],
            ),
            // The daemon's own requests and notifications answer nothing.
            (&[r#">{"id":1,"method":"a"}"#, r#"<{"id":1,"method":"b"}"#, r#"<{"method":"c"}"#], &[1, 1, 1]),
            (
                &[r#">{"id":1,"method":"a"}"#, r#">{"id":1,"method":"a"}"#, r#"<{"id":1,"result":0}"#],
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
            (&[">[]", ">7", r#"<{"id":null,"error":{}}"#, r#"<{"id":null,"error":{}}"#], &[1, 1, 1, 0]),
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
            assert_eq!(counts(talk), want, "{talk:?}");
        }
    }
}
