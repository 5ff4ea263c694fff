//! The user's own command-line agents, started as models: in the sandbox, in an empty folder, with what the configuration
//! grants them and nothing else, and never without a line in the audit.

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
    sandbox::{Confined, Ended, Limits, Stream, Wake},
};
use cairn_llm::{Exit, Launch, Launcher, LlmError, Piece, Running, WAITING_PIECES};
use cairn_protocol::error::{Failure, Reason};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use tokio::sync::mpsc;

use crate::compose;

/// Address space of each of its processes, or memory of all of them where a control group bounds it: runtimes of JavaScript
/// reserve far more than they use.
const MEMORY: u64 = 64 << 30;
/// Bytes of standard error that are kept.
const KEPT: usize = 16 * 1024;
/// Folders of runs, so that no two share one.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// What is known of an agent's program.
struct Known {
    /// Its usual name.
    program: &'static str,
    /// The folder with its login, in the home folder.
    folder: &'static str,
    /// The variable that names that folder.
    variable: &'static str,
}

fn known(provider: &str) -> Option<Known> {
    match provider {
        "claudeCode" => Some(Known { program: "claude", folder: ".claude", variable: "CLAUDE_CONFIG_DIR" }),
        "codex" => Some(Known { program: "codex", folder: ".codex", variable: "CODEX_HOME" }),
        _ => None,
    }
}

/// Starts the agents that the configuration names.
pub struct Agents {
    programs: BTreeMap<String, AgentProgram>,
    sandboxes: BTreeMap<String, Arc<Sandbox>>,
    trace: Trace,
    /// Where runs have their folders.
    runs: PathBuf,
    home: Option<PathBuf>,
    path: Vec<PathBuf>,
}

impl Agents {
    /// Those of `config`, whose runs have their folders in `runs`.
    pub fn new(config: &Config, trace: Trace, runs: PathBuf) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = std::env::var_os("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
        let mut agents =
            Self { programs: config.llm.agents.clone(), sandboxes: BTreeMap::new(), trace, runs, home, path };
        for (name, program) in &config.llm.agents {
            // The user has named this folder for this program: what it lies in is not shown to it all the same.
            let own = agents.credentials(name, program);
            let mut blocked = config.safety.sandbox_blocked_paths.clone();
            blocked.retain(|path| !own.as_ref().is_some_and(|own| own.starts_with(agents.expanded(path))));
            agents.sandboxes.insert(name.clone(), Arc::new(compose::sandbox(config, blocked)));
        }
        agents
    }

    fn expanded(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }

    /// The folder with an agent's login, if it is there.
    fn credentials(&self, provider: &str, program: &AgentProgram) -> Option<PathBuf> {
        let usual = || Some(self.home.as_ref()?.join(known(provider)?.folder));
        let named = program.credentials.as_ref().map(|path| self.expanded(path)).or_else(usual)?;
        named.canonicalize().ok()
    }

    /// The agent's settings, its program and its sandbox.
    fn find(&self, provider: &str) -> Result<(&AgentProgram, Known, PathBuf), LlmError> {
        let none = || {
            LlmError::NotSupported(format!(
                "{provider} is not set up: add \"llm\": {{\"agents\": {{\"{provider}\": {{}}}}}} to the configuration"
            ))
        };
        let (settings, known) = self.programs.get(provider).zip(known(provider)).ok_or_else(none)?;
        let missing = |wanted: &str| {
            let text =
                format!("{provider}: there is no {wanted}: install it, or set llm.agents.{provider}.path");
            LlmError::Host { reason: Reason::ModelUnavailable, text }
        };
        let runs = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let (place, wanted) = match &settings.path {
            Some(path) => (Some(self.expanded(path)).filter(runs), format!("program {}", path.display())),
            None => {
                let found = self.path.iter().map(|dir| dir.join(known.program)).find(runs);
                (found, format!("program '{}' on the search path", known.program))
            }
        };
        Ok((settings, known, place.ok_or_else(|| missing(&wanted))?))
    }

