//! The HTTP server and its routes.

use std::{net::TcpListener, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{ConnectInfo, Request, State, WebSocketUpgrade},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{any, get},
};
use cairn_api::{Api, Connection, Outgoing, Right};
use cairn_protocol::{
    error::{Failure, Reason},
    remote::PAIR_PATH,
    rpc,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

mod cors;
mod event_stream;
mod http_rpc;
mod http_sessions;
pub(crate) mod linger;
mod sse;
pub(crate) mod strict;
pub(crate) mod unauthenticated;
mod viewer;
mod viewer_files;

use self::{http_sessions::HttpSessions, linger::Lingering, unauthenticated::Proof};
use crate::{
    acp,
    admission::{Admission, Authentication},
    auth::{Guard, status_of},
    mcp::{self, Mcp, OfferedTools},
    remote::{self, Peer, Remote, TlsListener},
    ws,
};

/// Time after the shutdown signal within which clients can still be notified.
const DRAIN_TIME: std::time::Duration = std::time::Duration::from_millis(300);

/// Interval of the search for expired sessions.
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(15);

/// Maximum bytes of a pairing message.
const MAX_PAIR_MESSAGE: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listener cannot be used.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// State of all handlers.
#[derive(Clone)]
pub struct Shared {
    pub api: Arc<Api>,
    /// The checks of local requests.
    pub guard: Arc<Guard>,
    /// Authentication of this listener's clients.
    pub authentication: Authentication,
    pub sessions: Arc<HttpSessions>,
    /// Cancelled when the daemon stops.
    pub shutdown: CancellationToken,
    /// Open sockets, to be awaited at the end.
    pub sockets: TaskTracker,
    mcp: Mcp,
}

impl Shared {
    /// Upgrades to a WebSocket: `peer` receives its messages and those of `out` are sent to it.
    pub fn socket(
        &self,
        upgrade: WebSocketUpgrade,
        chosen: Option<String>,
        peer: impl ws::Peer + 'static,
        out: mpsc::Receiver<Outgoing>,
    ) -> Response {
        let limit = usize::try_from(self.api.limits().max_message_bytes).unwrap_or(usize::MAX);
        let mut upgrade = ws::configure(upgrade, limit);
        if let Some(chosen) = chosen {
            upgrade = upgrade.protocols([chosen]);
        }
        let sockets = self.sockets.clone();
        let shutdown = self.shutdown.clone();
        upgrade.on_upgrade(move |socket| sockets.track_future(ws::run(socket, peer, out, shutdown)))
    }
}

/// Routes that are the same on every listener.
fn routes() -> Router<Shared> {
    Router::new()
        .route(rpc::PATH, get(upgrade).post(http_rpc::post).delete(http_rpc::end))
        .route(acp::PATH, get(editor))
        .route("/events", get(http_rpc::events))
        .route("/sessions/{id}/events", get(http_rpc::session))
        .route(mcp::SOCKET_PATH, get(model_context_socket))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

#[derive(Default)]
pub struct Listeners {
    /// Local listeners, which authenticate by token.
    pub local: Vec<TcpListener>,
    /// Network listeners for paired devices, by TLS.
    pub lan: Vec<(TcpListener, Arc<Remote>)>,
}

/// Serves the API on `listeners` until `shutdown`; then every client gets a close frame. MCP
/// clients that name no tools are offered `offered`.
///
/// # Errors
/// A listener cannot be used.
pub async fn serve(
    listeners: Listeners,
    api: Arc<Api>,
    guard: Guard,
    offered: OfferedTools,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let sockets = TaskTracker::new();
    let mcp = Mcp::new(&api, offered, &shutdown);
    let sessions = Arc::new(HttpSessions::default());
    let guard = Arc::new(guard);
    let shared = Shared {
        api,
        guard: Arc::clone(&guard),
        authentication: Authentication::Token(Arc::clone(&guard)),
        sessions: Arc::clone(&sessions),
        shutdown: shutdown.clone(),
        sockets: sockets.clone(),
        mcp,
    };
    let mut servers = JoinSet::new();
    for (listener, remote) in listeners.lan {
        let listener = TlsListener::new(listener, Arc::clone(&remote))?;
        let router = routes()
            .merge(viewer::device_routes(&remote))
            .with_state(Shared {
                authentication: Authentication::Device(Arc::clone(&guard)),
                ..shared.clone()
            })
            .merge(
                Router::new()
                    .route(PAIR_PATH, get(pairing))
                    .with_state((remote, Arc::clone(&shared.api))),
            )
            .layer(middleware::from_fn(strict::check));
        let service = router.into_make_service_with_connect_info::<Peer>();
        let shutdown = shutdown.clone();
        servers.spawn(async move {
            tokio::select! {
                finished = axum::serve(listener, service) => finished,
                () = shutdown.cancelled() => Ok(()),
            }
        });
    }
    let router =
        routes().route(mcp::PATH, any(model_context)).merge(viewer::routes()).with_state(shared);
    let router = router.layer(cors::layer(guard)).layer(middleware::from_fn(strict::check));
    for listener in listeners.local {
        listener.set_nonblocking(true)?;
        let listener = Lingering::requiring_token(
            tokio::net::TcpListener::from_std(listener)?,
            unauthenticated::TIME_LIMIT,
        );
        let router = router.clone();
        let shutdown = shutdown.clone();
        let service = router.into_make_service_with_connect_info::<Proof>();
        servers.spawn(async move {
            tokio::select! {
                finished = axum::serve(listener, service) => finished,
                () = shutdown.cancelled() => Ok(()),
            }
        });
    }
    supervise(servers, &sessions).await;
    sessions.clear();
    sockets.close();
    if tokio::time::timeout(DRAIN_TIME, sockets.wait()).await.is_err() {
        tracing::debug!("some clients did not close in time");
    }
    Ok(())
}

/// Waits until all servers have finished, closing expired sessions meanwhile.
async fn supervise(mut servers: JoinSet<std::io::Result<()>>, sessions: &HttpSessions) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    loop {
        let finished = tokio::select! {
            finished = servers.join_next() => finished,
            _ = sweep.tick() => {
                sessions.sweep(Instant::now());
                continue;
            }
        };
        let Some(finished) = finished else { break };
        if let Ok(Err(error)) = finished {
            tracing::error!(%error, "a listener failed");
        }
    }
}

/// Builds the response for a refused connection.
pub fn refusal(failure: &Failure) -> Response {
    let body = serde_json::json!({"error": failure.message, "data": failure.data()}).to_string();
    let mut response =
        (status_of(failure), [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if status_of(failure) == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}

async fn upgrade(
    State(shared): State<Shared>,
    admitted: Admission,
    upgrade: WebSocketUpgrade,
) -> Response {
    match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, out)) => {
            shared.socket(upgrade, admitted.chosen, ws::CloseOnDrop(connection), out)
        }
        Err(failure) => refusal(&failure),
    }
}

