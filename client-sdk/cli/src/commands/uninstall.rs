//! `cairn uninstall`: stops the daemon, removes the service and the program, with `--purge` also
//! the data.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use cairn_protocol::location::{ConfigFolder, DataRoot};
use clap::Args;

use super::stop;
use crate::{
    app::App,
    confirm,
    exit::{Failure, OK},
    program::{self, Owner},
    render::output,
};

#[derive(Debug, Clone, Copy, Args)]
pub struct UninstallArgs {
    /// Also remove indexes, sessions, keys and settings of this user
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only print what would be removed
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// The paths to remove.
struct Plan {
    /// Unit files of the service.
    units: Vec<PathBuf>,
    owner: Owner,
    /// Data folders that exist, with the entries to remove; all of them if there is no list.
    data: Vec<(PathBuf, Option<Vec<PathBuf>>)>,
}

pub async fn run(app: &App<'_>, args: UninstallArgs) -> Result<u8, Failure> {
    let plan = plan(app)?;
    if args.dry_run {
        return report(app, &plan, args.purge, &[], true);
    }
    if !args.yes && !confirmed(&plan, args.purge)? {
        output::line("nothing was removed")?;
        return Ok(OK);
    }
    // The manager stops the service first, which it would start again.
    let mut removed = app.host.remove_service().map_err(Failure::failed)?;
    stop::stop(app).await?;
    if args.purge {
        for (folder, entries) in &plan.data {
            removed.extend(purge(folder, entries.as_deref())?);
        }
    }
    if let Owner::Script(prefix) = &plan.owner {
        removed.extend(program::remove_installed(prefix).map_err(|e| {
            Failure::failed(e.to_string()).hint("run it as the owner of these files")
        })?);
    }
    report(app, &plan, args.purge, &removed, false)
}

fn plan(app: &App<'_>) -> Result<Plan, Failure> {
    let root = app.data_root()?;
    let mut data = Vec::new();
    if root.path().is_dir() {
        // A folder that CAIRN_HOME names may have other contents.
        let is_named = app.env.cairn_home.is_some();
        data.push((root.path().to_owned(), is_named.then(|| entries(&root))));
    }
    match app.env.config() {
        Some((folder, ConfigFolder::OfUser | ConfigFolder::OfDataRoot)) if folder.is_dir() => {
            data.push((folder, None));
        }
        _ => {}
    }
    Ok(Plan { units: app.host.service_files(), owner: crate::installed_by(), data })
}

/// Returns the existing entries of a data root that Cairn writes.
fn entries(root: &DataRoot) -> Vec<PathBuf> {
    let existing = DataRoot::ENTRIES.iter().map(|name| root.path().join(name));
    existing.filter(|path| path.symlink_metadata().is_ok()).collect()
}

/// Removes a folder, or some of its entries and then the folder if it is empty. Links are removed,
/// not followed.
fn purge(folder: &Path, entries: Option<&[PathBuf]>) -> Result<Vec<PathBuf>, Failure> {
    let remove = |path: &Path| {
        let removed = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(e) => Err(e),
        };
        match removed {
            // The daemon removes some files when it stops.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::path(path, &e)),
            _ => Ok(path.to_owned()),
        }
    };
    let Some(entries) = entries else { return Ok(vec![remove(folder)?]) };
    let removed = entries.iter().map(|path| remove(path)).collect();
    let _has_other_entries = std::fs::remove_dir(folder);
    removed
}

fn confirmed(plan: &Plan, is_purge: bool) -> Result<bool, Failure> {
    confirm::at_terminal("files", || text(plan, is_purge, true) + "remove all of it? [y/N] ")
}

fn report(
    app: &App<'_>,
    plan: &Plan,
    is_purge: bool,
    removed: &[PathBuf],
    is_dry_run: bool,
) -> Result<u8, Failure> {
    if app.globals.json {
        let data: Vec<&PathBuf> = plan.data.iter().map(|(folder, _)| folder).collect();
        output::json(&serde_json::json!({
            "dryRun": is_dry_run,
            "units": plan.units,
            "installedBy": plan.owner.name(),
            "removed": removed,
            "data": data,
            "purged": is_purge && !is_dry_run,
        }))?;
        return Ok(OK);
    }
    output::print(&text(plan, is_purge, is_dry_run))?;
    Ok(OK)
}

fn text(plan: &Plan, is_purge: bool, is_future: bool) -> String {
    let verb = if is_future { "to remove: " } else { "removed: " };
    let mut out = String::new();
    for unit in &plan.units {
        let _infallible = writeln!(out, "{verb}the service: {}", unit.display());
    }
    for (folder, entries) in &plan.data {
        let path = folder.display();
        let _infallible = match (is_purge, entries) {
            (true, None) => writeln!(out, "{verb}your data: {path}"),
            (true, Some(entries)) => {
                writeln!(out, "{verb}your data: {} entries of {path}", entries.len())
            }
            (false, _) => writeln!(out, "your data remains: {path}"),
        };
    }
    let _infallible = match &plan.owner {
        Owner::Script(prefix) => {
            writeln!(out, "{verb}the program below {}", prefix.display())
        }
        owner => writeln!(
            out,
            "the program belongs to {}; remove it with: {}",
            owner.name(),
            owner.remove_line()
        ),
    };
    if !is_purge && !plan.data.is_empty() {
        out.push_str("'cairn uninstall --purge' removes the data too\n");
    }
    out
}
