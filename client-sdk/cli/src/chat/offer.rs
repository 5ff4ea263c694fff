//! The tools that the turns of a chat may use: those that are registered when a turn starts,
//! without the ones that flags and settings withhold.

use cairn_client_sdk::Client;
use cairn_protocol::{
    session::Empty,
    tool::{ToolInfo, ToolsMode},
    turn::ExecutionMode,
};

use crate::exit::Failure;

/// Names of the tool that runs commands.
pub const SHELLS: [&str; 3] = ["run_shell", "bash", "shell"];

/// The choice of tools for all turns of a chat.
#[derive(Debug, Default)]
pub struct Offer {
    /// Names of the tools that are not offered.
    pub withheld: Vec<String>,
    pub tools_mode: Option<ToolsMode>,
    /// The commit at the end of a turn needs its tool, whatever is withheld.
    pub commits: bool,
}

impl Offer {
    /// Returns the names of the tools of the next turn; `None` for all. A server or a program may
    /// have added or removed some since the last one. The mode `auto` is about commands, so that
    /// they are offered in it.
    pub async fn ops(
        &self,
        client: &Client,
        mode: Option<ExecutionMode>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let is_auto = mode == Some(ExecutionMode::Auto);
        let is_named = |name: &str| {
            let is_shell = is_auto && SHELLS.contains(&name);
            !is_shell && self.withheld.iter().any(|withheld| withheld == name)
        };
        if self.withheld.is_empty() {
            return Ok(None);
        }
        let tools = client.tool_list(&Empty {}).await?.data;
        let is_withheld = |tool: &ToolInfo| is_named(&tool.name);
        if !tools.iter().any(is_withheld) {
            return Ok(None);
        }
        let hidden = |tool: &ToolInfo| match self.tools_mode {
            Some(mode) if ToolsMode::governs(&tool.name) => mode.hides(&tool.name),
            _ => tool.hidden,
        };
        let offered = tools.iter().filter(|t| !hidden(t) && !is_withheld(t));
        let commit = self.commits.then(|| "git_commit".to_owned());
        Ok(Some(offered.map(|t| t.name.clone()).chain(commit).collect()))
    }
}
