//! Calls and the handshake.

use std::time::Duration;

use cairn_client_sdk::{Client, ClientError, Connector, Target};
use cairn_protocol::id::InstanceId;

use crate::fake::{Fake, TOKEN, wire};

#[tokio::test]
async fn answers_are_matched_to_their_calls() {
    let fake = Fake::start(0).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    let calls = (0..50u64).map(|n| {
        let client = client.clone();
        async move { client.call::<_, u64>("echo", &n).await.unwrap() }
    });
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!(answers, (0..50).collect::<Vec<_>>());
    assert_eq!(client.call::<_, Option<u64>>("nothing", &()).await.unwrap(), None);
}

#[tokio::test]
async fn errors_are_typed() {
    let fake = Fake::start(0).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    let error = client.call::<_, u64>("fail", &()).await.unwrap_err();
    assert_eq!(error.reason(), Some("root_not_found"));
    assert_eq!(
        (error.to_string().as_str(), error.hint().as_deref()),
        ("no such root", Some("look"))
    );
    assert!(!error.is_unreachable());
}

#[tokio::test]
async fn timed_out_call_is_cancelled() {
    let fake = Fake::start(0).await;
    let client = fake.connector(&fake.address).connect().await.unwrap();
    let error =
        client.call_within::<_, u64>("silent", &(), Duration::from_millis(30)).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error:?}");
    fake.wait_for("$/cancelRequest").await;
}

#[tokio::test]
async fn closed_connection_fails_pending_calls() {
    let fake = Fake::start(0).await;
    // Enough bytes for the handshakes, but not for the long answer.
    let address = wire(&fake.address, vec![4_000]).await;
    let client = fake.connector(&address).connect().await.unwrap();
    let error = client.call::<_, String>("echo", &"x".repeat(100_000)).await.unwrap_err();
    assert!(matches!(error, ClientError::Closed(_)), "{error:?}");
    assert!(matches!(client.call::<_, u64>("echo", &1).await, Err(ClientError::Closed(_))));
}

#[tokio::test]
async fn wrong_token_and_wrong_instance_are_refused() {
    let fake = Fake::start(0).await;
    let target = |token: &str, instance| Target {
        address: fake.address.clone(),
        token: token.into(),
        instance,
        version: None,
        tls: None,
    };
    let error = Client::connect(&target("wrong", None)).await.err();
    assert!(matches!(error, Some(ClientError::Unauthorized { .. })), "{error:?}");
    let error = Client::connect(&target(TOKEN, Some(InstanceId::new()))).await.err();
    assert!(matches!(error, Some(ClientError::Connect { .. })), "{error:?}");
    assert!(Client::connect(&target(TOKEN, None)).await.is_ok());
    let debug_output = format!("{:?}", Connector::fixed(target("hidden", None)));
    assert!(!debug_output.contains("hidden"), "{debug_output}");
}
