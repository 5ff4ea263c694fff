//! Questions of the gate, asked through a client that can ask its user (elicitation).
//!
//! Where the protocol has requests of the server, the question is one of them and the call waits. Where it has none, the
//! call's first answer is the question; the work waits here, parked, until the client sends the same call again with the
//! user's answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalResolveParams},
    error::{Failure, Reason},
    event::AgentEvt,
    id::ApprovalId,
    rpc,
    session::{After, EventNotification, LiveWord, SubscribeParams, SubscribeResult},
    tool::{ToolCallParams, ToolResult},
};
use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

use super::client::{Client, rights};
use crate::queue::{Notification, Queue};

/// Questions of one call that wait.
const QUESTIONS: usize = 8;
/// Calls that wait for another request with the answer.
const PARKED: usize = 64;
/// Name of the question in an answer that asks.
const QUESTION: &str = "approval";
/// Bytes of a diff that a question shows.
const DIFF: usize = 4 * 1024;

/// Whether the client can put a question to its user.
pub fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    // A declaration without modes means forms; one with modes must name them.
    let forms = |e: rmcp::model::ElicitationCapability| e.form.is_some() || e.url.is_none();
    context.client_capabilities().and_then(|c| c.elicitation).is_some_and(forms)
}

/// How far a call is.
pub enum Step {
    /// It has ended.
    Done(ToolResult),
    /// The client must put a question first.
    Asked(Box<InputRequiredResult>),
}

/// A call at work, and the questions that the gate has about it.
pub struct Running {
    call: JoinHandle<Result<ToolResult, Failure>>,
    questions: mpsc::Receiver<Approval>,
    watch: JoinHandle<()>,
    /// While this connection is open there is somebody who answers.
    _approver: Queue,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Dropping what waits for the call cancels it.
        self.call.abort();
        self.watch.abort();
    }
}

impl Running {
    /// Starts a call whose questions are asked.
    pub async fn start(client: &Arc<Client>, params: ToolCallParams) -> Result<Self, Failure> {
        let (approver, events) = Queue::open(&client.host.api, rights())?;
        approver.initialize(&client.caller.name, &client.caller.version, true).await?;
        let live = Some(After::Word(LiveWord::Live));
        let follow = SubscribeParams { session_id: params.session_id.clone(), after: live };
        let _followed: SubscribeResult = approver.ask("orchestrate.subscribe", &follow).await?;
        let (ask, questions) = mpsc::channel(QUESTIONS);
        let watch = tokio::spawn(watch(events, ask, Arc::clone(client), params.clone()));
        let under = client.queue.clone();
        let call = tokio::spawn(async move { under.ask("tool.call", &params).await });
        Ok(Self { call, questions, watch, _approver: approver })
    }

