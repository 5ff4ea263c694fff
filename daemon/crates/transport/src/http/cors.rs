//! CORS: the origins whose pages may read HTTP answers.
//!
//! The list is `listen.allowedOrigins`, which also admits pages to the WebSocket. Requests of other
//! pages are refused because of their `Origin` anyway.

use std::{sync::Arc, time::Duration};

use axum::http::{HeaderName, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::http_rpc;
use crate::auth::Guard;

/// Time that a browser may cache a preflight answer.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Headers that a page needs: the token, JSON, and the ids of a connection and of a stream
/// position.
const ALLOWED_HEADERS: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::ACCEPT,
    http_rpc::CONNECTION,
    http_rpc::PROTOCOL,
    http_rpc::LAST_EVENT_ID,
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("mcp-protocol-version"),
];

/// Answers preflight requests and marks other answers.
pub fn layer(guard: Arc<Guard>) -> CorsLayer {
    let origin = AllowOrigin::predicate(move |_, head| guard.check_origin(&head.headers).is_ok());
    CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(ALLOWED_HEADERS)
        .expose_headers([http_rpc::CONNECTION, HeaderName::from_static("mcp-session-id")])
        // Pages of the internet send another preflight before they may reach a private network.
        .allow_private_network(true)
        .max_age(MAX_AGE)
}
