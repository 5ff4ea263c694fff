//! The viewer: a page that shows sessions and their events, explores, approvals, searches and traces.
//!
//! The page itself contains no secret. A link from `viewer.link` has a code behind `#`, which the
//! page exchanges for a secret that it stores. Cookies are not used: browsers send them to every
//! port of a host, and so to any other local server.

use std::time::Instant;

use axum::{
    Router,
    extract::{DefaultBodyLimit, State, WebSocketUpgrade},
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use cairn_api::{Connection, Right, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    rpc::BEARER_SUBPROTOCOL,
};

use super::{Shared, refusal, unauthenticated::Proof};
use crate::{auth::SUBPROTOCOL, ws};

/// Rights of the page: everything but administration.
const RIGHTS: Rights = Rights::of(&[Right::Observe, Right::Prompt, Right::Approve]);
/// Maximum bytes of a code.
const MAX_CODE: usize = 128;

/// No content from elsewhere, no inline script or style, no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The files of the page: path, type, content.
const FILES: [(&str, &str, &str); 11] = [
    ("/viewer", HTML, include_str!("viewer/index.html")),
    ("/viewer/style.css", CSS, include_str!("viewer/style.css")),
    ("/viewer/app.js", JS, include_str!("viewer/app.js")),
    ("/viewer/rpc.js", JS, include_str!("viewer/rpc.js")),
    ("/viewer/board.js", JS, include_str!("viewer/board.js")),
    ("/viewer/dom.js", JS, include_str!("viewer/dom.js")),
    ("/viewer/trace.js", JS, include_str!("viewer/trace.js")),
    ("/viewer/panes.js", JS, include_str!("viewer/panes.js")),
    ("/viewer/explore.js", JS, include_str!("viewer/explore.js")),
    ("/viewer/report.js", JS, include_str!("viewer/report.js")),
    ("/viewer/diagram.js", JS, include_str!("viewer/diagram.js")),
];

pub fn routes() -> Router<Shared> {
    let mut router = Router::new()
        // A visitor of the bare address gets the page, which explains how to open it.
        .route("/", get(|| async { Redirect::to("/viewer") }))
        .route("/viewer/session", post(exchange).layer(DefaultBodyLimit::max(MAX_CODE)))
        .route("/viewer/rpc", get(upgrade));
    for (path, kind, content) in FILES {
        router = router.route(
            path,
            get(move |State(shared): State<Shared>, headers: HeaderMap| async move {
                match shared.guard.check_host(&headers) {
                    Ok(_) => file(kind, content),
                    Err(failure) => refusal(&failure),
                }
            }),
        );
    }
    router
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers: [(HeaderName, &str); 7] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    (headers, content).into_response()
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
    let admitted = shared.guard.check_own_page(&headers).and_then(|()| {
        if shared.api.links().admits(secret(&headers), Instant::now()) {
            proof.mark_authenticated();
            return Connection::open(&shared.api, RIGHTS);
        }
        Err(Failure::new(
            Reason::Unauthorized,
            "the viewer needs a new link; 'cairn viewer' creates one",
        ))
    });
    match admitted {
        Ok((connection, out)) => {
            shared.socket(upgrade, Some(SUBPROTOCOL.to_owned()), ws::CloseOnDrop(connection), out)
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
