//! Pairing of this machine with another one's daemon.

use std::{sync::Arc, time::Duration};

use cairn_pairing::{
    Identity, Pin,
    exchange::{self, Channel, Hello, Proof, Reply, Welcome},
    exporter, peer_pin,
};
use cairn_protocol::{
    location::DataRoot,
    remote::{Granted, PAIR_PATH},
    time::Timestamp,
};
use futures_util::{SinkExt, StreamExt};
use serde::{Serialize, de::DeserializeOwned};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::either::Either;

use crate::{
    ClientError, Hosts, KnownHost, Target, Tls,
    hosts::with_port,
    socket::{self, Socket},
};

/// Time limit for each answer of the daemon.
const WAIT: Duration = Duration::from_secs(15);

/// Returns the key with which this data root's clients authenticate to other daemons; creates it if
/// missing.
///
/// # Errors
/// [`ClientError::Remote`].
pub fn client_key(root: &DataRoot) -> Result<Arc<Identity>, ClientError> {
    Identity::load_or_make(&root.client_key()).map_err(|e| ClientError::Remote(e.to_string()))
}

/// Returns the key that an address presents, which does not make it trusted.
///
/// # Errors
/// [`ClientError::Connect`], and errors of this machine's own key.
pub async fn key_at(root: &DataRoot, host: &str) -> Result<Pin, ClientError> {
    let target = target(root, host, None)?;
    let socket = socket::tls(&target).await?;
    peer_pin(socket.get_ref().1).ok_or_else(|| odd("it presented no key"))
}

/// Pairs with the daemon at `host` by the code that it displays, and stores it under `as_name` or
/// its own name. The code never leaves this machine. `me` is the name of this machine for the
/// daemon, `key` the result of [`key_at`].
///
/// # Errors
/// [`ClientError::Pairing`] with the reason; [`ClientError::Connect`]. Nothing is stored on
/// failure.
pub async fn pair(
    root: &DataRoot,
    host: &str,
    key: Option<Pin>,
    code: &str,
    me: &str,
    as_name: Option<&str>,
) -> Result<KnownHost, ClientError> {
    let bad = || ClientError::Pairing("a code has 8 digits, as in 1234-5678".into());
    let code = exchange::digits(code).ok_or_else(bad)?;
    let target = target(root, host, key)?;
    let mut socket = socket::open_at(&target, PAIR_PATH).await?;
    let channel = channel(&socket, &target)?;
    let (exchange_state, share) = exchange::client(&code, &channel);
    send(&mut socket, &Hello { name: me.to_owned(), share }).await?;
    let reply: Reply = receive(&mut socket).await?;
    let confirmation = exchange_state.finish(&reply.share, me).map_err(wrong)?;
    send(&mut socket, &Proof { confirm: confirmation.client_proof() }).await?;
    let welcome: Welcome = receive(&mut socket).await?;
    confirmation.check_server(&welcome.confirm, &welcome.granted).map_err(wrong)?;
    let granted: Granted =
        serde_json::from_str(&welcome.granted).map_err(|e| ClientError::Protocol(e.to_string()))?;
    let known = KnownHost {
        name: as_name.map_or_else(|| granted.server.clone(), str::to_owned),
        address: target.address,
        key: channel.server,
        device: granted.id,
        rights: granted.rights,
        paired_at: Timestamp::now(),
    };
    Hosts::of(root).save(known.clone())?;
    Ok(known)
}

fn target(root: &DataRoot, host: &str, key: Option<Pin>) -> Result<Target, ClientError> {
    let tls = Some(Tls { key, identity: client_key(root)? });
    Ok(Target {
        address: with_port(host),
        token: String::new(),
        instance: None,
        version: None,
        tls,
    })
}

/// Returns this side's view of the TLS connection.
fn channel(socket: &Socket, target: &Target) -> Result<Channel, ClientError> {
    let Either::Right(tls) = socket.get_ref() else {
        return Err(odd("the connection does not use TLS"));
    };
    let connection = tls.get_ref().1;
    let server = peer_pin(connection).ok_or_else(|| odd("it presented no key"))?;
    let binding = exporter(connection).map_err(|e| ClientError::Remote(e.to_string()))?;
    let client = target
        .tls
        .as_ref()
        .map(|t| t.identity.pin())
        .ok_or_else(|| odd("this machine has no key"))?;
    Ok(Channel { client, server, binding })
}

fn odd(what: &str) -> ClientError {
    ClientError::Pairing(what.to_owned())
}

fn wrong(mismatch: exchange::Mismatch) -> ClientError {
    ClientError::Pairing(mismatch.to_string())
}

async fn send(socket: &mut Socket, message: &impl Serialize) -> Result<(), ClientError> {
    let text = serde_json::to_string(message).map_err(|e| ClientError::Protocol(e.to_string()))?;
    socket.send(Message::text(text)).await.map_err(|e| ClientError::Closed(e.to_string()))
}

async fn receive<T: DeserializeOwned>(socket: &mut Socket) -> Result<T, ClientError> {
    let next = tokio::time::timeout(WAIT, socket.next()).await;
    let late = |_| odd("the daemon did not answer in time");
    let text = match next.map_err(late)? {
        Some(Ok(Message::Text(text))) => text,
        Some(Err(error)) => return Err(ClientError::Closed(error.to_string())),
        Some(Ok(_)) | None => return Err(odd("the daemon closed the connection")),
    };
    if let Ok(message) = serde_json::from_str(text.as_str()) {
        return Ok(message);
    }
    let body = serde_json::from_str::<serde_json::Value>(text.as_str()).unwrap_or_default();
    match body.get("error").and_then(|e| e.as_str()) {
        Some(why) => {
            Err(odd(&why.chars().filter(|c| !c.is_control()).take(500).collect::<String>()))
        }
        None => Err(ClientError::Protocol(
            "the daemon sent a message that is not part of pairing".into(),
        )),
    }
}
