//! The built-in tools. Each acts by its permit and the services in [`Deps`]; direct file, process
//! and network calls are disallowed here by lint (see `clippy.toml`).

mod background;
mod code;
mod edit;
mod evaluate;
mod external;
mod files;
mod fs;
mod git;
mod look;
mod lookup;
mod lsp;
mod memory;
mod mode;
mod narrow;
mod patch;
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
pub use edit::AfterEdit;
pub use external::{ExternalSpec, Externals};
pub use lsp::{
    FindProgram, LanguageServers, Limits as LanguageServerLimits, Program, ServerSpec, Trusted,
    known_servers,
};
pub use remote::{Remote, RemoteOutput, RemoteSpec, RemoteTools, Server, line as plain_line};
pub use shell::{ShellMode, ShellOptions};

pub use seen::Seen;
pub use web::{SearchBackend, WebOptions};

/// Services that tools use.
#[derive(Clone)]
pub struct Deps {
    pub roots: Arc<Roots>,
    pub indexes: Arc<Indexes>,
    /// File contents that sessions have seen.
    pub seen: Arc<Seen>,
    pub shell: ShellOptions,
    /// Names under which models are offered the tools for files and the web.
    pub mode: ToolMode,
    pub web: WebOptions,
    /// Steps after edits of files.
    pub after_edit: AfterEdit,
    /// Knowledge of earlier sessions; `None` disables its tools.
    pub memory: Option<cairn_memory::Memory>,
}

impl Deps {
    /// Creates the services with every setting at its default.
    pub fn new(roots: Arc<Roots>, indexes: Arc<Indexes>) -> Self {
        Self {
            roots,
            indexes,
            seen: Arc::default(),
            shell: ShellOptions::default(),
            mode: ToolMode::default(),
            web: WebOptions::default(),
            after_edit: AfterEdit::default(),
            memory: None,
        }
    }
}

/// Adds every built-in tool.
///
/// # Errors
/// A name that is taken or an invalid schema: a defect of the build.
pub fn register(registry: &Registry, deps: &Deps) -> Result<(), Failure> {
    let tools = [
        files::tools(deps),
        search::tools(deps),
        code::tools(deps),
        git::tools(deps),
        look::tools(deps),
        edit::tools(deps),
        patch::tools(deps),
        fs::tools(deps),
        shell::tools(deps),
        background::tools(deps),
        evaluate::tools(deps),
        plan::tools(deps),
        web::tools(deps),
        memory::tools(deps),
        // Last, because it describes the others.
        lookup::tools(registry),
    ];
    tools.into_iter().flatten().try_for_each(|tool| registry.add(mode::shows(deps.mode, tool)))
}
