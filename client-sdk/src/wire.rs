//! A connection that carries raw text messages, for bridges that forward messages of other clients.

use std::time::Duration;

use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio_tungstenite::tungstenite::{
    self, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{
    ClientError, Connector,
    socket::{self, Socket},
};

/// The daemon pings a silent client every 45 s; a longer silence means that it is gone.
const SILENCE: Duration = Duration::from_secs(150);

/// Sends text messages to the daemon.
pub struct WireSender(SplitSink<Socket, Message>);

/// Receives text messages of the daemon.
pub struct WireReceiver(SplitStream<Socket>);

impl Connector {
    /// Connects to a path of the daemon, such as `/rpc`, with the token but without a handshake.
    ///
    /// # Errors
    /// Errors of locating and connecting.
    pub async fn wire(&self, path: &str) -> Result<(WireSender, WireReceiver), ClientError> {
        let (sink, stream) = socket::open_at(&self.target()?, path).await?.split();
        Ok((WireSender(sink), WireReceiver(stream)))
    }
}

impl WireSender {
    /// Sends one message; waits while the daemon reads none.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub async fn send(&mut self, text: String) -> Result<(), ClientError> {
        self.0.send(Message::text(text)).await.map_err(|error| closed(&error))
    }

    /// Sends a close frame to the daemon.
    pub async fn close(&mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        // The daemon may have closed first.
        let _ignored = self.0.send(Message::Close(Some(frame))).await;
    }
}

impl WireReceiver {
    /// Returns the next message.
    ///
    /// # Errors
    /// [`ClientError::Closed`] with the daemon's reason when no message will follow.
    pub async fn receive(&mut self) -> Result<String, ClientError> {
        loop {
            let next = tokio::time::timeout(SILENCE, self.0.next()).await;
            let next =
                next.map_err(|_| ClientError::Closed("the daemon stopped responding".into()))?;
            match next {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(frame))) => {
                    let reason =
                        frame.map(|f| f.reason.as_str().to_owned()).filter(|r| !r.is_empty());
                    let reason =
                        reason.unwrap_or_else(|| "the daemon closed the connection".into());
                    return Err(ClientError::Closed(reason));
                }
                Some(Ok(Message::Binary(_))) => {
                    return Err(ClientError::Protocol("the daemon sent a binary message".into()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(closed(&error)),
                None => return Err(ClientError::Closed("the daemon closed the connection".into())),
            }
        }
    }
}

fn closed(error: &tungstenite::Error) -> ClientError {
    ClientError::Closed(error.to_string())
}
