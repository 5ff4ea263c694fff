//! Between lines on standard input and output and text messages at a path of the daemon.
//!
//! Standard output carries nothing but the daemon's messages, one a line; all else goes to standard error. Nothing is
//! gathered: a reader that is slow holds the daemon back, a daemon that is slow holds the writer of the input back.

mod due;
mod lines;

use std::time::Duration;

use cairn_client_sdk::{ClientError, WireReceiver, WireSender};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    app::App,
    exit::{Failure, OK},
};

use self::{due::Due, lines::Line};

/// Lines that wait in either direction.
const QUEUE: usize = 8;
/// After the end, how long a reader of the output may take for what is still to be written.
const DRAIN: Duration = Duration::from_secs(10);

/// What is bridged.
#[derive(Debug, Clone, Copy)]
pub struct Bridge<'a> {
    /// A path of the daemon that takes a WebSocket with one JSON-RPC message a frame.
    pub path: &'a str,
    /// After the input's end, how long answers that are due are waited for; `None` to go on until somebody ends it.
    pub linger: Option<Duration>,
}

/// Carries messages until the input has ended and all is answered, or the daemon goes. The daemon is started if need be.
///
/// # Errors
/// Those of finding or starting the daemon; that it went; that answers did not come in time.
pub async fn run(app: &App<'_>, bridge: Bridge<'_>) -> Result<u8, Failure> {
    // Its handshake says whether both sides are of one kind, and how much a message may hold.
    let client = app.client().await?;
    let limit = usize::try_from(client.server().limits.max_message_bytes).unwrap_or(usize::MAX);
    let (sender, receiver) = client.connector().wire(bridge.path).await?;
    drop(client);
    let input = lines::read(limit);
    let (output, written) = lines::write();
    let ended = carry(input, output, sender, receiver, bridge.linger).await;
    // Whoever reads gets all that came, unless he takes nothing.
    let _late = tokio::time::timeout(DRAIN, written).await;
    ended.map(|()| OK)
}

/// Both directions, each at its own pace.
async fn carry(
    input: mpsc::Receiver<Line>,
    output: mpsc::Sender<String>,
    mut sender: WireSender,
    receiver: WireReceiver,
    linger: Option<Duration>,
) -> Result<(), Failure> {
    let due = Due::default();
    let refusals = output.clone();
    let mut receiving = Box::pin(receive(receiver, output, &due));
    let sent = tokio::select! {
        ended = &mut receiving => return gone(ended),
        sent = send(input, refusals, &mut sender, &due) => sent,
    };
    if let Err(error) = sent {
        // Its last words tell more than a write that failed.
        return match tokio::time::timeout(Duration::from_secs(1), receiving).await {
            Ok(ended) => gone(ended),
            Err(_) => Err(error.into()),
        };
    }
    let until = linger.map(|linger| Instant::now() + linger);
    let over = async {
        match until {
            Some(until) => tokio::time::timeout_at(until, due.none()).await.is_ok(),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = &mut receiving => gone(ended),
        all = over => {
            sender.close().await;
            if all {
                return Ok(());
            }
            let seconds = linger.unwrap_or_default().as_secs();
            Err(Failure::failed(format!("{} answers have not come within {seconds} s of the input's end", due.count()))
                .hint("wait longer with --linger"))
        }
    }
}

/// The daemon went, or the reader of the output did.
fn gone(ended: Result<(), ClientError>) -> Result<(), Failure> {
    ended.map_err(Failure::from)
}

/// Sends every line; a line that is no message is answered here.
async fn send(
    mut input: mpsc::Receiver<Line>,
    refusals: mpsc::Sender<String>,
    sender: &mut WireSender,
    due: &Due,
) -> Result<(), ClientError> {
    while let Some(line) = input.recv().await {
        match line {
            Line::Text(text) => {
                due.sent(&text);
                sender.send(text).await?;
            }
            // Nobody reads: the other direction ends this.
            Line::Refused(answer) => {
                let _closed = refusals.send(answer).await;
            }
        }
    }
    Ok(())
}

/// Prints every message; `Ok` when nobody reads them any more.
async fn receive(
    mut receiver: WireReceiver,
    output: mpsc::Sender<String>,
    due: &Due,
) -> Result<(), ClientError> {
    loop {
        let text = receiver.receive().await?;
        // Queued first: what is no longer due is on its way to the reader.
        let told = due.told(&text);
        if output.send(text).await.is_err() {
            return Ok(());
        }
        due.settle(told);
    }
}