    fn confined(&self, launch: &Launch, run: &Path) -> Result<Confined, LlmError> {
        let (settings, known, place) = self.find(launch.provider)?;
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        let mut argv = vec![real.to_string_lossy().into_owned()];
        argv.extend(settings.arguments.iter().cloned());
        argv.extend(launch.arguments.iter().cloned());
        let mut confined = Confined::program(argv, run.to_owned());
        confined.readable = settings.readable.iter().map(|path| self.expanded(path)).collect();
        confined.readable.push(package(&real));
        // Parts are joined to the root, and a whole path stays what it is.
        let mut spaces = vec![run.to_string_lossy().into_owned()];
        if let Some(folder) = self.credentials(launch.provider, settings) {
            let text = folder.to_string_lossy().into_owned();
            confined.env.push((known.variable.to_owned(), text.clone()));
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
        (confined.root, confined.parts) = (Some(run.to_owned()), Some(spaces));
        confined.network = true;
        confined.input = Some(run.join(QUESTION));
        confined.limits = Limits { wall: launch.total, memory: MEMORY, output: KEPT, ..Limits::default() };
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
            let text = format!("{} was not started: it could not be recorded: {cause}", launch.provider);
            Failure::new(Reason::AuditFailed, text)
        })
    }
}

/// The file with the question, in the run's folder.
const QUESTION: &str = ".question";

/// The folder that a program's own files lie in: the one of its packages for a script of npm's, else the one it is in.
fn package(program: &Path) -> PathBuf {
    let packages = program.ancestors().find(|path| path.ends_with("node_modules"));
    packages.or(program.parent()).unwrap_or(program).to_owned()
}

/// A run's own folder; it goes with the run.
struct Folder(PathBuf);

impl Folder {
    fn make(runs: &Path, prompt: &str) -> std::io::Result<Self> {
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(runs)?;
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder = Self(runs.join(format!("{}-{number}", std::process::id())));
        private.recursive(false).create(&folder.0)?;
        let question = folder.0.join(QUESTION);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(question)?;
        file.write_all(prompt.as_bytes())?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the folder of an agent's run stays");
        }
    }
}

/// Ends a run that nobody waits for.
struct EndOnDrop(Wake);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
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
        let io = |error| refused(Failure::new(Reason::ToolFailed, format!("{}: {error}", launch.provider)));
        let folder = Folder::make(&self.runs, &launch.prompt).map_err(io)?;
        let confined = self.confined(&launch, &folder.0)?;
        let audit = self.audit(&launch, &confined).await.map_err(refused)?;
        let wake = Wake::new().map_err(refused)?;
        let (tell, pieces) = mpsc::channel(WAITING_PIECES);
        let (running, out, trace) = (wake.clone(), tell.clone(), self.trace.clone());
        let provider = launch.provider;
        tokio::spawn(async move {
            let began = Instant::now();
            let work = tokio::task::spawn_blocking(move || {
                let stop = running.clone();
                let ended = sandbox.run(&confined, &running, &mut |stream, bytes| {
                    if stream == Stream::Out && out.blocking_send(Piece::Out(bytes.to_vec())).is_err() {
                        stop.end();
                    }
                });
                drop(folder);
                ended
            });
            let lost = |e| Failure::new(Reason::Internal, format!("{provider} could not be followed: {e}"));
            let ended = work.await.unwrap_or_else(|e| Err(lost(e)));
            let done = outcome(&ended, began);
            let recorded = trace.audit_outcome(audit, done, None).await;
            let exit = match (ended, recorded) {
                (Ok(ended), Ok(())) => Ok(Exit {
                    code: ended.exit_code,
                    timed_out: ended.timed_out,
                    stderr: redact_secrets(&ended.stderr.text),
                }),
                (Err(failure), _) => Err(refused(failure)),
                (_, Err(cause)) => {
                    let text = format!("{provider}: its end could not be recorded: {cause}");
                    Err(refused(Failure::new(Reason::AuditFailed, text)))
                }
            };
            // Nobody waits any more: the question was cancelled.
            let _gone = tell.send(Piece::End(exit)).await;
        });
        Ok(Running { pieces, held: Box::new(EndOnDrop(wake)) })
    }
}

fn outcome(ended: &Result<Ended, Failure>, began: Instant) -> AuditOutcome {
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (outcome, exit_code) = match ended {
        Ok(ended) if ended.cancelled => (Reason::Cancelled.as_str(), None),
        Ok(ended) if ended.timed_out => (Reason::ModelTimedOut.as_str(), None),
        Ok(ended) if ended.exit_code != 0 => (Reason::ToolFailed.as_str(), Some(ended.exit_code)),
        Ok(ended) => ("ok", Some(ended.exit_code)),
        Err(failure) => (failure.reason.as_str(), None),
    };
    AuditOutcome { millis, outcome: outcome.to_owned(), exit_code, truncated: false }
}
