//! One attempt at a run: from the message to the recorded end, with the lease in between.

use std::time::Duration;

use async_nats::jetstream::{
    AckKind, Message,
    kv::{Operation, Store},
};
use cairn_api::Rights;
use cairn_protocol::{
    error::Failure,
    explore::{ExploreStartParams, RunReceipt, RunState, SessionRef},
    fleet::{FleetAttempt, FleetRefusal, FleetRun, FleetRunState, FleetWork, rights_up_to},
    id::SessionId,
    remote::Right,
    session::{After, Session, SessionCreateParams, WorktreeUse},
    turn::{Input, RunStartParams, RunStatus, TurnRef},
};
use cairn_trace::{Follower, Step};
use cairn_transport::in_process::InProcessClient;
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Worker,
    add::{Job, queued},
    find,
    state::{self, Stored},
};
use crate::{names, presence};

/// Attempts after which a run counts as failed: it may be what ends the daemons.
const MAX_ATTEMPTS: usize = 5;
/// Attempts to record the end of a run while the broker cannot be reached.
const END_ATTEMPTS: u32 = 20;
/// Wait between those attempts.
const END_DELAY: Duration = Duration::from_millis(500);
/// Time that a cancelled run has to write its last record.
const CANCEL_LIMIT: Duration = Duration::from_secs(20);
/// Request of the turn that continues an interrupted one.
const CONTINUE: &str = "The daemon stopped during the last request. Look at what is done already, \
                        and complete the request.";

/// The further way of the message.
pub enum Outcome {
    /// The state of the run is final.
    Finished,
    /// The run is offered again, to this daemon or another.
    NotNow,
    /// The lease is lost, or another daemon has the run.
    Lost,
}

/// The end of an attempt.
enum End {
    Final(FleetRunState, Option<String>),
    /// The daemon stops, or the lease is lost: the work has finished without a result.
    Released,
}

/// Does the run of a message.
///
/// # Errors
/// The broker cannot be reached, before anything was started.
pub async fn attempt(
    worker: &Worker,
    pool: &str,
    message: &Message,
    shutdown: &CancellationToken,
) -> Result<Outcome, Failure> {
    let store = worker.broker.open_pool(pool).await?;
    let (Some(level), Ok(job)) =
        (names::parse_runs(&message.subject), serde_json::from_slice::<Job>(&message.payload))
    else {
        // Nothing in it can be trusted, not even an id for its state.
        tracing::warn!(pool, bytes = message.payload.len(), "an invalid run was removed");
        return Ok(Outcome::Finished);
    };
    let Some(stored) = known(&store, pool, &job).await? else { return Ok(Outcome::Finished) };
    if stored.run.state.is_final() {
        return Ok(Outcome::Finished);
    }
    if stored.run.attempts.len() >= MAX_ATTEMPTS || stored.run.cancelling {
        return give_up(&store, stored).await;
    }
    let root = match find::root(worker, &job).await {
        Ok(root) => root,
        Err(failure) => return refuse(worker, &store, stored, pool, failure).await,
    };
    let mut run = stored.run.clone();
    let (daemon, identity) = (worker.settings.name.clone(), worker.identity.clone());
    let earlier = run.attempts.last().filter(|attempt| attempt.identity == identity);
    let resumed = earlier.and_then(|attempt| attempt.session_id.clone());
    run.state = FleetRunState::Running;
    run.attempts.push(FleetAttempt { daemon, identity, session_id: None });
    let Some(stored) = state::change(&store, &stored, run).await? else {
        return Ok(Outcome::NotNow);
    };
    let work = Work { worker, store: &store, message, level, shutdown };
    work.run(stored, &job, &root, resumed).await
}

/// Reads the state of a job; one that was added without a state gets one.
async fn known(store: &Store, pool: &str, job: &Job) -> Result<Option<Stored>, Failure> {
    if !state::is_turn_id(&job.turn_id) {
        return Ok(None);
    }
    if let Some(stored) = state::read(store, &job.turn_id).await? {
        return Ok(Some(stored));
    }
    let run = queued(pool, &job.turn_id, "unknown");
    match state::create(store, &run).await? {
        Some(stored) => Ok(Some(stored)),
        None => state::read(store, &job.turn_id).await,
    }
}

