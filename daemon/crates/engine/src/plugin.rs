//! Plugins: notified by the host's events, in order, each isolated from the others.
//!
//! A plugin that is late, fails or panics affects nothing else: it is skipped with a warning,
//! unless it is marked as required; then the event that it should have judged is refused.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use cairn_harness::{HookVerdict, Hooks};
pub use cairn_protocol::plugin::{Hook, HookAnswer, HookEvent};

/// Default time limit of one hook of one plugin.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// Most characters of a refusal.
const MAX_REASON: usize = 500;
/// Most characters of a text for the model.
const MAX_CONTEXT: usize = 10_000;

/// An observer of sessions, tool calls and requests to models.
#[async_trait::async_trait]
pub trait Plugin: Send + Sync {
    /// Returns its name, for refusals and the log.
    fn name(&self) -> &str;

    /// Returns true if it handles the hook; all hooks by default.
    fn wants(&self, _hook: Hook) -> bool {
        true
    }

    /// Returns the time limit of one hook.
    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    /// Returns true if an event that it should judge is refused when it fails.
    fn required(&self) -> bool {
        false
    }

    /// Handles an event. A refusal has an effect for `before_tool` and `before_model` alone.
    async fn on(&self, event: &HookEvent) -> Result<HookAnswer, String>;
}

/// The plugins, in their order.
#[derive(Default)]
pub(crate) struct Plugins(RwLock<Arc<Vec<Arc<dyn Plugin>>>>);

impl Plugins {
    pub fn set(&self, plugins: Vec<Arc<dyn Plugin>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plugins);
    }

    fn list(&self) -> Arc<Vec<Arc<dyn Plugin>>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait::async_trait]
impl Hooks for Plugins {
    fn listens(&self) -> bool {
        !self.list().is_empty()
    }

    async fn dispatch(&self, event: HookEvent) -> HookVerdict {
        let hook = event.hook();
        let is_judged = matches!(
            hook,
            Hook::BeforeTool
                | Hook::BeforeModel
                | Hook::AfterTool
                | Hook::UserPrompt
                | Hook::TurnStop
        );
        let mut event = Arc::new(event);
        let mut verdict = HookVerdict::default();
        for plugin in self.list().iter().filter(|p| p.wants(hook)) {
            let answer = match call_plugin(Arc::clone(plugin), Arc::clone(&event)).await {
                Ok(answer) => answer,
                Err(why) => {
                    tracing::warn!(plugin = plugin.name(), ?hook, session = %event.session(), "{why}");
                    let refuse =
                        plugin.required().then(|| format!("it is required and failed: {why}"));
                    HookAnswer { refuse, ..HookAnswer::default() }
                }
            };
            if let (Some(changed), HookEvent::BeforeTool { session_id, tool, .. }) =
                (&answer.arguments, &*event)
            {
                // Later plugins judge the call as it is now.
                let (session_id, tool) = (session_id.clone(), tool.clone());
                let arguments = changed.clone();
                event = Arc::new(HookEvent::BeforeTool { session_id, tool, arguments });
            }
            add(&mut verdict, plugin.name(), answer);
            if is_judged && (verdict.refuse.is_some() || verdict.stop.is_some()) {
                break;
            }
        }
        if !is_judged {
            verdict.refuse = None;
        }
        verdict
    }
}

/// Adds one plugin's answer to those before it.
fn add(verdict: &mut HookVerdict, plugin: &str, answer: HookAnswer) {
    let named =
        |why: String| -> String { format!("{plugin}: {why}").chars().take(MAX_REASON).collect() };
    verdict.refuse = verdict.refuse.take().or(answer.refuse.map(named));
    verdict.ask = verdict.ask.take().or(answer.ask.map(named));
    verdict.stop = verdict.stop.take().or(answer.stop.map(named));
    verdict.allow |= answer.allow;
    verdict.arguments = answer.arguments.or(verdict.arguments.take());
    verdict.context.extend(answer.context.map(|text| text.chars().take(MAX_CONTEXT).collect()));
    verdict.notices.extend(answer.notice.map(named));
}

