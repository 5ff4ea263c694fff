//! The API over subjects: clients of the broker call this daemon, within the rights of the subject
//! that the broker lets them publish on.

use std::{collections::HashMap, sync::Arc, time::Instant};

use async_nats::Message;
use cairn_api::{Api, Connection, Outgoing, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::rights_up_to,
    remote::Right,
};
use cairn_transport::ws::CloseOnDrop;
use futures_util::StreamExt as _;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    broker::Broker,
    error::{chain, unreachable},
    link::{self, Inlet, LinkError, Outlet, SILENCE_LIMIT, Texts},
    names,
};

/// Maximum connections over the broker.
const MAX_CONNECTIONS: usize = 256;
/// Longest id of a connection.
const MAX_ID: usize = 64;

struct Peer {
    inlet: Inlet,
    last_message: Instant,
    stop: CancellationToken,
}

/// Serves the calls that arrive for a daemon until it stops.
pub async fn serve(
    broker: Broker,
    api: Arc<Api>,
    daemon: String,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        () = broker.connected() => {}
    }
    let subscription = broker.client.subscribe(names::all_calls(&daemon)).await;
    let mut messages = subscription
        .map_err(|error| unreachable("calls from the fleet cannot be received", &chain(&error)))?;
    let mut peers: HashMap<String, Peer> = HashMap::new();
    let mut tasks: JoinSet<String> = JoinSet::new();
    let mut sweep = tokio::time::interval(SILENCE_LIMIT / 4);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = sweep.tick() => peers.values().for_each(stop_if_silent),
            Some(done) = tasks.join_next() => drop(done.map(|key| peers.remove(&key))),
            message = messages.next() => {
                let Some(message) = message else { break };
                receive(&broker, &api, message, &mut peers, &mut tasks);
            }
        }
    }
    peers.values().for_each(|peer| peer.stop.cancel());
    while tasks.join_next().await.is_some() {}
    Ok(())
}

fn stop_if_silent(peer: &Peer) {
    if peer.last_message.elapsed() > SILENCE_LIMIT {
        peer.stop.cancel();
    }
}

fn receive(
    broker: &Broker,
    api: &Arc<Api>,
    message: Message,
    peers: &mut HashMap<String, Peer>,
    tasks: &mut JoinSet<String>,
) {
    // The subject with its level is the key, so that no client adds to a connection of more rights.
    let key = message.subject.to_string();
    let Some((level, id)) = names::parse_calls(&key) else { return };
    if id.len() > MAX_ID {
        return;
    }
    if let Some(peer) = peers.get_mut(&key) {
        peer.last_message = Instant::now();
        if peer.inlet.accept(&message).is_err() {
            peer.stop.cancel();
        }
        return;
    }
    let Some(reply) = message.reply.clone().filter(|_| link::has_text(&message)) else { return };
    let max_bytes = api.limits().max_message_bytes as usize;
    let (mut outlet, inlet, texts) = link::link(broker.client.clone(), reply, None, max_bytes);
    let opened = match peers.len() {
        0..MAX_CONNECTIONS => Connection::open(api, Rights::of(rights_up_to(level))),
        _ => Err(Failure::new(Reason::Overloaded, "too many connections over the broker")),
    };
    let (connection, outgoing) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            let text = cairn_api::refusal(&failure);
            tasks.spawn(async move {
                // The client may be gone.
                let _gone = outlet.send(&text).await;
                let _gone = outlet.end().await;
                String::new()
            });
            return;
        }
    };
    // The first message always fits.
    let _fits = inlet.accept(&message);
    let stop = CancellationToken::new();
    peers.insert(key.clone(), Peer { inlet, last_message: Instant::now(), stop: stop.clone() });
    tasks.spawn(async move {
        connected(connection, outgoing, outlet, texts, stop).await;
        key
    });
}

/// Serves one connection until either side ends it.
async fn connected(
    connection: Connection,
    outgoing: mpsc::Receiver<Outgoing>,
    mut outlet: Outlet,
    texts: Texts,
    stop: CancellationToken,
) {
    {
        let both = async {
            tokio::join!(read(CloseOnDrop(connection), texts), write(&mut outlet, outgoing))
        };
        tokio::select! {
            () = stop.cancelled() => {}
            _finished = both => {}
        }
    }
    // The client may be gone.
    let _gone = outlet.end().await;
}

/// Handles the texts of a client. After the last one its calls are still answered; then the
/// connection is closed, which ends the writer.
async fn read(connection: CloseOnDrop, mut texts: Texts) {
    while let Some(text) = texts.next().await {
        match text {
            Ok(text) => connection.0.handle_message(&text).await,
            Err(error) => {
                let text = format!("{error}, limits.maxMessageBytes");
                connection.0.refuse(&Failure::new(Reason::TooLarge, text)).await;
            }
        }
    }
    connection.0.finish_calls().await;
}

async fn write(
    outlet: &mut Outlet,
    mut outgoing: mpsc::Receiver<Outgoing>,
) -> Result<(), LinkError> {
    loop {
        let message = tokio::select! {
            message = outgoing.recv() => message,
            () = outlet.report_time() => {
                outlet.report().await?;
                continue;
            }
        };
        let Some(message) = message else { return Ok(()) };
        for text in message.into_texts() {
            outlet.send(&text).await?;
        }
    }
}

/// Level of the connection with which calls of these rights are forwarded: the highest of which
/// all rights are present.
pub fn level(rights: Rights) -> Option<Right> {
    Right::ALL
        .into_iter()
        .rev()
        .find(|level| rights_up_to(*level).iter().all(|right| rights.contains(*right)))
}
