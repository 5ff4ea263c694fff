//! `run_shell`: a command line in the sandbox.

mod binding;

use std::{path::PathBuf, sync::Arc, time::Duration};

use cairn_harness::{
    Caller, Intent, Output, Permit, Rule, Rules, Tool, ToolSpec, Verdict, arguments,
    command::CommandLine,
    sandbox::{Confined, ProcessOutput},
};
use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
};
use cairn_workspace::Root;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Deps, reading};

/// Default time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time limit that can be requested.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Most characters of each stream that are stored.
const MAX_OUTPUT: usize = 100_000;
/// Time that the gate waits beyond the command's own limit, so that its timeout can be reported.
const MARGIN: Duration = Duration::from_secs(10);

/// Command lines that the shell accepts.
#[derive(Debug, Clone, Default)]
pub enum ShellMode {
    /// None: the tool is not registered.
    Off,
    /// Command lines whose every part one of these rules allows.
    Allowlist(Vec<Rule>),
    /// Any command line that the gate allows.
    #[default]
    Full,
}

#[derive(Debug, Clone, Default)]
pub struct ShellOptions {
    /// Command lines that it accepts.
    pub mode: ShellMode,
    /// Longest time limit of a command; 600 seconds when absent.
    pub timeout: Option<Duration>,
    /// Most characters of each stream that are stored; 100,000 when absent.
    pub max_output: Option<usize>,
    /// True if it may run in any folder that the sandbox shows, not only in the workspace.
    pub anywhere: bool,
}

/// Arguments of the tool `run_shell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShellParams {
    /// The command line to run.
    command: String,
    /// Folder to run it in, relative to the root.
    #[serde(default = "here")]
    working_directory: String,
    /// Time limit in seconds; 30 by default.
    timeout_seconds: Option<u64>,
    /// Runs it in the background and returns its id at once; read it with command_output.
    #[serde(default)]
    background: bool,
}

fn here() -> String {
    ".".into()
}

struct Shell {
    deps: Deps,
}

/// Returns the tool, unless it is off.
pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    match deps.shell.mode {
        ShellMode::Off => vec![],
        _ => {
            let shell = Arc::new(Shell { deps: deps.clone() });
            vec![shell.clone(), Arc::new(AsSkill(shell))]
        }
    }
}

/// The shell tool in the form that the skill `shell` offers.
struct AsSkill(Arc<Shell>);

/// Arguments of the tool `shell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SkillParams {
    /// The command line to run.
    cmd: String,
    /// Folder to run it in, relative to the root.
    #[serde(default = "here")]
    cwd: String,
    /// Time limit in milliseconds; 30,000 by default.
    timeout_ms: Option<u64>,
    /// Maximum characters of each stream; at most the limit of the tool.
    max_output_chars: Option<usize>,
}

/// Returns the arguments for `run_shell`, and the requested number of characters.
fn translated(value: Value) -> Result<(Value, Option<usize>), Failure> {
    let params: SkillParams = arguments(value)?;
    let mut own = json!({"command": params.cmd, "working_directory": params.cwd});
    if let Some(millis) = params.timeout_ms {
        own["timeout_seconds"] = millis.div_ceil(1000).into();
    }
    Ok((own, params.max_output_chars))
}

#[async_trait::async_trait]
impl Tool for AsSkill {
    fn spec(&self) -> ToolSpec {
        let own = self.0.spec();
        let spec = ToolSpec::writing::<SkillParams>(
            "shell",
            "Runs a shell command in the workspace's sandbox.",
        );
        ToolSpec {
            description: format!("{} The same as run_shell.", spec.description).into(),
            hidden: true,
            paths: &["cwd"],
            command: Some("cmd"),
            timeout: own.timeout,
            ..spec
        }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        translated(value.clone()).map(|(own, _)| vec![("run_shell", own)]).unwrap_or_default()
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let (own, _) = translated(value.clone())?;
        self.0.intent(caller, &own).await
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let (own, most) = translated(value)?;
        let mut output = self.0.run(permit, own).await?;
        for stream in ["stdout", "stderr"] {
            let text = output.value.get(stream).and_then(Value::as_str).unwrap_or_default();
            if let Some((end, _)) = most.and_then(|most| text.char_indices().nth(most)) {
                output.value[stream] = format!("{}… [cut]", &text[..end]).into();
                output.value["truncated"] = true.into();
                output.truncated = true;
            }
        }
        Ok(output)
    }
}

