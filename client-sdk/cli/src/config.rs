//! `cairn config`: each setting, its value and where that comes from.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use cairn_client_sdk::{Client, is_held};
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
    output::{self, plain},
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

/// `cairn reload`: has the daemon read its files again.
pub async fn reload(app: &App<'_>) -> Result<u8, Failure> {
    let Some(client) = running(app).await? else {
        output::line("no daemon runs; the files are read when one starts")?;
        return Ok(OK);
    };
    let answer = client.config_reload(&Empty {}).await?;
    if app.globals.json {
        output::json(&serde_json::json!(answer))?;
        return Ok(OK);
    }
    for warning in &answer.warnings {
        app.remark(&format!("warning: {}", plain(warning)));
    }
    output::line("the configuration is in force")?;
    if !answer.pending.is_empty() {
        output::line(&format!(
            "these keys take effect at the next start: {}",
            plain(&answer.pending.join(", "))
        ))?;
    }
    Ok(OK)
}

/// The daemon, when one runs.
async fn running(app: &App<'_>) -> Result<Option<Client>, Failure> {
    if !app.is_remote() && !is_held(&app.data_root()?) {
        return Ok(None);
    }
    Ok(Some(app.connector().connect().await?))
}

/// Prints the settings in force, or those that `key` names: as the daemon has them where one runs, else as the files have them.
pub async fn show(app: &App<'_>, key: Option<&str>) -> Result<(), Failure> {
    let here = current_dir()?;
    let here = here.canonicalize().unwrap_or(here);
    let project = scope::project_of(&here, app.env.home.as_deref()).unwrap_or(here);
    let client = running(app).await?;
    let mut answer = match &client {
        Some(client) => in_force(client, &project).await?,
        None => in_files(app, project)?,
    };
    answer.values.retain(|name, _| wanted(name, key));
    if answer.values.is_empty()
        && let Some(key) = key
    {
        return Err(Failure::told("path_not_found", format!("there is no setting '{}'", plain(key)))
            .hint("'cairn config' lists them"));
    }
    if app.globals.json {
        let mut told = serde_json::json!(answer);
        told["daemon"] = client.is_some().into();
        output::json(&told)?;
        return Ok(());
    }
    for warning in &answer.warnings {
        app.remark(&format!("warning: {}", plain(warning)));
    }
    if client.is_some() {
        let here = app.overrides()?.rows().iter().filter(|row| wanted(&row.key, key));
        let other = here.filter(|row| answer.values.get(&row.key).is_none_or(|v| v.value != row.value));
        for row in other {
            let text = format!(
                "{} sets {} to {}, which the running daemon does not use",
                row.source, row.key, row.value
            );
            app.remark(&format!("warning: {}", plain(&text)));
        }
    }
    if client.is_none() {
        app.remark("no daemon runs: these are the values of the files");
    }
    let width = answer.values.keys().map(|key| key.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (key, row) in &answer.values {
        let value = plain(&row.value.to_string());
        let source = plain(&row.source);
        let source = if source == "default" { style(source).dim() } else { style(source).green() };
        let pending = row.pending.as_ref().map(|pending| {
            format!("  {}", style(format!("{} at the next start", plain(&pending.to_string()))).yellow())
        });
        let _infallible = writeln!(out, "{key:<width$}  {value}  {source}{}", pending.unwrap_or_default());
    }
    output::print(&out)?;
    Ok(())
}

/// The settings that the daemon has in force in the root that holds `project`, or without one.
async fn in_force(client: &Client, project: &Path) -> Result<ConfigAnswer, Failure> {
    let roots = client.index_list(&Empty {}).await?.data;
    let holds = |root: &&RootStatus| project.starts_with(&root.path);
    let innermost = roots.iter().filter(holds).max_by_key(|root| root.path.len());
    let root = innermost.map(|root| root.root.to_string());
    Ok(client.config_get(&ConfigGetParams { root }).await?)
}

fn in_files(app: &App<'_>, project: PathBuf) -> Result<ConfigAnswer, Failure> {
    let inputs = app.host.config_inputs(&app.globals, Some(project));
    let loaded =
        cairn_config::load(&inputs, &DiskFiles).map_err(|e| Failure::usage(plain_lines(&e.to_string())))?;
    let value = |row: Row| {
        let value = ConfigValue { value: row.value, source: row.source.to_string(), pending: None };
        (row.key, value)
    };
    let values = cairn_config::rows(&loaded).into_iter().map(value).collect();
    Ok(ConfigAnswer { values, warnings: loaded.warnings.iter().map(ToString::to_string).collect() })
}

fn wanted(key: &str, asked: Option<&str>) -> bool {
    asked
        .is_none_or(|asked| key == asked || key.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.')))
}

fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
