//! Calls from one daemon to another, within the rights of the subject.

use cairn_api::{Fleet as _, Right, Rights};
use cairn_protocol::{error::Reason, fleet::FleetCallParams};
use serde_json::{Value, json};

use crate::server::{Daemon, Server, settings};

fn call(daemon: &str, method: &str, params: Value) -> FleetCallParams {
    FleetCallParams { daemon: daemon.into(), method: method.into(), params }
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_of_another_daemon_are_called_with_the_rights_of_the_caller() {
    let Some(server) = Server::start() else { return };
    let (one, two) = (Daemon::start(&server, "one").await, Daemon::start(&server, "two").await);
    let status = call("two", "session.create", json!({"title": "from afar"}));
    let session = loop {
        // The other daemon may still connect.
        match one.fleet.call(status.clone(), Rights::ALL, "test").await {
            Ok(session) => break session,
            Err(failure) => assert_eq!(failure.reason, Reason::DaemonNotFound),
        }
    };
    let id = session["sessionId"].as_str().unwrap().parse().unwrap();
    assert_eq!(two.engine.trace().session(&id).await.unwrap().title, "from afar");
    let observer = Rights::of(&[Right::Observe]);
    let refused = one.fleet.call(status, observer, "test").await.unwrap_err();
    assert_eq!(refused.reason, Reason::RightMissing);
    let read = call("two", "session.get", json!({"sessionId": id}));
    assert_eq!(one.fleet.call(read, observer, "test").await.unwrap()["title"], "from afar");
    // Without 'observe' the other rights are no level.
    let lone = Rights::of(&[Right::Admin]);
    let refused = one.fleet.call(call("two", "tool.list", json!({})), lone, "test").await;
    assert_eq!(refused.unwrap_err().reason, Reason::RightMissing);
    for name in ["absent", "a.b", "*", ""] {
        let absent = one.fleet.call(call(name, "tool.list", json!({})), Rights::ALL, "test").await;
        assert_eq!(absent.unwrap_err().reason, Reason::DaemonNotFound, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_decides_who_may_publish() {
    let users = r#"
authorization { users = [
  { user: "daemon", password: "d" },
  { user: "reader", password: "r", permissions: {
      publish: ["cairn.*.rpc.observe.*", "$JS.API.>", "$KV.CAIRN_DAEMONS.>", "_INBOX.>"], subscribe: [">"] } },
  { user: "gone", password: "g", permissions: { publish: { deny: ">" }, subscribe: { deny: ">" } } },
] }"#;
    let Some(server) = Server::with_config(users) else { return };
    let of = |name: &str, user: &str, password: &str| cairn_fleet::Settings {
        login: cairn_fleet::Login::Password { user: user.into(), password: password.into() },
        mirror: cairn_fleet::Mirrored::None,
        pools: vec![],
        ..settings(&server, name)
    };
    let dir = || std::sync::Arc::new(tempfile::tempdir().unwrap());
    let two = Daemon::with(of("two", "daemon", "d"), dir()).await;
    let reader = Daemon::with(of("reader", "reader", "r"), dir()).await;
    let list = call("two", "tool.list", json!({}));
    let observer = Rights::of(&[Right::Observe]);
    while reader.fleet.call(list.clone(), observer, "t").await.is_err() {
        tokio::task::yield_now().await;
    }
    // The daemon asks with all its rights, and the broker does not deliver the message.
    let started = std::time::Instant::now();
    let refused = tokio::time::timeout(
        std::time::Duration::from_secs(5),
        reader.fleet.call(list, Rights::ALL, "t"),
    )
    .await;
    assert!(refused.is_err() || refused.unwrap().is_err(), "{:?}", started.elapsed());
    assert!(two.engine.trace().session_count().await.unwrap() == 0);
    let wrong = Daemon::with(of("wrong", "daemon", "no"), dir()).await;
    let error = loop {
        let status = wrong.fleet.status().await.unwrap();
        assert!(!status.connected);
        if let Some(error) = status.error {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert!(error.to_lowercase().contains("authorization"), "{error}");
}
