//! Live progress for the clients that asked for the work.

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
    connection::{Connection, locked},
    message,
};

/// What a connection wants to hear of. Nothing is listened to before it asks.
#[derive(Default)]
pub struct Interest {
    state: Mutex<State>,
    /// Receipts that are not on their way yet: what comes after one is not told before it.
    held: watch::Sender<u32>,
}

/// What a connection hears waits while there is one, so that a receipt comes before the progress it announces.
#[must_use = "what is heard is told as soon as this is dropped"]
pub struct Hold(Connection);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.inner.interest.held.send_modify(|held| *held -= 1);
    }
}

#[derive(Default)]
struct State {
    roots: Roots,
    /// Clones whose end was not told yet, in the order of their coming.
    clones: VecDeque<String>,
    task: Option<AbortHandle>,
    /// The client has left: work that it began and that goes on is told to nobody.
    ended: bool,
}

/// Roots by path, and their paths in the order of their coming.
#[derive(Default)]
struct Roots {
    wanted: HashMap<String, Wanted>,
    order: VecDeque<String>,
}

/// What is told of a root.
struct Wanted {
    /// The request, if it was named.
    request_id: Option<String>,
    /// The index that is being replaced: its progress is none of the work that was asked for.
    old: Option<String>,
}

/// Roots, and clones, that one connection listens to at most; the one that came first is forgotten for another.
const MAX_INTEREST: usize = 1024;

impl Roots {
    fn insert(&mut self, path: &str, wanted: Wanted) {
        if self.wanted.insert(path.to_owned(), wanted).is_none() {
            self.order.push_back(path.to_owned());
        }
        if self.order.len() > MAX_INTEREST
            && let Some(oldest) = self.order.pop_front()
        {
            self.wanted.remove(&oldest);
        }
    }
}

impl Interest {
    /// Stops listening, for good.
    pub fn end(&self) {
        let mut state = locked(&self.state);
        state.ended = true;
        if let Some(task) = state.task.take() {
            task.abort();
        }
    }
}

impl Connection {
    /// Hears of the index of `path` from now on; it is told once the hold is dropped.
    pub(crate) fn hear_index(&self, path: &str, request_id: Option<String>) -> Hold {
        self.hear(|state| {
            state.roots.insert(path, Wanted { request_id, old: None });
        })
    }

    /// Hears of the index that takes the place of `old`; it is told once the hold is dropped.
    pub(crate) fn hear_rebuild(&self, path: &str, request_id: Option<String>, old: String) -> Hold {
        self.hear(|state| state.roots.insert(path, Wanted { request_id, old: Some(old) }))
    }

    /// Hears of a clone from now on; it is told once the hold is dropped.
    pub(crate) fn hear_clone(&self, request_id: &str) -> Hold {
        self.hear(|state| {
            state.clones.push_back(request_id.to_owned());
            if state.clones.len() > MAX_INTEREST {
                state.clones.pop_front();
            }
        })
    }

    fn hear(&self, change: impl FnOnce(&mut State)) -> Hold {
        self.inner.interest.held.send_modify(|held| *held += 1);
        let hold = Hold(self.clone());
        let mut state = locked(&self.inner.interest.state);
        if state.ended {
            return hold;
        }
        change(&mut state);
        if state.task.is_none() {
            let mut notices = self.inner.api.engine.notices();
            let this = self.clone();
            let mut held = self.inner.interest.held.subscribe();
            let listen = async move {
                loop {
                    match notices.recv().await {
                        Ok(notice) => {
                            if held.wait_for(|held| *held == 0).await.is_err() {
                                return;
                            }
                            if let Some(text) = this.told(&notice) {
                                this.reply(text).await;
                            }
                        }
                        // Progress is live only: what a slow client missed is overtaken by what comes next. An end is not,
                        // so those that may have been among it are told from what is known now.
                        Err(RecvError::Lagged(_)) => {
                            for text in this.ends() {
                                this.reply(text).await;
                            }
                        }
                        Err(RecvError::Closed) => return,
                    }
                }
            };
            state.task = Some(tokio::spawn(listen).abort_handle());
        }
        drop(state);
        hold
    }

    /// The ends of what is listened to, as they are known now.
    fn ends(&self) -> Vec<String> {
        let engine = &self.inner.api.engine;
        let notices = engine.finished_work();
        notices.iter().filter_map(|notice| self.told(notice)).collect()
    }

    fn told(&self, notice: &Notice) -> Option<String> {
        let mut state = locked(&self.inner.interest.state);
        match notice {
            Notice::Index(progress) => {
                let wanted = state.roots.wanted.get(&progress.path)?;
                if wanted.old.as_ref() == Some(&progress.index) {
                    return None;
                }
                let request_id = wanted.request_id.clone();
                let progress = cairn_protocol::index::IndexProgress { request_id, ..progress.clone() };
                Some(message::notification(rpc::INDEX_PROGRESS, &progress))
            }
            Notice::Git(progress) => {
                let at = state.clones.iter().position(|id| *id == progress.request_id);
                if let Some(at) = at.filter(|_| progress.done) {
                    state.clones.remove(at);
                }
                at.is_some().then(|| message::notification(rpc::GIT_PROGRESS, progress))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S9
    #[test]
    fn of_too_many_roots_the_one_that_came_first_is_forgotten() {
        let mut roots = Roots::default();
        let add = |roots: &mut Roots, n: usize| {
            roots.insert(&n.to_string(), Wanted { request_id: None, old: None });
        };
        (0..=MAX_INTEREST).for_each(|n| add(&mut roots, n));
        add(&mut roots, MAX_INTEREST);
        assert_eq!((roots.wanted.len(), roots.order.len()), (MAX_INTEREST, MAX_INTEREST));
        assert!(!roots.wanted.contains_key("0") && roots.wanted.contains_key(&MAX_INTEREST.to_string()));
    }
}
