//! The client against a daemon that is made to misbehave.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod calls;
mod fake;
mod follows;
mod starts;
