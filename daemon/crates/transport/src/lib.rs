//! Moves messages between clients and the API: HTTP for health and metrics, WebSocket for everything else; in the same
//! process, a queue.

mod auth;
mod http;
mod linger;
mod mcp;
pub mod queue;
pub mod ws;

pub use auth::Guard;
pub use http::{ServeError, serve};
