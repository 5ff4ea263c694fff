//! Sessions with work: one actor each, which alone starts, steers, cancels and finishes runs there.
//!
//! The rules are the pure function in `step.rs`; `actor.rs` executes its effects, `commit.rs`
//! writes them to the log and `load.rs` reads the state back from it. An actor exists while its
//! session has work or requests; all further state is in the log.

mod actor;
mod commit;
mod load;
#[cfg(test)]
mod model;
mod permits;
mod requests;
mod step;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use tokio::sync::{mpsc, oneshot};

use crate::{Engine, runs::RunHandle, turns::TurnHandle};
pub(crate) use actor::RunEnd;
use actor::{Actor, Message};
pub(crate) use permits::{RunPermit, RunPermits};
pub(crate) use requests::{ExploreStart, Request, Response};

/// Capacity of the queue of requests to a session's actor; senders beyond it wait.
const INBOX: usize = 64;

/// A session's runs as seen outside its actor.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionView {
    pub turn: Option<TurnHandle>,
    pub explore: Option<RunHandle>,
    /// Number of queued turns.
    pub queued: u64,
}

impl SessionView {
    /// Returns true if no run is active that clients could reach.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none() && self.explore.is_none()
    }
}

#[derive(Debug)]
struct ActorHandle {
    inbox: mpsc::Sender<Message>,
    view: Arc<Mutex<SessionView>>,
}

/// The live actors, by session.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    actors: Mutex<HashMap<SessionId, ActorHandle>>,
    /// Sessions that run without an actor: those of replays.
    reserved: Mutex<HashSet<SessionId>>,
}

/// Prevents actors in a session until it is dropped.
pub(crate) struct Reservation<'a>(&'a Sessions, SessionId);

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.0.reserved().remove(&self.1);
    }
}

impl Sessions {
    fn map(&self) -> MutexGuard<'_, HashMap<SessionId, ActorHandle>> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserved(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a session whose id no client knows yet.
    pub fn reserve(&self, session: &SessionId) -> Reservation<'_> {
        self.reserved().insert(session.clone());
        Reservation(self, session.clone())
    }

    pub fn is_reserved(&self, session: &SessionId) -> bool {
        self.reserved().contains(session)
    }

    pub fn view(&self, session: &SessionId) -> SessionView {
        let view = self.map().get(session).map(|handle| Arc::clone(&handle.view));
        view.map(|view| view.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    /// Returns true if a turn can be cancelled or steered now.
    pub fn has_turn(&self, session: &SessionId) -> bool {
        self.view(session).turn.is_some()
    }

    /// Returns true if every active run waits for an approval.
    pub fn all_wait_for_people(&self) -> bool {
        let views: Vec<_> = self.map().values().map(|handle| Arc::clone(&handle.view)).collect();
        views.iter().all(|view| {
            let view = view.lock().unwrap_or_else(PoisonError::into_inner);
            view.explore.is_none() && view.turn.as_ref().is_none_or(|turn| turn.clock.is_waiting())
        })
    }

    /// Returns the inbox of a session's actor, which is started if there is none.
    fn inbox(&self, engine: &Engine, session: &SessionId) -> mpsc::Sender<Message> {
        let mut map = self.map();
        if let Some(handle) = map.get(session)
            && !handle.inbox.is_closed()
        {
            return handle.inbox.clone();
        }
        let (inbox, messages) = mpsc::channel(INBOX);
        let view = Arc::<Mutex<SessionView>>::default();
        let actor = Actor::new(
            engine.clone(),
            session.clone(),
            messages,
            inbox.downgrade(),
            Arc::clone(&view),
        );
        map.insert(session.clone(), ActorHandle { inbox: inbox.clone(), view });
        engine.inner.tasks.spawn(actor.run());
        inbox
    }

    /// Removes an idle actor; returns false when a caller is about to send it something. Senders
    /// are cloned under the map's lock alone, so a count of one is the map's own.
    fn retire(&self, session: &SessionId, messages: &mpsc::Receiver<Message>) -> bool {
        let mut map = self.map();
        let busy = map.get(session).is_some_and(|handle| handle.inbox.strong_count() > 1);
        if busy || !messages.is_empty() {
            return false;
        }
        map.remove(session);
        true
    }

    /// Removes an actor that failed.
    fn forget(&self, session: &SessionId) {
        self.map().remove(session);
    }

    /// Sends a message to all live actors.
    pub async fn broadcast(&self, message: impl Fn() -> Message) {
        let inboxes: Vec<_> = self.map().values().map(|handle| handle.inbox.clone()).collect();
        for inbox in inboxes {
            // An actor that has exited has nothing to stop.
            let _result = inbox.send(message()).await;
        }
    }
}

impl Engine {
    /// Sends a request to a session's actor and waits for its reply. A caller that is dropped has
    /// no effect on the request.
    ///
    /// # Errors
    /// Errors of the request; `internal` when the actor failed.
    pub(crate) async fn request(
        &self,
        session: &SessionId,
        request: Request,
    ) -> Result<Response, Failure> {
        let lost = || {
            Failure::new(Reason::Internal, format!("the actor of session {session} ended early"))
        };
        let (reply, answer) = oneshot::channel();
        let inbox = self.inner.sessions.inbox(self, session);
        inbox
            .send(Message::Request(request, tracing::Span::current(), reply))
            .await
            .map_err(|_| lost())?;
        drop(inbox);
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Prevents new runs from starting.
    pub(crate) async fn shut_sessions(&self) {
        self.inner.sessions.broadcast(|| Message::Shutdown).await;
    }

    /// Interrupts the active runs.
    pub(crate) async fn interrupt_sessions(&self) {
        self.inner.sessions.broadcast(|| Message::Interrupt).await;
    }
}
