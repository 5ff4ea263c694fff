//! The HTTP side: routes and serving.

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
use cairn_protocol::{error::Failure, remote::PAIR_PATH, rpc};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    acp,
    admission::{Admission, Door},
    auth::{Guard, status_of},
    cors,
    held::Held,
    linger::Lingering,
    mcp::{self, Mcp},
    post,
    remote::{self, Peer, Remote, TlsListener},
    strict,
    unproven::{self, Proof},
    viewer, ws,
};

/// How long serving waits, after the shutdown, for clients to be told.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(300);

/// How often connections that nobody uses are looked for.
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(15);

/// Bytes of a message of pairing.
const PAIR_MESSAGE: usize = 4096;

/// Why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A listener is of no use.
    #[error("cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// What every request is answered with.
#[derive(Clone)]
pub struct Shared {
    /// The method table.
    pub api: Arc<Api>,
    /// What is checked of requests of this machine.
    pub guard: Arc<Guard>,
    /// How clients are known.
    pub door: Door,
    /// Connections over several requests.
    pub held: Arc<Held>,
    /// The daemon stops.
    pub shutdown: CancellationToken,
    /// What is at work, for the end.
    pub sockets: TaskTracker,
    mcp: Mcp,
}

impl Shared {
    /// Upgrades to a WebSocket whose messages `peer` takes, and sends what comes out.
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
        let (sockets, shutdown) = (self.sockets.clone(), self.shutdown.clone());
        upgrade.on_upgrade(move |socket| sockets.track_future(ws::run(socket, peer, out, shutdown)))
    }
}

/// What a client may ask for, whichever way it came.
fn routes() -> Router<Shared> {
    Router::new()
        .route(rpc::PATH, get(upgrade).post(post::post).delete(post::end))
        .route(acp::PATH, get(editor))
        .route("/events", get(post::events))
        .route("/sessions/{id}/events", get(post::session))
        .route(mcp::SOCKET_PATH, get(model_context_socket))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}

/// Where clients come from.
#[derive(Default)]
pub struct Listeners {
    /// Of this machine, with the token.
    pub local: Vec<TcpListener>,
    /// Of the network: paired devices, by TLS.
    pub lan: Vec<(TcpListener, Arc<Remote>)>,
}

/// Serves the API on `listeners` until `shutdown`; then every client gets a close frame.
///
/// # Errors
/// When a listener cannot be used.
pub async fn serve(
    listeners: Listeners,
    api: Arc<Api>,
    guard: Guard,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let sockets = TaskTracker::new();
    let mcp = Mcp::new(&api, &shutdown);
    let held = Arc::new(Held::default());
    let guard = Arc::new(guard);
    let shared = Shared {
        api,
        guard: Arc::clone(&guard),
        door: Door::Token(Arc::clone(&guard)),
        held: Arc::clone(&held),
        shutdown: shutdown.clone(),
        sockets: sockets.clone(),
        mcp,
    };
    let mut servers = tokio::task::JoinSet::new();
    for (listener, remote) in listeners.lan {
        let listener = TlsListener::new(listener, Arc::clone(&remote))?;
        let router = routes()
            .with_state(Shared { door: Door::Device(Arc::clone(&guard)), ..shared.clone() })
            .merge(Router::new().route(PAIR_PATH, get(pairing)).with_state((remote, Arc::clone(&shared.api))))
            .layer(middleware::from_fn(strict::check));
        let (service, shutdown) = (router.into_make_service_with_connect_info::<Peer>(), shutdown.clone());
        servers.spawn(async move {
            tokio::select! {
                ended = axum::serve(listener, service) => ended,
                () = shutdown.cancelled() => Ok(()),
            }
        });
    }
    let router = routes().route(mcp::PATH, any(model_context)).merge(viewer::routes()).with_state(shared);
    let router = router.layer(cors::layer(guard)).layer(middleware::from_fn(strict::check));
    for listener in listeners.local {
        listener.set_nonblocking(true)?;
        let listener = Lingering::proving(tokio::net::TcpListener::from_std(listener)?, unproven::LIMIT);
        let (router, shutdown) = (router.clone(), shutdown.clone());
        let service = router.into_make_service_with_connect_info::<Proof>();
        servers.spawn(async move {
            tokio::select! {
                ended = axum::serve(listener, service) => ended,
                () = shutdown.cancelled() => Ok(()),
            }
        });
    }
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    loop {
        let ended = tokio::select! {
            ended = servers.join_next() => ended,
            _ = sweep.tick() => {
                held.sweep(Instant::now());
                continue;
            }
        };
        let Some(ended) = ended else { break };
        if let Ok(Err(error)) = ended {
            tracing::error!(%error, "a listener failed");
        }
    }
    held.clear();
    sockets.close();
    if tokio::time::timeout(DRAIN, sockets.wait()).await.is_err() {
        tracing::debug!("some clients did not close in time");
    }
    Ok(())
}

/// An answer to who may not connect.
pub fn refusal(failure: &Failure) -> Response {
    let body = serde_json::json!({"error": failure.message, "data": failure.data()}).to_string();
    let mut response =
        (status_of(failure), [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if status_of(failure) == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    response
}

async fn upgrade(State(shared): State<Shared>, admitted: Admission, upgrade: WebSocketUpgrade) -> Response {
    match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, out)) => shared.socket(upgrade, admitted.chosen, ws::CloseOnDrop(connection), out),
        Err(failure) => refusal(&failure),
    }
}

/// The Agent Client Protocol.
async fn editor(State(shared): State<Shared>, admitted: Admission, upgrade: WebSocketUpgrade) -> Response {
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
    // What speaks MCP works and asks as its program sees fit; there is no part of it for less.
    if let Err(failure) = needs(&admitted, &[Right::Observe, Right::Prompt, Right::Approve]) {
        return refusal(&failure);
    }
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let mut upgrade = ws::configure(upgrade, limit);
    if let Some(chosen) = admitted.chosen {
        upgrade = upgrade.protocols([chosen]);
    }
    let (sockets, shutdown, host) = (shared.sockets.clone(), shared.shutdown.clone(), shared.mcp.host());
    let root = mcp::root_of(uri.query());
    upgrade.on_upgrade(move |socket| sockets.track_future(mcp::run_socket(socket, host, root, shutdown)))
}

/// Whether the client has these rights, for what is no method of the table.
fn needs(admitted: &Admission, rights: &[Right]) -> Result<(), Failure> {
    rights.iter().try_for_each(|right| admitted.rights.require(*right, "this"))
}

/// Where a device that is not yet paired may come, and nowhere else.
async fn pairing(
    State((remote, api)): State<(Arc<Remote>, Arc<Api>)>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    upgrade: WebSocketUpgrade,
) -> Response {
    ws::configure(upgrade, PAIR_MESSAGE)
        .on_upgrade(move |socket| remote::pair(socket, remote, api, peer.channel))
}

async fn ready(State(shared): State<Shared>) -> Response {
    if shared.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    "ok\n".into_response()
}

async fn metrics(State(shared): State<Shared>, admitted: Admission) -> Response {
    if let Err(failure) = needs(&admitted, &[Right::Observe]) {
        return refusal(&failure);
    }
    match shared.api.metrics().await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(failure) => refusal(&failure),
    }
}
