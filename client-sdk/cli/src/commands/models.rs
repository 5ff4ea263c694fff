//! `cairn models`: the model providers and their models.

use std::fmt::Write as _;

use cairn_client_sdk::Client;
use cairn_protocol::{
    model::ModelInfo,
    session::{Empty, Page},
    turn::{ModelListParams, ProviderInfo},
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, bytes, number, plain},
};

const EXAMPLES: &str = "\
Examples:
  cairn models              the providers, and the models of the configured one
  cairn models anthropic    the models of one provider

Exit codes: 0 done, 1 the provider cannot be reached, 2 invalid usage, 3 no such provider, 4 no daemon.";

/// Arguments of `cairn models`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ModelsArgs {
    /// Only the models of this provider
    provider: Option<String>,
}

pub async fn run(app: &App<'_>, args: ModelsArgs) -> Result<u8, Failure> {
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
        let _infallible = writeln!(
            out,
            "{}  {:<width$}{context}{size}",
            plain(&model.provider),
            plain(&model.model)
        );
    }
    out
}
