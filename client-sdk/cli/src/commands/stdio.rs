//! `cairn stdio` and `cairn acp`: the daemon for programs that communicate in lines.

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
    /// After the end of the input, maximum seconds to wait for pending answers
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=86_400), conflicts_with = "follow")]
    linger: u64,
    /// After the end of the input, continue to print messages until interrupted
    #[arg(long)]
    follow: bool,
}

pub async fn run(app: &App<'_>, args: StdioArgs) -> Result<u8, Failure> {
    let linger = (!args.follow).then(|| Duration::from_secs(args.linger));
    bridge::run(app, Bridge { path: "/rpc", linger }).await
}

/// Time after the end of the editor's input in which a turn may still be answered.
const ACP_LINGER: Duration = Duration::from_secs(60);

/// Runs the command `cairn acp`.
pub async fn acp(app: &App<'_>) -> Result<u8, Failure> {
    bridge::run(app, Bridge { path: "/acp", linger: Some(ACP_LINGER) }).await
}
