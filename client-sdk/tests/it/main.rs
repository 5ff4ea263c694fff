//! The client against a daemon that is made to misbehave.

mod calls;
mod fake;
mod follows;
mod starts;
