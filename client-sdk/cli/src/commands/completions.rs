//! `cairn completions`: shell completion scripts.

use clap::{Args, CommandFactory};

use crate::{
    args::Cli,
    exit::{Failure, OK},
};

/// Arguments of `cairn completions`.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cairn", &mut text);
    crate::render::output::print(&String::from_utf8_lossy(&text))?;
    Ok(OK)
}
