//! `cairn worktrees`: work trees that were created for tasks.

use std::{fmt::Write as _, path::PathBuf};

use cairn_protocol::{
    git::{Worktree, WorktreeDiff, WorktreeRef, WorktreeRemoveParams, WorktreeRemoved},
    session::{Empty, Page},
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
    scope,
};

const HELP: &str = "\
'cairn chat --worktree' lets a chat work in a folder and on a branch of its own, so that several can work on one
repository. What it changed comes back by 'apply' (as uncommitted changes), or by merging its branch with git.
Exit codes: 0 done, 1 failed, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn worktrees`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct WorktreesArgs {
    /// The action; lists the work trees if absent.
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List the work trees with their branches and changes
    List,
    /// Print what a work tree changed since it was created
    Diff {
        /// Folder of the work tree
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Apply what a work tree changed to the files of its repository: all or nothing
    Apply {
        /// Folder of the work tree
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Remove a work tree; its branch remains unless it is merged
    Remove {
        /// Folder of the work tree
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        /// Lose its uncommitted changes
        #[arg(long)]
        discard: bool,
    },
}

pub async fn run(app: &App<'_>, args: WorktreesArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let named = |folder: PathBuf| -> Result<WorktreeRef, Failure> {
        // The folder may have been deleted by hand.
        let folder = std::path::absolute(folder)?;
        Ok(WorktreeRef { path: scope::utf8(&folder)? })
    };
    match args.action.unwrap_or(Action::List) {
        Action::List => {
            let page = app.answer::<Page<Worktree>>(&client, "worktree.list", &Empty {}).await?;
            if let Some(page) = page {
                if page.data.is_empty() {
                    app.info("there are no work trees; 'cairn chat --worktree' creates one");
                }
                output::print(&table(&page.data))?;
            }
        }
        Action::Diff { folder } => {
            let params = named(folder)?;
            if let Some(answer) =
                app.answer::<WorktreeDiff>(&client, "worktree.diff", &params).await?
            {
                output::untrusted(&answer.diff)?;
                if answer.truncated {
                    app.info("the diff was cut at 1 MiB");
                }
            }
        }
        Action::Apply { folder } => {
            let params = named(folder)?;
            if let Some(answer) =
                app.answer::<WorktreeDiff>(&client, "worktree.apply", &params).await?
            {
                output::line(&format!("applied changes of {} files", answer.paths.len()))?;
            }
        }
        Action::Remove { folder, discard } => {
            let params = WorktreeRemoveParams { path: named(folder)?.path, discard };
            if let Some(answer) =
                app.answer::<WorktreeRemoved>(&client, "worktree.remove", &params).await?
            {
                output::line(&removed(&answer))?;
            }
        }
    }
    Ok(OK)
}

fn removed(answer: &WorktreeRemoved) -> String {
    let branch = plain(&answer.branch);
    match answer.branch_removed {
        true => format!("removed, with the branch {branch}"),
        false => format!("removed; the branch {branch} remains, because it has commits of its own"),
    }
}

fn table(all: &[Worktree]) -> String {
    let mut out = String::new();
    for tree in all {
        let changes = match (tree.uncommitted, tree.commits) {
            (Some(files), Some(commits)) => format!("{files} changed files, {commits} commits"),
            _ => "its folder cannot be read".to_owned(),
        };
        let _infallible = writeln!(
            out,
            "{}  {}  of {}\n    {}",
            style(plain(&tree.branch)).bold(),
            changes,
            plain(&tree.repository),
            plain(&tree.path),
        );
    }
    out
}
