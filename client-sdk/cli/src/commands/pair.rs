//! `cairn pair`: shows a code on the daemon's machine, and asks for it on the other one.

use std::{
    io::{BufRead as _, Write as _},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use cairn_client_sdk::{Client, Hosts};
use cairn_protocol::{
    remote::{PairBeginParams, PairOffer, PairState, Right},
    session::Empty,
};
use clap::{Args, ValueEnum};
use qrcode::render::unicode::Dense1x2;

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
  cairn pair                                show a code for a device that may observe, prompt and approve,
                                            and a QR code that opens the viewer on a phone
  cairn pair --rights observe,approve       for one with only these rights
  cairn pair den.local                      on the other machine: enter the code, and trust den.local's daemon
  cairn --host den explore                  any command, there
  cairn pair --forget den                   stop trusting it ('cairn clients revoke' does the same on the daemon's side)

A code is good for one device, three attempts and two minutes. It is never sent: both machines prove to each other that
they know it, over their connection, so that no one in between can learn it or impersonate either of them.
A browser cannot check a pinned key. It warns about the certificate, once: compare its SHA-256 fingerprint with the one shown.
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
        if let Some(page) = page_text(&offer, own_address()) {
            output::print(&page)?;
        }
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

/// Returns the link of the viewer for a phone or another browser, also as a QR code.
fn page_text(offer: &PairOffer, own: Option<IpAddr>) -> Option<String> {
    let (path, certificate) = (offer.page.as_deref()?, offer.certificate.as_deref()?);
    let url = format!("https://{}{path}", reachable_address(offer.addresses.first()?, own)?);
    // The weakest correction keeps the code small: a screen is neither dirty nor torn.
    let code = qrcode::QrCode::with_error_correction_level(url.as_bytes(), qrcode::EcLevel::L);
    let image = code.ok()?.render::<Dense1x2>().build();
    Some(format!(
        "\nin a browser, on a phone or elsewhere:\n\n{image}\n{}\ncertificate (SHA-256) {}\n",
        plain(&url),
        plain(certificate)
    ))
}

/// Returns an address that another machine can connect to; `None` when the listener is only for
/// this machine's own addresses that cannot be found out.
fn reachable_address(listener: &str, own: Option<IpAddr>) -> Option<SocketAddr> {
    let mut address: SocketAddr = listener.parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(own?);
    }
    Some(address)
}

/// Returns this machine's address towards other networks. No packet is sent: connecting a UDP
/// socket only chooses a route, here to an address that is reserved for documentation.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((std::net::Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(address: &str) -> PairOffer {
        PairOffer {
            code: "1234 5678".into(),
            expires_at: cairn_protocol::time::Timestamp(0),
            tries: 3,
            addresses: vec![address.into()],
            key: "k".into(),
            page: Some("/viewer#pair=0123456789abcdef0123456789abcdef".into()),
            certificate: Some("AB:CD".into()),
        }
    }

    #[test]
    fn link_for_a_browser_names_a_reachable_address() {
        let own: Option<IpAddr> = Some([192, 168, 0, 7].into());
        let text = page_text(&offer("0.0.0.0:7434"), own).unwrap();
        let url = "https://192.168.0.7:7434/viewer#pair=0123456789abcdef0123456789abcdef";
        assert!(text.contains(url) && text.contains("AB:CD"), "{text}");
        let text = page_text(&offer("10.0.0.9:7434"), own).unwrap();
        assert!(text.contains("https://10.0.0.9:7434/viewer#pair="), "{text}");
        // The code fits a terminal of 80 columns, and 40 lines.
        let image: Vec<&str> = text.lines().filter(|line| line.contains(['█', '▀', '▄'])).collect();
        assert!((10..40).contains(&image.len()), "{text}");
        assert!(image.iter().all(|line| line.chars().count() <= 60), "{text}");
        assert!(page_text(&offer("0.0.0.0:7434"), None).is_none());
        // A daemon of an earlier version offers no page.
        let earlier = PairOffer { page: None, ..offer("10.0.0.9:7434") };
        assert!(page_text(&earlier, own).is_none());
    }
}
