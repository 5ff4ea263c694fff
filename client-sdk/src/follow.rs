//! Following a session across broken connections: no gap, no duplicate.

use std::time::{Duration, Instant};

use cairn_protocol::{id::SessionId, session::After};

use crate::{ClientError, Connector, EventStream, Item};

/// First pause before a reconnect; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(50);
/// Maximum pause before a reconnect.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Maximum time of reconnecting before the failure is reported.
const PATIENCE: Duration = Duration::from_secs(15);

/// A session followed from one record on, over connections that are opened as needed.
pub struct Follow {
    connector: Connector,
    session: SessionId,
    last: u64,
    stream: Option<EventStream>,
    patience: Duration,
    reconnects: u64,
}

impl Follow {
    pub(crate) fn new(connector: Connector, session: SessionId, after: u64) -> Self {
        Self { connector, session, last: after, stream: None, patience: PATIENCE, reconnects: 0 }
    }

    /// Sets the maximum time of reconnecting after a broken connection (15 s by default).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the number of the last record returned.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of connections opened after the first.
    pub fn reconnects(&self) -> u64 {
        self.reconnects
    }

    /// Subscribes now, so that no ephemeral event after this call is missed.
    ///
    /// # Errors
    /// As [`Follow::next`].
    pub async fn open(&mut self) -> Result<(), ClientError> {
        if self.stream.is_none() {
            self.stream = Some(self.subscribe().await?);
        }
        Ok(())
    }

    /// Returns the next item. A broken connection is re-established, and the session continues
    /// after the last record returned.
    ///
    /// # Errors
    /// Errors of connecting and subscribing, transient ones after the time limit;
    /// [`ClientError::Gone`].
    pub async fn next(&mut self) -> Result<Item, ClientError> {
        let mut gaps = 0;
        loop {
            let mut stream = match self.stream.take() {
                Some(stream) => stream,
                None => self.subscribe().await?,
            };
            let item = match stream.next().await {
                Ok(item) => item,
                Err(ClientError::Closed(_)) => {
                    self.reconnects += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Item::Event(record) = &item {
                if record.seq <= self.last {
                    self.stream = Some(stream);
                    continue;
                }
                if record.seq > self.last + 1 {
                    // A daemon that follows the protocol never causes a gap; resubscribing is cheap
                    // and correct.
                    gaps += 1;
                    if gaps > 3 {
                        let text = format!("record {} arrived after {}", record.seq, self.last);
                        return Err(ClientError::Protocol(text));
                    }
                    continue;
                }
                self.last = record.seq;
            }
            self.stream = Some(stream);
            return Ok(item);
        }
    }

    async fn subscribe(&mut self) -> Result<EventStream, ClientError> {
        let until = Instant::now() + self.patience;
        let mut pause = BACKOFF;
        loop {
            let error = match self.try_subscribe().await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if !may_pass(&error) || Instant::now() + pause >= until {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_BACKOFF);
        }
    }

    async fn try_subscribe(&self) -> Result<EventStream, ClientError> {
        let client = self.connector.connect().await?;
        client.subscribe(&self.session, After::Seq(self.last)).await
    }
}

/// Returns true if a retry may succeed.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::NotRunning { .. }
        | ClientError::Connect { .. }
        | ClientError::Unauthorized { .. }
        | ClientError::Closed(_)
        | ClientError::TimedOut { .. } => true,
        ClientError::Rpc { data, .. } => data.retryable,
        _ => false,
    }
}
