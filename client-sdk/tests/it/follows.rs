//! Following over a connection that is cut returns the same records as over an intact one.

use cairn_client_sdk::{ClientError, Item};
use cairn_protocol::session::After;
use proptest::prelude::*;

use crate::fake::{Fake, wire};

/// Records of the session.
const RECORDS: u64 = 60;

async fn all(fake: &Fake, address: &str) -> Vec<(u64, String)> {
    let client = loop {
        // The first connection may be cut as well; following starts with one that succeeded.
        if let Ok(client) = fake.connector(address).connect().await {
            break client;
        }
    };
    let mut follow = client.follow(&fake.session, 0);
    let mut seen = Vec::new();
    while seen.len() < fake.log.len() {
        if let Item::Event(record) = follow.next().await.unwrap() {
            seen.push((record.seq, record.json));
        }
    }
    assert_eq!(follow.last(), RECORDS);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn interrupted_stream_returns_the_same_records(cuts in prop::collection::vec(0usize..9_000, 0..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fake = Fake::start(RECORDS).await;
            let address = wire(&fake.address, cuts.clone()).await;
            let seen = all(&fake, &address).await;
            let want: Vec<(u64, String)> = (1..).zip(fake.log.iter().cloned()).collect();
            assert_eq!(seen, want, "cuts {cuts:?}");
        });
    }
}

#[tokio::test]
async fn follow_reconnects_after_a_cut() {
    let fake = Fake::start(RECORDS).await;
    let address = wire(&fake.address, vec![usize::MAX, 3_000, 4_000]).await;
    let client = fake.connector(&address).connect().await.unwrap();
    let mut follow = client.follow(&fake.session, 0);
    while follow.next().await.unwrap() != Item::Synced(RECORDS) {}
    assert_eq!((follow.last(), follow.reconnects()), (RECORDS, 2));
}

#[tokio::test]
async fn slow_reader_receives_every_record() {
    let fake = Fake::start(5_000).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    let mut stream = client.subscribe(&fake.session, After::Seq(0)).await.unwrap();
    // The socket is not read while the queue is full: a call gets no answer until records are
    // taken.
    let echo =
        client.call_within::<_, u64>("echo", &7, std::time::Duration::from_millis(100)).await;
    assert!(matches!(echo, Err(ClientError::TimedOut { .. })), "{echo:?}");
    for want in 1..=5_000 {
        match stream.next().await.unwrap() {
            Item::Event(record) => assert_eq!(record.seq, want),
            other => panic!("{other:?} instead of record {want}"),
        }
    }
    assert_eq!(stream.next().await.unwrap(), Item::Synced(5_000));
    assert_eq!(client.call::<_, u64>("echo", &8).await.unwrap(), 8);
}

#[tokio::test]
async fn dropped_stream_is_unsubscribed() {
    let fake = Fake::start(3).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    drop(client.subscribe(&fake.session, After::Seq(0)).await.unwrap());
    fake.wait_for("orchestrate.unsubscribe").await;
}

#[tokio::test]
async fn follow_fails_when_its_patience_is_exhausted() {
    let fake = Fake::start(3).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    let unreachable = fake.connector("127.0.0.1:1");
    drop(client);
    let error = unreachable.connect().await.err();
    assert!(matches!(error, Some(ClientError::Connect { .. })), "{error:?}");
    let broken_wire =
        wire(&fake.address, vec![usize::MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await;
    let client = fake.connector(&broken_wire).connect().await.unwrap();
    let mut follow =
        client.follow(&fake.session, 0).patience(std::time::Duration::from_millis(200));
    let error = follow.next().await.unwrap_err();
    assert!(error.is_unreachable(), "{error:?}");
}
