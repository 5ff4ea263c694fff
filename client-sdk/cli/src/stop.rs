//! `cairn stop`: asks the daemon to leave, and waits until it has.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cairn_client_sdk::{ClientError, is_held};
use cairn_protocol::{
    id::InstanceId,
    location::{DaemonFile, DataRoot},
    session::Empty,
};

use crate::{
    app::App,
    exit::{Failure, OK},
    output,
};

/// How long a daemon may take to leave: running work has `daemon.drainSeconds` (10 by default) to end.
const WAIT: Duration = Duration::from_secs(60);
/// Pause between looks at its lock.
const LOOK: Duration = Duration::from_millis(20);

pub async fn run(app: &App<'_>) -> Result<u8, Failure> {
    if app.is_remote() {
        match app.connector().connect().await?.daemon_stop(&Empty {}).await {
            Ok(_) | Err(ClientError::Closed(_)) => {
                return told(app, true, "the daemon has been asked to stop");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let root = app.data_root()?;
    let held = is_held(&root);
    let mut stopped = None;
    match app.connector().connect().await {
        Ok(client) => {
            stopped = Some(client.server().server.instance_id.clone());
            // It may close the connection before its answer is read.
            match client.daemon_stop(&Empty {}).await {
                Ok(_) | Err(ClientError::Closed(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(_) if !held => return told(app, false, "no daemon runs"),
        // One that cannot be talked to, of another version perhaps, understands a signal.
        Err(error) => signal(&root).map_err(|why| Failure::from(error).hint(why))?,
    }
    let until = Instant::now() + WAIT;
    while is_held(&root) {
        // Another client may have started the next one already.
        if stopped.is_some() && instance(&root).is_some_and(|now| Some(now) != stopped) {
            break;
        }
        if Instant::now() >= until {
            let text = format!("the daemon has not left within {} s", WAIT.as_secs());
            return Err(Failure::failed(text).hint(format!("see {}", root.log_file().display())));
        }
        tokio::time::sleep(LOOK).await;
    }
    told(app, true, "the daemon has stopped")
}

fn told(app: &App<'_>, stopped: bool, text: &str) -> Result<u8, Failure> {
    if app.globals.json {
        output::json(&serde_json::json!({"stopped": stopped}))?;
    } else {
        output::line(text)?;
    }
    Ok(OK)
}

/// The daemon that has left its address.
fn instance(root: &DataRoot) -> Option<InstanceId> {
    let text = std::fs::read_to_string(root.daemon_json()).ok()?;
    serde_json::from_str::<DaemonFile>(&text).ok().map(|file| file.instance_id)
}

/// Ends the process that `daemon.json` names; its lock is held, so it is the daemon.
fn signal(root: &DataRoot) -> Result<(), String> {
    let text = std::fs::read_to_string(root.daemon_json())
        .map_err(|e| format!("{}: {e}", root.daemon_json().display()))?;
    let file: DaemonFile =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", root.daemon_json().display()))?;
    let done = Command::new("kill")
        .args(["-TERM", &file.pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("process {} could not be told to end", file.pid)),
    }
}