async fn give_up(store: &Store, stored: Stored) -> Result<Outcome, Failure> {
    let mut run = stored.run.clone();
    if run.cancelling {
        run.state = FleetRunState::Cancelled;
    } else {
        run.state = FleetRunState::Failed;
        run.reason = Some(format!("{MAX_ATTEMPTS} daemons stopped during the run"));
    }
    match state::change(store, &stored, run).await? {
        Some(_) => Ok(Outcome::Finished),
        None => Ok(Outcome::NotNow),
    }
}

/// Records that this daemon cannot do a run; when no daemon of the pool is left, the run ends.
async fn refuse(
    worker: &Worker,
    store: &Store,
    stored: Stored,
    pool: &str,
    failure: Failure,
) -> Result<Outcome, Failure> {
    let daemon = &worker.settings.name;
    let mut run = stored.run.clone();
    run.refusals.retain(|refusal| refusal.daemon != *daemon);
    run.refusals.push(FleetRefusal { daemon: daemon.clone(), reason: failure.message });
    let (daemons, has_more) = presence::daemons(&worker.broker).await?;
    let refused = |name: &str| run.refusals.iter().any(|refusal| refusal.daemon == name);
    let members: Vec<_> =
        daemons.iter().filter(|daemon| daemon.pools.iter().any(|p| p == pool)).collect();
    // Daemons that are not listed may do what these refuse.
    if !has_more && !members.is_empty() && members.iter().all(|member| refused(&member.name)) {
        run.state = FleetRunState::Refused;
        let reasons = run.refusals.iter().map(|r| format!("{}: {}", r.daemon, r.reason));
        run.reason = Some(reasons.collect::<Vec<_>>().join("; "));
    }
    let is_final = run.state.is_final();
    match state::change(store, &stored, run).await? {
        Some(_) if is_final => Ok(Outcome::Finished),
        _ => Ok(Outcome::NotNow),
    }
}

struct Work<'a> {
    worker: &'a Worker,
    store: &'a Store,
    message: &'a Message,
    level: Right,
    shutdown: &'a CancellationToken,
}

