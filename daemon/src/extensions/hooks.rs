//! Hooks in the shape that Claude Code and Codex share: programs of the user that receive an event
//! as JSON and answer with an exit code or JSON. They can make the rules stricter; only a hook of
//! the user can allow a call, and only where the configuration lets it.

mod forms;
mod payload;
mod run;
mod sources;

pub use forms::parse;
pub use sources::{Groups, PROJECT_FILES, Sources, trusted_plugins};

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cairn_engine::{
    Engine,
    plugin::{Hook, HookAnswer, HookEvent, Plugin},
};
use cairn_protocol::id::SessionId;

use self::sources::{Event, Source};

/// Maximum number of sessions that something is remembered of.
const MAX_SESSIONS: usize = 512;
/// Time that all hooks of one event may take.
const MAX_TOTAL: Duration = Duration::from_secs(610);

/// All hooks, as one plugin of the engine.
pub struct Hooks {
    engine: Engine,
    sources: Sources,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    /// Sessions whose user knows that hooks of the project do not run.
    notified: HashSet<SessionId>,
    /// Texts of hooks of the session's start, which the first turn receives.
    context: HashMap<SessionId, String>,
}

impl Hooks {
    /// Creates the hooks of a configuration.
    pub fn new(engine: &Engine, sources: Sources) -> Self {
        Self { engine: engine.clone(), sources, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn root(&self, event: &HookEvent) -> Option<PathBuf> {
        if let HookEvent::SessionStart { root, .. } = event {
            return root.clone().map(Into::into);
        }
        // The session of `SessionStop` may be deleted already.
        self.engine.session(event.session()).await.ok()?.root.map(Into::into)
    }

    /// Returns the notice that a project's hooks do not run, once per session.
    fn untrusted_notice(&self, session: &SessionId, root: &Path) -> Option<String> {
        let found = self.sources.untrusted_in(root);
        if found.is_empty() {
            return None;
        }
        let mut sessions = self.sessions();
        if sessions.notified.len() >= MAX_SESSIONS {
            sessions.notified.clear();
        }
        sessions.notified.insert(session.clone()).then(|| {
            format!(
                "the hooks and plugins of this folder ({}) are not used, because their content is not \
                trusted: 'cairn trust {}' shows and trusts it",
                found.join(", "),
                root.display()
            )
        })
    }

    /// Runs the hooks of an event, one after the other, until one refuses.
    async fn run_all(
        &self,
        event: &HookEvent,
        kind: Event,
        root: Option<&Path>,
        all: Vec<(Source, cairn_config::HookCommand)>,
    ) -> HookAnswer {
        let mut total = HookAnswer::default();
        let mut arguments = None;
        for (source, hook) in all {
            let input = payload::input(event, kind, root, arguments.as_ref());
            let sandboxed = self.sources.is_sandboxed(&source, &hook);
            let hook = run::Planned { source: &source, hook: &hook, sandboxed };
            let outcome = run::recorded(&self.engine, event.session(), kind, hook, root, &input);
            let answer = match outcome.await {
                Ok(output) => payload::answer(&output, event, kind, source.may_allow),
                Err(failure) => {
                    if failure.has_no_sandbox && kind == Event::PreToolUse {
                        // It may be there to refuse the call, and could not look at it.
                        let text = format!("a hook could not run: {}", failure.text);
                        add(&mut total, HookAnswer { ask: Some(text), ..HookAnswer::default() });
                    }
                    Err(failure.text)
                }
            };
            match answer {
                Ok(answer) => {
                    arguments = answer.arguments.clone().or(arguments);
                    add(&mut total, answer);
                }
                Err(why) => {
                    tracing::warn!(session = %event.session(), "hook {}: {why}", kind.as_str());
                    let text = format!("a hook of {} failed: {why}", kind.as_str());
                    total.notice = Some(joined(total.notice.take(), text));
                }
            }
            if total.refuse.is_some() || total.stop.is_some() {
                break;
            }
        }
        total
    }
}

#[async_trait::async_trait]
impl Plugin for Hooks {
    fn name(&self) -> &str {
        "hook"
    }

    fn wants(&self, hook: Hook) -> bool {
        // The user is notified of hooks that do not run when a message is sent.
        hook == Hook::UserPrompt || (Event::of(hook).is_some() && self.sources.may_have_hooks())
    }

    fn timeout(&self) -> Duration {
        MAX_TOTAL
    }

    async fn on(&self, event: &HookEvent) -> Result<HookAnswer, String> {
        let Some(kind) = Event::of(event.hook()) else { return Ok(HookAnswer::default()) };
        let root = self.root(event).await;
        let sources = self.sources.clone();
        let folder = root.clone();
        let subject = payload::subject(event);
        let work = move || sources.of(kind, subject.as_deref(), folder.as_deref());
        let all = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?;
        let mut answer = self.run_all(event, kind, root.as_deref(), all).await;
        match (kind, &root) {
            (Event::SessionStart, _) => {
                let mut sessions = self.sessions();
                if sessions.context.len() >= MAX_SESSIONS {
                    sessions.context.clear();
                }
                if let Some(text) = answer.context.take() {
                    sessions.context.insert(event.session().clone(), text);
                }
            }
            (Event::SessionEnd, _) => {
                let mut sessions = self.sessions();
                sessions.context.remove(event.session());
                sessions.notified.remove(event.session());
            }
            (Event::UserPromptSubmit, root) => {
                let first = self.sessions().context.remove(event.session());
                if let Some(first) = first {
                    answer.context = Some(joined(Some(first), answer.context.unwrap_or_default()));
                }
                let untrusted =
                    root.as_ref().and_then(|root| self.untrusted_notice(event.session(), root));
                if let Some(text) = untrusted {
                    answer.notice = Some(joined(answer.notice.take(), text));
                }
            }
            _ => {}
        }
        Ok(answer)
    }
}

fn joined(first: Option<String>, second: String) -> String {
    match first {
        Some(first) if second.is_empty() => first,
        Some(first) => format!("{first}\n{second}"),
        None => second,
    }
}

/// Adds the answer of one hook to those before it: the stricter one counts.
fn add(total: &mut HookAnswer, answer: HookAnswer) {
    let HookAnswer { refuse, ask, allow, arguments, context, notice, stop } = answer;
    total.refuse = total.refuse.take().or(refuse);
    total.ask = total.ask.take().or(ask);
    total.stop = total.stop.take().or(stop);
    total.allow |= allow;
    total.arguments = arguments.or(total.arguments.take());
    if let Some(text) = context {
        total.context = Some(joined(total.context.take(), text));
    }
    if let Some(text) = notice {
        total.notice = Some(joined(total.notice.take(), text));
    }
}
