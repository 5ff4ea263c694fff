//! `cairn models`: the model providers and their models.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use cairn_client_sdk::Client;
use cairn_model_presets::Presets;
use cairn_protocol::{
    model::{ModelInfo, ModelPrice},
    session::{Empty, Page},
    time::Timestamp,
    turn::{ModelListParams, ProviderInfo},
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    commands::config::running_daemon,
    exit::{Failure, OK},
    render::output::{self, bytes, number, plain},
};

/// Characters of a date in a timestamp.
const DATE: usize = 10;

const EXAMPLES: &str = "\
Examples:
  cairn models              the providers, and the models of the configured one
  cairn models anthropic    the models of one provider
  cairn models --update model_prices_and_context_window.json
                            take windows, prices and abilities from a newer table of litellm

Exit codes: 0 done, 1 the provider cannot be reached, 2 invalid usage, 3 no such provider, 4 no daemon.";

/// Arguments of `cairn models`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ModelsArgs {
    /// Only the models of this provider
    provider: Option<String>,
    /// Take facts about models (windows, prices, abilities) from FILE: litellm's table of models, or
    /// presets
    #[arg(long, value_name = "FILE", conflicts_with = "provider")]
    update: Option<PathBuf>,
}

pub async fn run(app: &App<'_>, args: ModelsArgs) -> Result<u8, Failure> {
    if let Some(file) = &args.update {
        return update(app, file).await;
    }
    let client = app.connect().await?;
    if args.provider.is_some() {
        return list(app, &client, args.provider).await;
    }
    let known = client.provider_list(&Empty {}).await?.data;
    let offered = client.model_list(&ModelListParams::default()).await;
    if app.globals.json {
        let (models, error) = match &offered {
            Ok(page) => (page.data.clone(), None),
            Err(error) => (vec![], Some(error.to_string())),
        };
        output::json(
            &serde_json::json!({"providers": known, "models": models, "modelsError": error}),
        )?;
        return Ok(OK);
    }
    output::print(&providers(&known))?;
    // If the configured provider is not running, that is worth showing: the table lists the others.
    match offered {
        Ok(page) => output::print(&format!("\n{}", table(&page.data)))?,
        Err(error) => app.warn(&error.into()),
    }
    Ok(OK)
}

/// Prints the models of a provider; of the configured one if none is given.
pub async fn list(app: &App<'_>, client: &Client, provider: Option<String>) -> Result<u8, Failure> {
    let params = ModelListParams { provider };
    if let Some(page) = app.answer::<Page<ModelInfo>>(client, "model.list", &params).await? {
        output::print(&table(&page.data))?;
    }
    Ok(OK)
}

/// Maximum bytes of a table of models.
const MAX_TABLE: u64 = 64 * 1024 * 1024;

/// Replaces the presets of the data folder by those of `file`. A daemon that runs reads them at once.
async fn update(app: &App<'_>, file: &Path) -> Result<u8, Failure> {
    app.require_local("models --update")?;
    let unreadable = |error: std::io::Error| Failure::path(file, &error);
    let about = std::fs::metadata(file).map_err(unreadable)?;
    if about.len() > MAX_TABLE {
        let text = format!("{} has more than 64 MiB", file.display());
        return Err(Failure::usage(text));
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let age = about.modified().ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
    let age = i64::try_from(age.as_millis()).unwrap_or(0);
    let changed = Timestamp(Timestamp::now().0.saturating_sub(age));
    let date: String = changed.to_string().chars().take(DATE).collect();
    let presets = Presets::import(&text, &name, &date)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let target = app.data_root()?.presets_file();
    presets.write(&target).map_err(|error| Failure::path(&target, &error))?;
    if let Some(client) = running_daemon(app).await? {
        client.config_reload(&Empty {}).await?;
    }
    if app.globals.json {
        let report = serde_json::json!({
            "file": target, "models": presets.len(), "source": presets.source, "date": presets.date,
        });
        output::json(&report)?;
    } else {
        output::line(&format!(
            "{} models of {} ({}) in {}",
            number(presets.len() as u64),
            plain(&presets.source),
            plain(&presets.date),
            target.display()
        ))?;
    }
    Ok(OK)
}

/// Renders providers, one per row.
pub fn providers(all: &[ProviderInfo]) -> String {
    let width = all.iter().map(|p| p.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for provider in all {
        let mark = if provider.available { style("●").green() } else { style("○").red() };
        let mut details =
            vec![provider.endpoint.as_deref().map_or_else(|| "no endpoint".into(), plain)];
        if provider.external {
            details.push("outside this machine".into());
        }
        details.extend(provider.default_model.as_ref().map(|m| format!("default {}", plain(m))));
        details.extend(provider.reason.as_ref().map(|r| format!("not available: {}", plain(r))));
        let _infallible =
            writeln!(out, "{mark} {:<width$}  {}", plain(&provider.name), details.join("; "));
    }
    out
}

fn table(all: &[ModelInfo]) -> String {
    if all.is_empty() {
        return "the provider lists no models\n".into();
    }
    let width = all.iter().map(|m| m.model.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for model in all {
        let context =
            model.context_tokens.map(|n| format!("  {} tokens", number(n))).unwrap_or_default();
        let size = model.size_bytes.map(|n| format!("  {}", bytes(n))).unwrap_or_default();
        let price = model.price.map(price).unwrap_or_default();
        let _infallible = writeln!(
            out,
            "{}  {:<width$}{context}{size}{price}",
            plain(&model.provider),
            plain(&model.model)
        );
    }
    out
}

/// Renders a price for a million tokens of prompt and answer.
fn price(price: ModelPrice) -> String {
    format!("  {} / {} USD per million tokens", price.input, price.output)
}
