//! Following a session: the stream is the same if it is cut and resumed, joined in the middle, or
//! read too slowly.

use cairn_test_support::{Rng, random};
use serde_json::{Value, json};

use crate::{
    contents::{count, sources},
    sealed::{Daemon, ends, seqs},
};

/// Reads at most `most` records after `after` on a new connection, then cuts it.
async fn some(daemon: &Daemon, session: &str, after: usize, most: usize) -> Vec<Value> {
    let mut raw = daemon.client().await;
    raw.ok("orchestrate.subscribe", json!({"sessionId": session, "after": after})).await;
    let mut records = Vec::new();
    while records.len() < most {
        let mut record = raw.notification("orchestrate.event").await;
        record.as_object_mut().unwrap().remove("subscriptionId");
        let end = ends(&record);
        records.push(record);
        if end {
            break;
        }
    }
    records
}

/// Reads a complete session with cuts after random numbers of records.
async fn in_pieces(daemon: &Daemon, session: &str, rng: &mut Rng, piece: u64) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    while !all.last().is_some_and(ends) {
        let more = some(daemon, session, all.len(), rng.u64(..piece) as usize + 1).await;
        all.extend(more);
    }
    all
}

#[tokio::test]
async fn interrupted_stream_equals_the_uninterrupted_one() {
    let mut rng = random("cuts");
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    sources(dir.path(), 60);
    let mut raw = daemon.client().await;
    let full_stream = raw.explore(dir.path(), &["find the ledger"]).await;
    let session = full_stream[0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(seqs(&full_stream), (1..=full_stream.len() as u64).collect::<Vec<_>>());
    for cut in 0..full_stream.len() {
        assert_eq!(raw.follow(&session, cut as u64).await, full_stream[cut..], "cut at {cut}");
    }
    for _ in 0..count("CAIRN_CUTS", 10) {
        assert_eq!(in_pieces(&daemon, &session, &mut rng, 12).await, full_stream);
    }
}

#[tokio::test]
async fn interrupted_and_late_followers_see_every_record() {
    let mut rng = random("live cuts");
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    sources(dir.path(), 150);
    for n in 0..count("CAIRN_LIVE_CUTS", 3) {
        let root = dir.path().join(format!("part{n}"));
        let mut raw = daemon.client().await;
        let receipt = raw.ok("orchestrate.explore.start", json!({"root": root})).await;
        let session = receipt["sessionId"].as_str().unwrap();
        let uncut = async { raw.follow(session, 0).await };
        let late = async {
            let first = some(&daemon, session, 0, 4).await;
            let all = daemon.client().await.follow(session, 0).await;
            assert_eq!(first, all[..first.len()]);
            all
        };
        let (uncut, cut, late) =
            tokio::join!(uncut, in_pieces(&daemon, session, &mut rng, 4), late);
        assert_eq!(cut, uncut);
        assert_eq!(late, uncut);
    }
}

#[tokio::test]
async fn slow_reader_loses_no_record_and_memory_is_bounded() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let line = "all work and no play makes a dull log\n";
    std::fs::write(dir.path().join("long.txt"), line.repeat(500)).unwrap();
    let mut writer = daemon.client().await;
    let session = writer.open_session(dir.path()).await;
    let mut slow = daemon.client().await;
    slow.ok("orchestrate.subscribe", json!({"sessionId": session, "after": 0})).await;
    let call = |id: usize| {
        let span = json!({"path": "long.txt", "root": dir.path(), "start": 1, "end": 500});
        let params = json!({"sessionId": session, "name": "content_get_span", "arguments": span});
        json!({"jsonrpc": "2.0", "id": format!("w{id}"), "method": "tool.call", "params": params})
    };
    let mut before = 0;
    for n in 0..count("CAIRN_SLOW", 120) {
        // Memory used by the work itself is not attributed to the slow client.
        if n == 10 {
            before = writer.ok("daemon.stats", json!({})).await["anonymousBytes"].as_u64().unwrap();
        }
        for id in 0..16 {
            writer.send_json(&call(n * 16 + id)).await;
        }
        for id in 0..16 {
            let answer = writer.answer(&json!(format!("w{}", n * 16 + id))).await;
            assert_eq!(answer["result"]["ok"], true, "{answer}");
        }
    }
    let after = writer.ok("daemon.stats", json!({})).await["anonymousBytes"].as_u64().unwrap();
    let head =
        writer.ok("session.get", json!({"sessionId": session})).await["headSeq"].as_u64().unwrap();
    let (mut seen, mut lagged) = (0, 0);
    while seen < head {
        let message = slow.json().await;
        match message["method"].as_str() {
            Some("orchestrate.event") => {
                seen += 1;
                assert_eq!(message["params"]["seq"], seen);
            }
            Some("orchestrate.lagged") => {
                lagged += 1;
                assert_eq!(message["params"]["fromSeq"], seen + 1);
            }
            _ => assert_eq!(message["method"], "orchestrate.synced", "{message}"),
        }
    }
    let grown = after.saturating_sub(before) / 1024;
    crate::sealed::note(&format!(
        "{head} records unread, told 'lagged' {lagged} times, memory grew by {grown} KiB"
    ));
    assert!(grown < 48 * 1024, "memory grew by {grown} KiB");
}
