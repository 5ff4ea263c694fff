//! Moves messages between clients and the API: WebSocket, HTTP with server-sent events, the same by TLS for paired
//! devices, and in the same process a queue.

mod acp;
mod admission;
mod auth;
mod cors;
mod follow;
mod held;
mod http;
mod linger;
mod mcp;
mod post;
pub mod queue;
pub mod remote;
mod sse;
mod strict;
mod unproven;
mod viewer;
pub mod ws;

pub use auth::Guard;
pub use http::{Listeners, ServeError, serve};
