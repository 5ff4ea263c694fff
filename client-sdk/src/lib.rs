//! Typed client of a Cairn daemon: finds it, starts it if need be, calls it, and follows sessions without a gap.

mod client;
mod connector;
mod discover;
mod dispatch;
mod error;
mod events;
mod follow;
mod methods;
mod socket;
mod start;
mod wire;

pub use client::{CALL_TIMEOUT, Client};
pub use connector::{Connector, Target};
pub use discover::{Found, SHORTEST, discover};
pub use error::ClientError;
pub use events::{EventStream, Item, Notice, Notices, Record};
pub use follow::Follow;
pub use start::{ALREADY_RUNNING, Starter, ensure_daemon, is_held};
pub use wire::{WireReceiver, WireSender};
