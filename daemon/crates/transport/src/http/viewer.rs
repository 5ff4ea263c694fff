//! The viewer: a page on which people follow and steer sessions, answer approvals, search and
//! explore.
//!
//! The page itself contains no secret. On this machine a link from `viewer.link` has a code behind
//! `#`, which the page exchanges for a secret that it stores; on another one the link of
//! `pair.begin` pairs the browser. Cookies are not used: browsers send them to every port of a
//! host, and so to any other local server.

use std::{sync::Arc, time::Instant};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{ConnectInfo, DefaultBodyLimit, State, WebSocketUpgrade},
    http::{HeaderMap, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use cairn_api::{Connection, Right, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    rpc::BEARER_SUBPROTOCOL,
};
use serde::Deserialize;

use super::{
    Shared, refusal,
    unauthenticated::Proof,
    viewer_files::{FILES, File},
};
use crate::{
    auth::{self, SUBPROTOCOL},
    remote::{self, Peer, Remote},
    ws,
};

/// Rights of the page on this machine: everything but administration.
const RIGHTS: Rights = Rights::of(&[Right::Observe, Right::Prompt, Right::Approve]);
/// Maximum bytes of a code.
const MAX_CODE: usize = 128;
/// Maximum bytes of a request to pair.
const MAX_PAIRING: usize = 1024;

/// Routes of the listeners for this machine.
pub fn routes() -> Router<Shared> {
    let mut router = Router::new()
        // A visitor of the bare address gets the page, which explains how to open it.
        .route("/", get(|| async { Redirect::to("/viewer") }))
        .route("/viewer/session", post(exchange).layer(DefaultBodyLimit::max(MAX_CODE)))
        .route("/viewer/rpc", get(upgrade));
    for file in FILES {
        router = router.route(
            file.path,
            get(move |State(shared): State<Shared>, headers: HeaderMap| async move {
                match shared.guard.check_host(&headers) {
                    Ok(_) => file.respond(&headers),
                    Err(failure) => refusal(&failure),
                }
            }),
        );
    }
    router
}

/// Routes of a listener for paired devices. The files of the page are public: a browser that is not
/// paired yet needs them, and they contain no data.
pub fn device_routes(remote: &Arc<Remote>) -> Router<Shared> {
    let mut router = Router::new()
        .route("/", get(|| async { Redirect::to("/viewer") }))
        .route("/viewer/pair", post(pair).layer(DefaultBodyLimit::max(MAX_PAIRING)))
        .route("/viewer/rpc", get(upgrade_paired))
        .layer(Extension(Arc::clone(remote)));
    for file in FILES {
        let respond = |file: &'static File| {
            get(move |headers: HeaderMap| async move { file.respond(&headers) })
        };
        router = router.route(file.path, respond(file));
    }
    router
}

/// Exchanges the code of a link for the secret of a page.
async fn exchange(State(shared): State<Shared>, headers: HeaderMap, code: String) -> Response {
    if let Err(failure) = shared.guard.check_own_page(&headers) {
        return refusal(&failure);
    }
    match shared.api.links().exchange(code.trim(), Instant::now()) {
        Ok(Some(secret)) => ([(header::CACHE_CONTROL, "no-store")], secret).into_response(),
        Ok(None) => refusal(&Failure::new(
            Reason::Unauthorized,
            "the link was already used, or is older than a minute; 'cairn viewer' creates another",
        )),
        Err(failure) => refusal(&failure),
    }
}

async fn upgrade(
    State(shared): State<Shared>,
    headers: HeaderMap,
    proof: Proof,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(failure) = shared.guard.check_own_page(&headers) {
        return refusal(&failure);
    }
    let Some(page) = shared.api.links().connect(secret(&headers), Instant::now()) else {
        return refusal(&Failure::new(
            Reason::Unauthorized,
            "the viewer needs a new link; 'cairn viewer' creates one",
        ));
    };
    proof.mark_authenticated();
    match Connection::open(&shared.api, RIGHTS) {
        Ok((connection, out)) => {
            let peer = ws::WithGuard(ws::CloseOnDrop(connection), page);
            shared.socket(upgrade, Some(SUBPROTOCOL.to_owned()), peer, out)
        }
        Err(failure) => refusal(&failure),
    }
}

/// A request of a browser to pair, by the code of the link that it opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairRequest {
    code: String,
    /// Name of the browser, unless the person at the daemon chose one.
    name: String,
}

async fn pair(
    State(shared): State<Shared>,
    Extension(remote): Extension<Arc<Remote>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match paired(&shared, &remote, &headers, &body).await {
        Ok(body) => {
            let kind = (header::CONTENT_TYPE, "application/json");
            ([kind, (header::CACHE_CONTROL, "no-store")], body).into_response()
        }
        Err(failure) => refusal(&failure),
    }
}

async fn paired(
    shared: &Shared,
    remote: &Arc<Remote>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Vec<u8>, Failure> {
    auth::check_tls_page(headers)?;
    let invalid = |e: serde_json::Error| Failure::new(Reason::InvalidRequest, e.to_string());
    let request: PairRequest = serde_json::from_slice(body).map_err(invalid)?;
    let paired = remote::pair_browser(remote, &shared.api, &request.code, &request.name).await?;
    serde_json::to_vec(&paired).map_err(|e| Failure::new(Reason::Internal, e.to_string()))
}

async fn upgrade_paired(
    State(shared): State<Shared>,
    Extension(remote): Extension<Arc<Remote>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(failure) = auth::check_tls_page(&headers) {
        return refusal(&failure);
    }
    let (Some(device), Peer::Browser(connection)) = (remote.browser(secret(&headers)), peer) else {
        return refusal(&Failure::new(
            Reason::NotPaired,
            "this browser is not paired with the daemon; 'cairn pair' shows a link",
        ));
    };
    connection.admit(&device);
    match Connection::open(&shared.api, device.rights()) {
        Ok((connection, out)) => {
            let peer = ws::CloseOnDrop(connection);
            shared.socket(upgrade, Some(SUBPROTOCOL.to_owned()), peer, out)
        }
        Err(failure) => refusal(&failure),
    }
}

fn secret(headers: &HeaderMap) -> &str {
    let offered =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|h| h.to_str().ok());
    let mut offered = offered.flat_map(|h| h.split(',')).map(str::trim);
    offered.find_map(|p| p.strip_prefix(BEARER_SUBPROTOCOL)).unwrap_or_default()
}
