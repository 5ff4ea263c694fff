//! Typed client of a Cairn daemon: finds it, starts it if necessary, calls its methods, and follows
//! sessions without gaps.
//!
//! ```no_run
//! use cairn_client_sdk::{ClientError, Connector};
//! use cairn_protocol::{location::Env, search::{SearchAnswer, SearchParams}};
//!
//! # async fn search() -> Result<(), ClientError> {
//! let cairn = Connector::local(Env::from_process()).connect().await?;
//! let query = SearchParams::new("where are requests retried");
//! let answer: SearchAnswer = cairn.call("search.hybrid", &query).await?;
//! for item in answer.items {
//!     println!("{}:{}-{}", item.path, item.start_line, item.end_line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The example `explore` starts an explore and follows its events.
#![warn(missing_docs)]

mod client;
mod connector;
mod discover;
mod dispatch;
mod error;
mod events;
mod follow;
mod hosts;
mod lines;
mod methods;
mod pair;
mod socket;
mod start;
mod wire;

pub use cairn_pairing::exchange::NAME as DEVICE_NAME;
pub use cairn_protocol::rpc::Frame;
pub use client::{CALL_TIMEOUT, Client};
pub use connector::{Connector, Target, Tls};
pub use discover::{DiscoveredDaemon, MIN_DISCOVERY_TIME, discover};
pub use error::ClientError;
pub use events::{EventStream, Item, Notice, Notices, Record};
pub use follow::Follow;
pub use hosts::{Hosts, KnownHost};
pub use lines::{LinePart, LineStream};
pub use pair::{client_key, key_at, pair};
pub use start::{ALREADY_RUNNING, Starter, ensure_daemon, is_root_locked};
pub use wire::{WireReceiver, WireSender};
