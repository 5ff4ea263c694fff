//! `cairn config`: each setting, its value and where that comes from.

use std::fmt::Write as _;

use cairn_config::{DiskFiles, Row};
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

pub fn run(app: &App<'_>, args: &ConfigArgs) -> Result<u8, Failure> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&cairn_config::schema()).unwrap_or_default();
        output::line(&schema)?;
        return Ok(OK);
    }
    show(app, args.key.as_deref()).map(|()| OK)
}

/// Prints the settings, or those that `key` names.
pub fn show(app: &App<'_>, key: Option<&str>) -> Result<(), Failure> {
    let here = current_dir()?;
    let here = here.canonicalize().unwrap_or(here);
    let project = scope::project_of(&here, app.env.home.as_deref()).unwrap_or(here);
    let inputs = app.host.config_inputs(&app.globals, Some(project));
    let loaded =
        cairn_config::load(&inputs, &DiskFiles).map_err(|e| Failure::usage(plain_lines(&e.to_string())))?;
    let rows: Vec<Row> = cairn_config::rows(&loaded).into_iter().filter(|r| wanted(&r.key, key)).collect();
    if rows.is_empty()
        && let Some(key) = key
    {
        return Err(Failure::told("path_not_found", format!("there is no setting '{}'", plain(key)))
            .hint("'cairn config' lists them"));
    }
    if app.globals.json {
        let values: serde_json::Map<String, serde_json::Value> = rows
            .iter()
            .map(|r| (r.key.clone(), serde_json::json!({"value": r.value, "source": r.source.to_string()})))
            .collect();
        let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        output::json(&serde_json::json!({"values": values, "warnings": warnings}))?;
        return Ok(());
    }
    for warning in &loaded.warnings {
        app.remark(&format!("warning: {}", plain(&warning.to_string())));
    }
    let width = rows.iter().map(|r| r.key.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for row in &rows {
        let value = plain(&row.value.to_string());
        let source = row.source.to_string();
        let source = if source == "default" { style(source).dim() } else { style(source).green() };
        let _infallible = writeln!(out, "{:<width$}  {value}  {source}", row.key);
    }
    output::print(&out)?;
    Ok(())
}

fn wanted(key: &str, asked: Option<&str>) -> bool {
    asked
        .is_none_or(|asked| key == asked || key.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.')))
}

fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}
