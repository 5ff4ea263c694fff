//! All lines of a search over lines, while they are found.

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

/// Lines in order, part by part; none is lost. Who reads slowly slows the search down, and all else on the connection; a
/// stream that is dropped ends it.
pub struct LineStream {
    parts: mpsc::Receiver<Part>,
    answer: oneshot::Receiver<Answer>,
    waiting: Waiting,
    link: Arc<Link>,
}

/// The next lines.
pub struct LinePart(LinesPartial);

impl LinePart {
    /// The lines by file; the first may be the file that the part before ended with.
    pub fn files(&self) -> &[FileLines] {
        &self.0.files
    }

    /// Where another search goes on after these lines.
    pub fn cursor(&self) -> Option<&str> {
        self.0.cursor.as_deref()
    }

    /// The lines one by one, as `search.grep` has them.
    pub fn items(&self) -> impl Iterator<Item = GrepItem> {
        self.0.files.iter().flat_map(FileLines::items)
    }
}

impl LineStream {
    /// The next lines; `None` once all are told, or the search failed: [`Self::end`] says which.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] when they are not what is agreed upon.
    pub async fn next(&mut self) -> Result<Option<LinePart>, ClientError> {
        #[derive(Deserialize)]
        struct Message {
            params: LinesPartial,
        }
        let Some(part) = self.parts.recv().await else { return Ok(None) };
        let message: Message = serde_json::from_str(&part).map_err(unfit)?;
        Ok(Some(LinePart(message.params)))
    }

    /// How it ended. Lines that were not read are lost.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn end(mut self) -> Result<GrepStreamEnd, ClientError> {
        self.parts.close();
        let answer = self.answer.await.unwrap_or_else(|_| Err(self.link.shared.ended()));
        drop(self.waiting);
        serde_json::from_str(answer?.get()).map_err(unfit)
    }
}

fn unfit(error: serde_json::Error) -> ClientError {
    ClientError::Protocol(format!("{METHOD}: {error}"))
}

impl Client {
    /// Begins a search over lines that tells all of them. No other search of this connection may have
    /// its `requestId`, nor one that was left before its end: its last lines may still be on their way.
    ///
    /// # Errors
    /// As [`Client::call`]; what the daemon refuses is told by [`LineStream::end`].
    pub async fn grep_stream(&self, params: &GrepStreamParams) -> Result<LineStream, ClientError> {
        let link = self.link();
        let (id, answer, parts) = link.shared.begin_lines(&params.request_id)?;
        let waiting = Waiting::new(&link.shared, id);
        link.shared.send(request(id, METHOD, params)?).await?;
        Ok(LineStream { parts, answer, waiting, link: Arc::clone(link) })
    }
}
