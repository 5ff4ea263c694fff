//! The engine with an agent whose turns are small programs: order, final records, interruptions,
//! many seeded schedules.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a schedule that fails is named by its seed"
)]

mod compress;
mod direct;
mod drain;
mod history;
mod misuse;
mod order;
mod roots;
mod schedules;
mod stage;
mod unattended;