    /// Waits for the end, or asks.
    pub async fn go_on(
        mut self,
        client: &Arc<Client>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Step, Failure> {
        // Since then the server sends no requests.
        let inline = context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
        loop {
            let approval = match self.next().await? {
                Next::Done(result) => return Ok(Step::Done(result)),
                Next::Question(approval) => approval,
            };
            if inline {
                return client.host.parked.park(self, approval, request).map(|q| Step::Asked(Box::new(q)));
            }
            let question = question(&approval);
            let answer = tokio::select! {
                answer = context.peer.create_elicitation(question) => answer,
                // Somebody else answered, or the deadline came.
                ended = &mut self.call => return told(ended).map(Step::Done),
            };
            let answer = answer.map_err(|e| e.to_string());
            resolve(client, &approval, answer).await;
        }
    }

    async fn next(&mut self) -> Result<Next, Failure> {
        tokio::select! {
            ended = &mut self.call => told(ended).map(Next::Done),
            Some(approval) = self.questions.recv() => Ok(Next::Question(Box::new(approval))),
        }
    }
}

enum Next {
    Done(ToolResult),
    Question(Box<Approval>),
}

fn told(ended: Result<Result<ToolResult, Failure>, tokio::task::JoinError>) -> Result<ToolResult, Failure> {
    ended.unwrap_or_else(|e| {
        Err(Failure::new(Reason::Internal, format!("the call ended without an answer: {e}")))
    })
}

/// Questions that one call asks; others may ask them again once it has ended.
struct Asking(Arc<Client>, Vec<ApprovalId>);

impl Asking {
    /// Whether nobody asks this one yet.
    fn is_fresh(&mut self, id: &ApprovalId) -> bool {
        let fresh = self.0.host.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        if fresh {
            self.1.push(id.clone());
        }
        fresh
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut asked = self.0.host.asked.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &self.1 {
            asked.remove(id);
        }
    }
}

/// Hands on the questions about this very call. Two calls may be the same; each question is asked once.
async fn watch(
    mut events: mpsc::Receiver<Notification>,
    ask: mpsc::Sender<Approval>,
    client: Arc<Client>,
    params: ToolCallParams,
) {
    let mut asking = Asking(client, Vec::new());
    while let Some(told) = events.recv().await {
        if told.method != rpc::EVENT {
            continue;
        }
        let Ok(event) = serde_json::from_value::<EventNotification>(told.params) else { continue };
        let Some(AgentEvt::ApprovalRequired { approval }) = event.record.body.evt() else { continue };
        // An older name of a tool is asked about under its own.
        let same = approval.tool == params.name || approval.arguments == params.arguments;
        if same && asking.is_fresh(&approval.approval_id) && ask.send((**approval).clone()).await.is_err() {
            return;
        }
    }
}

/// What the user is asked.
fn question(approval: &Approval) -> ElicitRequestParams {
    let preview = &approval.preview;
    let mut text = format!("Cairn: may {} act? {}", approval.tool, preview.summary);
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("\n{name}: {value}"));
        }
    };
    add("command", preview.command.as_deref().unwrap_or_default());
    add("folder", preview.folder.as_deref().unwrap_or_default());
    add("paths", &preview.paths.join(", "));
    preview.warnings.iter().for_each(|w| add("warning", w));
    add("why it is asked", &approval.rule);
    add("'session' and 'always' would allow", &approval.grants);
    let diff = preview.diff.as_deref().unwrap_or_default();
    add("change", &super::shape::bounded(diff.to_owned(), DIFF, "the whole change is in the session's log"));
    let mut shown = String::new();
    for c in text.chars().filter(|c| !c.is_control() || *c == '\n') {
        if is_unseen(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: shown,
        requested_schema: choices(approval),
    }
}

/// True if a character is seen by nobody and changes how others are shown.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn choices(approval: &Approval) -> ElicitationSchema {
    // Without a rule to write, a yes is for once.
    let (names, titles): (&[&str], &[&str]) = match approval.grants.is_empty() {
        true => (&["once", "deny"], &["Yes, this once", "No"]),
        false => (
            &["once", "session", "always", "deny"],
            &["Yes, this once", "Yes, for this session", "Yes, always", "No"],
        ),
    };
    let schema = json!({
        "type": "object", "required": ["decision"],
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": names, "enumNames": titles},
            "reason": {"type": "string", "title": "Why, told to the agent", "maxLength": 2000},
        },
    });
    let Value::Object(schema) = schema else { return ElicitationSchema::new(Default::default()) };
    ElicitationSchema::from_json_schema(schema).unwrap_or_else(|_| ElicitationSchema::new(Default::default()))
}

/// What the user said. Everything but a clear yes is a no.
fn decision(answer: Result<ElicitResult, String>) -> (ApprovalDecision, Option<String>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return (ApprovalDecision::Deny, Some(format!("the client could not ask: {error}"))),
    };
    let field = |name: &str| answer.content.as_ref().and_then(|c| c.get(name)).and_then(Value::as_str);
    let reason = field("reason").map(|r| r.chars().take(2000).collect::<String>()).filter(|r| !r.is_empty());
    match answer.action {
        ElicitationAction::Accept => {
            (field("decision").and_then(ApprovalDecision::parse).unwrap_or(ApprovalDecision::Deny), reason)
        }
        _ => (ApprovalDecision::Deny, reason),
    }
}

