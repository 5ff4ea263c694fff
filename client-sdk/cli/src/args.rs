//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{
    chat,
    commands::{
        approvals, audit, clients, completions, config, discover, eval, explore, fleet, grep,
        history, host, index, man, map, mcp, memory, models, pair, plugins, references, rules, run,
        schedule, search, sessions, setup, skills, stdio, storage, symbols, tools, trace, trust,
        uninstall, update, viewer, worktrees,
    },
};

/// Exit codes, as shown in the help.
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed or nothing found, 2 invalid usage, 3 not found or refused by policy, 4 no daemon can be
reached or started, 5 another daemon runs already (serve), 130 interrupted.
Data folder: $CAIRN_HOME, else the platform's data folder; 'cairn status' shows it.";

/// Search and explore code, and let a model work on it under your rules, by a daemon on this machine.
#[derive(Debug, Parser)]
#[command(name = "cairn", version, after_help = EXIT_CODES, max_term_width = 110, propagate_version = true)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// Without a command, the project around the current folder is shown.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// Print JSON in the form of the protocol
    #[arg(long, global = true, help_heading = GENERAL)]
    pub json: bool,
    /// Print no progress and no notes
    #[arg(long, short, global = true, help_heading = GENERAL)]
    pub quiet: bool,
    /// An additional config file that overrides all others
    #[arg(long, global = true, value_name = "FILE", help_heading = GENERAL, hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// Use the daemon of another machine, by name or address; 'cairn pair' introduces it
    #[arg(long, global = true, value_name = "HOST",
        value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = CONNECTION, hide_short_help = true)]
    pub host: Option<String>,
    /// Use the daemon at an address, such as the local end of a tunnel; needs --token-file
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        conflicts_with = "host",
        requires = "token_file",
        help_heading = CONNECTION,
        hide_short_help = true
    )]
    pub address: Option<String>,
    /// The file with that daemon's token
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        requires = "address",
        help_heading = CONNECTION,
        hide_short_help = true
    )]
    pub token_file: Option<PathBuf>,
}

/// Headings of the flags of every command.
const GENERAL: &str = "General options";
const CONNECTION: &str = "Connection options";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat with a model that works in this folder
    Chat(Box<chat::ChatArgs>),
    /// Explore a folder or a repository and print a summary
    Explore(explore::ExploreArgs),
    /// Search by words and meaning
    Search(search::SearchArgs),
    /// Search lines by regular expression
    Grep(grep::GrepArgs),
    /// Find definitions by name, or list those of a file
    Symbols(symbols::SymbolsArgs),
    /// Find the uses of a definition: calls, types, imports
    Refs(references::RefsArgs),
    /// List the files that depend on a file
    Impact(references::ImpactArgs),
    /// Show the most relevant files and definitions, in a number of tokens
    Map(map::MapArgs),
    /// Measure how well a search answers queries with known answers
    Eval(eval::EvalArgs),
    /// Declare folders and show the progress of their indexes
    Index(index::IndexArgs),
    /// Show the daemon, its files and its roots
    Status,
    /// List, show, export and import the logs of sessions
    Trace(trace::TraceArgs),
    /// List sessions: who works where, and who waits for an answer
    Sessions(sessions::SessionsArgs),
    /// List the requests that wait for an approval, and answer them
    Approvals(approvals::ApprovalsArgs),
    /// List, compare, apply and remove the work trees of chats
    Worktrees(worktrees::WorktreesArgs),
    /// Start a request that goes on without a terminal
    Run(Box<run::RunArgs>),
    /// Start requests at set times
    Schedule(schedule::ScheduleArgs),
    /// Show the daemons of other machines, their runs and what waits for an answer
    Fleet(fleet::FleetArgs),
    /// Search what earlier sessions asked, answered, ran and changed
    History(history::HistoryArgs),
    /// List the tools, or call one
    Tools(tools::ToolsArgs),
    /// List the rules that answers granted for good, remove or narrow one
    Rules(rules::RulesArgs),
    /// List model providers and their models
    Models(models::ModelsArgs),
    /// Search, show and change what agents learnt in earlier sessions
    Memory(memory::MemoryArgs),
    /// List the skills that are offered to agents
    Skills(skills::SkillsArgs),
    /// List the agent plugins and what each brings
    Plugins(plugins::PluginsArgs),
    /// Show, trust and refuse what a folder brings: hooks, skills, plugins, its configuration
    Trust(trust::TrustArgs),
    /// Show what tools did and what allowed it
    Audit(audit::AuditArgs),
    /// Show each setting and its source
    Config(config::ConfigArgs),
    /// Show what Cairn's data consists of on disk
    Du(storage::DuArgs),
    /// Remove old sessions as configured, and free their space
    Gc(storage::GcArgs),
    /// Check that the requirements of Cairn are met
    Doctor(host::DoctorArgs),
    /// Find daemons in the local network
    Discover(discover::DiscoverArgs),
    /// Open the viewer, or one session in it, in a browser
    Open(viewer::OpenArgs),
    /// Find a model, write the configuration, try it, connect other agents
    Setup(setup::SetupArgs),
    /// Show sessions, approvals, searches and traces in a browser
    Viewer(viewer::ViewerArgs),
    /// Pair two machines: let a device use this daemon, or this machine use another's
    Pair(pair::PairArgs),
    /// List the devices that may use this daemon, or revoke one
    Clients(clients::ClientsArgs),
    /// Act as the agent of an editor that speaks the Agent Client Protocol, on standard input and
    /// output
    Acp,
    /// Serve an agent that speaks MCP, on standard input and output
    Mcp(mcp::McpArgs),
    /// Pass JSON-RPC messages, one per line, between standard input and output and the daemon
    Stdio(stdio::StdioArgs),
    /// Install the daemon as a service of this user
    Service(host::ServiceArgs),
    /// Run the daemon
    Serve(host::ServeArgs),
    /// Make the daemon read its configuration files again
    Reload,
    /// Stop the daemon
    Stop,
    /// Replace this program by the newest release
    Update(update::UpdateArgs),
    /// Remove the service and the program, with --purge also the data
    Uninstall(uninstall::UninstallArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages into a folder
    Man(man::ManArgs),
}

