//! Tests of the client against a daemon that misbehaves.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod calls;
mod fake;
mod follows;
mod starts;
