//! Tasks of the project that cargo itself has no command for: `cargo xtask dist` builds the packages of a release.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command of developers prints")]

mod content;
mod dist;
mod elf;
mod files;
mod licences;
mod portable;
mod process;
mod project;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the program for old systems, and every package of it
    Dist(dist::DistArgs),
}

fn main() -> ExitCode {
    let Task::Dist(args) = Cli::parse().command;
    match dist::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
