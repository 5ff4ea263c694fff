//! A broker of three nodes, of which any one may die.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use cairn_api::{Fleet as _, Rights};
use cairn_fleet::Settings;
use cairn_protocol::fleet::{FleetRunState, FleetStatus};

use crate::{
    mirror::{append, check_complete, head, new_session, stream, until_mirrored},
    pools::explore,
    server::{Daemon, PATIENCE, Server, settings},
};

/// Starts the nodes. `None` if the broker's program is not installed.
fn nodes() -> Option<Vec<Server>> {
    let sockets: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = sockets.iter().map(|s| s.local_addr().unwrap().port()).collect();
    drop(sockets);
    let routes: Vec<_> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let routes = routes.join(", ");
    let start = |port: &u16| {
        Server::with_config(&format!(
            "server_name: n{port}\n\
             cluster {{ name: test, listen: \"127.0.0.1:{port}\", routes: [{routes}] }}"
        ))
    };
    ports.iter().map(start).collect()
}

async fn connected(nodes: &[Server]) -> Daemon {
    let all: Vec<_> = nodes.iter().map(Server::address).collect();
    let settings = Settings { server: all.join(", "), replicas: 3, ..settings(&nodes[0], "one") };
    let dir = std::sync::Arc::new(tempfile::tempdir().unwrap());
    Daemon::with(settings, dir).await
}

async fn until(daemon: &Daemon, is: impl Fn(&FleetStatus) -> bool) {
    let started = Instant::now();
    loop {
        // A cluster without a leader answers late.
        let status = daemon.fleet.status().await;
        if status.as_ref().is_ok_and(&is) {
            return;
        }
        assert!(started.elapsed() < PATIENCE * 2, "{status:?}");
        // Questions without a pause would slow down the choice of a leader.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_runs_survive_the_death_of_any_node() {
    let Some(mut nodes) = nodes() else { return };
    let daemon = connected(&nodes).await;
    until(&daemon, |status| status.daemons.len() == 1).await;
    let trace = daemon.engine.trace();
    let session = new_session(trace).await;
    append(trace, &session, 100).await;
    let folder = tempfile::tempdir().unwrap();
    let root = daemon.add_root(&folder.path().join("app")).await;
    daemon.gate.add_permits(3);
    for dying in 0..3 {
        let survivor = (dying + 1) % 3;
        let write = append(trace, &session, 1000);
        let kill = async {
            let head = (session.clone(), dying as u64 * 1100 + 100);
            until_mirrored(&nodes[survivor], "one", &[head]).await;
            nodes[dying].kill();
        };
        tokio::join!(write, kill);
        append(trace, &session, 100).await;
        let heads = [head(trace, &session).await];
        until_mirrored(&nodes[survivor], "one", &heads).await;
        check_complete(&nodes[survivor], "one", &heads).await;
        let id = format!("run-{dying}");
        until_added(&daemon, &id, &root).await;
        let run = daemon.until_run(&id, |run| run.state.is_final()).await;
        assert_eq!(run.state, FleetRunState::Completed);
        nodes[dying].resume();
        until_replicated(&nodes[dying]).await;
    }
}

/// Adds a run; a cluster that chooses a leader takes it a little later.
async fn until_added(daemon: &Daemon, id: &str, root: &str) {
    let started = Instant::now();
    while let Err(failure) = daemon.fleet.run(explore(id, root), Rights::ALL).await {
        assert!(failure.reason.retryable() && started.elapsed() < PATIENCE, "{failure:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until every node has the records.
async fn until_replicated(node: &Server) {
    let started = Instant::now();
    loop {
        if let Ok(stream) = stream(node, "one").await
            && let Ok(info) = stream.get_info().await
            && let Some(cluster) = info.cluster
            && cluster.leader.is_some()
            && cluster.replicas.len() == 2
            && cluster.replicas.iter().all(|replica| replica.current)
        {
            return;
        }
        assert!(started.elapsed() < PATIENCE * 2, "a node does not catch up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
