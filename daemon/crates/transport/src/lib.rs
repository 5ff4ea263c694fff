//! Moves messages between clients and the API: WebSocket, HTTP with server-sent events, and in the same process a queue.

mod acp;
mod auth;
mod follow;
mod held;
mod http;
mod linger;
mod mcp;
mod post;
pub mod queue;
mod sse;
mod viewer;
pub mod ws;

pub use auth::Guard;
pub use http::{ServeError, serve};
