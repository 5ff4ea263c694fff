//! Hooks of agents in the shape that Claude Code and Codex share, and folders of agent plugins.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

section! {
    /// Programs of the user that run at events of an agent. They can make the rules stricter.
    HooksConfig "camelCase" {
        /// Runs the hooks of `~/.claude/settings.json` too.
        import_claude: bool = false,
        /// Lets a hook of the user allow a call that would be asked about by default; a rule that
        /// denies it or requires an approval still applies.
        may_allow: bool = false,
        /// Command lines of hooks of projects that run outside the sandbox. A hook of your own says
        /// so itself (`"sandbox": false`).
        outside_sandbox: Vec<String> = vec![],
        /// A tool is about to be called.
        #[serde(rename = "PreToolUse")]
        pre_tool_use: Vec<HookGroup> = vec![],
        /// A tool call has finished.
        #[serde(rename = "PostToolUse")]
        post_tool_use: Vec<HookGroup> = vec![],
        /// A message of the user starts a turn.
        #[serde(rename = "UserPromptSubmit")]
        user_prompt_submit: Vec<HookGroup> = vec![],
        /// A session starts or resumes.
        #[serde(rename = "SessionStart")]
        session_start: Vec<HookGroup> = vec![],
        /// A session is archived or deleted.
        #[serde(rename = "SessionEnd")]
        session_end: Vec<HookGroup> = vec![],
        /// The agent is about to end its turn.
        #[serde(rename = "Stop")]
        stop: Vec<HookGroup> = vec![],
        /// A subagent has ended.
        #[serde(rename = "SubagentStop")]
        subagent_stop: Vec<HookGroup> = vec![],
        /// The conversation is about to be condensed.
        #[serde(rename = "PreCompact")]
        pre_compact: Vec<HookGroup> = vec![],
        /// The user's attention is needed.
        #[serde(rename = "Notification")]
        notification: Vec<HookGroup> = vec![],
    }
}

section! {
    /// Hooks that run for some tools.
    HookGroup "camelCase" {
        /// Regular expression for complete names of tools; all when empty or `*`.
        matcher: String = String::new(),
        /// The programs, in their order.
        hooks: Vec<HookCommand> = vec![],
    }
}

section! {
    /// A program that runs at an event.
    HookCommand "camelCase" {
        /// Kind of the hook; only `command` is supported.
        #[serde(rename = "type")]
        kind: String = "command".into(),
        /// Command line for `/bin/sh`.
        command: String = String::new(),
        /// Seconds that it may take, at most 600.
        timeout: u64 = 60,
        /// Runs in the sandbox: with the session's folder to read and write, without the network
        /// and the rest of the home folder. A project's hook cannot change it.
        sandbox: bool = true,
    }
}

section! {
    /// Folders with skills, MCP servers, commands and hooks.
    AgentPluginsConfig "camelCase" {
        /// Folders of plugins, each with a `plugin.json`.
        folders: Vec<PathBuf> = vec![],
    }
}
