//! The wire contract of Cairn: every type that a client must know, without any transport.
//!
//! Fields are camelCase, tags of unions are snake_case under `type`. Times are RFC 3339 with
//! milliseconds. Lines are 1-based and inclusive. All types are plain data; `rpc` names methods and
//! frames and is for `api`, `transport` and `client-sdk` alone.
//!
//! ```
//! use cairn_protocol::search::SearchParams;
//!
//! let query = SearchParams { k: 5, ..SearchParams::new("parse header") };
//! assert_eq!(serde_json::to_value(&query)?["k"], 5);
//! # Ok::<(), serde_json::Error>(())
//! ```
#![warn(missing_docs)]

pub mod approval;
pub mod background;
pub mod board;
pub mod calls;
pub mod changes;
pub mod command;
pub mod config;
pub mod content;
pub mod daemon;
pub mod envelope;
pub mod error;
pub mod event;
pub mod explore;
pub mod fleet;
pub mod git;
pub mod history;
pub mod id;
pub mod index;
pub mod lines;
pub mod location;
pub mod map;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod plugin;
pub mod prompt;
pub mod remote;
pub mod rpc;
pub mod sandbox;
pub mod schedule;
pub mod search;
pub mod session;
pub mod skill;
pub mod time;
pub mod tool;
pub mod trace;
pub mod trust;
pub mod turn;
pub mod unattended;
pub mod usage;

/// Protocol versions that this build supports, best first.
pub const PROTOCOL_VERSIONS: &[&str] = &["1"];
