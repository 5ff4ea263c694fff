//! Runs of pools: each ends once, whichever daemon does it.

use std::{sync::Arc, time::Instant};

use cairn_api::{Fleet as _, Right, Rights};
use cairn_protocol::{
    error::Reason,
    fleet::{
        FleetCallParams, FleetRunParams, FleetRunRef, FleetRunState, FleetRunsParams, FleetWork,
    },
};

use crate::server::{Daemon, PATIENCE, Server};

pub fn explore(turn_id: &str, root: &str) -> FleetRunParams {
    FleetRunParams {
        pool: "ci".into(),
        turn_id: Some(turn_id.into()),
        work: FleetWork::Explore { goals: vec![] },
        repository: None,
        root: Some(root.into()),
        title: None,
        metadata: [("ticket".to_owned(), "7".to_owned())].into(),
    }
}

/// Waits until daemons are listed, since a refusal counts those that are.
async fn until_listed(daemon: &Daemon, count: usize) {
    let started = Instant::now();
    while daemon.fleet.status().await.map_or(0, |status| status.daemons.len()) < count {
        assert!(started.elapsed() < PATIENCE, "the daemons do not appear");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_is_done_by_a_daemon_that_has_the_folder() {
    let Some(server) = Server::start() else { return };
    let (one, two) = (Daemon::start(&server, "one").await, Daemon::start(&server, "two").await);
    until_listed(&one, 2).await;
    let folder = tempfile::tempdir().unwrap();
    let root = two.add_root(&folder.path().join("app")).await;
    two.gate.add_permits(1);
    let added = one.fleet.run(explore("a", &root), Rights::ALL).await.unwrap();
    assert_eq!((added.state, added.sent_by.as_str()), (FleetRunState::Queued, "one"));
    let run = two.until_run("a", |run| run.state.is_final()).await;
    assert_eq!(run.state, FleetRunState::Completed, "{run:?}");
    assert_eq!(run.attempts.len(), 1);
    assert_eq!(run.attempts[0].daemon, "two");
    assert_eq!(run.metadata["ticket"], "7");
    // The same id adds nothing and returns the first one.
    let again = one.fleet.run(explore("a", &root), Rights::ALL).await.unwrap();
    assert_eq!(again.state, FleetRunState::Completed);
    let status = one.fleet.status().await.unwrap();
    let pool = status.pools.iter().find(|pool| pool.name == "ci").unwrap();
    assert_eq!((pool.queued, pool.daemons.len()), (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_no_daemon_can_do_is_refused_with_all_reasons() {
    let Some(server) = Server::start() else { return };
    let (one, _two) = (Daemon::start(&server, "one").await, Daemon::start(&server, "two").await);
    until_listed(&one, 2).await;
    one.fleet.run(explore("a", "/no/such/folder"), Rights::ALL).await.unwrap();
    let run = one.until_run("a", |run| run.state.is_final()).await;
    assert_eq!(run.state, FleetRunState::Refused);
    let reason = run.reason.unwrap();
    assert!(reason.contains("one: ") && reason.contains("two: "), "{reason}");
    assert!(run.attempts.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_active_runs_are_cancelled() {
    let Some(server) = Server::start() else { return };
    let one = Daemon::start(&server, "one").await;
    let folder = tempfile::tempdir().unwrap();
    let root = one.add_root(&folder.path().join("app")).await;
    let ids: Vec<String> = (0..5).map(|n| format!("r{n}")).collect();
    for id in &ids {
        one.fleet.run(explore(id, &root), Rights::ALL).await.unwrap();
    }
    // Four are active, which is the daemon's limit; one waits.
    let mut active = 0;
    let started = Instant::now();
    while active < 4 {
        assert!(started.elapsed() < PATIENCE);
        let runs =
            one.fleet.runs(FleetRunsParams { pool: "ci".into(), ..Default::default() }).await;
        let runs = runs.map(|page| page.data).unwrap_or_default();
        active = runs
            .iter()
            .filter(|run| run.attempts.last().is_some_and(|a| a.session_id.is_some()))
            .count();
    }
    for id in ids.iter().rev() {
        let target = FleetRunRef { pool: "ci".into(), turn_id: id.clone() };
        one.fleet.cancel(target).await.unwrap();
    }
    for id in &ids {
        let run = one.until_run(id, |run| run.state.is_final()).await;
        assert_eq!(run.state, FleetRunState::Cancelled, "{run:?}");
    }
    let mut params = FleetRunsParams { pool: "ci".into(), limit: Some(2), ..Default::default() };
    let mut listed = Vec::new();
    loop {
        let page = one.fleet.runs(params.clone()).await.unwrap();
        assert!(page.data.len() <= 2);
        listed.extend(page.data.into_iter().map(|run| run.turn_id));
        params.cursor = page.next_cursor;
        if params.cursor.is_none() {
            break;
        }
    }
    // The waiting run is the first one that changed for the last time.
    assert_eq!((listed.len(), listed[4].as_str()), (5, "r4"));
    assert!(ids.iter().all(|id| listed.contains(id)), "{listed:?}");
    for wrong in [Some(0), Some(1001)] {
        let params = FleetRunsParams { pool: "ci".into(), limit: wrong, ..Default::default() };
        assert_eq!(one.fleet.runs(params).await.unwrap_err().reason, Reason::InvalidParams);
    }
    let missing = FleetRunRef { pool: "ci".into(), turn_id: "none".into() };
    assert_eq!(one.fleet.cancel(missing).await.unwrap_err().reason, Reason::PoolRunNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_a_daemon_that_lost_the_broker_is_done_once_by_another() {
    let Some(server) = Server::start() else { return };
    // The first daemon reaches the broker through a proxy that can be cut.
    let proxy = crate::pools::proxy::Proxy::start(server.port).await;
    let mut settings = crate::server::settings(&server, "one");
    settings.server = format!("nats://127.0.0.1:{}", proxy.port);
    let one = Daemon::with(settings, Arc::new(tempfile::tempdir().unwrap())).await;
    let folder = tempfile::tempdir().unwrap();
    let root = one.add_root(&folder.path().join("app")).await;
    one.fleet.run(explore("a", &root), Rights::ALL).await.unwrap();
    let first = one.until_run("a", |run| {
        run.attempts.last().is_some_and(|attempt| attempt.session_id.is_some())
    });
    let session = first.await.attempts[0].session_id.clone().unwrap();
    let two = Daemon::start(&server, "two").await;
    two.add_root(&folder.path().join("app")).await;
    proxy.cut();
    let second = two.until_run("a", |run| run.attempts.len() == 2).await;
    assert_eq!(second.attempts[1].daemon, "two");
    // The first daemon had stopped before the second began.
    let state = one.engine.trace().session(&session).await.unwrap().state;
    assert_ne!(state, cairn_protocol::explore::RunState::Running);
    two.gate.add_permits(1);
    one.gate.add_permits(1);
    let run = two.until_run("a", |run| run.state.is_final()).await;
    assert_eq!((run.state, run.attempts.len()), (FleetRunState::Completed, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_daemon_is_offered_a_run_again_and_leaves_no_empty_sessions() {
    let Some(server) = Server::start() else { return };
    let one = Daemon::start(&server, "one").await;
    until_listed(&one, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let root = one.add_root(&folder.path().join("app")).await;
    // As many explores as the engine has at once.
    for _ in 0..4 {
        let params = FleetCallParams {
            daemon: "one".into(),
            method: "orchestrate.explore.start".into(),
            params: serde_json::json!({"root": root}),
        };
        one.fleet.call(params, Rights::ALL, "test").await.unwrap();
    }
    one.fleet.run(explore("a", &root), Rights::ALL).await.unwrap();
    let context = async_nats::jetstream::new(server.client().await);
    let stream = context.get_stream("CAIRN_POOL_ci").await.unwrap();
    let started = Instant::now();
    while stream.consumer_info("workers").await.unwrap().delivered.consumer_sequence < 4 {
        assert!(started.elapsed() < PATIENCE, "the run is not offered again");
        tokio::task::yield_now().await;
    }
    // The session of the present offer may exist.
    assert!(one.engine.trace().session_count().await.unwrap() <= 5);
    one.gate.add_permits(5);
    let run = one.until_run("a", |run| run.state.is_final()).await;
    assert_eq!((run.state, run.attempts.len()), (FleetRunState::Completed, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_of_a_run_are_those_of_its_subject() {
    let Some(server) = Server::start() else { return };
    let one = Daemon::start(&server, "one").await;
    until_listed(&one, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let root = one.add_root(&folder.path().join("app")).await;
    let policy = serde_json::from_value(serde_json::json!({"mode": "auto"})).unwrap();
    let work = FleetWork::Turn { input: "go".into(), policy: Some(Box::new(policy)) };
    let params = FleetRunParams { work, ..explore("raised", &root) };
    let prompter = Rights::of(&[Right::Observe, Right::Prompt]);
    one.fleet.run(params, prompter).await.unwrap();
    let run = one.until_run("raised", |run| run.state.is_final()).await;
    assert_eq!(run.state, FleetRunState::Refused);
    assert!(run.reason.unwrap().contains("'approve'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_runs_are_refused_or_removed() {
    let Some(server) = Server::start() else { return };
    let one = Daemon::start(&server, "one").await;
    until_listed(&one, 1).await;
    let with = |change: &dyn Fn(&mut FleetRunParams)| {
        let mut params = explore("x", "/tmp");
        change(&mut params);
        params
    };
    let large = FleetWork::Turn { input: "x".repeat(10 * 1024 * 1024), policy: None };
    for (params, reason) in [
        (with(&|p| p.pool = "a.b".into()), Reason::InvalidParams),
        (with(&|p| p.turn_id = Some("a b".into())), Reason::InvalidParams),
        (with(&|p| p.root = None), Reason::InvalidParams),
        (with(&|p| p.work = large.clone()), Reason::TooLarge),
    ] {
        assert_eq!(one.fleet.run(params, Rights::ALL).await.unwrap_err().reason, reason);
    }
    // Messages of others are removed, and the next run is done.
    let context = async_nats::jetstream::new(server.client().await);
    for payload in ["", "{", "[]", r#"{"turnId":"*","work":{"type":"explore"}}"#] {
        let sent = context.publish("cairn.pool.ci.run.prompt", payload.into()).await.unwrap();
        sent.await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let root = one.add_root(&folder.path().join("app")).await;
    one.gate.add_permits(1);
    one.fleet.run(explore("fine", &root), Rights::ALL).await.unwrap();
    let run = one.until_run("fine", |run| run.state.is_final()).await;
    assert_eq!(run.state, FleetRunState::Completed);
}

pub mod proxy {
    //! A proxy in front of the broker that can be cut, as a network can.

    use tokio::{
        net::{TcpListener, TcpStream},
        sync::watch,
    };

    pub struct Proxy {
        pub port: u16,
        cut: watch::Sender<bool>,
    }

    impl Proxy {
        pub async fn start(to: u16) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let (cut, is_cut) = watch::channel(false);
            tokio::spawn(async move {
                while let Ok((mut near, _)) = listener.accept().await {
                    let mut is_cut = is_cut.clone();
                    tokio::spawn(async move {
                        if *is_cut.borrow() {
                            return;
                        }
                        let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                        let copy = tokio::io::copy_bidirectional(&mut near, &mut far);
                        tokio::select! {
                            _finished = copy => {}
                            _cut = is_cut.wait_for(|cut| *cut) => {}
                        }
                    });
                }
            });
            Self { port, cut }
        }

        /// Ends all connections, and refuses new ones.
        pub fn cut(&self) {
            self.cut.send_replace(true);
        }
    }
}
