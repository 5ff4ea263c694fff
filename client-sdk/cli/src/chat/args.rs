//! The flags of `cairn chat`.

use std::path::PathBuf;

use clap::Args;

use crate::{exit::Failure, session_name::SessionName};

const EXAMPLES: &str = "\
Examples:
  cairn chat                                    talk about this folder
  cairn chat -p 'what does this project do?'    one question, one answer
  git diff | cairn chat -p 'review this'        the piped input is context
  cairn chat --continue                         continue this folder's last chat
  cairn chat --worktree                         work in a folder and on a branch of its own
  cairn chat --session 3f9a2c                   continue a session; 'cairn sessions' lists them
  cairn chat --resume                           choose one of this folder's chats
  cairn chat --provider openai-compatible --endpoint http://localhost:8080 -m qwen3

With -p the answer goes to standard output and everything else to standard error. Tools that need permission ask:
y once, n no; a this session, A always in this project, E everywhere, each confirmed by Enter. While a text is typed its
keys answer nothing. Without a terminal, the turn ends as denied.
With --json each record is a line, and the last line is the turn's result.
A model outside this machine is used only when models.allowExternal is set in your own configuration.
Ctrl+C or Esc stops the model; three quick ones exit. With --quiet the first stops and exits, a second exits at once.
Exit codes: 0 done, 1 failed or out of time, 2 invalid usage, 3 not found or denied, 4 no daemon, 130 interrupted.";

/// Arguments of `cairn chat`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct ChatArgs {
    /// Ask this, print the answer and exit
    #[arg(long, short, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Continue this folder's last chat
    #[arg(long = "continue")]
    pub go_on: bool,
    /// Choose one of this folder's chats and continue it
    #[arg(long, conflicts_with_all = ["go_on", "prompt"])]
    pub resume: bool,
    /// Continue this session: its id, a part of it, or 'last'
    #[arg(long, value_name = "ID", conflicts_with_all = ["go_on", "resume", "worktree"])]
    pub session: Option<SessionName>,
    /// With --continue: replace the conversation by a summary first
    #[arg(long, requires = "go_on")]
    pub compress: bool,
    /// Do not store this chat for --continue
    #[arg(long)]
    pub no_local_session: bool,
    /// An additional config file that overrides all others; as --config
    #[arg(short = 'c', value_name = "FILE", id = "chat_config")]
    pub config: Option<PathBuf>,
    /// The model
    #[arg(long, short, value_name = "NAME")]
    pub model: Option<String>,
    /// The provider: ollama, openai, anthropic, openai-compatible, …
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The address of the provider; configured keys are not sent there
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Begin in this mode: plan changes nothing, ask asks before each change, accept-edits edits
    /// files without asking, auto also runs commands in the sandbox without asking; chat.mode if
    /// not given
    #[arg(long, value_name = "MODE", value_parser = ["plan", "ask", "accept-edits", "auto"])]
    pub mode: Option<String>,
    /// Show the tool calls without running them
    #[arg(long)]
    pub dry_run: bool,
    /// Work in this folder instead of the current one; tools stay inside it
    #[arg(long = "root", alias = "sandbox", value_name = "DIR")]
    pub sandbox: Option<PathBuf>,
    /// Work in a new git work tree, on a new branch of this name (cairn/… if not given)
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["go_on", "resume"])]
    pub worktree: Option<String>,
    /// With --worktree: begin at this revision instead of the current commit
    #[arg(long, value_name = "REV", requires = "worktree")]
    pub base: Option<String>,
    /// Offer a shell to the model; each command still needs an approval. The mode auto offers it too
    #[arg(long)]
    pub allow_bash: bool,
    /// Act as the user's shell, with > before text for the model; implies --allow-bash
    #[arg(long, conflicts_with_all = ["prompt", "list_models"])]
    pub shell: bool,
    /// Do not offer the tool 'plan'
    #[arg(long)]
    pub no_plan: bool,
    /// Do not offer the tool 'evaluate'
    #[arg(long)]
    pub no_python: bool,
    /// Names under which tools are offered: each by its own name, a few that take the operation as
    /// an argument, or both; tools.mode if not given
    #[arg(long, value_name = "MODE", value_parser = ["split", "unified", "both"])]
    pub tools_mode: Option<String>,
    /// Run commands outside the sandbox; each is marked in the audit
    #[arg(long)]
    pub no_sandbox: bool,
    /// List the provider's models and exit
    #[arg(long)]
    pub list_models: bool,
    /// Show more of each result, and the model's reasoning everywhere
    #[arg(long)]
    pub verbose: bool,
    /// Neither request nor show the progress of reading the prompt
    #[arg(long)]
    pub no_prompt_progress: bool,
    /// Append metrics, calls, warnings and errors to this file
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Print the system text of the next turn and exit
    #[arg(long)]
    pub show_system_prompt: bool,
    /// Replace the built-in base of the system text by this text
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
}

impl ChatArgs {
    /// Refuses flags that cannot take effect, instead of ignoring them.
    pub fn check(&self, json: bool, one_shot: bool) -> Result<(), Failure> {
        if json && !one_shot && !self.list_models && !self.show_system_prompt {
            return Err(Failure::usage("--json requires a question")
                .hint("give one with -p, or pipe it in"));
        }
        Ok(())
    }

    /// Lists the tools that are not offered.
    pub fn withheld(&self, shell_configured: bool) -> Vec<&'static str> {
        let mut names = Vec::new();
        if !self.allow_bash && !self.shell && !shell_configured {
            names.extend(super::offer::SHELLS);
        }
        if self.no_plan {
            names.push("plan");
        }
        if self.no_python {
            names.extend(["evaluate", "python3"]);
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_flags_are_refused() {
        let mut args = ChatArgs::default();
        assert!(args.check(false, false).is_ok());
        assert!(args.check(true, false).is_err() && args.check(true, true).is_ok());
        args.list_models = true;
        assert!(args.check(true, false).is_ok());
    }

    #[test]
    fn flags_select_the_offered_tools() {
        let mut args = ChatArgs::default();
        assert_eq!(args.withheld(false), ["run_shell", "bash", "shell"]);
        assert!(args.withheld(true).is_empty());
        args.allow_bash = true;
        args.no_plan = true;
        args.no_python = true;
        assert_eq!(args.withheld(false), ["plan", "evaluate", "python3"]);
    }
}
