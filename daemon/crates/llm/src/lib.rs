//! Model providers behind one streaming trait, independent of sessions, tools and the storage of
//! keys.

mod anthropic;
mod apple;
mod catalog;
mod connect;
mod conversation;
mod decode;
mod effort;
mod endpoint;
mod error;
mod framing;
mod gemini;
mod incoming;
mod key;
#[cfg_attr(not(feature = "llama"), path = "llama/absent.rs")]
mod llama;
mod ollama;
mod openai;
mod optional;
mod presets;
mod program;
mod provider;
mod reasoning;
mod recorded;
mod refusal;
mod remote;
mod retry;
mod schema_calls;
mod scripted;
mod server;
mod tokens;
mod tool_offer;

pub use catalog::{KnownProvider, find_provider, providers};
pub use connect::{Settings, ToolCalls, connect, is_external};
pub use decode::{Decoder, Format};
pub use effort::Effort;
pub use error::LlmError;
pub use framing::Limits;
pub use key::{Key, find_key, read_key_file};
pub use openai::OpenAiApi;
pub use program::{Exit, Launch, Launcher, Piece, Running, WAITING_PIECES};
pub use provider::{Chunk, ChunkStream, ModelRequest, Notice, Provider, Recording};
pub use recorded::Recorded;
pub use scripted::{
    Expect, Fault, FaultKind, Script, Scripted, ScriptedAnswer, ScriptedCall, Step,
};
pub use tool_offer::ToolOffer;