async fn resolve(client: &Client, approval: &Approval, answer: Result<ElicitResult, String>) {
    let (decision, reason) = decision(answer);
    let params =
        ApprovalResolveParams { approval_id: approval.approval_id.clone(), decision, reason, pattern: None };
    if let Err(error) = client.queue.ask::<Value>("approval.resolve", &params).await {
        // Somebody else was faster; the call goes by that answer.
        tracing::debug!(%error, "an approval was answered elsewhere");
    }
}

/// Calls that wait for the user's answer in another request, by a handle that nobody can guess.
#[derive(Default)]
pub struct Parked(Mutex<HashMap<String, Waiting>>);

/// A call that waits.
pub struct Waiting {
    running: Running,
    approval: Box<Approval>,
    name: String,
    arguments: Value,
}

impl Parked {
    fn park(
        &self,
        running: Running,
        approval: Box<Approval>,
        request: &CallToolRequestParams,
    ) -> Result<InputRequiredResult, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose deadline came have ended.
        all.retain(|_, waiting| !waiting.running.call.is_finished());
        if all.len() >= PARKED {
            return Err(Failure::new(
                Reason::Overloaded,
                format!("{PARKED} calls wait for an answer already"),
            ));
        }
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|e| {
            Failure::new(Reason::Internal, format!("the system gives no random numbers: {e}"))
        })?;
        let handle = hex::encode(secret);
        let asked = InputRequest::Elicitation(ElicitRequest::new(question(&approval)));
        let (name, arguments) = (request.name.clone().into_owned(), given(request));
        all.insert(handle.clone(), Waiting { running, approval, name, arguments });
        Ok(InputRequiredResult::new(Some([(QUESTION.to_owned(), asked)].into()), Some(handle)))
    }

    /// The call that `handle` stands for, when `request` is the same call again.
    ///
    /// # Errors
    /// `approval_not_found` when there is none.
    pub fn take(&self, handle: &str, request: &CallToolRequestParams) -> Result<Waiting, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |w: &Waiting| w.name == request.name && w.arguments == given(request);
        if all.get(handle).is_some_and(same)
            && let Some(waiting) = all.remove(handle)
        {
            return Ok(waiting);
        }
        let text =
            "no such call waits for an answer: it was answered, its time is over, or its arguments differ";
        Err(Failure::new(Reason::ApprovalNotFound, text))
    }
}

fn given(request: &CallToolRequestParams) -> Value {
    Value::Object(request.arguments.clone().unwrap_or_default())
}

/// Goes on with a call whose question was put to the user.
pub async fn resume(
    waiting: Waiting,
    request: &CallToolRequestParams,
    client: &Arc<Client>,
) -> Result<Step, Failure> {
    let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
    let answer = answer.ok_or_else(|| "no answer was sent".to_owned());
    let answer =
        answer.and_then(|a| serde_json::from_value::<ElicitResult>(a.clone()).map_err(|e| e.to_string()));
    resolve(client, &waiting.approval, answer).await;
    let mut running = waiting.running;
    match running.next().await? {
        Next::Done(result) => Ok(Step::Done(result)),
        Next::Question(approval) => {
            client.host.parked.park(running, approval, request).map(|q| Step::Asked(Box::new(q)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let said = |action, content: Value| {
            let mut answer = ElicitResult::new(action);
            answer.content = Some(content);
            decision(Ok(answer)).0
        };
        use ApprovalDecision::{Always, Deny, Once};
        for (action, content, want) in [
            (ElicitationAction::Accept, json!({"decision": "once"}), Once),
            (ElicitationAction::Accept, json!({"decision": "always"}), Always),
            (ElicitationAction::Accept, json!({"decision": "yes"}), Deny),
            (ElicitationAction::Accept, json!({}), Deny),
            (ElicitationAction::Decline, json!({"decision": "once"}), Deny),
            (ElicitationAction::Cancel, json!(null), Deny),
        ] {
            assert_eq!(said(action, content.clone()), want, "{content}");
        }
        let (no, why) = decision(Err("gone".into()));
        assert!(no == Deny && why.unwrap().contains("gone"));
    }
}
