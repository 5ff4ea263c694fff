//! The command line with its page of help: commands by purpose, and options by kind.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::{args::Cli, chat};

/// Commands with their descriptions, by purpose.
const MAIN: &[(&str, &[&str])] = &[
    ("Work", &["chat", "run", "sessions", "approvals", "open"]),
    ("Look", &["search", "grep", "symbols", "refs", "map", "explore"]),
    ("Set up", &["setup", "index", "mcp", "models", "config", "status", "doctor"]),
];

/// The other commands, by name.
const MORE: &[(&str, &[&str])] = &[
    ("code", &["impact", "eval"]),
    ("sessions", &["history", "worktrees", "schedule", "fleet", "trace", "audit", "viewer"]),
    ("agents", &["tools", "rules", "skills", "plugins", "trust", "memory"]),
    ("clients", &["acp", "stdio", "pair", "clients", "discover"]),
    ("daemon", &["serve", "service", "reload", "stop", "du", "gc"]),
    ("program", &["update", "uninstall", "completions", "man", "help"]),
];

/// Returns the command line.
pub fn command() -> Command {
    let command = Cli::command();
    let columns = console::Term::stdout()
        .size_checked()
        .map_or(MAX_COLUMNS, |(_, columns)| usize::from(columns).clamp(MIN_COLUMNS, MAX_COLUMNS));
    let list = list(&command, columns);
    let options = options(columns);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} cairn [COMMAND] [OPTIONS]\n\n{list}\n{options}{{after-help}}"
    );
    reflowed(command.help_template(template))
}

/// Options of every command, which each command's own page explains.
const OPTIONS: &[(&str, &str)] = &[
    ("--json", "Print JSON in the form of the protocol"),
    ("-q, --quiet", "Print no progress and no notes"),
    ("--host HOST", "Use the daemon of another machine; 'cairn pair' introduces it"),
];

/// Columns of the page: at most those of a line that is easy to read.
const MAX_COLUMNS: usize = 100;
const MIN_COLUMNS: usize = 40;

fn options(columns: usize) -> String {
    let mut out = "Options of every command:\n".to_owned();
    for (option, about) in OPTIONS {
        row(&mut out, &format!("  {option:<11}  "), about, columns);
    }
    out
}

/// Adds a row whose text continues below itself.
fn row(out: &mut String, head: &str, text: &str, columns: usize) {
    let hang = head.chars().count();
    for (at, part) in chat::wrap(text, columns.saturating_sub(hang).max(1)).iter().enumerate() {
        let head = if at == 0 { head } else { &" ".repeat(hang) };
        let _infallible = writeln!(out, "{head}{part}");
    }
}

/// Length from which a line of a paragraph was broken for the source, so that the next line
/// continues it.
const BROKEN: usize = 90;

/// Joins the broken lines of the texts below each command's options, so that they are wrapped at
/// the width of the terminal.
fn reflowed(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(join(&text)),
        None => command,
    };
    command.mut_subcommands(reflowed)
}

fn join(text: &str) -> String {
    let mut out = String::new();
    let mut last = 0;
    for line in text.lines() {
        let is_continued = last >= BROKEN && !line.is_empty() && !line.starts_with(' ');
        if !out.is_empty() {
            out.push(if is_continued { ' ' } else { '\n' });
        }
        out.push_str(line);
        last = if line.starts_with(' ') { 0 } else { line.chars().count() };
    }
    out
}

/// Renders the commands.
fn list(command: &Command, columns: usize) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(Command::get_about);
        found.map(ToString::to_string).unwrap_or_default()
    };
    let mut out = String::new();
    for (purpose, names) in MAIN {
        let _infallible = writeln!(out, "{purpose}:");
        for name in *names {
            row(&mut out, &format!("  {name:<10} "), &about(name), columns);
        }
        out.push('\n');
    }
    out.push_str("More ('cairn help COMMAND' explains each):\n");
    for (purpose, names) in MORE {
        let head = format!("  {:<10} ", format!("{purpose}:"));
        row(&mut out, &head, &names.join(", "), columns);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_listed_once() {
        let mut listed: Vec<&str> =
            MAIN.iter().chain(MORE).flat_map(|(_, names)| *names).copied().collect();
        listed.sort_unstable();
        let command = Cli::command();
        let mut all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        all.push("help");
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn broken_lines_are_joined_and_lists_remain() {
        let long = "x".repeat(BROKEN);
        let text = format!("{long}\nrest\n  an example {long}\nnext\n\nend");
        let joined = format!("{long} rest\n  an example {long}\nnext\n\nend");
        assert_eq!(join(&text), joined);
    }

    #[test]
    fn help_is_one_page() {
        let page = command().term_width(80).render_help().to_string();
        assert!(page.lines().count() <= 52, "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        assert!(!page.contains("--address"), "{page}");
        let command = Cli::command();
        let narrow = list(&command, 60) + &options(60);
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
        assert!(narrow.contains("who waits\n             for an answer"), "{narrow}");
    }
}
