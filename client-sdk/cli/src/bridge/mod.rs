//! The bridge between lines on standard input and output and text messages of a WebSocket of the
//! daemon.
//!
//! Standard output contains only the daemon's messages, one per line; everything else goes to
//! standard error. Queues are short: a slow reader of the output slows the daemon down, and a slow
//! daemon the writer of the input.

mod lines;
mod pending;
mod runs;

use std::time::Duration;

use cairn_client_sdk::{ClientError, WireReceiver, WireSender};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    app::App,
    exit::{Failure, OK},
};

use self::{lines::Line, pending::PendingWork};

/// Capacity of the queue in each direction.
const QUEUE_CAPACITY: usize = 8;
/// Time after the end in which the reader of the output may take the rest.
const DRAIN: Duration = Duration::from_secs(10);

/// The configuration of a bridge.
#[derive(Debug, Clone, Copy)]
pub struct Bridge<'a> {
    /// A WebSocket path of the daemon with one JSON-RPC message per frame.
    pub path: &'a str,
    /// Time after the end of the input to wait for pending answers; `None` continues until
    /// interrupted.
    pub linger: Option<Duration>,
}

/// Passes messages until the input has ended and all requests are answered, or the daemon exits.
/// The daemon is started if necessary.
///
/// # Errors
/// The errors of finding or starting the daemon; the daemon exited; pending answers did not come in
/// time.
pub async fn run(app: &App<'_>, bridge: Bridge<'_>) -> Result<u8, Failure> {
    // The handshake checks that both sides are compatible, and tells the message limit.
    let client = app.connect().await?;
    let limit = usize::try_from(client.server().limits.max_message_bytes).unwrap_or(usize::MAX);
    let (sender, receiver) = client.connector().wire(bridge.path).await?;
    drop(client);
    let input = lines::read(limit);
    let (output, written) = lines::write();
    let outcome = run_both(input, output, sender, receiver, bridge.linger).await;
    // A reader gets everything that was received, unless it stops reading.
    let _late = tokio::time::timeout(DRAIN, written).await;
    outcome.map(|()| OK)
}

/// Runs both directions, each at its own pace.
async fn run_both(
    input: mpsc::Receiver<Line>,
    output: mpsc::Sender<String>,
    mut sender: WireSender,
    receiver: WireReceiver,
    linger: Option<Duration>,
) -> Result<(), Failure> {
    let pending = PendingWork::default();
    let refusals = output.clone();
    let mut receiving = Box::pin(receive(receiver, output, &pending));
    let sent = tokio::select! {
        outcome = &mut receiving => return end_result(outcome),
        sent = send(input, refusals, &mut sender, &pending) => sent,
    };
    if let Err(error) = sent {
        // The daemon's close frame explains more than a failed write.
        return match tokio::time::timeout(Duration::from_secs(1), receiving).await {
            Ok(outcome) => end_result(outcome),
            Err(_) => Err(error.into()),
        };
    }
    let over = async {
        let Some(linger) = linger else { return std::future::pending().await };
        // A turn has limits of its own, and nothing would receive its result after this.
        loop {
            pending.wait_for_runs().await;
            let until = Instant::now() + linger;
            let empty = tokio::time::timeout_at(until, pending.wait_until_empty()).await.is_ok();
            if empty || pending.running() == 0 {
                return empty;
            }
        }
    };
    tokio::select! {
        outcome = &mut receiving => end_result(outcome),
        all = over => {
            sender.close().await;
            if all {
                return Ok(());
            }
            let seconds = linger.unwrap_or_default().as_secs();
            let text = format!("{} answers are pending {seconds} s after the end of the input", pending.count());
            Err(Failure::failed(text).hint("wait longer with --linger"))
        }
    }
}

/// Converts the end of the connection: the daemon exited, or the reader of the output is gone.
fn end_result(outcome: Result<(), ClientError>) -> Result<(), Failure> {
    outcome.map_err(Failure::from)
}

/// Sends every line; an invalid one is answered here.
async fn send(
    mut input: mpsc::Receiver<Line>,
    refusals: mpsc::Sender<String>,
    sender: &mut WireSender,
    pending: &PendingWork,
) -> Result<(), ClientError> {
    while let Some(line) = input.recv().await {
        match line {
            Line::Text(text) => {
                pending.record_sent(&text);
                sender.send(text).await?;
            }
            // The reader is gone: the other direction ends the bridge.
            Line::Refused(answer) => {
                let _closed = refusals.send(answer).await;
            }
        }
    }
    Ok(())
}

/// Prints every message; `Ok` when the reader is gone.
async fn receive(
    mut receiver: WireReceiver,
    output: mpsc::Sender<String>,
    pending: &PendingWork,
) -> Result<(), ClientError> {
    loop {
        let text = receiver.receive().await?;
        // Queued before it counts as answered, so that an answered request has reached the queue of
        // the reader.
        let completion = pending.parse_completion(&text);
        if output.send(text).await.is_err() {
            return Ok(());
        }
        pending.complete(completion);
    }
}
