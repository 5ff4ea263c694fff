//! Lanes: calls whose scope asks for it run one after the other, in the order in which they came.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::{connection::locked, method::Scope};

/// What calls of one lane have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// All calls of scope [`Scope::Global`].
    Global,
    /// Those of one session.
    Session(String),
}

/// The last call of each lane that has one. A lane is as long as there are calls in flight, which have their limit.
#[derive(Default)]
pub struct Lanes(Mutex<Tails>);

#[derive(Default)]
struct Tails {
    last: HashMap<Key, (u64, oneshot::Receiver<()>)>,
    next: u64,
}

/// A place in a lane, held until it is dropped.
pub struct Turn {
    lanes: Arc<Lanes>,
    key: Key,
    number: u64,
    before: Option<oneshot::Receiver<()>>,
    /// Dropped with the turn, which tells the call behind.
    _done: oneshot::Sender<()>,
}

impl Lanes {
    /// The next place in the lane that a call belongs to; `None` when it may run beside anything.
    pub fn enter(self: &Arc<Self>, scope: Scope, params: Option<&RawValue>) -> Option<Turn> {
        let key = match scope {
            Scope::Shared => return None,
            Scope::Global => Key::Global,
            // A call that names no session makes one, and is the only call of it.
            Scope::PerSession => Key::Session(session_in(params)?),
        };
        let (done, ended) = oneshot::channel();
        let mut tails = locked(&self.0);
        tails.next += 1;
        let number = tails.next;
        let before = tails.last.insert(key.clone(), (number, ended)).map(|(_, before)| before);
        Some(Turn { lanes: Arc::clone(self), key, number, before, _done: done })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        locked(&self.0).last.len()
    }
}

impl Turn {
    /// Waits for the call in front.
    pub async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // Whether it ended well or was dropped, the lane is free.
            let _ended = before.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut tails = locked(&self.lanes.0);
        if tails.last.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            tails.last.remove(&self.key);
        }
    }
}

fn session_in(params: Option<&RawValue>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        session_id: Option<String>,
    }
    serde_json::from_str::<Named>(params?.get()).ok()?.session_id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(session: &str) -> Box<RawValue> {
        serde_json::value::to_raw_value(&serde_json::json!({"sessionId": session})).unwrap()
    }

    #[tokio::test]
    async fn a_lane_keeps_the_order_and_lanes_do_not_wait_for_each_other() {
        let lanes = Arc::new(Lanes::default());
        let (one, other) = (params("ses_1"), params("ses_2"));
        let enter = |p: &RawValue| lanes.enter(Scope::PerSession, Some(p)).unwrap();
        let (first, mut second, mut third, mut beside) =
            (enter(&one), enter(&one), enter(&one), enter(&other));
        let order = Arc::new(Mutex::new(Vec::new()));
        let (a, b) = (Arc::clone(&order), Arc::clone(&order));
        // The later one is polled first and still comes later.
        let third = tokio::spawn(async move {
            third.come().await;
            locked(&a).push(3);
        });
        tokio::task::yield_now().await;
        let second = tokio::spawn(async move {
            second.come().await;
            locked(&b).push(2);
        });
        beside.come().await;
        // On the test's one thread, whoever could go on has gone on after a few of these.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(locked(&order).is_empty());
        drop(first);
        second.await.unwrap();
        third.await.unwrap();
        assert_eq!(*locked(&order), [2, 3]);
        drop(beside);
        assert_eq!(lanes.len(), 0, "an empty lane is forgotten");
    }

    #[test]
    fn only_scopes_that_ask_for_it_have_lanes() {
        let lanes = Arc::new(Lanes::default());
        assert!(lanes.enter(Scope::Shared, Some(&params("s"))).is_none());
        assert!(lanes.enter(Scope::PerSession, None).is_none());
        assert!(lanes.enter(Scope::Global, None).is_some());
    }
}
