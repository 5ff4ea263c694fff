//! The in-process client: answers, failures, rights, cancellation, events, closing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use cairn_api::{Api, HostInfo, Right, Rights};
use cairn_engine::Engine;
use cairn_protocol::{daemon::Limits, error::Reason};
use cairn_test_support::engine::{WaitTool, deps, index_options, options};
use cairn_transport::in_process::{InProcessClient, NOTIFICATION_CAPACITY};
use serde_json::json;

const LONG: Duration = Duration::from_secs(120);

struct TestDaemon {
    api: Arc<Api>,
    tool: WaitTool,
    _dir: tempfile::TempDir,
}

async fn test_daemon() -> TestDaemon {
    let dir = tempfile::tempdir().unwrap();
    let deps = deps(dir.path(), index_options());
    let tool = WaitTool::default();
    deps.registry.add(Arc::new(tool.clone())).unwrap();
    let host = HostInfo::in_process("0", dir.path());
    let engine = Engine::open(deps, options(dir.path())).await.unwrap();
    TestDaemon { api: Api::new(engine, host, Limits::default()), tool, _dir: dir }
}

async fn soon(what: impl Fn() -> bool) {
    let wait = async {
        while !what() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_return_results_and_failure_reasons() {
    let test_daemon = test_daemon().await;
    let (queue, _notifications) =
        InProcessClient::open(&test_daemon.api, Rights::of(&[Right::Observe])).unwrap();
    let early = queue.call("session.list", &json!({})).await.unwrap_err();
    assert_eq!(early.reason, Reason::NotInitialized);
    assert_eq!(queue.initialize("t", "0", true).await.unwrap().protocol_version, "1");
    assert_eq!(queue.call("session.list", &json!({})).await.unwrap()["data"], json!([]));
    let denied = queue.call("session.create", &json!({})).await.unwrap_err();
    assert_eq!(denied.reason, Reason::RightMissing);
    assert_eq!(queue.call("nothing", &json!({})).await.unwrap_err().reason, Reason::MethodNotFound);
    let big = json!({"x": "y".repeat(5_000_000)});
    assert_eq!(queue.call("session.list", &big).await.unwrap_err().reason, Reason::TooLarge);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_last_clone_closes_connection() {
    let test_daemon = test_daemon().await;
    let (queue, notifications) = InProcessClient::open(&test_daemon.api, Rights::ALL).unwrap();
    queue.initialize("t", "0", false).await.unwrap();
    let other = queue.clone();
    drop(queue);
    assert_eq!(test_daemon.api.connections(), 1);
    other.call("daemon.status", &json!({})).await.unwrap();
    drop(other);
    assert_eq!(test_daemon.api.connections(), 0);
    let mut notifications = notifications;
    assert!(tokio::time::timeout(LONG, notifications.recv()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_call_is_cancelled() {
    let test_daemon = test_daemon().await;
    let (queue, _notifications) = InProcessClient::open(&test_daemon.api, Rights::ALL).unwrap();
    queue.initialize("t", "0", false).await.unwrap();
    let session = queue.call("session.create", &json!({})).await.unwrap()["sessionId"].clone();
    let params = json!({"sessionId": session, "name": "wait", "arguments": {}});
    let pending = tokio::spawn({
        let queue = queue.clone();
        async move { queue.call("tool.call", &params).await }
    });
    soon(|| test_daemon.tool.calls() == 1).await;
    pending.abort();
    assert!(pending.await.unwrap_err().is_cancelled());
    // Other calls are answered meanwhile, and a dropped call has no effect when it ends.
    queue.call("daemon.status", &json!({})).await.unwrap();
    test_daemon.tool.gate.add_permits(1);
    queue.call("daemon.status", &json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_ordered_and_wait_for_slow_reader() {
    let test_daemon = test_daemon().await;
    let (queue, mut notifications) = InProcessClient::open(&test_daemon.api, Rights::ALL).unwrap();
    queue.initialize("t", "0", false).await.unwrap();
    let session = queue.call("session.create", &json!({})).await.unwrap()["sessionId"].clone();
    let calls = NOTIFICATION_CAPACITY;
    test_daemon.tool.gate.add_permits(calls);
    for _ in 0..calls {
        let params = json!({"sessionId": session, "name": "wait", "arguments": {}});
        queue.call("tool.call", &params).await.unwrap();
    }
    let head = queue.call("orchestrate.subscribe", &json!({"sessionId": session})).await.unwrap();
    let head = head["headSeq"].as_u64().unwrap();
    assert!(head > NOTIFICATION_CAPACITY as u64, "{head} records are no test of a full queue");
    let mut seen = 0;
    while seen < head {
        let notification = tokio::time::timeout(LONG, notifications.recv()).await.unwrap().unwrap();
        assert_eq!(notification.method, "orchestrate.event");
        seen += 1;
        assert_eq!(notification.params["seq"], seen);
    }
    let notification = tokio::time::timeout(LONG, notifications.recv()).await.unwrap().unwrap();
    assert_eq!(notification.method, "orchestrate.synced");
}
