//! A stream of messages in both directions over subjects: pieces for messages over the broker's
//! limit, half-close, a window against fast senders, and signs of life.

use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Subject};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};

/// Header that says that the text goes on in the next message (`more`), or that no further message
/// follows (`end`).
const FRAME: &str = "Cairn-Frame";
/// Header with the number of messages that the sender has taken from the other side.
const COUNT: &str = "Cairn-Taken";
/// Messages that may be on their way before the receiver takes them.
const WINDOW: u64 = 64;
/// Interval of signs of life.
pub const ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time without a sign of life after which the other side counts as gone.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of a message that its headers may take.
const HEADER_ROOM: usize = 512;

/// The connection is over.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the other side is gone")]
    Gone,
    #[error("the other side takes no messages")]
    WindowFull,
    #[error("the message is over the limit")]
    TooLarge,
    #[error("the broker cannot be reached")]
    Broker,
}

/// The half of a side that sends texts, in order.
pub struct Outlet {
    client: Client,
    to: Subject,
    reply: Option<Subject>,
    sent: u64,
    /// Number of messages that the other side has taken.
    peer_count: watch::Receiver<u64>,
    /// Number of messages that this side has taken.
    own_count: watch::Receiver<u64>,
}

/// The receiving half, without the subscription.
pub struct Inlet {
    queue: mpsc::Sender<Piece>,
    peer_count: watch::Sender<u64>,
}

/// A reader of complete texts.
pub struct Texts {
    queue: mpsc::Receiver<Piece>,
    own_count: watch::Sender<u64>,
    partial: Vec<u8>,
    max_bytes: usize,
}

enum Piece {
    Part(Bytes),
    Last(Bytes),
    End,
}

/// Creates the halves of one side.
pub fn link(
    client: Client,
    to: Subject,
    reply: Option<Subject>,
    max_bytes: usize,
) -> (Outlet, Inlet, Texts) {
    let (peer_count, there) = watch::channel(0);
    let (own_count, here) = watch::channel(0);
    // One place for the end, which needs no window.
    let (sender, queue) = mpsc::channel(WINDOW as usize + 1);
    let outlet = Outlet { client, to, reply, sent: 0, peer_count: there, own_count: here };
    let inlet = Inlet { queue: sender, peer_count };
    (outlet, inlet, Texts { queue, own_count, partial: Vec::new(), max_bytes })
}

/// True for a message with text: others belong to a connection that is over.
pub fn has_text(message: &Message) -> bool {
    let frame = message.headers.as_ref().and_then(|headers| headers.get(FRAME));
    frame.is_none_or(|frame| frame.as_str() == "more")
}

impl Outlet {
    /// Sends a text, in pieces if it is large. Waits while the window is full.
    pub async fn send(&mut self, text: &str) -> Result<(), LinkError> {
        let size = self.client.max_payload().saturating_sub(HEADER_ROOM).max(1);
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let count = bytes.len().div_ceil(size).max(1);
        for at in 0..count {
            let piece = bytes.slice(at * size..bytes.len().min((at + 1) * size));
            self.room().await?;
            self.sent += 1;
            self.publish((at + 1 < count).then_some("more"), piece).await?;
        }
        Ok(())
    }

    /// Waits until the other side takes a further message. It hears of this side meanwhile, or two
    /// full windows would wait for each other.
    async fn room(&mut self) -> Result<(), LinkError> {
        let mut there = self.peer_count.clone();
        let sent = self.sent;
        let deadline = tokio::time::Instant::now() + SILENCE_LIMIT;
        loop {
            tokio::select! {
                room = there.wait_for(|count| sent.saturating_sub(*count) < WINDOW) => {
                    return room.map(|_| ()).map_err(|_| LinkError::Gone);
                }
                () = tokio::time::sleep_until(deadline) => return Err(LinkError::WindowFull),
                () = self.report_time() => {}
            }
            self.report().await?;
        }
    }

    /// Says that no further text follows.
    pub async fn end(&mut self) -> Result<(), LinkError> {
        self.publish(Some("end"), Bytes::new()).await
    }

    /// Waits until the other side should hear of this one: it may send more, or it is time for a
    /// sign of life.
    pub async fn report_time(&mut self) {
        let seen = *self.own_count.borrow_and_update();
        let more = self.own_count.wait_for(|count| count - seen >= WINDOW / 2);
        // Without a reader there is nothing to say but that this side lives.
        let _alive = tokio::time::timeout(ALIVE_INTERVAL, more).await;
    }

    /// Tells the other side how much was taken.
    pub async fn report(&mut self) -> Result<(), LinkError> {
        self.publish(Some("taken"), Bytes::new()).await
    }

    async fn publish(&self, frame: Option<&str>, payload: Bytes) -> Result<(), LinkError> {
        let mut headers = HeaderMap::new();
        headers.insert(COUNT, self.own_count.borrow().to_string().as_str());
        if let Some(frame) = frame {
            headers.insert(FRAME, frame);
        }
        let (client, to) = (&self.client, self.to.clone());
        let sent = match self.reply.clone() {
            Some(reply) => client.publish_with_reply_and_headers(to, reply, headers, payload).await,
            None => client.publish_with_headers(to, headers, payload).await,
        };
        sent.map_err(|_| LinkError::Broker)
    }
}

impl Inlet {
    /// Takes a message of the subscription. Fails for a sender that ignores the window.
    pub fn accept(&self, message: &Message) -> Result<(), LinkError> {
        let header = |name| message.headers.as_ref().and_then(|h| h.get(name)).map(|v| v.as_str());
        if let Some(count) = header(COUNT).and_then(|text| text.parse::<u64>().ok()) {
            self.peer_count.send_if_modified(|old| {
                let grows = count > *old;
                *old = count.max(*old);
                grows
            });
        }
        let payload = message.payload.clone();
        let piece = match header(FRAME) {
            Some("taken") => return Ok(()),
            Some("more") => Piece::Part(payload),
            Some("end") => Piece::End,
            _ => Piece::Last(payload),
        };
        match self.queue.try_send(piece) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(LinkError::TooLarge),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(LinkError::Gone),
        }
    }
}

impl Texts {
    /// Waits for the next text; `None` after the end, or when the connection is gone. A text over
    /// the limit is an error, and the texts after it can be read.
    pub async fn next(&mut self) -> Option<Result<String, LinkError>> {
        loop {
            let (bytes, is_last) = match self.queue.recv().await? {
                Piece::End => return None,
                Piece::Part(bytes) => (bytes, false),
                Piece::Last(bytes) => (bytes, true),
            };
            self.own_count.send_modify(|count| *count += 1);
            // One more byte than the limit shows that it is exceeded.
            let room = (self.max_bytes + 1).saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if is_last {
                let text = std::mem::take(&mut self.partial);
                if text.len() > self.max_bytes {
                    return Some(Err(LinkError::TooLarge));
                }
                return Some(Ok(String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }
}
