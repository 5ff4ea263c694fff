//! `cairn completions`: shell completion scripts.

use clap::Args;

use crate::{
    exit::{Failure, OK},
    help,
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
    clap_complete::generate(args.shell, &mut help::command(), "cairn", &mut text);
    crate::render::output::print(&String::from_utf8_lossy(&text))?;
    Ok(OK)
}