/// The sessions in which a command starts turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// The command starts no turns.
    None,
    /// A session of its own.
    Own,
    /// Sessions of the program that it serves.
    Others,
}

impl Command {
    /// Returns the sessions in which the command starts turns.
    pub fn sessions(&self) -> Sessions {
        match self {
            Self::Chat(_) | Self::Run(_) => Sessions::Own,
            Self::Acp | Self::Stdio(_) => Sessions::Others,
            _ => Sessions::None,
        }
    }

    /// Returns the command's name if it cannot address another machine.
    pub fn local_only_name(&self) -> Option<&'static str> {
        match self {
            Self::Serve(_) => Some("serve"),
            Self::Service(_) => Some("service"),
            Self::Doctor(_) => Some("doctor"),
            Self::Config(_) => Some("config"),
            Self::Discover(_) => Some("discover"),
            Self::Setup(_) => Some("setup"),
            Self::Update(_) => Some("update"),
            Self::Uninstall(_) => Some("uninstall"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    const LINES: &[&str] = &[
        "cairn explore",
        "cairn explore . --goal auth --goal tests --json",
        "cairn explore https://example.org/x.git --branch main",
        "cairn explore --resume ses_00000000000000000000000000000000",
        "cairn search where is the token checked -k 5",
        "cairn search --mode lexical -l rust -g *.rs --path src query",
        "cairn grep -i -w foo src",
        "cairn grep -F -C 2 -- -x",
        "cairn symbols --file src/lib.rs",
        "cairn symbols Client --exact",
        "cairn refs Client.connect --callers --depth 2",
        "cairn impact src/lib.rs --depth 2",
        "cairn map",
        "cairn map --tokens 16384 --query parser --file a.rs --file b.rs",
        "cairn sessions -k 5",
        "cairn approvals",
        "cairn approvals list --session last",
        "cairn approvals show",
        "cairn approvals answer 3f9a2c yes",
        "cairn approvals answer apr_3f9a2c deny --reason no",
        "cairn approvals --watch",
        "cairn trace show last",
        "cairn run watch 3f9a2c",
        "cairn worktrees",
        "cairn worktrees remove ../x --discard",
        "cairn chat --session 3f9a2c",
        "cairn sessions --pick",
        "cairn chat --worktree",
        "cairn chat --worktree fix/retry --base v1.2 -p go",
        "cairn run fix",
        "cairn run fix --worktree --base main --mode auto --until make --max-turns 3 --budget 0.5 --detach",
        "cairn run watch ses_00000000000000000000000000000000",
        "cairn run answer ses_00000000000000000000000000000000 once",
        "cairn run stop ses_00000000000000000000000000000000 --json",
        "cairn schedule",
        "cairn schedule add daily report --timezone Europe/Paris --missed skip --worktree",
        "cairn schedule run-now sch_00000000000000000000000000000000",
        "cairn schedule remove sch_00000000000000000000000000000000",
        "cairn history retry backoff --kind command -k 5",
        "cairn history --file src/lib.rs --here",
        "cairn fleet",
        "cairn fleet runs ci",
        "cairn fleet cancel ci 0190",
        "cairn fleet records build-1 3f9a2c --follow",
        "cairn fleet answer build-1 7d21f0 deny --reason no",
        "cairn run fix --pool ci --detach",
        "cairn du --sessions 5",
        "cairn gc --dry-run",
        "cairn gc --yes",
        "cairn eval queries.jsonl",
        "cairn --json eval q.jsonl --repos src --mode lexical -k 20 --misses --answers a.json",
        "cairn index",
        "cairn index /tmp",
        "cairn index add /tmp --wait",
        "cairn index remove /tmp",
        "cairn index status",
        "cairn --json status",
        "cairn acp",
        "cairn mcp",
        "cairn mcp --root .",
        "cairn mcp install",
        "cairn mcp install claude --write",
        "cairn mcp list --json",
        "cairn mcp login tracker --no-browser",
        "cairn mcp logout tracker",
        "cairn stdio --linger 5",
        "cairn stdio --follow",
        "cairn trace list",
        "cairn trace export ses_00000000000000000000000000000000 -o x.jsonl",
        "cairn config listen.port",
        "cairn config --schema",
        "cairn service install --dry-run",
        "cairn serve --on-demand --port 0 --idle-exit 5",
        "cairn",
        "cairn completions bash",
        "cairn man pages",
        "cairn update --check --from target/packages --key release.pub",
        "cairn uninstall --purge --yes",
        "cairn chat",
        "cairn chat -p hello -c a.json -m qwen3 --provider ollama --endpoint http://localhost:1 --dry-run",
        "cairn chat --continue --compress --no-local-session -q --verbose --log-file x --system y",
        "cairn chat --sandbox . --allow-bash --no-plan --no-python --tools-mode split --no-prompt-progress",
        "cairn chat --list-models --json",
        "cairn chat --shell --no-sandbox",
        "cairn viewer --print",
        "cairn open",
        "cairn open 3f9a2c --print",
        "cairn setup",
        "cairn setup --provider ollama --model qwen3 --endpoint http://localhost:11434 --no-try",
        "cairn grep -n -i -w -v -l -A 2 -B 1 -t rust -e x -e -y src tests",
        "cairn grep --files src",
        "cairn grep -o -N foo",
        "cairn tools",
        "cairn tools call read_file {} --root . --yes --json",
        "cairn rules",
        "cairn rules remove git --project .",
        "cairn rules narrow git 'git(a)' --json",
        "cairn models ollama",
        "cairn memory",
        "cairn skills",
        "cairn pair",
        "cairn pair --rights observe,approve --name phone",
        "cairn pair den --code 1234-5678 --as attic",
        "cairn pair --forget den",
        "cairn clients",
        "cairn clients revoke laptop",
        "cairn --host den explore",
        "cairn serve --lan 10.0.0.1:7434",
        "cairn skills shell --json",
        "cairn memory search slow disks",
        "cairn memory append rust build --text x",
        "cairn audit --follow --tool read_file --session ses_00000000000000000000000000000000",
    ];

    #[test]
    fn command_lines_are_parsed() {
        for line in LINES {
            let parsed = Cli::try_parse_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for line in [
            "cairn search",
            "cairn symbols --exact --fuzzy x",
            "cairn map --tokens 16385",
            "cairn eval",
            "cairn eval q.jsonl --root . --repos .",
            "cairn eval q.jsonl -k 101",
            "cairn explore a --resume x",
            "cairn nope",
            "cairn uninstall --yes --dry-run",
            "cairn pair den --rights observe",
            "cairn pair --rights all",
            "cairn pair --code 12345678",
            "cairn chat --compress",
            "cairn chat --session last --continue",
            "cairn chat --shell -p x",
            "cairn chat --tools-mode all",
            "cairn tools call",
            "cairn mcp install emacs",
            "cairn mcp install --write",
            "cairn stdio --follow --linger 5",
            "cairn run",
            "cairn run x --max-turns 3",
            "cairn run x --base main",
            "cairn run answer ses_00000000000000000000000000000000 maybe",
            "cairn schedule add daily",
            "cairn approvals answer 3f9a2c",
            "cairn approvals answer 3f9a2c perhaps",
            "cairn trace show abc",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
