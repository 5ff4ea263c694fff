//! Live progress for the clients that asked for the work.

use std::{
    collections::{HashMap, HashSet},
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
    /// Root path → request id, if one was given.
    roots: HashMap<String, Option<String>>,
    clones: HashSet<String>,
    task: Option<AbortHandle>,
}

/// Roots and clones one connection listens to at most.
const MAX_INTEREST: usize = 256;

impl Interest {
    /// Stops listening.
    pub fn end(&self) {
        if let Some(task) = locked(&self.state).task.take() {
            task.abort();
        }
    }
}

impl Connection {
    /// Hears of the index of `path` from now on; it is told once the hold is dropped.
    pub(crate) fn hear_index(&self, path: &str, request_id: Option<String>) -> Hold {
        self.hear(|state| {
            if state.roots.len() < MAX_INTEREST {
                state.roots.insert(path.to_owned(), request_id);
            }
        })
    }

    /// Hears of a clone from now on; it is told once the hold is dropped.
    pub(crate) fn hear_clone(&self, request_id: &str) -> Hold {
        self.hear(|state| {
            if state.clones.len() < MAX_INTEREST {
                state.clones.insert(request_id.to_owned());
            }
        })
    }

    fn hear(&self, change: impl FnOnce(&mut State)) -> Hold {
        self.inner.interest.held.send_modify(|held| *held += 1);
        let hold = Hold(self.clone());
        let mut state = locked(&self.inner.interest.state);
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
                        // Progress is live only: what a slow client missed is overtaken by what comes next.
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => return,
                    }
                }
            };
            state.task = Some(tokio::spawn(listen).abort_handle());
        }
        drop(state);
        hold
    }

    fn told(&self, notice: &Notice) -> Option<String> {
        let mut state = locked(&self.inner.interest.state);
        match notice {
            Notice::Index(progress) => {
                let request_id = state.roots.get(&progress.path)?.clone();
                let progress = cairn_protocol::index::IndexProgress { request_id, ..progress.clone() };
                Some(message::notification(rpc::INDEX_PROGRESS, &progress))
            }
            Notice::Git(progress) => {
                let wanted = if progress.done {
                    state.clones.remove(&progress.request_id)
                } else {
                    state.clones.contains(&progress.request_id)
                };
                wanted.then(|| message::notification(rpc::GIT_PROGRESS, progress))
            }
        }
    }
}