impl Work<'_> {
    async fn run(
        &self,
        stored: Stored,
        job: &Job,
        root: &str,
        resumed: Option<SessionId>,
    ) -> Result<Outcome, Failure> {
        let (client, session, stored) = match self.start(stored, job, root, resumed).await {
            Ok(started) => started,
            Err(Refused::Now) => return Ok(Outcome::NotNow),
            Err(Refused::Lost) => return Ok(Outcome::Lost),
            Err(Refused::For(stored, failure)) => {
                let pool = stored.run.pool.clone();
                return refuse(self.worker, self.store, *stored, &pool, failure).await;
            }
        };
        match self.watch(&client, &session, &job.turn_id).await {
            End::Released => Ok(Outcome::Lost),
            End::Final(state, reason) => Ok(self.record_end(stored, state, reason).await),
        }
    }

    /// Starts the work in a new session, or goes on in the one of an earlier attempt.
    async fn start(
        &self,
        stored: Stored,
        job: &Job,
        root: &str,
        resumed: Option<SessionId>,
    ) -> Result<(InProcessClient, SessionId, Stored), Refused> {
        let started = self.start_session(job, root, resumed, stored.run.attempts.len()).await;
        let (client, session) = match started {
            Ok(started) => started,
            Err(failure) => {
                // The attempt did not take place.
                let mut run = stored.run.clone();
                run.attempts.pop();
                run.state = FleetRunState::Queued;
                if !failure.reason.retryable() {
                    return Err(Refused::For(Box::new(stored.with(run)), failure));
                }
                let changed = state::change(self.store, &stored, run).await;
                return Err(changed.map_or(Refused::Lost, |_| Refused::Now));
            }
        };
        let mut run = stored.run.clone();
        if let Some(attempt) = run.attempts.last_mut() {
            attempt.session_id = Some(session.clone());
        }
        match state::change(self.store, &stored, run).await {
            Ok(Some(stored)) => Ok((client, session, stored)),
            // A client cancelled it meanwhile, which is read again below.
            Ok(None) => match state::read(self.store, &job.turn_id).await {
                Ok(Some(stored)) => Ok((client, session, stored)),
                _ => Err(self.abandon(&client, &session).await),
            },
            Err(_) => Err(self.abandon(&client, &session).await),
        }
    }

    async fn abandon(&self, client: &InProcessClient, session: &SessionId) -> Refused {
        self.cancel(client, session).await;
        Refused::Lost
    }

    async fn start_session(
        &self,
        job: &Job,
        root: &str,
        resumed: Option<SessionId>,
        attempt: usize,
    ) -> Result<(InProcessClient, SessionId), Failure> {
        // The session belongs to this daemon; what runs in it has the rights of the sender.
        let (own, _) = InProcessClient::open(&self.worker.api, Rights::ALL)?;
        own.initialize("fleet", env!("CARGO_PKG_VERSION"), false).await?;
        let (client, _) =
            InProcessClient::open(&self.worker.api, Rights::of(rights_up_to(self.level)))?;
        // As one that answers approvals: questions wait for an answer over the fleet.
        client.initialize("fleet", env!("CARGO_PKG_VERSION"), true).await?;
        let existing = match &resumed {
            Some(session) => {
                let status = SessionRef { session_id: session.clone() };
                let status: Result<RunStatus, _> =
                    own.request("orchestrate.run.status", &status).await;
                status.ok().map(|status| status.session_id)
            }
            None => None,
        };
        let is_resumed = existing.is_some();
        let session = match existing {
            Some(session) => session,
            None => create_session(&own, job, root).await?,
        };
        self.worker
            .sessions
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(session.clone());
        let (stored, started) = tokio::join!(
            self.worker.positions.add_pool_session(&session),
            start_work(&client, job, root, &session, is_resumed, attempt),
        );
        if let Err(failure) = stored {
            tracing::warn!(%failure, %session, "after a restart its records are not copied");
        }
        if started.is_err() && !is_resumed {
            // The run is offered again, and each time would leave an empty session.
            let empty = SessionRef { session_id: session.clone() };
            let _remains = own.request::<serde_json::Value>("session.delete", &empty).await;
        }
        started.map(|()| (client, session))
    }

    /// Extends the lease until the work ends. A daemon that cannot extend it stops the work before the
    /// broker gives the run to another daemon.
    async fn watch(&self, client: &InProcessClient, session: &SessionId, turn_id: &str) -> End {
        let lease = self.worker.settings.lease;
        let mut extended = Instant::now();
        let mut tick = tokio::time::interval(lease / 5);
        let trace = self.worker.engine.trace();
        let Ok((mut follower, _)) = trace.follow(session, &After::Seq(0)).await else {
            return End::Final(FleetRunState::Failed, Some("its session is gone".into()));
        };
        let mut cancelled = self.store.watch_with_history(turn_id).await.ok();
        let end = finished(&mut follower, client, session);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => {
                    self.cancel(client, session).await;
                    return End::Released;
                }
                end = &mut end => {
                    return end.unwrap_or_else(|failure| {
                        End::Final(FleetRunState::Failed, Some(failure.message))
                    });
                }
                cancel = cancellation(&mut cancelled) => if cancel {
                    self.cancel(client, session).await;
                    return End::Final(FleetRunState::Cancelled, None);
                },
                _ = tick.tick() => {
                    let extend = self.message.double_ack_with(AckKind::Progress);
                    if matches!(tokio::time::timeout(lease / 5, extend).await, Ok(Ok(()))) {
                        extended = Instant::now();
                    } else if extended.elapsed() > lease / 2 {
                        tracing::warn!(%session, "the lease of a run is lost; the run is stopped");
                        self.cancel(client, session).await;
                        return End::Released;
                    }
                }
            }
        }
    }

    /// Cancels the work and waits for its last record.
    async fn cancel(&self, client: &InProcessClient, session: &SessionId) {
        let target = TurnRef { session_id: session.clone(), turn_id: None };
        let stop = async {
            for method in ["orchestrate.run.cancel", "orchestrate.explore.abort"] {
                let params = match method {
                    "orchestrate.run.cancel" => serde_json::json!(target),
                    _ => serde_json::json!(SessionRef { session_id: session.clone() }),
                };
                // One of the two applies.
                let _other_kind = client.call(method, &params).await;
            }
            let trace = self.worker.engine.trace();
            if let Ok((mut follower, _)) = trace.follow(session, &After::Seq(0)).await {
                let _finished = finished(&mut follower, client, session).await;
            }
        };
        let _late = tokio::time::timeout(CANCEL_LIMIT, stop).await;
    }

    /// Records the end, from the state that this attempt wrote: a later attempt wins.
    async fn record_end(
        &self,
        stored: Stored,
        state: FleetRunState,
        reason: Option<String>,
    ) -> Outcome {
        let attempts = stored.run.attempts.len();
        let mut current = stored;
        for _ in 0..END_ATTEMPTS {
            let mut run = current.run.clone();
            (run.state, run.reason) = (state, reason.clone());
            match state::change(self.store, &current, run).await {
                Ok(Some(_)) => return Outcome::Finished,
                Ok(None) => match state::read(self.store, &current.run.turn_id).await {
                    Ok(Some(other)) if other.run.state.is_final() => return Outcome::Finished,
                    Ok(Some(other)) if other.run.attempts.len() == attempts => current = other,
                    Ok(_) => return Outcome::Lost,
                    Err(_) => tokio::time::sleep(END_DELAY).await,
                },
                Err(_) => tokio::time::sleep(END_DELAY).await,
            }
            // The lease goes on while the end is not recorded.
            let _late = self.message.ack_with(AckKind::Progress).await;
        }
        Outcome::Lost
    }
}

