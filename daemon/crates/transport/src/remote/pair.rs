//! Pairing of a device over its own connection: four WebSocket messages.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::extract::ws::{Message, WebSocket};
use cairn_api::Api;
use cairn_pairing::exchange::{self, Channel, Hello, Proof, Reply, Welcome};
use cairn_protocol::{
    error::{Failure, Reason},
    remote::{Device, Granted},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    Remote,
    codes::{Attempt, Codes, Terms},
    devices::Credential,
    sanitise_name,
};

/// Time limit of each message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// An attempt that ends when it is dropped.
struct EndAttemptOnDrop<'a> {
    remote: &'a Remote,
    which: Attempt,
}

impl Drop for EndAttemptOnDrop<'_> {
    fn drop(&mut self) {
        self.remote.pairing().codes.end(self.which);
    }
}

/// Pairs the device at the other end, or reports the refusal.
pub async fn pair(mut socket: WebSocket, remote: Arc<Remote>, api: Arc<Api>, channel: Channel) {
    let outcome = exchange(&mut socket, &remote, &api, channel).await;
    match outcome {
        Ok(device) => {
            tracing::info!(device = %device.id, name = device.name, rights = ?device.rights, "paired")
        }
        Err(failure) => {
            tracing::warn!(key = %channel.client, "not paired: {failure}");
            let to_device = json!({"error": failure.message, "data": failure.data()});
            // The device may have disconnected.
            let _disconnected = send(&mut socket, &to_device).await;
        }
    }
    let _disconnected =
        tokio::time::timeout(MESSAGE_TIMEOUT, socket.send(Message::Close(None))).await;
}

async fn exchange(
    socket: &mut WebSocket,
    remote: &Arc<Remote>,
    api: &Api,
    channel: Channel,
) -> Result<Device, Failure> {
    let refused = |e: exchange::Mismatch| Failure::new(Reason::PairingRefused, e.to_string());
    let hello: Hello = receive(socket).await?;
    let called = sanitise_name(&hello.name)?;
    // Counted before any message that a guess could be compared with is sent.
    let (which, code) = remote.pairing().codes.attempt(Instant::now())?;
    let trying = EndAttemptOnDrop { remote, which };
    let (exchange_state, share) = exchange::server(&code, &channel);
    let finished = exchange_state.finish(&hello.share, &hello.name).map_err(refused)?;
    send(socket, &Reply { share }).await?;
    let proof: Proof = receive(socket).await?;
    finished.check_client(&proof.confirm).map_err(refused)?;
    let terms = accept(&mut remote.pairing().codes, which)?;
    drop(trying);
    let credential = Credential::Machine(channel.client);
    let device = add_device(remote, api, terms, called, credential).await?;
    let server = remote.name();
    let granted = Granted { id: device.id.clone(), rights: device.rights.clone(), server };
    let granted = serde_json::to_string(&granted).unwrap_or_default();
    send(socket, &Welcome { confirm: finished.server_proof(&granted), granted }).await?;
    Ok(device)
}

/// Stores a device that proved its code, and reports it to the person at the daemon.
pub async fn add_device(
    remote: &Arc<Remote>,
    api: &Api,
    terms: Terms,
    declared_name: String,
    credential: Credential,
) -> Result<Device, Failure> {
    let name = terms.name.unwrap_or(declared_name);
    let rights = terms.rights;
    let (Credential::Machine(pin) | Credential::Browser(pin)) = credential;
    let params = json!({"name": name, "key": pin.to_string(), "rights": rights});
    let devices = Arc::clone(remote);
    let add = move || devices.devices.add(name, credential, rights);
    let added = async {
        let failed = |e| Failure::new(Reason::Internal, format!("the device was not stored: {e}"));
        tokio::task::spawn_blocking(add).await.map_err(failed)?
    };
    let device = api.audited("pair.complete", params, added).await?;
    remote.pairing().device = Some(device.clone());
    Ok(device)
}

fn accept(codes: &mut Codes, which: Attempt) -> Result<Terms, Failure> {
    Ok(codes.accept(Instant::now(), which)?)
}

async fn receive<T: DeserializeOwned>(socket: &mut WebSocket) -> Result<T, Failure> {
    let disconnected =
        |what: &str| Failure::new(Reason::PairingRefused, format!("the device {what}"));
    let next = tokio::time::timeout(MESSAGE_TIMEOUT, socket.recv())
        .await
        .map_err(|_| disconnected("did not answer in time"))?;
    match next {
        Some(Ok(Message::Text(text))) => serde_json::from_str(text.as_str()).map_err(|e| {
            Failure::new(Reason::InvalidRequest, format!("not a pairing message: {e}"))
        }),
        Some(Ok(_)) => Err(disconnected("sent a message that is not text")),
        Some(Err(_)) | None => Err(disconnected("has disconnected")),
    }
}

async fn send(socket: &mut WebSocket, message: &impl Serialize) -> Result<(), Failure> {
    let disconnected = |_| Failure::new(Reason::PairingRefused, "the device has disconnected");
    let text = serde_json::to_string(message).map_err(|e| {
        Failure::new(Reason::Internal, format!("a message cannot be serialized: {e}"))
    })?;
    let sent = tokio::time::timeout(MESSAGE_TIMEOUT, socket.send(Message::Text(text.into()))).await;
    sent.unwrap_or_else(|_| {
        Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::TimedOut)))
    })
    .map_err(disconnected)
}
