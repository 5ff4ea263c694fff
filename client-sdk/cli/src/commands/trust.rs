//! `cairn trust`: what a folder brings that runs or instructs agents, and the user's decision about
//! it.

use std::{fmt::Write as _, path::PathBuf};

use cairn_client_sdk::Client;
use cairn_protocol::trust::{
    FolderTrust, TrustGetParams, TrustItem, TrustKind, TrustRemoveParams, TrustSetParams,
    TrustState, TrustedContent,
};
use clap::Args;
use console::style;

use crate::{
    app::{App, current_dir},
    confirm,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const HELP: &str = "\
A folder can bring instructions (AGENTS.md), a configuration (.cairn.json), hooks, plugins and skills. None of it is used
until you trust it, and what you trust is its content: a change is asked about again, with its diff.

Exit codes: 0 done, 2 invalid usage, 3 refused, 4 no daemon.";

/// Arguments of `cairn trust`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct TrustArgs {
    /// The folder; the current one when omitted
    folder: Option<PathBuf>,
    /// Show what the folder brings, with the differences from what is trusted, and change nothing
    #[arg(long, conflicts_with = "remove")]
    show: bool,
    /// Remove the trust in the folder
    #[arg(long)]
    remove: bool,
    /// Trust without a question
    #[arg(long, conflicts_with_all = ["show", "remove"])]
    yes: bool,
}

pub async fn run(app: &App<'_>, args: TrustArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let folder = match args.folder {
        Some(folder) => current_dir()?.join(folder),
        None => current_dir()?,
    };
    let folder = folder.to_string_lossy().into_owned();
    if args.remove {
        let removed = client.trust_remove(&TrustRemoveParams { folder: folder.clone() }).await?;
        if app.globals.json {
            output::json(&removed)?;
        } else if removed.removed {
            app.info(&format!("{} is not trusted any more", plain(&folder)));
        } else {
            app.info(&format!("{} was not trusted", plain(&folder)));
        }
        return Ok(OK);
    }
    let state = client.trust_get(&TrustGetParams { folder, diff: true }).await?;
    if app.globals.json && !args.yes {
        output::json(&state)?;
        return Ok(OK);
    }
    if !app.globals.json {
        output::print(&table(&state, true))?;
    }
    if args.show {
        return Ok(OK);
    }
    decide(app, &client, state, args.yes).await?;
    Ok(OK)
}

/// Shows what a folder brings and asks about what is open, in a chat; returns true if the folder is
/// trusted now.
pub async fn review(app: &App<'_>, client: &Client, folder: String) -> Result<bool, Failure> {
    let state = client.trust_get(&TrustGetParams { folder, diff: true }).await?;
    output::print(&table(&state, true))?;
    decide(app, client, state, false).await
}

async fn decide(
    app: &App<'_>,
    client: &Client,
    state: FolderTrust,
    yes: bool,
) -> Result<bool, Failure> {
    let open = open_items(&state);
    if open.is_empty() && state.is_known {
        app.info("everything that can be trusted is trusted");
        return Ok(true);
    }
    if !yes && !confirm::is_possible() {
        let text = "there is no terminal to confirm the trust: look with --show, then add --yes";
        return Err(Failure::usage(text));
    }
    if !yes && !confirm::prompt(&format!("{} [y/N] ", question(&open)))? {
        return Err(Failure::refused("nothing was trusted"));
    }
    // Exactly what was shown: another content is refused by the daemon.
    let (folder, trust) = (state.folder.clone(), contents(&open));
    let params = TrustSetParams { folder, trust, refuse: vec![] };
    let state = client.trust_set(&params).await?;
    if app.globals.json {
        output::json(&state)?;
    } else {
        app.info(&format!("{} is trusted as it is now", plain(&state.folder)));
    }
    Ok(true)
}

/// Returns the items that a user who asks for it can decide about, refused ones too.
fn open_items(state: &FolderTrust) -> Vec<&TrustItem> {
    let is_open = |item: &&TrustItem| item.state != TrustState::Trusted && item.problem.is_none();
    state.items.iter().filter(is_open).collect()
}

fn contents(items: &[&TrustItem]) -> Vec<TrustedContent> {
    items.iter().map(|item| item.content()).collect()
}

