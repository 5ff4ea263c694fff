//! All lines of a search over lines, while they are found.

use std::sync::Arc;

use cairn_protocol::search::{GrepItem, GrepStreamEnd, GrepStreamParams};
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
pub struct LinePart(Part);

impl LinePart {
    /// The lines, read as `T`: [`GrepItem`], or any part of its fields, also borrowed.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] when they are not what `T` takes.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<Vec<T>, ClientError> {
        #[derive(Deserialize)]
        struct Part<T> {
            items: Vec<T>,
        }
        let part: Part<T> = serde_json::from_str(self.0.get()).map_err(unfit)?;
        Ok(part.items)
    }

    /// Where another search goes on after these lines.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn cursor(&self) -> Result<Option<String>, ClientError> {
        #[derive(Deserialize)]
        struct Part {
            #[serde(default)]
            cursor: Option<String>,
        }
        serde_json::from_str::<Part>(self.0.get()).map(|part| part.cursor).map_err(unfit)
    }

    /// The lines.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn items(&self) -> Result<Vec<GrepItem>, ClientError> {
        self.read()
    }
}

impl LineStream {
    /// The next lines; `None` once all are told, or the search failed: [`Self::end`] says which.
    pub async fn next(&mut self) -> Option<LinePart> {
        self.parts.recv().await.map(LinePart)
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
