//! `cairn plugins`: the agent plugins, and what each brings.

use std::fmt::Write as _;

use cairn_protocol::{
    plugin::PluginInfo,
    session::{Empty, Page},
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const HELP: &str = "\
An agent plugin is a folder with a `plugin.json`. It can bring skills (`skills/*/SKILL.md`), MCP servers (`mcp.json`),
commands of the chat (`commands/*.md`) and hooks (`hooks/hooks.json`). Name yours in the configuration:

  {\"agentPlugins\": {\"folders\": [\"/home/me/plugins/review\"]}}

A trusted project brings its own in `.agents/plugins`: their skills and hooks are used, their servers are not started.

Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn plugins`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct PluginsArgs {}

pub async fn run(app: &App<'_>, _: PluginsArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    if let Some(page) = app.answer::<Page<PluginInfo>>(&client, "plugin.list", &Empty {}).await? {
        if page.data.is_empty() {
            app.info("there are no agent plugins; 'cairn plugins --help' says how to add one");
        }
        output::print(&table(&page.data))?;
    }
    Ok(OK)
}

fn table(all: &[PluginInfo]) -> String {
    let mut out = String::new();
    for info in all {
        let mark = if info.error.is_none() { style("●").green() } else { style("○").red() };
        let _infallible = writeln!(
            out,
            "{mark} {} {}  {}\n    {}",
            style(plain(&info.name)).bold(),
            plain(&info.version),
            plain(&info.description),
            plain(&info.folder),
        );
        for (kind, names) in [
            ("skills", &info.skills),
            ("MCP servers", &info.mcp_servers),
            ("commands", &info.commands),
            ("hooks", &info.hooks),
        ] {
            if !names.is_empty() {
                let _infallible = writeln!(out, "    {kind}: {}", plain(&names.join(", ")));
            }
        }
        if let Some(error) = &info.error {
            let _infallible = writeln!(out, "    not loaded: {}", plain(error));
        }
    }
    out
}
