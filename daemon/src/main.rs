//! The binary `cairn`: a daemon and its client in one.

mod advertise;
mod compose;
mod doctor;
mod host;
mod instance;
mod lifecycle;
mod listen;
mod logging;
mod serve;
mod service;
mod settings;

/// Gives memory back to the system after a burst of indexing, which the system's own allocator mostly keeps.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cairn_cli::main(&host::Binary)
}