/// The reason why a run was not started.
enum Refused {
    Now,
    Lost,
    For(Box<Stored>, Failure),
}

async fn create_session(
    own: &InProcessClient,
    job: &Job,
    root: &str,
) -> Result<SessionId, Failure> {
    let commit = job.repository.as_ref().and_then(|repository| repository.commit.clone());
    let params = SessionCreateParams {
        title: job.title.clone(),
        root: Some(root.to_owned()),
        worktree: commit.is_some().then_some(WorktreeUse::New),
        branch: None,
        base: commit,
        request_id: None,
    };
    let session: Session = own.request("session.create", &params).await?;
    Ok(session.session_id)
}

async fn start_work(
    client: &InProcessClient,
    job: &Job,
    root: &str,
    session: &SessionId,
    is_resumed: bool,
    attempt: usize,
) -> Result<(), Failure> {
    match &job.work {
        FleetWork::Turn { input, policy } => {
            let input = if is_resumed { CONTINUE.to_owned() } else { input.clone() };
            let params = RunStartParams {
                session_id: session.clone(),
                turn_id: format!("{}.{attempt}", job.turn_id),
                input: Input::Text(input),
                context: None,
                policy: policy.as_deref().cloned(),
                metadata: Default::default(),
            };
            let _receipt: serde_json::Value =
                client.request("orchestrate.run.start", &params).await?;
        }
        FleetWork::Explore { goals } => {
            let params = ExploreStartParams {
                root: Some(root.to_owned()),
                goals: goals.clone(),
                session_id: Some(session.clone()),
                ..ExploreStartParams::default()
            };
            let _receipt: RunReceipt = client.request("orchestrate.explore.start", &params).await?;
        }
    }
    Ok(())
}

/// Waits for the end of a session's active run.
async fn finished(
    follower: &mut Follower,
    client: &InProcessClient,
    session: &SessionId,
) -> Result<End, Failure> {
    let target = SessionRef { session_id: session.clone() };
    loop {
        let step = follower.step().await.map_err(|error| {
            Failure::new(error.reason(), format!("the log cannot be read: {error}"))
        })?;
        match step {
            Step::Deleted => {
                return Ok(End::Final(
                    FleetRunState::Failed,
                    Some("its session was deleted".into()),
                ));
            }
            Step::Records(_) | Step::Synced(_) => {}
            Step::Ephemeral(_) | Step::Lagged(_) => continue,
        }
        let status: RunStatus = client.request("orchestrate.run.status", &target).await?;
        let end = match status.state {
            RunState::Idle | RunState::Running => continue,
            RunState::Completed => End::Final(FleetRunState::Completed, None),
            RunState::Stopped => End::Final(FleetRunState::Cancelled, None),
            RunState::Failed => {
                let text = format!("the session {session} has the reason");
                End::Final(FleetRunState::Failed, Some(text))
            }
            RunState::Interrupted => End::Released,
        };
        return Ok(end);
    }
}

/// Waits for a change of the run's state; true if a client cancelled it.
async fn cancellation(watch: &mut Option<async_nats::jetstream::kv::Watch>) -> bool {
    let Some(changes) = watch else { return std::future::pending().await };
    match changes.next().await {
        Some(Ok(entry)) if entry.operation == Operation::Put => {
            serde_json::from_slice::<FleetRun>(&entry.value).is_ok_and(|run| run.cancelling)
        }
        Some(_) => false,
        None => {
            *watch = None;
            false
        }
    }
}
