//! Clients that are not paired devices: they guess codes, intercept, replay and impersonate.

use std::sync::Arc;

use cairn_client_sdk::ClientError;
use cairn_pairing::{
    Identity, client_config,
    exchange::{self, Channel, Hello, Proof, Reply},
    exporter, peer_pin, server_config,
};
use cairn_protocol::{
    remote::{DeviceRef, PairState, Right},
    session::Empty,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest},
};

use super::machine::{Den, Laptop};

/// Returns a different code.
fn other(code: &str, by: u32) -> String {
    let number: u32 = exchange::digits(code).unwrap().parse().unwrap();
    format!("{:08}", (number + by) % exchange::CODES)
}

fn refused(outcome: Result<cairn_client_sdk::KnownHost, ClientError>) -> String {
    match outcome.unwrap_err() {
        ClientError::Pairing(why) => why,
        error => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fourth_attempt_is_refused_even_if_correct() {
    let (den, laptop) = (Den::start().await, Laptop::new());
    let offer = den.begin(&[Right::Observe]).await.unwrap();
    for by in 1..=3 {
        let why = refused(laptop.try_code(&den.lan, None, &other(&offer.code, by), "den").await);
        assert!(why.contains("the codes differ"), "{why}");
    }
    let why = refused(laptop.try_code(&den.lan, None, &offer.code, "den").await);
    assert!(why.contains("no longer valid"), "{why}");
    let admin = den.client().await;
    assert_eq!(admin.pair_status(&Empty {}).await.unwrap().state, PairState::Void);
    assert_eq!(admin.client_list(&Empty {}).await.unwrap().data, []);
    assert!(!laptop.root().hosts_json().exists());
    // Control: after two wrong codes the right one is accepted, once.
    let offer = den.begin(&[Right::Observe]).await.unwrap();
    for by in 1..=2 {
        refused(laptop.try_code(&den.lan, None, &other(&offer.code, by), "den").await);
    }
    laptop.try_code(&den.lan, None, &offer.code, "den").await.unwrap();
    let why = refused(Laptop::new().try_code(&den.lan, None, &offer.code, "den").await);
    assert!(why.contains("no pairing code is active"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_wrong_code_is_accepted() {
    let (den, laptop) = (Den::start().await, Laptop::new());
    // Control: a paired device is accepted.
    let known = laptop.pair(&den, &[Right::Observe], "den").await;
    den.client().await.client_revoke(&DeviceRef { id: known.device }).await.unwrap();
    let admin = den.client().await;
    let params =
        cairn_protocol::remote::PairBeginParams { rights: vec![Right::Observe], name: None };
    let (mut code, mut codes, mut compared) = ("00000000".to_owned(), 1, 0);
    for guess in 0..1000_u32 {
        if guess % 3 == 0
            && let Ok(offer) = admin.pair_begin(&params).await
        {
            (code, codes) = (offer.code, codes + 1);
        }
        let why =
            refused(laptop.try_code(&den.lan, None, &other(&code, guess % 3 + 1), "den").await);
        compared += u32::from(why.contains("the codes differ"));
    }
    // The number of codes is limited, even if a person requests new ones.
    assert_eq!((codes, compared), (20, 19 * 3));
    assert_eq!(admin.client_list(&Empty {}).await.unwrap().data, []);
}

/// Terminates the TLS of every client with its own key, and connects to the daemon as a client of
/// its own.
async fn man_in_the_middle(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = listener.local_addr().unwrap().to_string();
    let own = Identity::fresh().unwrap();
    let acceptor = TlsAcceptor::from(server_config(&own).unwrap());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, own, to) = (acceptor.clone(), Arc::clone(&own), to.clone());
            tokio::spawn(async move {
                // A client that knows the daemon's key rejects the connection here.
                let Ok(mut victim) = acceptor.accept(tcp).await else { return };
                let mut daemon = dial(&to, &own).await;
                // Either side may close first.
                let _ignored = tokio::io::copy_bidirectional(&mut victim, &mut daemon).await;
            });
        }
    });
    near
}

pub(super) async fn dial(to: &str, own: &Identity) -> TlsStream<TcpStream> {
    let connector = TlsConnector::from(client_config(own, None).unwrap());
    let name = ServerName::try_from("cairn").unwrap();
    connector.connect(name, TcpStream::connect(to).await.unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn man_in_the_middle_cannot_pair() {
    let (den, laptop) = (Den::start().await, Laptop::new());
    let middle = man_in_the_middle(den.lan.clone()).await;
    let offer = den.begin(&[Right::Observe]).await.unwrap();
    // The attacker forwards every message unchanged, and the code is the right one.
    let why = refused(laptop.try_code(&middle, None, &offer.code, "den").await);
    assert!(why.contains("the connection is intercepted"), "{why}");
    let admin = den.client().await;
    assert_eq!(admin.pair_status(&Empty {}).await.unwrap().tries_left, 2);
    assert_eq!(admin.client_list(&Empty {}).await.unwrap().data, []);
    assert!(!laptop.root().hosts_json().exists());
    // Control: over a direct connection the same code is accepted.
    let known = laptop.try_code(&den.lan, None, &offer.code, "den").await.unwrap();
    // After pairing, the key distinguishes the attacker from the daemon.
    let error = laptop.try_code(&middle, Some(known.key), &offer.code, "den").await.unwrap_err();
    assert!(matches!(error, ClientError::KeyChanged { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_host_key_is_reported() {
    let (mut den, laptop) = (Den::start().await, Laptop::new());
    let known = laptop.pair(&den, &[Right::Observe], "den").await;
    laptop.ok(&["--host", "den", "status"]);
    den.daemon.stop();
    // Another daemon under the same name at the same address.
    let impostor = Den::start_at(&den.lan).await;
    assert_eq!(impostor.lan, den.lan);
    let error = laptop.connect("den").await.err().unwrap();
    let ClientError::KeyChanged { expected, seen, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*expected, known.key.to_string());
    assert_ne!(expected, seen);
    let (code, output) = laptop.run(&["--host", "den", "status"]);
    assert!(code == 4 && output.contains(expected) && output.contains(seen), "{code} {output}");
    assert!(output.contains("the connection may be intercepted"), "{output}");
}

type Ws = WebSocketStream<TlsStream<TcpStream>>;

async fn pairing(den: &Den, own: &Identity) -> (Ws, Channel) {
    let tls = dial(&den.lan, own).await;
    let connection = tls.get_ref().1;
    let server = peer_pin(connection).unwrap();
    let channel = Channel { client: own.pin(), server, binding: exporter(connection).unwrap() };
    let (ws, _) = client_async(format!("ws://{}/pair", den.lan), tls).await.unwrap();
    (ws, channel)
}

pub(super) async fn send_message(ws: &mut Ws, message: &impl serde::Serialize) {
    ws.send(Message::text(serde_json::to_string(message).unwrap())).await.unwrap();
}

pub(super) async fn receive_message(ws: &mut Ws) -> Value {
    loop {
        match ws.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(_) => return Value::Null,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replayed_pairing_messages_are_refused() {
    let den = Den::start().await;
    let offer = den.begin(&[Right::Observe]).await.unwrap();
    let code = exchange::digits(&offer.code).unwrap();
    let own = Identity::fresh().unwrap();
    // An attempt that is cut just before its proof arrives: the proof is right and unused.
    let (mut ws, channel) = pairing(&den, &own).await;
    let (exchange_state, share) = exchange::client(&code, &channel);
    let hello = Hello { name: "laptop".into(), share };
    send_message(&mut ws, &hello).await;
    let reply: Reply = serde_json::from_value(receive_message(&mut ws).await).unwrap();
    let proof =
        Proof { confirm: exchange_state.finish(&reply.share, "laptop").unwrap().client_proof() };
    drop(ws);
    // The same messages with the same code and even the same key, over another connection.
    let (mut ws, _) = pairing(&den, &own).await;
    send_message(&mut ws, &hello).await;
    assert!(receive_message(&mut ws).await["share"].is_string());
    send_message(&mut ws, &proof).await;
    let refusal = receive_message(&mut ws).await;
    assert!(refusal["error"].as_str().unwrap().contains("the codes differ"), "{refusal}");
    assert_eq!(den.client().await.client_list(&Empty {}).await.unwrap().data, []);
    // Control: over its own connection such a proof is accepted.
    let (mut ws, channel) = pairing(&den, &own).await;
    let (exchange_state, share) = exchange::client(&code, &channel);
    send_message(&mut ws, &Hello { share, ..hello }).await;
    let reply: Reply = serde_json::from_value(receive_message(&mut ws).await).unwrap();
    send_message(
        &mut ws,
        &Proof { confirm: exchange_state.finish(&reply.share, "laptop").unwrap().client_proof() },
    )
    .await;
    assert!(receive_message(&mut ws).await["granted"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_listener_ignores_tokens_and_unpaired_clients_may_only_pair() {
    let den = Den::start().await;
    let own = Identity::fresh().unwrap();
    let token = format!("Bearer {}", den.daemon.token());
    for (path, origin, want) in [
        ("/rpc", None, 401),
        ("/acp", None, 401),
        ("/mcp/ws", None, 401),
        ("/mcp", None, 404),
        ("/metrics", None, 401),
        ("/events", None, 401),
        ("/rpc", Some("https://evil.example"), 403),
    ] {
        let mut request = format!("ws://{}{path}", den.lan).into_client_request().unwrap();
        request.headers_mut().insert("authorization", token.parse().unwrap());
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match client_async(request, dial(&den.lan, &own).await).await {
            Err(tungstenite::Error::Http(answer)) => {
                assert_eq!(answer.status().as_u16(), want, "{path}")
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    // Control: a paired device is accepted, and stores nothing else.
    let laptop = Laptop::new();
    laptop.pair(&den, &[Right::Observe], "den").await;
    laptop.connect("den").await.unwrap();
    // A connection without TLS is refused.
    assert!(tokio_tungstenite::connect_async(format!("ws://{}/rpc", den.lan)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_block_paired_devices() {
    let (den, laptop) = (Den::start().await, Laptop::new());
    laptop.pair(&den, &[Right::Observe], "den").await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(&den.lan).await.unwrap());
    }
    let strangers = Identity::fresh().unwrap();
    let mut unauthenticated = Vec::new();
    for _ in 0..40 {
        unauthenticated.push(dial(&den.lan, &strangers).await);
    }
    // A device connects, and another pairs.
    laptop.connect("den").await.unwrap();
    Laptop::new().pair(&den, &[Right::Observe], "den").await;
    // The oldest connections were closed for the newest ones.
    let mut byte = [0; 1];
    let first = tokio::time::timeout(
        crate::sealed::PATIENCE,
        tokio::io::AsyncReadExt::read(&mut silent[0], &mut byte),
    );
    assert!(matches!(first.await.unwrap(), Ok(0) | Err(_)));
}
