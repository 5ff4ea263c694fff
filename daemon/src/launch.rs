//! The user's command-line agents as models: they run in the sandbox, in an empty folder, with only
//! the access that the configuration grants, and each run is audited.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use cairn_config::{AgentProgram, Config};
use cairn_harness::{
    Sandbox, redact_secrets,
    sandbox::{Confined, Limits, ProcessOutput, Stream, Wake},
};
use cairn_llm::{Exit, Launch, Launcher, LlmError, Piece, Running, WAITING_PIECES};
use cairn_protocol::error::{Failure, Reason};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use tokio::sync::mpsc;

use crate::compose;

/// Address space per process, or total memory where a control group limits it: JavaScript runtimes
/// reserve far more than they use.
const MEMORY_LIMIT: u64 = 64 << 30;
/// Maximum stored bytes of standard error.
const MAX_STDERR: usize = 16 * 1024;
/// Numbers the folders of runs.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// The known properties of an agent's program.
struct KnownAgent {
    /// Name of the program.
    program: &'static str,
    /// Folder with its login, relative to the home folder.
    folder: &'static str,
    /// Variable that names that folder.
    variable: &'static str,
}

fn known_agent(provider: &str) -> Option<KnownAgent> {
    match provider {
        "claudeCode" => {
            Some(KnownAgent { program: "claude", folder: ".claude", variable: "CLAUDE_CONFIG_DIR" })
        }
        "codex" => Some(KnownAgent { program: "codex", folder: ".codex", variable: "CODEX_HOME" }),
        _ => None,
    }
}

/// Starts the agents of the configuration.
pub struct Agents {
    programs: BTreeMap<String, AgentProgram>,
    sandboxes: BTreeMap<String, Arc<Sandbox>>,
    trace: Trace,
    /// Parent of the folders of runs.
    runs: PathBuf,
    home: Option<PathBuf>,
    path: Vec<PathBuf>,
}

impl Agents {
    /// Creates a launcher whose runs have their folders in `runs`.
    pub fn new(config: &Config, trace: Trace, runs: PathBuf) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = std::env::var_os("PATH")
            .map(|p| std::env::split_paths(&p).collect())
            .unwrap_or_default();
        let mut agents = Self {
            programs: config.llm.agents.clone(),
            sandboxes: BTreeMap::new(),
            trace,
            runs,
            home,
            path,
        };
        for (name, program) in &config.llm.agents {
            // The user granted this folder to this program; the surrounding folder stays hidden.
            let own = agents.credentials(name, program);
            let mut blocked = config.safety.sandbox_blocked_paths.clone();
            blocked.retain(|path| {
                !own.as_ref().is_some_and(|own| own.starts_with(agents.expand_home(path)))
            });
            agents
                .sandboxes
                .insert(name.clone(), Arc::new(compose::sandbox(config, blocked, vec![])));
        }
        agents
    }

    fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }

    /// Returns the folder with an agent's login, if it exists.
    fn credentials(&self, provider: &str, program: &AgentProgram) -> Option<PathBuf> {
        let usual = || Some(self.home.as_ref()?.join(known_agent(provider)?.folder));
        let named =
            program.credentials.as_ref().map(|path| self.expand_home(path)).or_else(usual)?;
        named.canonicalize().ok()
    }

    /// Finds the agent's settings and program.
    fn find(&self, provider: &str) -> Result<(&AgentProgram, KnownAgent, PathBuf), LlmError> {
        let none = || {
            LlmError::NotSupported(format!(
                "{provider} is not set up: add \"llm\": {{\"agents\": {{\"{provider}\": {{}}}}}} to the configuration"
            ))
        };
        let (settings, known_agent) =
            self.programs.get(provider).zip(known_agent(provider)).ok_or_else(none)?;
        let missing = |program_name: &str| {
            let text = format!(
                "{provider}: {program_name} was not found: install it, or set llm.agents.{provider}.path"
            );
            LlmError::Host { reason: Reason::ModelUnavailable, text }
        };
        let runs = |path: &PathBuf| {
            fs::metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let (program_path, program_name) = match &settings.path {
            Some(path) => {
                (Some(self.expand_home(path)).filter(runs), format!("program {}", path.display()))
            }
            None => {
                let candidate =
                    self.path.iter().map(|dir| dir.join(known_agent.program)).find(runs);
                (candidate, format!("program '{}' on the search path", known_agent.program))
            }
        };
        Ok((settings, known_agent, program_path.ok_or_else(|| missing(&program_name))?))
    }

    fn confined(&self, launch: &Launch, run: &Path) -> Result<Confined, LlmError> {
        let (settings, known_agent, program_path) = self.find(launch.provider)?;
        let real = program_path.canonicalize().unwrap_or_else(|_| program_path.clone());
        let mut argv = vec![real.to_string_lossy().into_owned()];
        argv.extend(settings.arguments.iter().cloned());
        argv.extend(launch.arguments.iter().cloned());
        let mut confined = Confined::program(argv, run.to_owned());
        confined.readable = settings.readable.iter().map(|path| self.expand_home(path)).collect();
        confined.readable.push(package(&real));
        // `join` with an absolute path returns that path.
        let mut spaces = vec![run.to_string_lossy().into_owned()];
        if let Some(folder) = self.credentials(launch.provider, settings) {
            let text = folder.to_string_lossy().into_owned();
            confined.env.push((known_agent.variable.to_owned(), text.clone()));
            if settings.credentials_writable {
                spaces.push(text);
            } else {
                confined.readable.push(folder);
            }
        }
        for name in &settings.env {
            if let Ok(value) = std::env::var(name) {
                confined.env.push((name.clone(), value));
            }
        }
        confined.root = Some(run.to_owned());
        confined.parts = Some(spaces);
        confined.network = true;
        confined.input = Some(run.join(QUESTION));
        confined.limits = Limits {
            wall: launch.total,
            memory: MEMORY_LIMIT,
            output: MAX_STDERR,
            ..Limits::default()
        };
        Ok(confined)
    }

    async fn audit(&self, launch: &Launch, confined: &Confined) -> Result<u64, Failure> {
        let line = confined.argv.join(" ");
        let question = serde_json::json!({"arguments": launch.arguments, "prompt": launch.prompt});
        let intent = AuditIntent {
            session: launch.session.clone(),
            tool: launch.provider.to_owned(),
            args_digest: cairn_trace::digest(&question),
            decision: "allow",
            rule: format!("models.allowExternal, llm.agents.{}", launch.provider),
            call: None,
            command: Some(redact_secrets(&line)),
        };
        self.trace.audit_intent(intent, None).await.map_err(|cause| {
            let text =
                format!("{} was not started: it could not be recorded: {cause}", launch.provider);
            Failure::new(Reason::AuditFailed, text)
        })
    }
}

