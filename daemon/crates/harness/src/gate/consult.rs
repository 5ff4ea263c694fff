//! Consulting hooks about a call. They can refuse it, request an approval and change its arguments;
//! the rules decide about changed arguments as about any others.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    plugin::HookEvent,
};
use serde_json::{Value, json};

use super::Harness;
use crate::{
    Call, DecidedBy, Decision, Hooks, Output, Verdict, hooks::HookVerdict, registry::Entry,
};

/// Field of an output with the texts of hooks.
const FIELD: &str = "hooks";

/// The part of the hooks' answers that takes effect after the rules decided.
#[derive(Debug, Default)]
pub(super) struct Consulted {
    pub refusal: Option<Failure>,
    /// The hook that refuses, with its reason.
    refused_by: String,
    pub context: Vec<String>,
    ask: Option<String>,
    allow: bool,
    /// True if the call has other arguments than those that the rules judged.
    pub is_changed: bool,
}

impl Consulted {
    /// Returns the decision with the answers of the hooks. They make it stricter; `allow` answers
    /// in place of the user only what no rule and no tool requires to be asked.
    pub fn applied(&self, decision: Decision) -> Decision {
        if decision.verdict == Verdict::Deny {
            return decision;
        }
        if self.refusal.is_some() {
            let by = DecidedBy::Plugin(self.refused_by.clone());
            return Decision { verdict: Verdict::Deny, by };
        }
        match &self.ask {
            Some(why) => {
                Decision { verdict: Verdict::Ask, by: DecidedBy::Plugin(format!("asks: {why}")) }
            }
            None if self.allow && decision.verdict == Verdict::Ask && decision.by.is_general() => {
                Decision { verdict: Verdict::Allow, by: DecidedBy::Plugin("allows".into()) }
            }
            None => decision,
        }
    }
}

impl Harness {
    pub(super) fn listening(&self) -> Option<&Arc<dyn Hooks>> {
        self.hooks.as_ref().filter(|hooks| hooks.listens())
    }

    /// Notifies the hooks of a call that the rules do not deny, and changes its arguments where one
    /// requires it.
    ///
    /// # Errors
    /// `invalid_params` for changed arguments that the tool does not take.
    pub(super) async fn consult(
        &self,
        entry: &Entry,
        call: &mut Call,
    ) -> Result<Consulted, Failure> {
        let Some(hooks) = self.listening() else { return Ok(Consulted::default()) };
        let event = HookEvent::BeforeTool {
            session_id: call.session.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        let HookVerdict { refuse, ask, allow, arguments, context, stop, .. } =
            hooks.dispatch(event).await;
        let refused =
            |why: String| Failure::new(Reason::PluginRefused, format!("tool {}: {why}", call.name));
        let refused_by = stop.as_ref().or(refuse.as_ref()).cloned().unwrap_or_default();
        let refusal = match stop {
            Some(why) => Some(refused(why).with_details(json!({"final": true}))),
            None => refuse.map(refused),
        };
        let arguments = arguments.filter(|_| refusal.is_none());
        let is_changed = arguments.as_ref().is_some_and(|changed| *changed != call.arguments);
        if let Some(changed) = arguments {
            let mut changed = self.repaired(&call.session, &call.name, changed);
            entry.tool.withhold_secrets(&call.session, &mut changed);
            entry.check(&changed)?;
            call.arguments = changed;
        }
        Ok(Consulted { refusal, refused_by, context, ask, allow, is_changed })
    }

    /// Notifies the hooks that an approval is requested.
    pub(super) async fn notify_approval(&self, call: &Call) {
        let Some(hooks) = self.listening() else { return };
        let message = format!("the tool {} needs your permission", call.name);
        let session_id = call.session.clone();
        hooks.dispatch(HookEvent::Notification { session_id, message }).await;
    }

    /// Notifies the hooks that a call has finished; their texts become part of its output.
    pub(super) async fn notify_after(
        &self,
        call: (&cairn_protocol::id::SessionId, &str, Value),
        millis: u64,
        outcome: Result<Output, Failure>,
    ) -> Result<Output, Failure> {
        let Some(hooks) = self.listening() else { return outcome };
        let (session_id, tool, arguments) = call;
        let event = HookEvent::AfterTool {
            session_id: session_id.clone(),
            tool: tool.to_owned(),
            outcome: outcome.as_ref().map_or_else(|e| e.reason.as_str(), |_| "ok").to_owned(),
            millis,
            arguments,
            output: outcome.as_ref().ok().map(|output| output.value.clone()),
        };
        let HookVerdict { refuse, context, stop, .. } = hooks.dispatch(event).await;
        if let Some(why) = stop {
            let text = format!("tool {tool}: {why}");
            return Err(
                Failure::new(Reason::PluginRefused, text).with_details(json!({"final": true}))
            );
        }
        outcome.map(|output| with_texts(output, refuse.into_iter().chain(context).collect()))
    }
}

/// Adds texts for the model to an output.
pub(super) fn with_texts(mut output: Output, texts: Vec<String>) -> Output {
    if texts.is_empty() {
        return output;
    }
    match &mut output.value {
        Value::Object(fields) => {
            let all = fields.entry(FIELD).or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.extend(texts.into_iter().map(Value::String));
            }
        }
        other => {
            let value = std::mem::take(other);
            *other = json!({"content": value, FIELD: texts});
        }
    }
    output
}
