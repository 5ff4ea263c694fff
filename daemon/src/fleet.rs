//! The daemon's part in a fleet, if the user's configuration names a broker.

use std::sync::Arc;

use cairn_api::Api;
use cairn_config::{Config, FleetConfig, FleetMirror};
use cairn_fleet::{Fleet, LEASE, Login, Mirrored, Settings};
use cairn_protocol::{fleet::is_name, id::InstanceId, location::DataRoot};

/// The daemon as a member of a fleet, if it is one.
pub struct Member(Option<Arc<Fleet>>);

impl Member {
    /// Leaves the fleet: active runs of pools stop and are offered to others.
    pub async fn close(&self) {
        if let Some(fleet) = &self.0 {
            fleet.close().await;
        }
    }
}

/// Starts to take part. A daemon that cannot still serves its own machine.
pub async fn start(
    config: &Config,
    root: &DataRoot,
    api: &Arc<Api>,
    instance: &InstanceId,
) -> Member {
    let Some(server) = config.fleet.server.clone() else { return Member(None) };
    let started = match settings(&config.fleet, server, config.resources.max_runs) {
        Ok(settings) => {
            Fleet::start(settings, Arc::clone(api), root.path(), instance.as_str()).await
        }
        Err(reason) => Err(reason),
    };
    match started {
        Ok(fleet) => {
            api.set_fleet(fleet.clone());
            Member(Some(fleet))
        }
        Err(reason) => {
            tracing::error!(%reason, "this daemon takes no part in the fleet");
            Member(None)
        }
    }
}

fn settings(config: &FleetConfig, server: String, max_runs: u32) -> Result<Settings, String> {
    let login = match (&config.credentials_file, &config.user, &config.password_file) {
        (Some(path), _, _) => Login::Credentials(path.clone()),
        (None, Some(user), Some(path)) => {
            let password = cairn_llm::read_key_file(path).map_err(|error| error.to_string())?;
            Login::Password { user: user.clone(), password: password.expose().to_owned() }
        }
        _ => Login::None,
    };
    let mirror = match config.mirror {
        FleetMirror::None => Mirrored::None,
        FleetMirror::Pools => Mirrored::Pools,
        FleetMirror::All => Mirrored::All,
    };
    Ok(Settings {
        server,
        login,
        ca_file: config.ca_file.clone(),
        name: config.name.clone().unwrap_or_else(host_name),
        pools: config.pools.clone(),
        mirror,
        mirror_folders: config.mirror_folders.clone(),
        blobs: config.blobs,
        replicas: config.replicas as usize,
        clone_from: config.clone_from.clone(),
        max_runs,
        lease: LEASE,
    })
}

/// Returns the first part of this machine's name, of the characters that a name may have.
fn host_name() -> String {
    let output = std::process::Command::new("uname").arg("-n").output();
    let name = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let name = name.unwrap_or_default();
    let first = name.split('.').next().unwrap_or_default();
    let name: String = first
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' })
        .take(64)
        .collect();
    if is_name(&name) { name } else { "cairn".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_machine_is_a_name_of_the_fleet() {
        assert!(is_name(&host_name()));
    }
}