/// Returns the question about items: `trust AGENTS.md, 2 skills, 1 file of hooks?`.
fn question(items: &[&TrustItem]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let of = |kind: TrustKind| items.iter().filter(move |item| item.kind == kind);
    parts.extend(of(TrustKind::Instructions).map(|item| plain(&item.path)));
    for kind in [TrustKind::Settings, TrustKind::Skill, TrustKind::Hooks, TrustKind::Plugin] {
        let count = of(kind).count();
        if count > 0 {
            parts.push(format!("{count} {}", kind.noun(count)));
        }
    }
    if parts.is_empty() {
        "trust this folder?".into()
    } else {
        format!("trust {}?", parts.join(", "))
    }
}

fn table(state: &FolderTrust, with_diff: bool) -> String {
    let mut out = String::new();
    let known = match (state.is_known, state.is_configured) {
        (true, _) => "trusted",
        (false, true) => "named in trust.folders: instructions and skills are used, nothing runs",
        (false, false) => "not trusted",
    };
    let _infallible = writeln!(out, "{}  {known}", style(plain(&state.folder)).bold());
    for item in &state.items {
        let (mark, how) = match item.state {
            TrustState::Trusted => (style("●").green(), "trusted"),
            TrustState::New => (style("○").yellow(), "new"),
            TrustState::Changed => (style("○").yellow(), "changed since it was trusted"),
            TrustState::Refused => (style("○").red(), "refused"),
        };
        let _infallible =
            writeln!(out, "{mark} {}  {}, {how}", plain(&item.path), item.kind.noun(1));
        for command in &item.commands {
            let _infallible = writeln!(out, "    runs {}", plain(command));
        }
        if !item.unsupported.is_empty() {
            let text = plain(&item.unsupported.join("; "));
            let _infallible = writeln!(out, "    not run here: {text}");
        }
        if item.files.len() > 1 {
            let files: Vec<String> = item.files.iter().take(20).map(|file| plain(file)).collect();
            let more = item.files.len().saturating_sub(files.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _infallible = writeln!(out, "    with {}{more}", files.join(", "));
        }
        if let Some(problem) = &item.problem {
            let text = style(format!("cannot be trusted: {}", plain(problem))).red();
            let _infallible = writeln!(out, "    {text}");
        }
        for line in item.diff.iter().filter(|_| with_diff).flat_map(|diff| diff.lines()) {
            let _infallible = writeln!(out, "    {}", plain(line));
        }
    }
    if state.items.is_empty() {
        out.push_str("it brings nothing that runs or instructs agents\n");
    }
    out
}

/// Asks about a folder at its first chat; returns true if it is trusted. Nothing is asked where
/// there is nothing to decide, or no terminal.
pub async fn ask_first(app: &App<'_>, client: &Client, folder: String) -> Result<bool, Failure> {
    let params = TrustGetParams { folder: folder.clone(), diff: false };
    // An older daemon, or a device without the right: the chat goes on without.
    let Ok(state) = client.trust_get(&params).await else { return Ok(false) };
    let items: Vec<&TrustItem> = state.undecided().collect();
    if state.is_known || items.is_empty() || !confirm::is_possible() {
        return Ok(state.is_known);
    }
    app.info(table(&state, false).trim_end());
    app.info("'cairn trust --show' shows all of it; nothing of it is used without your yes");
    let mut params = TrustSetParams { folder, trust: vec![], refuse: vec![] };
    let yes = confirm::prompt(&format!("{} [y/N] ", question(&items)))?;
    if yes {
        params.trust = contents(&items);
    } else {
        params.refuse = contents(&items);
    }
    match client.trust_set(&params).await {
        Ok(_) => Ok(yes),
        Err(error) => {
            app.info(&format!("nothing was trusted: {error}"));
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_names_kinds_with_their_numbers() {
        let item = |kind, path: &str, state| TrustItem {
            kind,
            path: path.to_owned(),
            sha256: "0".into(),
            state,
            commands: vec![],
            unsupported: vec![],
            files: vec![],
            diff: None,
            problem: None,
        };
        let state = FolderTrust {
            folder: "/w".into(),
            is_known: false,
            is_configured: false,
            items: vec![
                item(TrustKind::Instructions, "AGENTS.md", TrustState::New),
                item(TrustKind::Skill, ".agents/skills/a", TrustState::New),
                item(TrustKind::Skill, ".agents/skills/b", TrustState::Changed),
                item(TrustKind::Hooks, ".claude/settings.json", TrustState::New),
                item(TrustKind::Plugin, ".agents/plugins/p", TrustState::Trusted),
            ],
        };
        let open = open_items(&state);
        assert_eq!(question(&open), "trust AGENTS.md, 2 skills, 1 file of hooks?");
        assert_eq!(question(&[]), "trust this folder?");
    }
}
