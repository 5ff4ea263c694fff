//! The copies of records: complete, in order and each once, whatever happens to the broker.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_nats::jetstream::{self, consumer::pull, stream::Stream};
use cairn_engine::record::Trace;
use cairn_fleet::{IDENTITY_HEADER, SEQ_HEADER, Settings};
use cairn_protocol::{
    envelope::Body,
    event::{AgentEvt, BlobRef},
    fleet::{FleetRecordsParams, FleetStatus},
    id::SessionId,
};
use cairn_trace::{Append, NewRecord, NewSession};
use futures_util::StreamExt as _;
use sha2::{Digest as _, Sha256};

use crate::server::{Daemon, PATIENCE, Server, settings};

fn record(text: &str) -> NewRecord {
    let evt = AgentEvt::Progress { op: text.into(), percent: 1.0, message: None };
    NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

pub async fn append(trace: &Trace, session: &SessionId, count: usize) {
    for start in (0..count).step_by(100) {
        let records = (start..count.min(start + 100)).map(|n| record(&n.to_string())).collect();
        trace.append(Append::new(session, records)).await.unwrap();
    }
}

pub async fn new_session(trace: &Trace) -> SessionId {
    trace.create_session(NewSession::default()).await.unwrap().session_id
}

async fn status(daemon: &Daemon) -> FleetStatus {
    cairn_api::Fleet::status(&*daemon.fleet).await.unwrap()
}

/// Waits until the broker has these records, the number of each session's.
pub async fn until_mirrored(server: &Server, daemon: &str, sessions: &[(SessionId, u64)]) {
    let started = Instant::now();
    let mut last = String::new();
    'again: loop {
        assert!(started.elapsed() < PATIENCE * 2, "the mirror does not catch up: {last}");
        // A cluster chooses a leader slowly if it is asked without a pause.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let stream = match stream(server, daemon).await {
            Ok(stream) => stream,
            Err(error) => {
                last = error;
                continue;
            }
        };
        for (session, head) in sessions {
            let subject = format!("cairn.{daemon}.ev.{session}");
            let message = match stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => message,
                Err(error) => {
                    last = error.to_string();
                    continue 'again;
                }
            };
            let seq: u64 = message.headers.get(SEQ_HEADER).unwrap().as_str().parse().unwrap();
            if seq < *head {
                last = format!("record {seq} of {head}");
                continue 'again;
            }
        }
        return;
    }
}

pub async fn stream(server: &Server, daemon: &str) -> Result<Stream, String> {
    let context = jetstream::new(server.client().await);
    let name = format!("CAIRN_EV_{daemon}");
    context.get_stream(name).await.map_err(|error| error.to_string())
}

