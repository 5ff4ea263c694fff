//! `cairn config`: each setting with its value and source.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use cairn_client_sdk::{Client, is_root_locked};
use cairn_config::{DiskFiles, Row};
use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigValue},
    index::RootStatus,
    session::Empty,
};
use clap::Args;
use console::style;

use crate::{
    app::{App, current_dir},
    exit::{Failure, OK},
    mistake::nearest,
    render::output::{self, plain},
    scope,
};

/// Arguments of `cairn config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// Only this setting or section, as in 'listen.port' or 'listen'
    key: Option<String>,
    /// Print the JSON Schema of a config file
    #[arg(long, conflicts_with = "key")]
    schema: bool,
}

pub async fn run(app: &App<'_>, args: &ConfigArgs) -> Result<u8, Failure> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&cairn_config::schema()).unwrap_or_default();
        output::line(&schema)?;
        return Ok(OK);
    }
    show(app, args.key.as_deref()).await.map(|()| OK)
}

/// Runs `cairn reload`: makes the daemon read its files again.
pub async fn reload(app: &App<'_>) -> Result<u8, Failure> {
    let Some(client) = running_daemon(app).await? else {
        output::line("no daemon is running; the files are read when one starts")?;
        return Ok(OK);
    };
    let answer = client.config_reload(&Empty {}).await?;
    if app.globals.json {
        output::json(&serde_json::json!(answer))?;
        return Ok(OK);
    }
    for warning in &answer.warnings {
        app.info(&format!("warning: {}", plain(warning)));
    }
    output::line("the configuration was reloaded")?;
    if !answer.pending.is_empty() {
        output::line(&format!(
            "these keys take effect at the next start: {}",
            plain(&answer.pending.join(", "))
        ))?;
    }
    Ok(OK)
}

/// Makes a running daemon use changed files, and names the keys that wait for its next start.
pub async fn apply(app: &App<'_>) -> Result<u8, Failure> {
    let Some(client) = running_daemon(app).await? else { return Ok(OK) };
    let answer = client.config_reload(&Empty {}).await?;
    if answer.pending.is_empty() {
        app.info("the running daemon uses it");
    } else {
        let keys = plain(&answer.pending.join(", "));
        app.info(&format!("the running daemon uses {keys} after 'cairn stop'"));
    }
    Ok(OK)
}

/// Returns a client if a daemon runs.
pub async fn running_daemon(app: &App<'_>) -> Result<Option<Client>, Failure> {
    if !app.is_remote() && !is_root_locked(&app.data_root()?) {
        return Ok(None);
    }
    Ok(Some(app.connector().connect().await?))
}

/// Prints the effective settings, or those below `key`: of the running daemon, else of the files.
pub async fn show(app: &App<'_>, key: Option<&str>) -> Result<(), Failure> {
    let here = current_dir()?;
    let here = here.canonicalize().unwrap_or(here);
    let project = scope::project_root(&here, app.env.home.as_deref()).unwrap_or(here);
    let client = running_daemon(app).await?;
    let mut answer = match &client {
        Some(client) => effective(client, &project).await?,
        None => in_files(app, project)?,
    };
    let known: Vec<String> = answer.values.keys().cloned().collect();
    answer.values.retain(|name, _| matches_key(name, key));
    if answer.values.is_empty()
        && let Some(key) = key
    {
        return Err(Failure::with_reason(
            "path_not_found",
            format!("there is no setting '{}'", plain(key)),
        )
        .hint(match nearest(known.iter().map(String::as_str), key) {
            Some(name) => format!("did you mean '{name}'? 'cairn config' lists all settings"),
            None => "'cairn config' lists all settings".to_owned(),
        }));
    }
    if app.globals.json {
        let mut report = serde_json::json!(answer);
        report["daemon"] = client.is_some().into();
        output::json(&report)?;
        return Ok(());
    }
    for warning in &answer.warnings {
        app.info(&format!("warning: {}", plain(warning)));
    }
    if client.is_some() {
        let here = app.overrides()?.rows().iter().filter(|row| matches_key(&row.key, key));
        let other =
            here.filter(|row| answer.values.get(&row.key).is_none_or(|v| v.value != row.value));
        for row in other {
            let text = format!(
                "{} sets {} to {}, which the running daemon does not use",
                row.source, row.key, row.value
            );
            app.info(&format!("warning: {}", plain(&text)));
        }
    }
    if client.is_none() {
        app.info("no daemon is running: these are the values of the files");
    }
    let width = answer.values.keys().map(|key| key.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (key, row) in &answer.values {
        let value = plain(&row.value.to_string());
        let source = plain(&row.source);
        let source = if source == "default" { style(source).dim() } else { style(source).green() };
        let pending = row.pending.as_ref().map(|pending| {
            format!(
                "  {}",
                style(format!("{} at the next start", plain(&pending.to_string()))).yellow()
            )
        });
        let _infallible =
            writeln!(out, "{key:<width$}  {value}  {source}{}", pending.unwrap_or_default());
    }
    output::print(&out)?;
    Ok(())
}

/// Returns the daemon's effective settings in the root that contains `project`, or without a root.
async fn effective(client: &Client, project: &Path) -> Result<ConfigAnswer, Failure> {
    let roots = client.index_list(&Empty {}).await?.data;
    let contains_project = |root: &&RootStatus| project.starts_with(&root.path);
    let innermost = roots.iter().filter(contains_project).max_by_key(|root| root.path.len());
    let root = innermost.map(|root| root.root.to_string());
    Ok(client.config_get(&ConfigGetParams { root }).await?)
}

fn in_files(app: &App<'_>, project: PathBuf) -> Result<ConfigAnswer, Failure> {
    let inputs = app.host.config_inputs(&app.globals, Some(project));
    let loaded = cairn_config::load(&inputs, &DiskFiles)
        .map_err(|e| Failure::usage(plain_lines(&e.to_string())))?;
    let value = |row: Row| {
        let value = ConfigValue { value: row.value, source: row.source.to_string(), pending: None };
        (row.key, value)
    };
    let values = cairn_config::rows(&loaded).into_iter().map(value).collect();
    Ok(ConfigAnswer { values, warnings: loaded.warnings.iter().map(ToString::to_string).collect() })
}

fn matches_key(key: &str, prefix: Option<&str>) -> bool {
    let Some(prefix) = prefix else { return true };
    let parts = prefix.split('.').count();
    let head: Vec<&str> = key.split('.').take(parts).collect();
    head.len() == parts && cairn_config::is_same_key(&head.join("."), prefix)
}

fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
