//! `cairn man`: the manual pages of all commands.

use std::path::PathBuf;

use clap::Args;

use crate::{
    exit::{Failure, OK},
    help,
    render::output,
};

/// Arguments of `cairn man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The folder for the pages, which is created if it is missing
    folder: PathBuf,
}

pub fn run(args: &ManArgs) -> Result<u8, Failure> {
    let failed = |e: std::io::Error| Failure::path(&args.folder, &e).hint("name a folder");
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    let mut command = help::command();
    // The names of nested commands, such as cairn-trace-list, are complete after this.
    command.build();
    clap_mangen::generate_to(command, &args.folder).map_err(failed)?;
    output::line(&format!("manual pages in {}", args.folder.display()))?;
    Ok(OK)
}