/// Returns the number of messages and a reader of them. A cluster that has lost a node may give a
/// reader to that node, so it is asked again.
async fn read_from_start(server: &Server, daemon: &str) -> (u64, pull::Stream) {
    let started = Instant::now();
    loop {
        let attempt = async {
            let stream = stream(server, daemon).await?;
            let info = stream.get_info().await.map_err(|error| error.to_string())?;
            // The reader is needed no longer than its node lives.
            let config =
                pull::Config { num_replicas: 1, memory_storage: true, ..pull::Config::default() };
            let consumer =
                stream.create_consumer(config).await.map_err(|error| error.to_string())?;
            let messages = consumer.messages().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((info.state.messages, messages))
        };
        match attempt.await {
            Ok(reader) => return reader,
            Err(error) => assert!(started.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Reads all messages and checks that each session has the numbers 1, 2, 3, … once, in order.
/// Returns the number of messages.
pub async fn check_complete(server: &Server, daemon: &str, sessions: &[(SessionId, u64)]) -> u64 {
    let (total, mut messages) = read_from_start(server, daemon).await;
    let mut last = std::collections::HashMap::<String, u64>::new();
    for _ in 0..total {
        let next = tokio::time::timeout(PATIENCE, messages.next()).await.unwrap();
        let message = next.unwrap().unwrap();
        message.ack().await.unwrap();
        let headers = message.headers.as_ref().unwrap();
        let seq: u64 = headers.get(SEQ_HEADER).unwrap().as_str().parse().unwrap();
        let before = last.entry(message.subject.to_string()).or_default();
        assert_eq!(seq, *before + 1, "{}", message.subject);
        let line: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(line["seq"], seq);
        *before = seq;
    }
    for (session, head) in sessions {
        assert_eq!(last.get(&format!("cairn.{daemon}.ev.{session}")), Some(head));
    }
    total
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_complete_after_an_absent_and_a_killed_broker() {
    let Some(mut server) = Server::stopped("") else { return };
    let daemon = Daemon::start(&server, "one").await;
    let trace = daemon.engine.trace();
    let (a, b) = (new_session(trace).await, new_session(trace).await);
    append(trace, &a, 700).await;
    server.resume();
    until_mirrored(&server, "one", &[(a.clone(), 700)]).await;
    for round in 1..=4 {
        let write = async {
            append(trace, &a, 1000).await;
            append(trace, &b, 1000).await;
        };
        let kill = async {
            while status(&daemon).await.mirror.unwrap().confirmed < 700 + (round - 1) * 2000 + 1 {
                tokio::task::yield_now().await;
            }
            server.kill();
            server.resume();
        };
        tokio::join!(write, kill);
        let heads = [(a.clone(), 700 + round * 1000), (b.clone(), round * 1000)];
        until_mirrored(&server, "one", &heads).await;
    }
    let heads = [(a, 4700), (b, 4000)];
    assert_eq!(check_complete(&server, "one", &heads).await, 8700);
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_daemon_and_purged_stream_are_completed_from_the_log() {
    let Some(server) = Server::start() else { return };
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let first = Daemon::with(settings(&server, "one"), Arc::clone(&dir)).await;
    let session = new_session(first.engine.trace()).await;
    append(first.engine.trace(), &session, 300).await;
    until_mirrored(&server, "one", &[(session.clone(), 300)]).await;
    first.fleet.close().await;
    append(first.engine.trace(), &session, 50).await;
    first.engine.close().await;
    drop(first);
    // The positions are lost: the broker refuses what it has, and the rest follows.
    for file in ["fleet.db", "fleet.db-wal", "fleet.db-shm"] {
        let _absent = std::fs::remove_file(dir.path().join(file));
    }
    let second = Daemon::with(settings(&server, "one"), Arc::clone(&dir)).await;
    let trace = second.engine.trace();
    let failure = until_error(&second).await;
    // With the file its identity is gone as well: the stream counts as that of another daemon.
    assert!(failure.contains("fleet.name"), "{failure}");
    stream(&server, "one").await.unwrap().purge().await.unwrap();
    second.fleet.close().await;
    second.engine.close().await;
    let _ = trace;
    drop(second);
    let third = Daemon::with(settings(&server, "one"), dir).await;
    append(third.engine.trace(), &session, 10).await;
    until_mirrored(&server, "one", &[(session.clone(), 360)]).await;
    check_complete(&server, "one", &[(session.clone(), 360)]).await;
    // A purge while the daemon runs is noticed with the next record.
    stream(&server, "one").await.unwrap().purge().await.unwrap();
    append(third.engine.trace(), &session, 1).await;
    until_mirrored(&server, "one", &[(session.clone(), 361)]).await;
    check_complete(&server, "one", &[(session, 361)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broker_that_was_restored_from_an_older_copy_gets_what_it_lost() {
    let Some(mut server) = Server::start() else { return };
    let daemon = Daemon::start(&server, "one").await;
    let trace = daemon.engine.trace();
    let (a, b) = (new_session(trace).await, new_session(trace).await);
    append(trace, &a, 300).await;
    append(trace, &b, 300).await;
    until_mirrored(&server, "one", &[(a.clone(), 300), (b.clone(), 300)]).await;
    server.kill();
    server.save_copy();
    server.resume();
    for (a_more, b_more) in [(0, 0), (0, 40), (500, 1)] {
        append(trace, &a, 100).await;
        append(trace, &b, 100).await;
        let heads = async || [head(trace, &a).await, head(trace, &b).await];
        until_mirrored(&server, "one", &heads().await).await;
        server.kill();
        server.restore_copy();
        append(trace, &a, a_more).await;
        append(trace, &b, b_more).await;
        server.resume();
        until_mirrored(&server, "one", &heads().await).await;
        check_complete(&server, "one", &heads().await).await;
    }
}

pub async fn head(trace: &Trace, session: &SessionId) -> (SessionId, u64) {
    (session.clone(), trace.session(session).await.unwrap().head_seq)
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_in_a_long_stream_of_many_sessions() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::start(&server, "one").await;
    let trace = daemon.engine.trace();
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push((new_session(trace).await, 1500));
    }
    // A short session lies at one place of the stream.
    let short = (new_session(trace).await, 20);
    for round in 0..15 {
        for (session, _) in &sessions {
            append(trace, session, 100).await;
        }
        if round == 7 {
            append(trace, &short.0, 20).await;
        }
        until_mirrored(&server, "one", &[(sessions[2].0.clone(), (round + 1) * 100)]).await;
    }
    let read = async |session: &SessionId, after: u64| {
        let params = FleetRecordsParams {
            daemon: "one".into(),
            session_id: session.clone(),
            after,
            limit: Some(10),
            wait_millis: None,
        };
        let answer = cairn_api::Fleet::records(&*daemon.fleet, params).await.unwrap();
        let seqs = answer.records.iter().map(|r| r["seq"].as_u64().unwrap());
        (seqs.collect::<Vec<_>>(), answer.first)
    };
    for after in [0, 1, 2, 99, 100, 777, 1489, 1490, 1495, 1499, 1500, 9000] {
        let expected: Vec<u64> = (after + 1..=1500).take(10).collect();
        for (session, _) in &sessions {
            assert_eq!(read(session, after).await, (expected.clone(), None), "after {after}");
        }
    }
    assert_eq!(read(&short.0, 15).await.0, [16, 17, 18, 19, 20]);
    // The limits of the stream remove its beginning.
    stream(&server, "one").await.unwrap().purge().sequence(2000).await.unwrap();
    let (seqs, first) = read(&sessions[0].0, 3).await;
    assert!(first > Some(500) && seqs[0] == first.unwrap(), "{seqs:?} {first:?}");
    assert_eq!(read(&sessions[0].0, 1000).await, ((1001..=1010).collect(), first));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_are_copied_without_secrets_if_the_user_wants_it() {
    let Some(server) = Server::start() else { return };
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let settings = Settings { blobs: true, ..settings(&server, "one") };
    let daemon = Daemon::with(settings, dir).await;
    let trace = daemon.engine.trace();
    let session = new_session(trace).await;
    let content = format!("{:?}", "token=abcdefgh12345 ".to_owned() + &"x".repeat(300_000));
    let hash = hex::encode(Sha256::digest(&content));
    // One with a damaged content does not stop the others.
    let damaged = "5".repeat(64);
    for hash in [&damaged, &hash] {
        let evt = AgentEvt::Result {
            op: "read_file".into(),
            tag: "span".into(),
            mime: "application/json".into(),
            data: None,
            blob: Some(BlobRef { sha256: hash.clone(), size: content.len() as u64 }),
            truncated: false,
        };
        let body = Body::Evt { evt };
        let named = NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body };
        let append = Append::new(&session, vec![named]).blob(hash.clone(), content.clone().into());
        trace.append(append).await.unwrap();
    }
    until_mirrored(&server, "one", &[(session, 2)]).await;
    let context = jetstream::new(server.client().await);
    let store = context.get_object_store("CAIRN_BLOBS_one").await.unwrap();
    let mut copy = String::new();
    let mut object = store.get(&hash).await.unwrap();
    tokio::io::AsyncReadExt::read_to_string(&mut object, &mut copy).await.unwrap();
    assert_eq!(copy, content.replace("token=abcdefgh12345", "token=[secret]"));
    assert!(store.info(&damaged).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_ends_while_the_broker_is_absent() {
    let Some(server) = Server::stopped("") else { return };
    let daemon = Daemon::start(&server, "one").await;
    append(daemon.engine.trace(), &new_session(daemon.engine.trace()).await, 10).await;
    tokio::time::timeout(PATIENCE / 6, daemon.fleet.close()).await.expect("an end");
}

async fn until_error(daemon: &Daemon) -> String {
    let started = Instant::now();
    loop {
        let status = status(daemon).await;
        if let Some(error) = status.mirror.and_then(|mirror| mirror.error).or(status.error) {
            return error;
        }
        assert!(started.elapsed() < PATIENCE, "no error is reported");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn second_daemon_of_a_name_is_refused() {
    let Some(server) = Server::start() else { return };
    let first = Daemon::start(&server, "one").await;
    let session = new_session(first.engine.trace()).await;
    append(first.engine.trace(), &session, 10).await;
    until_mirrored(&server, "one", &[(session.clone(), 10)]).await;
    let second = Daemon::start(&server, "one").await;
    let error = until_error(&second).await;
    assert!(error.contains("another daemon is called 'one'"), "{error}");
    append(first.engine.trace(), &session, 10).await;
    until_mirrored(&server, "one", &[(session, 20)]).await;
    assert_eq!(status(&first).await.error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_and_contradicting_messages_stop_the_mirror() {
    for (seq, own_identity, want) in [("1", false, "fleet.name"), ("900", true, "restored")] {
        let Some(server) = Server::start() else { return };
        let daemon = Daemon::start(&server, "one").await;
        let trace = daemon.engine.trace();
        let session = new_session(trace).await;
        append(trace, &session, 5).await;
        until_mirrored(&server, "one", &[(session.clone(), 5)]).await;
        let subject = format!("cairn.one.ev.{session}");
        let last = stream(&server, "one").await.unwrap();
        let last = last.get_last_raw_message_by_subject(&subject).await.unwrap();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(SEQ_HEADER, seq);
        let identity = last.headers.get(IDENTITY_HEADER).unwrap().as_str().to_owned();
        headers.insert(IDENTITY_HEADER, if own_identity { identity.as_str() } else { "another" });
        let client = server.client().await;
        client.publish_with_headers(subject, headers, "{}".into()).await.unwrap();
        client.flush().await.unwrap();
        append(trace, &session, 1).await;
        let error = until_error(&daemon).await;
        assert!(error.contains(want), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_by_number_and_large_ones_are_noted() {
    let Some(server) = Server::with_config("max_payload: 65536") else { return };
    let daemon = Daemon::start(&server, "one").await;
    let trace = daemon.engine.trace();
    let session = new_session(trace).await;
    append(trace, &session, 30).await;
    let large = "token=abcdefgh ".to_owned() + &"x".repeat(100_000);
    trace.append(Append::new(&session, vec![record(&large)])).await.unwrap();
    let secret = "export API_TOKEN=hunter2hunter2";
    trace.append(Append::new(&session, vec![record(secret)])).await.unwrap();
    until_mirrored(&server, "one", &[(session.clone(), 32)]).await;
    let params = FleetRecordsParams {
        daemon: "one".into(),
        session_id: session,
        after: 28,
        limit: None,
        wait_millis: None,
    };
    let answer = cairn_api::Fleet::records(&*daemon.fleet, params.clone()).await.unwrap();
    let seqs: Vec<_> = answer.records.iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [29, 30, 31, 32]);
    assert!(answer.records[2]["omittedBytes"].as_u64().unwrap() > 100_000);
    let text = answer.records[3].to_string();
    assert!(text.contains("[secret]") && !text.contains("hunter2"), "{text}");
    let beyond = FleetRecordsParams { after: 32, ..params };
    assert!(cairn_api::Fleet::records(&*daemon.fleet, beyond).await.unwrap().records.is_empty());
}
