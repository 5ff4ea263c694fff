//! `cairn stdio`: the daemon's method table for whoever starts a program and talks with it in lines.

use std::time::Duration;

use clap::Args;

use crate::{
    app::App,
    bridge::{self, Bridge},
    exit::Failure,
};

/// Arguments of `cairn stdio`.
#[derive(Debug, Clone, Copy, Args)]
pub struct StdioArgs {
    /// After the input's end, wait so long at most for what is still to be answered
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=86_400), conflicts_with = "follow")]
    linger: u64,
    /// After the input's end, go on printing what the daemon tells until it is interrupted
    #[arg(long)]
    follow: bool,
}

pub async fn run(app: &App<'_>, args: StdioArgs) -> Result<u8, Failure> {
    let linger = (!args.follow).then(|| Duration::from_secs(args.linger));
    bridge::run(app, Bridge { path: "/rpc", linger }).await
}
