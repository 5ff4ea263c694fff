//! Streaming grep: receives all matching lines while the search runs.

use std::sync::Arc;

use cairn_protocol::lines::{FileLines, GrepStreamEnd, GrepStreamParams, LinesPartial};
use cairn_protocol::search::GrepItem;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Client, ClientError,
    client::{Link, Waiting, request},
    dispatch::{Answer, Part},
};

const METHOD: &str = "search.grepStream";

/// Stream of lines in order, part by part, without loss. A slow reader slows down the search and
/// all other traffic of the connection; dropping the stream cancels the search.
pub struct LineStream {
    parts: mpsc::Receiver<Part>,
    answer: oneshot::Receiver<Answer>,
    waiting: Waiting,
    link: Arc<Link>,
}

/// The next lines of a stream.
pub struct LinePart(LinesPartial);

impl LinePart {
    /// Returns the lines by file; the first file may continue the last one of the previous part.
    pub fn files(&self) -> &[FileLines] {
        &self.0.files
    }

    /// Returns the cursor at which another search continues after these lines.
    pub fn cursor(&self) -> Option<&str> {
        self.0.cursor.as_deref()
    }

    /// Returns the lines one by one, in the form of `search.grep`.
    pub fn items(&self) -> impl Iterator<Item = GrepItem> {
        self.0.files.iter().flat_map(FileLines::items)
    }
}

impl LineStream {
    /// Returns the next lines; `None` after the last part or a failure, which [`Self::end`]
    /// distinguishes.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] when a message does not match the protocol.
    pub async fn next(&mut self) -> Result<Option<LinePart>, ClientError> {
        #[derive(Deserialize)]
        struct Message {
            params: LinesPartial,
        }
        let Some(part) = self.parts.recv().await else { return Ok(None) };
        let message: Message = serde_json::from_str(&part).map_err(unfit)?;
        Ok(Some(LinePart(message.params)))
    }

    /// Returns the result of the search. Unread lines are discarded.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn end(mut self) -> Result<GrepStreamEnd, ClientError> {
        self.parts.close();
        let answer = self.answer.await.unwrap_or_else(|_| Err(self.link.shared.closed_error()));
        drop(self.waiting);
        serde_json::from_str(answer?.get()).map_err(unfit)
    }
}

fn unfit(error: serde_json::Error) -> ClientError {
    ClientError::Protocol(format!("{METHOD}: {error}"))
}

impl Client {
    /// Starts a search that returns all matching lines. No other search of this connection may have
    /// the same `requestId`, not even one that was dropped before its end: its last lines may still
    /// arrive.
    ///
    /// # Errors
    /// As [`Client::call`]; a refusal by the daemon is returned by [`LineStream::end`].
    pub async fn grep_stream(&self, params: &GrepStreamParams) -> Result<LineStream, ClientError> {
        let link = self.link();
        let (id, answer, parts) = link.shared.begin_lines(&params.request_id)?;
        let waiting = Waiting::new(&link.shared, id);
        link.shared.send(request(id, METHOD, params)?).await?;
        Ok(LineStream { parts, answer, waiting, link: Arc::clone(link) })
    }
}