/// Returns one plugin's answer. It runs in a task of its own, so that a panic affects it alone.
async fn call_plugin(plugin: Arc<dyn Plugin>, event: Arc<HookEvent>) -> Result<HookAnswer, String> {
    let limit = plugin.timeout();
    let mut work = tokio::spawn(async move { plugin.on(&event).await });
    match tokio::time::timeout(limit, &mut work).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failed)) => Err(format!("it failed: {failed}")),
        Err(_) => {
            work.abort();
            Err(format!("it took longer than {} ms", limit.as_millis()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cairn_protocol::id::SessionId;

    use super::*;

    type Act = fn(&HookEvent) -> Result<HookAnswer, String>;

    struct Probe {
        name: &'static str,
        act: Act,
        required: bool,
        events: Arc<Mutex<Vec<(&'static str, Hook)>>>,
    }

    #[async_trait::async_trait]
    impl Plugin for Probe {
        fn name(&self) -> &str {
            self.name
        }

        fn required(&self) -> bool {
            self.required
        }

        fn timeout(&self) -> Duration {
            Duration::from_millis(50)
        }

        async fn on(&self, event: &HookEvent) -> Result<HookAnswer, String> {
            self.events.lock().unwrap().push((self.name, event.hook()));
            if self.name == "slow" {
                std::future::pending::<()>().await;
            }
            (self.act)(event)
        }
    }

    fn fine(_: &HookEvent) -> Result<HookAnswer, String> {
        Ok(HookAnswer::default())
    }

    fn refuses(_: &HookEvent) -> Result<HookAnswer, String> {
        Ok(HookAnswer { refuse: Some("no".into()), ..HookAnswer::default() })
    }

    fn panics(_: &HookEvent) -> Result<HookAnswer, String> {
        panic!("a defect of the plugin")
    }

    fn fails(_: &HookEvent) -> Result<HookAnswer, String> {
        Err("broken".into())
    }

    fn event(hook: Hook) -> HookEvent {
        let (session_id, tool) = (SessionId::new(), "read_file".to_owned());
        match hook {
            Hook::BeforeTool => {
                HookEvent::BeforeTool { session_id, tool, arguments: serde_json::json!({}) }
            }
            Hook::AfterTool => HookEvent::AfterTool {
                session_id,
                tool,
                outcome: "ok".into(),
                millis: 1,
                arguments: serde_json::json!({}),
                output: None,
            },
            _ => HookEvent::SessionStop { session_id },
        }
    }

    async fn dispatch(
        all: &[(&'static str, Act, bool)],
        hook: Hook,
    ) -> (Option<String>, Vec<&'static str>) {
        let events = Arc::new(Mutex::new(vec![]));
        let plugins = Plugins::default();
        let probe = |&(name, act, required): &(&'static str, Act, bool)| {
            Arc::new(Probe { name, act, required, events: Arc::clone(&events) }) as Arc<dyn Plugin>
        };
        plugins.set(all.iter().map(probe).collect());
        let refused = plugins.dispatch(event(hook)).await.refuse;
        let names = events.lock().unwrap().iter().map(|(name, _)| *name).collect();
        (refused, names)
    }

    #[tokio::test]
    async fn plugins_are_called_in_order_and_failures_are_isolated() {
        let all: [(&str, Act, bool); 5] = [
            ("a", fine, false),
            ("bad", fails, false),
            ("mad", panics, false),
            ("slow", fine, false),
            ("z", fine, false),
        ];
        let (refused, events) = dispatch(&all, Hook::BeforeTool).await;
        assert_eq!((refused, events), (None, vec!["a", "bad", "mad", "slow", "z"]));
    }

    #[tokio::test]
    async fn first_refusal_stops_refusable_events() {
        let all: [(&str, Act, bool); 3] =
            [("a", fine, false), ("guard", refuses, false), ("z", fine, false)];
        let (refused, events) = dispatch(&all, Hook::BeforeTool).await;
        assert_eq!((refused.as_deref(), events), (Some("guard: no"), vec!["a", "guard"]));
        let (refused, events) = dispatch(&all, Hook::SessionStop).await;
        assert_eq!((refused, events), (None, vec!["a", "guard", "z"]));
    }

    #[tokio::test]
    async fn failure_of_required_plugin_refuses() {
        for (name, act) in [("bad", fails as Act), ("mad", panics), ("slow", fine)] {
            let (refused, _) = dispatch(&[(name, act, true)], Hook::BeforeTool).await;
            assert!(refused.is_some_and(|why| why.contains("it is required and failed")), "{name}");
            assert_eq!(dispatch(&[(name, act, true)], Hook::SessionStop).await.0, None, "{name}");
        }
    }
}
