//! Progress notifications for the clients that started the work.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use cairn_engine::Notice;
use cairn_protocol::rpc;
use tokio::{
    sync::{broadcast::error::RecvError, watch},
    task::AbortHandle,
};

use crate::{
    connection::{Connection, lock},
    message,
};

/// The progress that a connection is subscribed to. The engine's notices are only received once
/// something is.
#[derive(Default)]
pub struct ProgressSubscriptions {
    state: Mutex<State>,
    /// Number of pending receipts; notifications wait until it is zero.
    pending_receipts: watch::Sender<u32>,
}

/// Delays a connection's notifications while it exists, so that a receipt is sent before the
/// progress that it announces.
#[must_use = "notifications are sent as soon as this is dropped"]
pub struct ReceiptBarrier(Connection);

impl Drop for ReceiptBarrier {
    fn drop(&mut self) {
        self.0.inner.progress.pending_receipts.send_modify(|count| *count -= 1);
    }
}

#[derive(Default)]
struct State {
    roots: Roots,
    /// Unfinished clones, oldest first.
    clones: VecDeque<String>,
    task: Option<AbortHandle>,
    /// Set on disconnect: continuing work has no subscriber any more.
    closed: bool,
}

/// Subscribed roots by path, with the paths in the order of their subscription.
#[derive(Default)]
struct Roots {
    roots_by_path: HashMap<String, RootSubscription>,
    order: VecDeque<String>,
}

/// A subscription to one root.
struct RootSubscription {
    /// The client's id of the request, if it sent one.
    request_id: Option<String>,
    /// The index that is being replaced, whose own progress is not reported.
    replaced_index: Option<String>,
}

/// Maximum of subscribed roots, and of clones, per connection; the oldest is dropped for a new one.
const MAX_SUBSCRIBED: usize = 1024;

impl Roots {
    fn insert(&mut self, path: &str, subscription: RootSubscription) {
        if self.roots_by_path.insert(path.to_owned(), subscription).is_none() {
            self.order.push_back(path.to_owned());
        }
        if self.order.len() > MAX_SUBSCRIBED
            && let Some(oldest) = self.order.pop_front()
        {
            self.roots_by_path.remove(&oldest);
        }
    }
}

impl ProgressSubscriptions {
    /// Ends all subscriptions for good.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        if let Some(task) = state.task.take() {
            task.abort();
        }
    }
}

impl Connection {
    /// Subscribes to the index of `path`. Notifications start when the barrier is dropped.
    pub(crate) fn subscribe_index(&self, path: &str, request_id: Option<String>) -> ReceiptBarrier {
        self.subscribe_with(|state| {
            state.roots.insert(path, RootSubscription { request_id, replaced_index: None });
        })
    }

    /// Subscribes to the index that replaces `replaced_index`. Notifications start when the barrier
    /// is dropped.
    pub(crate) fn subscribe_rebuild(
        &self,
        path: &str,
        request_id: Option<String>,
        replaced_index: String,
    ) -> ReceiptBarrier {
        self.subscribe_with(|state| {
            state
                .roots
                .insert(path, RootSubscription { request_id, replaced_index: Some(replaced_index) })
        })
    }

    /// Subscribes to a clone. Notifications start when the barrier is dropped.
    pub(crate) fn subscribe_clone(&self, request_id: &str) -> ReceiptBarrier {
        self.subscribe_with(|state| {
            state.clones.push_back(request_id.to_owned());
            if state.clones.len() > MAX_SUBSCRIBED {
                state.clones.pop_front();
            }
        })
    }

    fn subscribe_with(&self, change: impl FnOnce(&mut State)) -> ReceiptBarrier {
        self.inner.progress.pending_receipts.send_modify(|count| *count += 1);
        let barrier = ReceiptBarrier(self.clone());
        let mut state = lock(&self.inner.progress.state);
        if state.closed {
            return barrier;
        }
        change(&mut state);
        if state.task.is_none() {
            let mut notices = self.inner.api.engine.notices();
            let this = self.clone();
            let mut pending_receipts = self.inner.progress.pending_receipts.subscribe();
            let forward = async move {
                loop {
                    match notices.recv().await {
                        Ok(notice) => {
                            if pending_receipts.wait_for(|count| *count == 0).await.is_err() {
                                return;
                            }
                            if let Some(text) = this.notification(&notice) {
                                this.reply(text).await;
                            }
                        }
                        // Missed progress is superseded by the next notification. A missed end is
                        // not, so ends are reported again from the present state.
                        Err(RecvError::Lagged(_)) => {
                            for text in this.end_notifications() {
                                this.reply(text).await;
                            }
                        }
                        Err(RecvError::Closed) => return,
                    }
                }
            };
            state.task = Some(tokio::spawn(forward).abort_handle());
        }
        drop(state);
        barrier
    }

    /// Renders the final notifications of subscribed work that has finished.
    fn end_notifications(&self) -> Vec<String> {
        let engine = &self.inner.api.engine;
        let notices = engine.finished_work();
        notices.iter().filter_map(|notice| self.notification(notice)).collect()
    }

    fn notification(&self, notice: &Notice) -> Option<String> {
        let mut state = lock(&self.inner.progress.state);
        match notice {
            Notice::Index(progress) => {
                let subscription = state.roots.roots_by_path.get(&progress.path)?;
                if subscription.replaced_index.as_ref() == Some(&progress.index) {
                    return None;
                }
                let request_id = subscription.request_id.clone();
                let progress =
                    cairn_protocol::index::IndexProgress { request_id, ..progress.clone() };
                Some(message::notification(rpc::INDEX_PROGRESS, &progress))
            }
            Notice::Git(progress) => {
                let index = state.clones.iter().position(|id| *id == progress.request_id);
                if let Some(index) = index.filter(|_| progress.done) {
                    state.clones.remove(index);
                }
                index.is_some().then(|| message::notification(rpc::GIT_PROGRESS, progress))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_root_subscription_is_dropped_first() {
        let mut roots = Roots::default();
        let add = |roots: &mut Roots, n: usize| {
            roots.insert(
                &n.to_string(),
                RootSubscription { request_id: None, replaced_index: None },
            );
        };
        (0..=MAX_SUBSCRIBED).for_each(|n| add(&mut roots, n));
        add(&mut roots, MAX_SUBSCRIBED);
        assert_eq!(
            (roots.roots_by_path.len(), roots.order.len()),
            (MAX_SUBSCRIBED, MAX_SUBSCRIBED)
        );
        assert!(
            !roots.roots_by_path.contains_key("0")
                && roots.roots_by_path.contains_key(&MAX_SUBSCRIBED.to_string())
        );
    }
}
