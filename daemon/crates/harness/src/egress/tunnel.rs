//! Tunnels of the proxy: bytes in both directions once the client has named its server, or single
//! requests without TLS, each of which must name it.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use super::{
    Admitted, Domain, DomainGate, Traffic,
    hello::{self, Greeting, Mismatch},
    proxy::{Answer, HEAD, carry, text},
};

/// Bytes that are carried at once.
const PIECE: usize = 16 * 1024;

/// Connections of requests inside a tunnel.
#[derive(Clone, Copy)]
pub(super) struct Requests<'a> {
    pub gate: &'a DomainGate,
    pub admitted: &'a Admitted,
    pub closed: &'a CancellationToken,
}

/// Reason why bytes are not carried any further.
enum Stop<C> {
    Mismatch(Mismatch),
    /// The client has begun a request with these bytes.
    Http(Vec<u8>, ReadHalf<C>),
}

/// Carries bytes in both directions until one side is closed. Nothing reaches the server before the
/// client has named it.
pub(super) async fn tunnel<C: AsyncRead + AsyncWrite + Unpin>(
    client: C,
    server: TcpStream,
    (domain, port): (&Domain, u16),
    traffic: &Traffic,
    requests: Requests<'_>,
) -> Result<(), Mismatch> {
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut server_read, mut server_write) = tokio::io::split(server);
    let up = async {
        let greeting = hello::first_bytes(&mut client_read, domain, port).await;
        let first = match greeting.map_err(Stop::Mismatch)? {
            Greeting::Opaque(first) => first,
            Greeting::Http(first) => return Err(Stop::Http(first, client_read)),
        };
        traffic.sent.fetch_add(first.len() as u64, Ordering::Relaxed);
        if server_write.write_all(&first).await.is_ok() {
            let _closed = pump(client_read, &mut server_write, &traffic.sent).await;
        }
        Ok(())
    };
    let down = async {
        let _closed = pump(&mut server_read, &mut client_write, &traffic.received).await;
        Ok(())
    };
    let outcome = tokio::try_join!(up, down).map(drop);
    match outcome {
        Ok(()) => Ok(()),
        Err(Stop::Mismatch(mismatch)) => Err(mismatch),
        Err(Stop::Http(first, client_read)) => {
            let client =
                PrefixedStream { first, position: 0, rest: client_read.unsplit(client_write) };
            let server = server_read.unsplit(server_write);
            serve(client, server, (domain, port), traffic, requests).await
        }
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let n = from.read(&mut piece).await?;
        if n == 0 {
            return to.shutdown().await;
        }
        count.fetch_add(n as u64, Ordering::Relaxed);
        to.write_all(&piece[..n]).await?;
    }
}

/// Serves the requests of a tunnel one by one: a later one can name another server than the first.
async fn serve(
    client: impl AsyncRead + AsyncWrite + Unpin,
    server: TcpStream,
    (domain, port): (&Domain, u16),
    traffic: &Traffic,
    requests: Requests<'_>,
) -> Result<(), Mismatch> {
    let mismatch = Mutex::new(None);
    // The first request has the connection that was opened for the tunnel.
    let open = Mutex::new(Some(server));
    let service = service_fn(|request: Request<Incoming>| {
        let (mismatch, open) = (&mismatch, &open);
        async move {
            let answer = match named(&request, domain, port) {
                Ok(()) => {
                    let server = open.lock().unwrap_or_else(PoisonError::into_inner).take();
                    answer(request, server, traffic, requests).await
                }
                Err(why) => {
                    let mut answer = text(StatusCode::FORBIDDEN, &why.0);
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(header::CONNECTION, close);
                    *mismatch.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    answer
                }
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(client), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a command closed its tunnel to the proxy");
    }
    let why = mismatch.into_inner().unwrap_or_else(PoisonError::into_inner);
    why.map_or(Ok(()), Err)
}

async fn answer(
    request: Request<Incoming>,
    server: Option<TcpStream>,
    traffic: &Traffic,
    Requests { gate, admitted, closed }: Requests<'_>,
) -> Answer {
    let stream = match server {
        Some(stream) => stream,
        None => match gate.connect(admitted).await {
            Ok(stream) => stream,
            Err(why) => return text(StatusCode::BAD_GATEWAY, &why),
        },
    };
    traffic.sent.fetch_add(bytes_of(request.headers()), Ordering::Relaxed);
    let own = Arc::new(Traffic::default());
    let response = carry(request, stream, &own, closed.clone()).await;
    for (sum, part) in [(&traffic.sent, &own.sent), (&traffic.received, &own.received)] {
        sum.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    match response {
        Ok(response) => {
            traffic.received.fetch_add(bytes_of(response.headers()), Ordering::Relaxed);
            response
        }
        Err(why) => text(StatusCode::BAD_GATEWAY, &why.to_string()),
    }
}

/// Returns the bytes of a head without its first line.
fn bytes_of(headers: &hyper::HeaderMap) -> u64 {
    // A colon, a space, and the end of the line.
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}

/// Fails unless every name of the server in a request is the domain, and there is one.
fn named(request: &Request<Incoming>, domain: &Domain, port: u16) -> Result<(), Mismatch> {
    let hosts: Vec<&HeaderValue> = request.headers().get_all(header::HOST).iter().collect();
    let [host] = hosts[..] else {
        return Err(Mismatch("its request does not name one server".to_owned()));
    };
    let target = request.uri().authority().map(|authority| authority.as_str());
    for name in [host.to_str().ok(), target.or(host.to_str().ok())] {
        let name = name.unwrap_or_default();
        let (host, named_port) = match name.rsplit_once(':') {
            Some((host, number)) => (host, number.parse().ok()),
            None => (name, Some(port)),
        };
        if Domain::parse(host).as_ref() != Some(domain) || named_port != Some(port) {
            let name = super::displayed_host(name);
            return Err(Mismatch(format!("its request names {name}")));
        }
    }
    Ok(())
}

/// A stream of which the first bytes were read already.
struct PrefixedStream<S> {
    first: Vec<u8>,
    position: usize,
    rest: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefixedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let unread = &this.first[this.position..];
        if unread.is_empty() {
            return Pin::new(&mut this.rest).poll_read(context, buffer);
        }
        let n = unread.len().min(buffer.remaining());
        buffer.put_slice(&unread[..n]);
        this.position += n;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefixedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_shutdown(context)
    }
}
