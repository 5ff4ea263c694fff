//! Which pages of other origins a browser lets read what is answered over HTTP.
//!
//! The same list that opens the WebSocket to a page, `listen.allowedOrigins`: a page that is not on it could send
//! nothing anyway, as its `Origin` is refused.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderName, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{auth::Guard, post};

/// How long a browser may remember what is allowed.
const MAX_AGE: Duration = Duration::from_secs(600);

/// What a page must be able to send: the token, JSON, and the names of a connection and of a place in a stream.
const SENT: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::ACCEPT,
    post::CONNECTION,
    post::PROTOCOL,
    post::LAST_EVENT_ID,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
];

/// Answers the questions that a browser asks before and after a request of a page.
pub fn layer(guard: Arc<Guard>) -> CorsLayer {
    let origin = AllowOrigin::predicate(move |_, head| guard.check_origin(&head.headers).is_ok());
    CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(SENT)
        .expose_headers([post::CONNECTION, HeaderName::from_static("mcp-session-id")])
        // A page of the internet asks once more before it reaches into the machine.
        .allow_private_network(true)
        .max_age(MAX_AGE)
}
