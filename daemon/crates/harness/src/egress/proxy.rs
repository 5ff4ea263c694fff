//! An HTTP proxy for one sandboxed command: `CONNECT` for TLS, and plain requests.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cairn_protocol::error::{Failure, Reason};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::{self, HeaderName, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Domain, DomainGate, Refusal, Traffic,
    hello::Mismatch,
    tunnel::{Requests, tunnel},
};

/// Most connections at once; further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 128;
/// Longest wait for the head of a request.
pub(super) const HEAD: Duration = Duration::from_secs(30);
pub(super) type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// A proxy that serves its socket until it is dropped.
pub(crate) struct Proxy {
    socket: PathBuf,
    gate: Arc<DomainGate>,
    _folder: tempfile::TempDir,
    _closes: DropGuard,
}

impl Proxy {
    /// Opens a proxy whose connections `gate` decides about.
    ///
    /// # Errors
    /// `tool_failed` when the socket cannot be created.
    pub fn open(gate: Arc<DomainGate>) -> Result<Self, Failure> {
        let failed =
            |e: std::io::Error| Failure::new(Reason::ToolFailed, format!("network proxy: {e}"));
        // The folder is accessible to this user alone.
        let folder = tempfile::Builder::new().prefix("cairn-net-").tempdir().map_err(failed)?;
        let socket = folder.path().join("proxy");
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let closed = CancellationToken::new();
        tokio::spawn(serve(listener, Arc::clone(&gate), closed.clone()));
        Ok(Self { socket, gate, _folder: folder, _closes: closed.drop_guard() })
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the gate of its connections.
    pub fn gate(&self) -> &Arc<DomainGate> {
        &self.gate
    }
}

async fn serve(listener: UnixListener, gate: Arc<DomainGate>, closed: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accept = async {
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((listener.accept().await, slot))
        };
        let accepted = tokio::select! {
            () = closed.cancelled() => return,
            accepted = accept => accepted,
        };
        let Some((Ok((stream, _)), slot)) = accepted else { return };
        let (gate, closed) = (Arc::clone(&gate), closed.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let stop = closed.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection(stream, gate, closed) => {}
            }
        });
    }
}

async fn connection(stream: UnixStream, gate: Arc<DomainGate>, closed: CancellationToken) {
    let service = service_fn(|request| {
        let (gate, closed) = (Arc::clone(&gate), closed.clone());
        async move { Ok::<_, Infallible>(answer(gate, closed, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = served.await {
        tracing::debug!(%error, "a command closed its connection to the proxy");
    }
}

async fn answer(
    gate: Arc<DomainGate>,
    closed: CancellationToken,
    request: Request<Incoming>,
) -> Answer {
    let Some((host, port)) = target(request.method(), request.uri()) else {
        return text(StatusCode::BAD_REQUEST, "this proxy carries http and CONNECT alone");
    };
    let admitted = match gate.admit(&host, port).await {
        Ok(admitted) => admitted,
        Err(Refusal { text: why, .. }) => return text(StatusCode::FORBIDDEN, &why),
    };
    let traffic = Arc::new(Traffic::default());
    let stream = match gate.connect(&admitted).await {
        Ok(stream) => stream,
        Err(why) => {
            gate.finish(admitted, "tool_failed", &traffic).await;
            let why = format!("{host} cannot be reached: {why}");
            return text(StatusCode::BAD_GATEWAY, &why);
        }
    };
    if request.method() == Method::CONNECT {
        tokio::spawn(async move {
            let Some(domain) = Domain::parse(&host) else { return };
            let mut mismatch = None;
            // The client's end is closed after the refusal was recorded.
            let mut client = None;
            if let Ok(upgraded) = hyper::upgrade::on(request).await {
                let client = client.insert(TokioIo::new(upgraded));
                let requests = Requests { gate: &gate, admitted: &admitted, closed: &closed };
                tokio::select! {
                    () = closed.cancelled() => {}
                    end = tunnel(client, stream, (&domain, port), &traffic, requests) => {
                        mismatch = end.err();
                    }
                }
            }
            match mismatch {
                Some(Mismatch(why)) => {
                    gate.finish_mismatch(admitted, (&domain, &why), &traffic).await;
                }
                None => gate.finish(admitted, "ok", &traffic).await,
            }
        });
        return text(StatusCode::OK, "");
    }
    let response = carry(request, stream, &traffic, closed).await;
    // The row of a plain request is completed with its head: the body follows while the client
    // reads it.
    let outcome = if response.is_ok() { "ok" } else { "tool_failed" };
    gate.finish(admitted, outcome, &traffic).await;
    response.unwrap_or_else(|why| text(StatusCode::BAD_GATEWAY, &format!("{host}: {why}")))
}

/// Returns the host and port of a request.
fn target(method: &Method, uri: &Uri) -> Option<(String, u16)> {
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let host = authority.host().to_owned();
    if method == Method::CONNECT {
        return Some((host, authority.port_u16()?));
    }
    (uri.scheme_str() == Some("http")).then(|| (host, authority.port_u16().unwrap_or(80)))
}

pub(super) fn text(status: StatusCode, why: &str) -> Answer {
    let body = if why.is_empty() { String::new() } else { format!("cairn: {why}\n") };
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    if !why.is_empty() {
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    }
    answer
}

/// Headers that concern one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Sends a plain request on a connection of its own.
pub(super) async fn carry(
    mut request: Request<Incoming>,
    stream: tokio::net::TcpStream,
    traffic: &Arc<Traffic>,
    closed: CancellationToken,
) -> Result<Answer, hyper::Error> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        tokio::select! {
            () = closed.cancelled() => {}
            _result = connection => {}
        }
    });
    let headers = request.headers_mut();
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(name)));
    headers.remove("proxy-connection");
    headers.remove("keep-alive");
    let uri = request.uri().clone();
    // The host that was admitted, whatever the program wrote.
    if let Some(host) = uri.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        request.headers_mut().insert(header::HOST, host);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_default();
    let length = |headers: &hyper::HeaderMap| {
        let text = headers.get(header::CONTENT_LENGTH)?.to_str().ok()?;
        text.parse::<u64>().ok()
    };
    traffic.sent.store(length(request.headers()).unwrap_or(0), Ordering::Relaxed);
    let mut response = sender.send_request(request).await?;
    let headers = response.headers_mut();
    traffic.received.store(length(headers).unwrap_or(0), Ordering::Relaxed);
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(name)));
    Ok(response.map(BodyExt::boxed))
}
