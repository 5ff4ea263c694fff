//! One binary of integration tests: the house rules, and the daemon as a stranger meets it.

mod contents;
mod crash;
mod foreign;
mod fresh;
mod kinds;
mod sealed;
mod tidy;
mod wire;
