//! One binary of integration tests: the house rules, and the daemon as a stranger meets it.

mod sealed;
mod tidy;
mod wire;
