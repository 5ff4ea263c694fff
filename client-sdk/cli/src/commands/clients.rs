//! `cairn clients`: the devices that may use this daemon.

use std::fmt::Write as _;

use cairn_client_sdk::Client;
use cairn_protocol::{
    remote::{Device, DeviceRef, Right},
    session::{Empty, Page},
};
use clap::{Args, Subcommand};

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
};

/// Arguments of `cairn clients`.
#[derive(Debug, Clone, Args)]
pub struct ClientsArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// The paired devices
    List,
    /// Remove a device; its connections are closed at once
    Revoke {
        /// The device's id or name
        device: String,
    },
}

pub async fn run(app: &App<'_>, args: ClientsArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    match args.action {
        None | Some(Action::List) => {
            if let Some(page) =
                app.answer::<Page<Device>>(&client, "client.list", &Empty {}).await?
            {
                if page.data.is_empty() {
                    app.info("no device is paired; 'cairn pair' pairs one");
                }
                output::print(&table(&page.data))?;
            }
        }
        Some(Action::Revoke { device }) => revoke(app, &client, &device).await?,
    }
    Ok(OK)
}

async fn revoke(app: &App<'_>, client: &Client, name_or_id: &str) -> Result<(), Failure> {
    let all = client.client_list(&Empty {}).await?.data;
    let matching: Vec<&Device> =
        all.iter().filter(|d| d.id.as_str() == name_or_id || d.name == name_or_id).collect();
    let device = match matching.as_slice() {
        [one] => *one,
        [] => {
            return Err(Failure::with_reason(
                "device_not_found",
                format!("no device is named {}", plain(name_or_id)),
            )
            .hint("'cairn clients' lists them"));
        }
        _ => {
            return Err(Failure::usage(format!(
                "several devices are named {}: specify the id",
                plain(name_or_id)
            )));
        }
    };
    let params = DeviceRef { id: device.id.clone() };
    if app.answer::<Empty>(client, "client.revoke", &params).await?.is_some() {
        output::line(&format!("{} may no longer connect", plain(&device.name)))?;
    }
    Ok(())
}

/// Renders rights for people.
pub fn rights(rights: &[Right]) -> String {
    let names: Vec<&str> = rights.iter().map(|r| r.as_str()).collect();
    names.join(", ")
}

fn table(all: &[Device]) -> String {
    let width = all.iter().map(|d| plain(&d.name).chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for device in all {
        let open = match device.connections {
            0 => String::new(),
            1 => ", connected".to_owned(),
            n => format!(", {n} connections"),
        };
        let name = plain(&device.name);
        let rights = rights(&device.rights);
        let _infallible = writeln!(
            out,
            "{name:<width$}  {}  key {}  {rights}  since {}{open}",
            device.id,
            device.key.get(..8).unwrap_or_default(),
            device.paired_at
        );
    }
    out
}
