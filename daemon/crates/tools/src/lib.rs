//! The built-in tools. Each acts by its permit and the rooms in [`Deps`]; direct file, process and network calls
//! are disallowed here by lint (see `clippy.toml`).

mod code;
mod edit;
mod evaluate;
mod external;
mod files;
mod fs;
mod git;
mod look;
mod lookup;
mod memory;
mod mode;
mod narrow;
mod plan;
mod reading;
mod remote;
mod search;
mod seen;
mod shell;
mod web;

use std::sync::Arc;

use cairn_harness::Registry;
use cairn_protocol::error::Failure;
pub use cairn_protocol::tool::ToolsMode as ToolMode;
use cairn_search::Indexes;
use cairn_workspace::Roots;
pub use external::{ExternalSpec, Externals};
pub use remote::{Remote, RemoteSpec, RemoteTools, Said, Server};
pub use shell::{ShellMode, ShellOptions};

pub use seen::Seen;
pub use web::{SearchBackend, WebOptions};

/// The rooms that tools work with.
#[derive(Clone)]
pub struct Deps {
    /// The declared roots.
    pub roots: Arc<Roots>,
    /// The indexes.
    pub indexes: Arc<Indexes>,
    /// What sessions saw of which file.
    pub seen: Arc<Seen>,
    /// Settings of the shell.
    pub shell: ShellOptions,
    /// Under which names models are offered what they do with files and the web.
    pub mode: ToolMode,
    /// Settings of the web tools.
    pub web: WebOptions,
    /// What was learnt in earlier sessions; no tools for it where there is none.
    pub memory: Option<cairn_memory::Store>,
}

impl Deps {
    /// The tools over these, with every setting at its default.
    pub fn new(roots: Arc<Roots>, indexes: Arc<Indexes>) -> Self {
        Self {
            roots,
            indexes,
            seen: Arc::default(),
            shell: ShellOptions::default(),
            mode: ToolMode::default(),
            web: WebOptions::default(),
            memory: None,
        }
    }
}

/// Adds every built-in tool.
///
/// # Errors
/// When a name is taken or a schema is none: a defect of the build.
pub fn register(registry: &Registry, deps: &Deps) -> Result<(), Failure> {
    let tools = [
        files::tools(deps),
        search::tools(deps),
        code::tools(deps),
        git::tools(deps),
        look::tools(deps),
        edit::tools(deps),
        fs::tools(deps),
        shell::tools(deps),
        evaluate::tools(deps),
        plan::tools(deps),
        web::tools(deps),
        memory::tools(deps),
        // Last, as it tells about the others.
        lookup::tools(registry),
    ];
    tools.into_iter().flatten().try_for_each(|tool| registry.add(mode::shows(deps.mode, tool)))
}