impl Shell {
    fn longest(&self) -> Duration {
        self.deps.shell.timeout.unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)
    }

    /// In the mode `allowlist` a command outside the list cannot even be submitted for approval.
    fn check_listed(&self, command: &str) -> Result<(), Failure> {
        let ShellMode::Allowlist(rules) = &self.deps.shell.mode else { return Ok(()) };
        let line = CommandLine::parse(command);
        let listed = Rules { allow: rules.clone(), default: Verdict::Deny, ..Rules::default() };
        let decision = listed.decide_line(&line);
        if decision.verdict == Verdict::Allow {
            return Ok(());
        }
        let text = format!("run_shell takes only commands of its allowlist: {}", decision.by);
        Err(Failure::new(Reason::ToolDenied, text))
    }

    /// Refuses a command whose approval was of another folder, script or target of a redirection.
    async fn require_bound(&self, permit: &Permit, params: &ShellParams) -> Result<(), Failure> {
        let Some(approved) = permit.approved().map(|preview| preview.bound.clone()) else {
            return Ok(());
        };
        let (root, folder) = (permit.require_root()?.clone(), params.working_directory.clone());
        let line = CommandLine::parse(&params.command);
        let now = reading::off_thread(move || Ok(binding::bound(&root, &folder, &line))).await?;
        let differs = approved.iter().find(|known| !now.contains(known));
        let Some(differs) = differs.or_else(|| now.iter().find(|path| !approved.contains(path)))
        else {
            return Ok(());
        };
        let text = format!(
            "'{}' changed since the command was approved: nothing was run",
            differs.path.escape_debug()
        );
        Err(Failure::new(Reason::FileChanged, text))
    }

    fn folder(&self, permit: &Permit, requested: &str) -> Result<PathBuf, Failure> {
        // A run with paths of its own starts in the first folder of them.
        if requested == here()
            && let Some(parts) = permit.reach(".")?
        {
            let folders = parts.iter().filter_map(|part| permit.resolve_own(part).ok());
            let mut folders = folders.map(|path| path.absolute()).filter(|folder| folder.is_dir());
            let none = "none of the paths of this run is a folder in which a command can run";
            return folders.next().ok_or_else(|| Failure::new(Reason::ToolDenied, none));
        }
        match permit.resolve_own(requested) {
            Ok(target) => Ok(target.absolute()),
            Err(failure) if failure.reason != Reason::PathOutsideRoots => Err(failure),
            Err(_) if self.deps.shell.anywhere => Ok(permit.require_root()?.path.join(requested)),
            Err(_) => {
                let text = format!("working_directory '{requested}' is outside the workspace");
                Err(Failure::new(Reason::PathOutsideRoots, text))
            }
        }
    }
}

#[async_trait::async_trait]
impl Tool for Shell {
    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let params: ShellParams = arguments(value.clone())?;
        self.check_listed(&params.command)?;
        if caller.root.is_none() {
            return Err(Failure::new(Reason::NoRoots, "the session has no root to work in"));
        }
        let line = CommandLine::parse(&params.command);
        let grants = Rule::for_command(&line);
        let patterns = patterns(&line);
        let bound = match caller.root {
            Some(root) => {
                let (root, folder) = (root.clone(), params.working_directory.clone());
                reading::off_thread(move || Ok(binding::bound(&root, &folder, &line))).await?
            }
            None => vec![],
        };
        let preview = Preview {
            summary: format!("run_shell {}", params.command.lines().next().unwrap_or_default()),
            command: Some(params.command),
            folder: Some(params.working_directory),
            bound,
            warnings: background_warning(params.background),
            ..Preview::default()
        };
        Ok(Intent { preview, grants, patterns, ..Intent::default() })
    }

    fn spec(&self) -> ToolSpec {
        let text = "Runs a command line in a sandbox: git, build tools, tests. It can write in the \
            workspace only (not in .git), and reaches only the network that the user allows. A \
            server or a watcher runs with `background`.";
        let spec = ToolSpec::reading::<ShellParams>("run_shell", text);
        ToolSpec {
            read_only: false,
            paths: &["working_directory"],
            command: Some("command"),
            timeout: self.longest() + MARGIN,
            ..spec
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: ShellParams = arguments(value)?;
        self.check_listed(&params.command)?;
        self.require_bound(&permit, &params).await?;
        let mut confined =
            Confined::script(&params.command, self.folder(&permit, &params.working_directory)?);
        let requested = params.timeout_seconds.map_or(TIMEOUT, Duration::from_secs);
        confined.limits.wall = requested.clamp(Duration::from_secs(1), self.longest());
        confined.limits.output = self.deps.shell.max_output.unwrap_or(MAX_OUTPUT);
        confined.network = permit.require_network().is_ok();
        confined.domains = true;
        confined.roots = readable(&self.deps, &permit)?;
        if params.background {
            if params.timeout_seconds.is_some() {
                let text = "timeout_seconds does not apply to a background command";
                return Err(Failure::new(Reason::InvalidParams, text));
            }
            let started = permit.start(confined, params.command).await?;
            return Ok(crate::background::answer(&started));
        }
        let mut output = finished(permit.run(confined, |_, _| {}).await?)?;
        let refused = permit.refused_connections();
        if !refused.is_empty() {
            output.value["network_refused"] = json!(refused);
        }
        Ok(output)
    }
}

