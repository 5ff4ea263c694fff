//! `cairn pair`: shows a code on the daemon's machine, and asks for it on the other one.

use std::{
    io::{BufRead as _, Write as _},
    time::Duration,
};

use cairn_client_sdk::{Client, Hosts};
use cairn_protocol::{
    remote::{PairBeginParams, PairOffer, PairState, Right},
    session::Empty,
};
use clap::{Args, ValueEnum};

use crate::{
    app::App,
    commands::clients,
    exit::{Failure, INTERRUPTED, OK},
    render::output::{self, plain},
};

/// Interval of polling the state of the code.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "\
Examples:
  cairn serve --lan 0.0.0.0                 listen for paired devices (or listen.lan in the config)
  cairn pair                                show a code for a device that may observe, prompt and approve
  cairn pair --rights observe,approve       for one with only these rights
  cairn pair den.local                      on the other machine: enter the code, and trust den.local's daemon
  cairn --host den explore                  any command, there
  cairn pair --forget den                   stop trusting it ('cairn clients revoke' does the same on the daemon's side)

A code is good for one device, three attempts and two minutes. It is never sent: both machines prove to each other that
they know it, over their connection, so that no one in between can learn it or impersonate either of them.
Rights: observe (look), prompt (start work), approve (answer approvals), admin (change the daemon).";

/// A right, as typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RightName {
    Observe,
    Prompt,
    Approve,
    Admin,
}

/// Arguments of `cairn pair`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct PairArgs {
    /// The machine to pair with; absent to let a device use this machine's daemon
    #[arg(value_name = "HOST[:PORT]")]
    machine: Option<String>,
    /// Rights of the device
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        conflicts_with = "machine",
        default_value = "observe,prompt,approve"
    )]
    rights: Vec<RightName>,
    /// The device's name: here, its name in this daemon's list; with a host, this machine's name
    /// there
    #[arg(long)]
    name: Option<String>,
    /// The code that the other machine shows, instead of a prompt for it
    #[arg(long, requires = "machine")]
    code: Option<String>,
    /// The local name of the other machine
    #[arg(long = "as", value_name = "NAME", requires = "machine")]
    as_name: Option<String>,
    /// Stop trusting a machine
    #[arg(long, value_name = "HOST", conflicts_with_all = ["machine", "name"])]
    forget: Option<String>,
}

pub async fn run(app: &App<'_>, args: PairArgs) -> Result<u8, Failure> {
    if let Some(host) = &args.forget {
        let forgotten = Hosts::of(&app.data_root()?).forget(host)?;
        output::line(&format!("{} at {} is forgotten", plain(&forgotten.name), forgotten.address))?;
        return Ok(OK);
    }
    match &args.machine {
        Some(machine) => join(app, &args, machine).await,
        None => offer(app, args).await,
    }
}

/// Shows a code and waits for the device.
async fn offer(app: &App<'_>, args: PairArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let rights = args.rights.iter().map(|right| match right {
        RightName::Observe => Right::Observe,
        RightName::Prompt => Right::Prompt,
        RightName::Approve => Right::Approve,
        RightName::Admin => Right::Admin,
    });
    let params = PairBeginParams { rights: rights.collect(), name: args.name };
    let offer = client.pair_begin(&params).await?;
    if app.globals.json {
        output::json(&offer)?;
    } else {
        output::print(&offer_text(&offer, &params.rights))?;
    }
    let outcome = tokio::select! {
        outcome = wait(app, &client) => outcome,
        _ = tokio::signal::ctrl_c() => {
            client.pair_cancel(&Empty {}).await?;
            app.info("cancelled; the code is no longer valid");
            return Ok(INTERRUPTED);
        }
    };
    outcome.map(|()| OK)
}

fn offer_text(offer: &PairOffer, rights: &[Right]) -> String {
    let at = offer.addresses.first().map_or("HOST", |a| a.as_str());
    format!(
        "code  {}\n\non the other machine:  cairn pair {}\nthis daemon's key    {}\nthe device may       {}\n",
        offer.code,
        plain(at),
        offer.key,
        clients::rights(rights)
    )
}

async fn wait(app: &App<'_>, client: &Client) -> Result<(), Failure> {
    let mut last_tries = None;
    loop {
        let status = client.pair_status(&Empty {}).await?;
        match status.state {
            PairState::Waiting => {
                if last_tries.is_some_and(|last_tries| last_tries != status.tries_left) {
                    app.info(&format!("a wrong attempt; {} left", status.tries_left));
                }
                last_tries = Some(status.tries_left);
            }
            PairState::Paired => {
                // The device may not be in the list yet when the code has just been used.
                let Some(device) = status.device else {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    continue;
                };
                if app.globals.json {
                    output::json(&device)?;
                } else {
                    output::line(&format!(
                        "paired with {} (key {})",
                        plain(&device.name),
                        plain(&device.key)
                    ))?;
                }
                return Ok(());
            }
            PairState::Void => {
                return Err(Failure::with_reason(
                    "pairing_refused",
                    "three wrong attempts: the code is no longer valid".into(),
                ));
            }
            PairState::Expired => {
                return Err(Failure::with_reason(
                    "pairing_refused",
                    "no device connected: the code has expired".into(),
                ));
            }
            PairState::None | PairState::Cancelled => {
                return Err(Failure::with_reason(
                    "pairing_refused",
                    "the code was cancelled".into(),
                ));
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Asks for the code and pairs.
async fn join(app: &App<'_>, args: &PairArgs, machine: &str) -> Result<u8, Failure> {
    app.require_local("pair HOST")?;
    let root = app.data_root()?;
    let key = cairn_client_sdk::key_at(&root, machine).await?;
    let code = match &args.code {
        Some(code) => code.clone(),
        None => {
            app.info(&format!("{} has the key {key}", plain(machine)));
            ask_for_code()?
        }
    };
    let me = args.name.clone().unwrap_or_else(own_name);
    let known =
        cairn_client_sdk::pair(&root, machine, Some(key), &code, &me, args.as_name.as_deref())
            .await?;
    if app.globals.json {
        output::json(&known)?;
    } else {
        let name = plain(&known.name);
        output::print(&format!(
            "paired with {name} at {} (key {})\nthis machine may {} there: cairn --host {name} status\n",
            known.address,
            known.key.hint(),
            clients::rights(&known.rights)
        ))?;
    }
    Ok(OK)
}

fn ask_for_code() -> Result<String, Failure> {
    let mut err = std::io::stderr();
    let unheard = |e: std::io::Error| Failure::failed(format!("the code cannot be requested: {e}"));
    err.write_all(b"code: ").and_then(|()| err.flush()).map_err(unheard)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(unheard)?;
    Ok(line.trim().to_owned())
}

/// Returns this machine's name.
fn own_name() -> String {
    let name = std::process::Command::new("uname").arg("-n").output().ok();
    let name =
        name.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
    let name: String = name.chars().take(cairn_client_sdk::DEVICE_NAME).collect();
    if name.is_empty() { "a machine".into() } else { name }
}