/// Serves the Agent Client Protocol.
async fn editor(
    State(shared): State<Shared>,
    admitted: Admission,
    upgrade: WebSocketUpgrade,
) -> Response {
    match acp::Agent::new(&shared.api, admitted.rights) {
        Ok((agent, out)) => shared.socket(upgrade, admitted.chosen, agent, out),
        Err(failure) => refusal(&failure),
    }
}

async fn model_context(State(shared): State<Shared>, _: Admission, request: Request) -> Response {
    shared.mcp.handle(request).await
}

async fn model_context_socket(
    State(shared): State<Shared>,
    uri: http::Uri,
    admitted: Admission,
    upgrade: WebSocketUpgrade,
) -> Response {
    // An MCP client works and approves on behalf of its program, so it needs all of these rights.
    if let Err(failure) =
        require_rights(&admitted, &[Right::Observe, Right::Prompt, Right::Approve])
    {
        return refusal(&failure);
    }
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let mut upgrade = ws::configure(upgrade, limit);
    if let Some(chosen) = admitted.chosen {
        upgrade = upgrade.protocols([chosen]);
    }
    let sockets = shared.sockets.clone();
    let shutdown = shared.shutdown.clone();
    let host = shared.mcp.host();
    let query = uri.query().map(str::to_owned);
    upgrade.on_upgrade(move |socket| {
        sockets.track_future(mcp::run_socket(socket, host, query, shutdown))
    })
}

/// Checks rights for requests outside of the method table.
fn require_rights(admitted: &Admission, rights: &[Right]) -> Result<(), Failure> {
    rights.iter().try_for_each(|right| admitted.rights.require(*right, "this"))
}

/// Serves unpaired devices, for which this is the only accepted path.
async fn pairing(
    State((remote, api)): State<(Arc<Remote>, Arc<Api>)>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Peer::Machine { channel, .. } = peer else {
        let text = "a browser pairs by the link of 'cairn pair'";
        return refusal(&Failure::new(Reason::NotPaired, text));
    };
    ws::configure(upgrade, MAX_PAIR_MESSAGE)
        .on_upgrade(move |socket| remote::pair(socket, remote, api, channel))
}

async fn ready(State(shared): State<Shared>) -> Response {
    if shared.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(shared): State<Shared>, admitted: Admission) -> Response {
    if let Err(failure) = require_rights(&admitted, &[Right::Observe]) {
        return refusal(&failure);
    }
    match shared.api.metrics().await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(failure) => refusal(&failure),
    }
}