fn background_warning(background: bool) -> Vec<String> {
    let text = "it continues in the background until it is stopped or the session ends";
    if background { vec![text.to_owned()] } else { vec![] }
}

/// Returns a rule that is useful beyond this particular line: its program with its first word, and
/// any further arguments. A rule is offered only if it allows the line, and the line with one more
/// word.
fn patterns(line: &CommandLine) -> Vec<Vec<Rule>> {
    let words = line.parts.first().map(|part| part.display()).unwrap_or_default();
    let mut words = words.split_whitespace();
    let (Some(program), second) = (words.next(), words.next()) else { return vec![] };
    let plain = |word: &str| {
        word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+'))
    };
    let second = second.filter(|word| plain(word) && !word.starts_with('-'));
    let (true, Some(second)) = (line.parts.len() == 1 && plain(program), second) else {
        return vec![];
    };
    let text = format!("run_shell({program} {second} *)");
    let Ok(rule) = text.parse::<Rule>() else { return vec![] };
    let alone = Rules { allow: vec![rule.clone()], default: Verdict::Deny, ..Rules::default() };
    let allows = |line: &CommandLine| alone.decide_line(line).verdict == Verdict::Allow;
    let longer = CommandLine::parse(&format!(
        "{} x",
        line.parts.first().map(|p| p.display()).unwrap_or_default()
    ));
    if allows(line) && allows(&longer) { vec![vec![rule]] } else { vec![] }
}

/// Returns the other declared roots, unless the run is limited to some paths.
pub(crate) fn readable(deps: &Deps, permit: &Permit) -> Result<Vec<Root>, Failure> {
    let own = &permit.require_root()?.path;
    Ok(match permit.reach(".")? {
        Some(_) => vec![],
        None => deps.roots.list().into_iter().filter(|root| !root.path.starts_with(own)).collect(),
    })
}

/// Returns the output of a process that exited by itself or at its time limit.
pub(crate) fn finished(output: ProcessOutput) -> Result<Output, Failure> {
    if output.cancelled {
        return Err(Failure::new(Reason::Cancelled, "the command was cancelled"));
    }
    let truncated = output.stdout.truncated || output.stderr.truncated;
    let value = json!({
        "exit_code": output.exit_code,
        "stdout": output.stdout.text,
        "stderr": output.stderr.text,
        "timed_out": output.timed_out,
        "truncated": truncated,
        "sandbox": output.tier,
    });
    Ok(Output { tag: "process", value, truncated, exit_code: Some(output.exit_code) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_pattern_is_program_with_subcommand() {
        for (line, want) in [
            ("go test ./...", Some("run_shell(go test *)")),
            ("cargo build --release", Some("run_shell(cargo build *)")),
            ("npm run lint", Some("run_shell(npm run *)")),
            ("make", None),
            ("rm -rf x", None),
            ("go test ./... && rm x", None),
            ("go test $(cat x)", None),
            ("sudo make install", None),
            ("python3 script.py", None),
            ("python3 script.py --fast", None),
        ] {
            let got = patterns(&CommandLine::parse(line));
            let got: Vec<String> = got.iter().flatten().map(Rule::to_string).collect();
            assert_eq!(got.first().map(String::as_str), want, "{line}");
        }
    }
}
