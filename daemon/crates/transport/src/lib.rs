//! Transports between clients and the API: WebSocket, HTTP with server-sent events, both by TLS for
//! paired devices, and an in-process client.

mod acp;
mod admission;
mod auth;
mod http;
pub mod in_process;
mod mcp;
pub mod remote;
pub mod ws;

pub use auth::Guard;
pub use http::{Listeners, ServeError, serve};
pub use mcp::OfferedTools;
