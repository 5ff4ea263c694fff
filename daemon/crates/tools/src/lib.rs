//! The built-in tools. Each acts by its permit and the rooms in [`Deps`]; direct file, process and network calls
//! are disallowed here by lint (see `clippy.toml`).

mod code;
mod evaluate;
mod files;
mod git;
mod narrow;
mod reading;
mod search;
mod shell;

use std::sync::Arc;

use cairn_harness::Registry;
use cairn_protocol::error::Failure;
use cairn_search::Indexes;
use cairn_workspace::Roots;
pub use shell::{ShellMode, ShellOptions};

/// The rooms that tools work with.
#[derive(Clone)]
pub struct Deps {
    /// The declared roots.
    pub roots: Arc<Roots>,
    /// The indexes.
    pub indexes: Arc<Indexes>,
    /// Settings of the shell.
    pub shell: ShellOptions,
}

/// Adds every built-in tool.
///
/// # Errors
/// When a name is taken or a schema is none: a defect of the build.
pub fn register(registry: &mut Registry, deps: &Deps) -> Result<(), Failure> {
    let tools = [
        files::tools(deps),
        search::tools(deps),
        code::tools(deps),
        git::tools(deps),
        shell::tools(deps),
        evaluate::tools(deps),
    ];
    tools.into_iter().flatten().try_for_each(|tool| registry.add(tool))
}