/// The prompt's file in the run's folder.
const QUESTION: &str = ".question";

/// Returns the folder of a program's own files: its package folder for an npm script, else its
/// parent.
fn package(program: &Path) -> PathBuf {
    let packages = program.ancestors().find(|path| path.ends_with("node_modules"));
    packages.or(program.parent()).unwrap_or(program).to_owned()
}

/// A run's folder, removed together with the run.
struct Folder(PathBuf);

impl Folder {
    fn create(runs: &Path, prompt: &str) -> std::io::Result<Self> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(runs)?;
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder = Self(runs.join(format!("{}-{number}", std::process::id())));
        private.recursive(false).create(&folder.0)?;
        let question = folder.0.join(QUESTION);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(question)?;
        file.write_all(prompt.as_bytes())?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the folder of an agent's run could not be removed");
        }
    }
}

fn refused(failure: Failure) -> LlmError {
    LlmError::Host { reason: failure.reason, text: failure.message }
}

#[async_trait::async_trait]
impl Launcher for Agents {
    fn check(&self, provider: &str) -> Result<(), LlmError> {
        self.find(provider).map(drop)
    }

    async fn launch(&self, launch: Launch) -> Result<Running, LlmError> {
        self.find(launch.provider)?;
        let sandbox = self.sandboxes.get(launch.provider).cloned();
        let none = || LlmError::NotSupported(format!("{} is not set up", launch.provider));
        let sandbox = sandbox.ok_or_else(none)?;
        let io = |error| {
            refused(Failure::new(Reason::ToolFailed, format!("{}: {error}", launch.provider)))
        };
        let folder = Folder::create(&self.runs, &launch.prompt).map_err(io)?;
        let confined = self.confined(&launch, &folder.0)?;
        let audit = self.audit(&launch, &confined).await.map_err(refused)?;
        let wake = Wake::new().map_err(refused)?;
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        let running = wake.clone();
        let out = sender.clone();
        let trace = self.trace.clone();
        let provider = launch.provider;
        tokio::spawn(async move {
            let began = Instant::now();
            let work = tokio::task::spawn_blocking(move || {
                let waker = running.clone();
                let outcome_result = sandbox.run(&confined, &running, &mut |stream, bytes| {
                    if stream == Stream::Out
                        && out.blocking_send(Piece::Out(bytes.to_vec())).is_err()
                    {
                        waker.cancel();
                    }
                });
                drop(folder);
                outcome_result
            });
            let lost = |e| {
                Failure::new(Reason::Internal, format!("{provider} could not be monitored: {e}"))
            };
            let outcome_result = work.await.unwrap_or_else(|e| Err(lost(e)));
            let done = outcome(&outcome_result, began);
            let recorded = trace.audit_outcome(audit, done, None).await;
            let exit = match (outcome_result, recorded) {
                (Ok(outcome_result), Ok(())) => Ok(Exit {
                    code: outcome_result.exit_code,
                    timed_out: outcome_result.timed_out,
                    stderr: redact_secrets(&outcome_result.stderr.text),
                }),
                (Err(failure), _) => Err(refused(failure)),
                (_, Err(cause)) => {
                    let text = format!("{provider}: its exit could not be recorded: {cause}");
                    Err(refused(Failure::new(Reason::AuditFailed, text)))
                }
            };
            // A send error means that the request was cancelled.
            let _request_cancelled = sender.send(Piece::End(exit)).await;
        });
        Ok(Running { pieces, guard: Box::new(wake.cancel_on_drop()) })
    }
}

fn outcome(outcome_result: &Result<ProcessOutput, Failure>, began: Instant) -> AuditOutcome {
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (outcome, exit_code) = match outcome_result {
        Ok(outcome_result) if outcome_result.cancelled => (Reason::Cancelled.as_str(), None),
        Ok(outcome_result) if outcome_result.timed_out => (Reason::ModelTimedOut.as_str(), None),
        Ok(outcome_result) if outcome_result.exit_code != 0 => {
            (Reason::ToolFailed.as_str(), Some(outcome_result.exit_code))
        }
        Ok(outcome_result) => ("ok", Some(outcome_result.exit_code)),
        Err(failure) => (failure.reason.as_str(), None),
    };
    AuditOutcome { millis, outcome: outcome.to_owned(), exit_code, truncated: false }
}
