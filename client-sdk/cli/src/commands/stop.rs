//! `cairn stop`: stops the daemon and waits for its exit.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cairn_client_sdk::{ClientError, is_root_locked};
use cairn_protocol::{
    id::InstanceId,
    location::{DaemonFile, DataRoot},
    session::Empty,
};

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output,
};

/// Time limit of the exit: running work may take `daemon.drainSeconds` (10 by default).
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of polling its lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub async fn run(app: &App<'_>) -> Result<u8, Failure> {
    if app.is_remote() {
        match app.connector().connect().await?.daemon_stop(&Empty {}).await {
            Ok(_) | Err(ClientError::Closed(_)) => {
                return report(app, true, "the daemon has been asked to stop");
            }
            Err(error) => return Err(error.into()),
        }
    }
    match stop(app).await? {
        true => report(app, true, "the daemon has stopped"),
        false => report(app, false, "no daemon is running"),
    }
}

/// Stops the daemon of this machine and waits until it has released its data root. Returns false if
/// none is running.
pub async fn stop(app: &App<'_>) -> Result<bool, Failure> {
    let root = app.data_root()?;
    let is_locked = is_root_locked(&root);
    let mut stopped = None;
    match app.connector().connect().await {
        Ok(client) => {
            stopped = Some(client.server().server.instance_id.clone());
            // The daemon may close the connection before its answer is read.
            match client.daemon_stop(&Empty {}).await {
                Ok(_) | Err(ClientError::Closed(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(_) if !is_locked => return Ok(false),
        // A daemon that cannot be called, perhaps of another version, understands a signal.
        Err(error) => signal(&root).map_err(|why| Failure::from(error).hint(why))?,
    }
    let until = Instant::now() + EXIT_TIMEOUT;
    while is_root_locked(&root) {
        // Another client may have started the next one already.
        if stopped.is_some() && instance(&root).is_some_and(|now| Some(now) != stopped) {
            break;
        }
        if Instant::now() >= until {
            let text = format!("the daemon has not stopped within {} s", EXIT_TIMEOUT.as_secs());
            return Err(Failure::failed(text).hint(format!("see {}", root.log_file().display())));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(true)
}

fn report(app: &App<'_>, stopped: bool, text: &str) -> Result<u8, Failure> {
    if app.globals.json {
        output::json(&serde_json::json!({"stopped": stopped}))?;
    } else {
        output::line(text)?;
    }
    Ok(OK)
}

/// Returns the id of the daemon in `daemon.json`.
fn instance(root: &DataRoot) -> Option<InstanceId> {
    let text = std::fs::read_to_string(root.daemon_json()).ok()?;
    serde_json::from_str::<DaemonFile>(&text).ok().map(|file| file.instance_id)
}

/// Terminates the process in `daemon.json`; because its lock is taken, it is the daemon.
fn signal(root: &DataRoot) -> Result<(), String> {
    let text = std::fs::read_to_string(root.daemon_json())
        .map_err(|e| format!("{}: {e}", root.daemon_json().display()))?;
    let file: DaemonFile = serde_json::from_str(&text)
        .map_err(|e| format!("{}: {e}", root.daemon_json().display()))?;
    let done = Command::new("kill")
        .args(["-TERM", &file.pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("process {} could not be signalled to stop", file.pid)),
    }
}
