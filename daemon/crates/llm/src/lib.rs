//! Model providers behind one streaming trait. Nothing here knows sessions, tools that act, or where keys are kept.

mod error;
mod provider;

pub use error::LlmError;
pub use provider::{Chunk, ChunkStream, ModelRequest, Provider, Recording};
