//! The HTTP side: routes and serving.

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    extract::{Request, State, WebSocketUpgrade},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use cairn_api::{Api, Connection, Rights};
use cairn_protocol::{error::Failure, rpc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{Guard, status_of},
    linger::Lingering,
    mcp::{self, Mcp},
    ws,
};

/// How long serving waits, after the shutdown, for clients to be told.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(300);

/// Why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listener is of no use.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

#[derive(Clone)]
struct Shared {
    api: Arc<Api>,
    guard: Arc<Guard>,
    shutdown: CancellationToken,
    sockets: TaskTracker,
    mcp: Mcp,
}

/// Serves the API on `listeners` until `shutdown`; then every client gets a close frame.
///
/// # Errors
/// When a listener cannot be used.
pub async fn serve(
    listeners: Vec<TcpListener>,
    api: Arc<Api>,
    guard: Guard,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let sockets = TaskTracker::new();
    let mcp = Mcp::new(&api, &shutdown);
    let shared =
        Shared { api, guard: Arc::new(guard), shutdown: shutdown.clone(), sockets: sockets.clone(), mcp };
    let router = Router::new()
        .route(rpc::PATH, get(upgrade))
        .route(mcp::PATH, any(model_context))
        .route(mcp::SOCKET_PATH, get(model_context_socket))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(shared);
    let mut servers = tokio::task::JoinSet::new();
    for listener in listeners {
        listener.set_nonblocking(true)?;
        let listener = Lingering(tokio::net::TcpListener::from_std(listener)?);
        let (router, shutdown) = (router.clone(), shutdown.clone());
        servers.spawn(async move {
            tokio::select! {
                ended = axum::serve(listener, router) => ended,
                () = shutdown.cancelled() => Ok(()),
            }
        });
    }
    while let Some(ended) = servers.join_next().await {
        if let Ok(Err(error)) = ended {
            tracing::error!(%error, "a listener failed");
        }
    }
    sockets.close();
    if tokio::time::timeout(DRAIN, sockets.wait()).await.is_err() {
        tracing::debug!("some clients did not close in time");
    }
    Ok(())
}

fn refusal(failure: &Failure) -> Response {
    let body = serde_json::json!({"error": failure.message, "data": failure.data()}).to_string();
    let mut response =
        (status_of(failure), [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if status_of(failure) == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}

async fn upgrade(State(shared): State<Shared>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    let chosen = match shared.guard.check_source(&headers).and_then(|()| shared.guard.check_token(&headers)) {
        Ok(chosen) => chosen,
        Err(failure) => return refusal(&failure),
    };
    let (connection, outgoing) = match Connection::open(&shared.api, Rights::ALL) {
        Ok(opened) => opened,
        Err(failure) => return refusal(&failure),
    };
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let mut upgrade = ws::configure(upgrade, limit);
    if let Some(chosen) = chosen {
        upgrade = upgrade.protocols([chosen]);
    }
    let (sockets, shutdown) = (shared.sockets.clone(), shared.shutdown.clone());
    let closed = ws::CloseOnDrop(connection);
    upgrade.on_upgrade(move |socket| sockets.track_future(ws::run(socket, closed, outgoing, shutdown)))
}

async fn model_context(State(shared): State<Shared>, request: Request) -> Response {
    let headers = request.headers();
    match shared.guard.check_source(headers).and_then(|()| shared.guard.check_token(headers)) {
        Ok(_) => shared.mcp.handle(request).await,
        Err(failure) => refusal(&failure),
    }
}

async fn model_context_socket(
    State(shared): State<Shared>,
    uri: http::Uri,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let chosen = match shared.guard.check_source(&headers).and_then(|()| shared.guard.check_token(&headers)) {
        Ok(chosen) => chosen,
        Err(failure) => return refusal(&failure),
    };
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let mut upgrade = ws::configure(upgrade, limit);
    if let Some(chosen) = chosen {
        upgrade = upgrade.protocols([chosen]);
    }
    let (sockets, shutdown, host) = (shared.sockets.clone(), shared.shutdown.clone(), shared.mcp.host());
    let root = mcp::root_of(uri.query());
    upgrade.on_upgrade(move |socket| sockets.track_future(mcp::run_socket(socket, host, root, shutdown)))
}

async fn ready(State(shared): State<Shared>) -> Response {
    if shared.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if let Err(failure) =
        shared.guard.check_source(&headers).and_then(|()| shared.guard.check_token(&headers))
    {
        return refusal(&failure);
    }
    match shared.api.metrics().await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(failure) => refusal(&failure),
    }
}
