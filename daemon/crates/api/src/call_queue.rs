//! Queues for calls that must run one after the other, in the order of their arrival.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::{connection::lock, method::Scope};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// All calls of scope [`Scope::Global`].
    Global,
    /// The calls of one session.
    Session(String),
}

/// The last call of each non-empty queue. The limit of calls in flight bounds the length of the
/// queues.
#[derive(Default)]
pub struct CallQueue(Mutex<Tails>);

#[derive(Default)]
struct Tails {
    last: HashMap<Key, (u64, oneshot::Receiver<()>)>,
    next: u64,
}

/// A slot in a queue, occupied until it is dropped.
pub struct QueueSlot {
    queue: Arc<CallQueue>,
    key: Key,
    number: u64,
    previous: Option<oneshot::Receiver<()>>,
    /// Dropped with the slot, which wakes the next call.
    _release: oneshot::Sender<()>,
}

impl CallQueue {
    /// Joins the queue that a call belongs to; `None` when the call needs no order.
    pub fn enter(self: &Arc<Self>, scope: Scope, params: Option<&RawValue>) -> Option<QueueSlot> {
        let key = match scope {
            Scope::Shared => return None,
            Scope::Global => Key::Global,
            // A call without a session id creates a session, and is its only call.
            Scope::PerSession => Key::Session(session_in(params)?),
        };
        let (done, released) = oneshot::channel();
        let mut tails = lock(&self.0);
        tails.next += 1;
        let number = tails.next;
        let previous =
            tails.last.insert(key.clone(), (number, released)).map(|(_, previous)| previous);
        Some(QueueSlot { queue: Arc::clone(self), key, number, previous, _release: done })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.0).last.len()
    }
}

impl QueueSlot {
    /// Waits for the previous call.
    pub async fn ready(&mut self) {
        if let Some(previous) = self.previous.take() {
            // An error means that the previous slot was dropped, so the queue is free as well.
            let _released = previous.await;
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let mut tails = lock(&self.queue.0);
        if tails.last.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            tails.last.remove(&self.key);
        }
    }
}

fn session_in(params: Option<&RawValue>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SessionParam {
        session_id: Option<String>,
    }
    serde_json::from_str::<SessionParam>(params?.get()).ok()?.session_id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(session: &str) -> Box<RawValue> {
        serde_json::value::to_raw_value(&serde_json::json!({"sessionId": session})).unwrap()
    }

    #[tokio::test]
    async fn calls_of_one_session_are_ordered_and_sessions_are_independent() {
        let queue = Arc::new(CallQueue::default());
        let one = params("ses_1");
        let other = params("ses_2");
        let enter = |p: &RawValue| queue.enter(Scope::PerSession, Some(p)).unwrap();
        let first = enter(&one);
        let mut second = enter(&one);
        let mut third = enter(&one);
        let mut beside = enter(&other);
        let order = Arc::new(Mutex::new(Vec::new()));
        let a = Arc::clone(&order);
        let b = Arc::clone(&order);
        // The third is polled first and still runs after the second.
        let third = tokio::spawn(async move {
            third.ready().await;
            lock(&a).push(3);
        });
        tokio::task::yield_now().await;
        let second = tokio::spawn(async move {
            second.ready().await;
            lock(&b).push(2);
        });
        beside.ready().await;
        // The test has one thread: every runnable task has run after a few yields.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(lock(&order).is_empty());
        drop(first);
        second.await.unwrap();
        third.await.unwrap();
        assert_eq!(*lock(&order), [2, 3]);
        drop(beside);
        assert_eq!(queue.len(), 0, "an empty queue is removed");
    }

    #[test]
    fn only_ordered_scopes_are_queued() {
        let queue = Arc::new(CallQueue::default());
        assert!(queue.enter(Scope::Shared, Some(&params("s"))).is_none());
        assert!(queue.enter(Scope::PerSession, None).is_none());
        assert!(queue.enter(Scope::Global, None).is_some());
    }
}
