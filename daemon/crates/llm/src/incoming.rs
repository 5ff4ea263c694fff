//! An incoming answer: read, recorded, decoded, and limited in time.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::stream;
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{Chunk, ChunkStream, Decoder, Key, LlmError, Recording, server::Server};

/// Maximum wait for the remaining bytes of a finished answer, so that its connection can be reused.
const LINGER: Duration = Duration::from_millis(200);

/// Time limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Maximum time without a byte.
    pub idle: Duration,
    /// Total time limit; `until` is the resulting deadline.
    pub total: Duration,
    pub until: Instant,
}

impl Patience {
    /// Returns the deadline of the next byte.
    pub(crate) fn next(&self) -> Instant {
        self.until.min(Instant::now() + self.idle)
    }

    /// Returns the error for a missed deadline.
    pub(crate) fn over(&self, who: &str) -> LlmError {
        LlmError::TimedOut(if Instant::now() >= self.until {
            format!("{who} did not finish its answer within {:?}", self.total)
        } else {
            format!("{who} sent nothing for {:?}", self.idle)
        })
    }
}

/// An answer in progress.
pub(crate) struct Incoming {
    pub response: Response,
    pub decoder: Decoder,
    pub recording: Option<Recording>,
    pub patience: Patience,
    pub server: std::sync::Arc<Server>,
    pub key: Option<Key>,
    /// Error to return after the chunks that are ready.
    pub failed: Option<LlmError>,
}

impl Incoming {
    /// Reads until a chunk can be shown. Errors before that may be retried.
    pub(crate) async fn begin(&mut self) -> Result<(), LlmError> {
        while !self.decoder.has_started() {
            if let Err(error) = self.read().await {
                if !self.decoder.has_started() {
                    return Err(error);
                }
                self.failed = Some(error);
            }
        }
        Ok(())
    }

    /// Returns the remaining chunks as a stream. Dropping the stream closes the connection.
    pub(crate) fn stream(self) -> ChunkStream {
        Box::pin(stream::unfold(Some(self), |state| async move {
            let mut incoming = state?;
            match incoming.next().await {
                Some(Ok(chunk)) => Some((Ok(chunk), Some(incoming))),
                Some(Err(error)) => {
                    let redacted = match &incoming.key {
                        Some(key) => error.map_text(|text| key.redact(text)),
                        None => error,
                    };
                    Some((Err(redacted), None))
                }
                None => None,
            }
        }))
    }

    async fn next(&mut self) -> Option<Result<Chunk, LlmError>> {
        loop {
            if let Some(chunk) = self.decoder.next() {
                return Some(Ok(chunk));
            }
            if self.decoder.finished() {
                // The outcome of this read does not matter.
                let _ = timeout(LINGER, async {
                    while let Ok(Some(_)) = self.response.chunk().await {}
                })
                .await;
                return None;
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if let Err(error) = self.read().await {
                self.failed = Some(error);
            }
        }
    }

    /// Reads one piece of the body.
    async fn read(&mut self) -> Result<(), LlmError> {
        let piece = timeout_at(self.patience.next(), self.response.chunk()).await;
        match piece.map_err(|_| self.patience.over(&self.server.who))? {
            Ok(Some(bytes)) => {
                if let Some(recording) = &self.recording {
                    recording.push(&bytes);
                }
                let fed = self.decoder.feed(&bytes);
                if self.decoder.is_easyai() {
                    self.server.is_easyai.store(true, Ordering::Relaxed);
                }
                fed
            }
            Ok(None) => self.decoder.end(),
            Err(error) => Err(self.server.failure(&error)),
        }
    }
}
