//! A connection that can be terminated from outside, whatever protocol it carries.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Ending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A stream that fails in both directions, pending operations included, once `ending` resolves.
pub struct AbortableStream<S, G> {
    stream: S,
    /// One future per direction, because a separate task waits for each.
    reading: Option<Ending>,
    writing: Option<Ending>,
    _guard: G,
}

impl<S, G> AbortableStream<S, G> {
    /// Wraps `stream` until the futures made by `ending` resolve; `guard` lives as long as the
    /// stream.
    pub fn new<E>(stream: S, ending: impl Fn() -> E, guard: G) -> Self
    where
        E: Future<Output = ()> + Send + 'static,
    {
        let reading = Some(Box::pin(ending()) as Ending);
        let writing = Some(Box::pin(ending()) as Ending);
        Self { stream, reading, writing, _guard: guard }
    }
}

fn check_open(ending: &mut Option<Ending>, cx: &mut Context<'_>) -> io::Result<()> {
    if ending.as_mut().is_some_and(|e| e.as_mut().poll(cx).is_ready()) {
        *ending = None;
    }
    match ending {
        Some(_) => Ok(()),
        None => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was aborted")),
    }
}

impl<S: AsyncRead + Unpin, G: Unpin> AsyncRead for AbortableStream<S, G> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        check_open(&mut self.reading, cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin, G: Unpin> AsyncWrite for AbortableStream<S, G> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        check_open(&mut self.writing, cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        check_open(&mut self.writing, cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        check_open(&mut self.writing, cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        check_open(&mut self.writing, cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn pending_reads_and_writes_are_aborted() {
        let (near, mut far) = tokio::io::duplex(8);
        let abort = CancellationToken::new();
        let stream = AbortableStream::new(near, || abort.clone().cancelled_owned(), ());
        let (mut reader, mut writer) = tokio::io::split(stream);
        far.write_all(b"ab").await.unwrap();
        let mut two = [0; 2];
        reader.read_exact(&mut two).await.unwrap();
        // One task waits to read, the other to write to a peer that does not read.
        let reading = tokio::spawn(async move { reader.read_u8().await.unwrap_err().kind() });
        let writing =
            tokio::spawn(async move { writer.write_all(&[0; 64]).await.unwrap_err().kind() });
        abort.cancel();
        assert_eq!(reading.await.unwrap(), io::ErrorKind::ConnectionAborted);
        assert_eq!(writing.await.unwrap(), io::ErrorKind::ConnectionAborted);
    }
}
