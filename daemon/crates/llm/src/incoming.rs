//! An answer as it comes in: read, recorded, decoded, and bounded in time.

use std::time::Duration;

use futures_util::stream;
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{Chunk, ChunkStream, Decoder, Key, LlmError, Recording, server::Server};

/// How long the end of a finished answer's bytes is waited for, so that its connection can serve the next one.
const LINGER: Duration = Duration::from_millis(200);

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Without a byte.
    pub idle: Duration,
    /// In all; `until` is when that is over.
    pub total: Duration,
    pub until: Instant,
}

impl Patience {
    /// When the next byte must be there.
    pub(crate) fn next(&self) -> Instant {
        self.until.min(Instant::now() + self.idle)
    }

    /// What it means that it was not.
    pub(crate) fn over(&self, who: &str) -> LlmError {
        LlmError::TimedOut(if Instant::now() >= self.until {
            format!("{who} did not finish its answer within {:?}", self.total)
        } else {
            format!("{who} sent nothing for {:?}", self.idle)
        })
    }
}

/// An answer under way.
pub(crate) struct Incoming {
    pub response: Response,
    pub decoder: Decoder,
    pub recording: Option<Recording>,
    pub patience: Patience,
    pub server: std::sync::Arc<Server>,
    pub key: Option<Key>,
    /// What comes after the chunks that are ready.
    pub failed: Option<LlmError>,
}

impl Incoming {
    /// Reads until there is something to show. What fails before that may be tried again.
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

    /// The chunks from here on. Dropping the stream drops the connection.
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
                // Nothing depends on how this ends.
                let _ =
                    timeout(LINGER, async { while let Ok(Some(_)) = self.response.chunk().await {} }).await;
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

    /// One piece of the body.
    async fn read(&mut self) -> Result<(), LlmError> {
        let piece = timeout_at(self.patience.next(), self.response.chunk()).await;
        match piece.map_err(|_| self.patience.over(&self.server.who))? {
            Ok(Some(bytes)) => {
                if let Some(recording) = &self.recording {
                    recording.push(&bytes);
                }
                self.decoder.feed(&bytes)
            }
            Ok(None) => self.decoder.end(),
            Err(error) => Err(self.server.failure(&error)),
        }
    }
}
