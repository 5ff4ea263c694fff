//! Moves bytes between sockets and the API: HTTP for health and metrics, WebSocket for everything else.

mod auth;
mod http;
mod linger;
pub mod ws;

pub use auth::Guard;
pub use http::{ServeError, serve};
