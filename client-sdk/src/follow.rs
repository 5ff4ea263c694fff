//! Following a session across broken connections: no gap, no duplicate.

use std::{pin::Pin, time::Duration};

use cairn_protocol::{id::SessionId, session::After};

use tokio::time::Instant;

use crate::{ClientError, Connector, EventStream, Item};

/// First pause before a reconnect; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(50);
/// Maximum pause before a reconnect.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Maximum time of reconnecting before the failure is reported.
const PATIENCE: Duration = Duration::from_secs(15);

/// A subscription that is being made, with its time limit: callers poll [`Follow::next`] beside other
/// events, and drop it at each of them, so that the attempt outlives the call.
type Attempt = Pin<Box<dyn Future<Output = Result<EventStream, ClientError>> + Send>>;

/// A session followed from one record on, over connections that are opened as needed.
pub struct Follow {
    connector: Connector,
    session: SessionId,
    last: u64,
    stream: Option<EventStream>,
    attempt: Option<Attempt>,
    patience: Duration,
    reconnects: u64,
}

impl Follow {
    pub(crate) fn new(connector: Connector, session: SessionId, after: u64) -> Self {
        Self {
            connector,
            session,
            last: after,
            stream: None,
            attempt: None,
            patience: PATIENCE,
            reconnects: 0,
        }
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
        self.opened().await.map(drop)
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
            let item = match self.opened().await?.next().await {
                Ok(item) => item,
                Err(ClientError::Closed(_)) => {
                    self.stream = None;
                    self.reconnects += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Item::Event(record) = &item {
                if record.seq <= self.last {
                    continue;
                }
                if record.seq > self.last + 1 {
                    // A daemon that follows the protocol never causes a gap; resubscribing is cheap
                    // and correct.
                    self.stream = None;
                    gaps += 1;
                    if gaps > 3 {
                        let text = format!("record {} arrived after {}", record.seq, self.last);
                        return Err(ClientError::Protocol(text));
                    }
                    continue;
                }
                self.last = record.seq;
            }
            return Ok(item);
        }
    }

    /// Returns the open stream, after the attempt to make it if there is none.
    async fn opened(&mut self) -> Result<&mut EventStream, ClientError> {
        if self.stream.is_none() {
            let attempt = self.attempt.get_or_insert_with(|| {
                let (connector, session) = (self.connector.clone(), self.session.clone());
                Box::pin(subscribe(connector, session, self.last, self.patience))
            });
            let outcome = attempt.await;
            self.attempt = None;
            self.stream = Some(outcome?);
        }
        self.stream.as_mut().ok_or_else(|| ClientError::Protocol("no subscription".into()))
    }
}

async fn subscribe(
    connector: Connector,
    session: SessionId,
    last: u64,
    patience: Duration,
) -> Result<EventStream, ClientError> {
    let until = Instant::now() + patience;
    let mut pause = BACKOFF;
    loop {
        let attempt = async {
            let client = connector.connect().await?;
            client.subscribe(&session, After::Seq(last)).await
        };
        let error = match attempt.await {
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
