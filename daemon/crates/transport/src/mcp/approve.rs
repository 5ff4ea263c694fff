//! Approvals by elicitation: the gate's questions, shown to the user of the MCP client.
//!
//! If the protocol version has requests of the server, the question is such a request and the call
//! waits. Otherwise the first answer of the call is the question, and the call stays parked here
//! until the client repeats it with the user's answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_api::{Right, Rights};
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

use super::{
    client::{Client, rights},
    explore::Progress,
    forms,
    pending::{self, REMINDER_INTERVAL},
};
use crate::in_process::{InProcessClient, Notification};

/// Maximum number of pending questions per call.
const MAX_QUESTIONS: usize = 8;
/// Maximum number of calls that wait for another request with the answer.
const MAX_PARKED: usize = 64;
/// Key of the question in an answer that requires input.
const QUESTION: &str = "approval";
/// Maximum bytes of a diff in a question.
const MAX_DIFF: usize = 4 * 1024;

/// Returns true if the client can show a question to its user.
pub fn supports_elicitation(context: &RequestContext<RoleServer>) -> bool {
    // A declaration without modes means forms; one with modes must name forms.
    let forms = |e: rmcp::model::ElicitationCapability| e.form.is_some() || e.url.is_none();
    context.client_capabilities().and_then(|c| c.elicitation).is_some_and(forms)
}

/// The state of a call.
pub enum Step {
    /// The call has finished.
    Done(ToolResult),
    /// The client must answer a question first.
    QuestionPending(Box<InputRequiredResult>),
}

/// A running call and its questions.
pub struct Running {
    call: JoinHandle<Result<ToolResult, Failure>>,
    questions: mpsc::Receiver<Approval>,
    watch: JoinHandle<()>,
    /// The last question of the call.
    last_question: Option<Box<Approval>>,
    /// True if questions are shown to the user of this client; else others answer them.
    is_approver: bool,
    /// Receives the questions. An approver is available while this client is open.
    _follower: InProcessClient,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Dropping the pending request cancels the call.
        self.call.abort();
        self.watch.abort();
    }
}

impl Running {
    /// Starts a call and follows its approvals, which become questions of an approver.
    pub async fn start(
        client: &Arc<Client>,
        params: ToolCallParams,
        is_approver: bool,
    ) -> Result<Self, Failure> {
        let rights = if is_approver { rights() } else { Rights::of(&[Right::Observe]) };
        let (follower, events) = InProcessClient::open(&client.host.api, rights)?;
        let caller = &client.caller;
        follower.initialize(&caller.name, &caller.version, is_approver).await?;
        let live = Some(After::Word(LiveWord::Live));
        let follow = SubscribeParams { session_id: params.session_id.clone(), after: live };
        let _followed: SubscribeResult = follower.request("orchestrate.subscribe", &follow).await?;
        let (question_sender, questions) = mpsc::channel(MAX_QUESTIONS);
        let watch =
            tokio::spawn(watch(events, question_sender, Arc::clone(client), params.clone()));
        let under = client.api.clone();
        let call = tokio::spawn(async move { under.request("tool.call", &params).await });
        Ok(Self { call, questions, watch, last_question: None, is_approver, _follower: follower })
    }

    /// Waits for the end of the call or for its next question. A pending question is reported to
    /// the agent at once and in intervals, so that its client does not give up.
    pub async fn next_step(
        mut self,
        client: &Arc<Client>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Step, Failure> {
        // Servers send no requests since this version.
        let inline = context.protocol_version().is_some_and(|v| v >= ProtocolVersion::V_2026_07_28);
        let mut progress = Progress::of(&context.meta, &context.peer);
        loop {
            let approval = match self.next(&mut progress).await? {
                Next::Done(result) => return self.done(client, result).await,
                Next::Question(approval) => approval,
            };
            progress.step(&pending::text(&approval)).await;
            self.last_question = Some(approval.clone());
            if !self.is_approver {
                continue;
            }
            if inline {
                return client
                    .host
                    .parked
                    .park(self, approval, request)
                    .map(|q| Step::QuestionPending(Box::new(q)));
            }
            let question = question(&approval);
            let answer = tokio::select! {
                answer = context.peer.create_elicitation(question) => answer,
                // Another client answered, or the deadline passed.
                outcome = &mut self.call => return self.done(client, join_outcome(outcome)?).await,
            };
            let answer = answer.map_err(|e| e.to_string());
            resolve(client, &approval, answer).await;
        }
    }

    async fn done(&self, client: &Client, result: ToolResult) -> Result<Step, Failure> {
        Ok(Step::Done(match &self.last_question {
            Some(question) => pending::with_reason(client, question, result).await,
            None => result,
        }))
    }

    async fn next(&mut self, progress: &mut Progress) -> Result<Next, Failure> {
        let mut reminder = tokio::time::interval(REMINDER_INTERVAL);
        reminder.tick().await;
        loop {
            tokio::select! {
                outcome = &mut self.call => return join_outcome(outcome).map(Next::Done),
                Some(approval) = self.questions.recv() => {
                    return Ok(Next::Question(Box::new(approval)));
                }
                _ = reminder.tick() => if let Some(question) = &self.last_question {
                    progress.step(&pending::text(question)).await;
                },
            }
        }
    }
}

enum Next {
    Done(ToolResult),
    Question(Box<Approval>),
}

fn join_outcome(
    outcome: Result<Result<ToolResult, Failure>, tokio::task::JoinError>,
) -> Result<ToolResult, Failure> {
    outcome.unwrap_or_else(|e| {
        Err(Failure::new(Reason::Internal, format!("the call ended without an answer: {e}")))
    })
}

/// Questions that one call is asking; once it has ended, others may ask them again.
struct ClaimedQuestions(Arc<Client>, Vec<ApprovalId>);

impl ClaimedQuestions {
    /// Returns true if no call is asking this question yet.
    fn claim(&mut self, id: &ApprovalId) -> bool {
        let fresh = self
            .0
            .host
            .open_questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone());
        if fresh {
            self.1.push(id.clone());
        }
        fresh
    }
}

impl Drop for ClaimedQuestions {
    fn drop(&mut self) {
        let mut open = self.0.host.open_questions.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &self.1 {
            open.remove(id);
        }
    }
}

/// Forwards the approvals that belong to this call. Two calls may be equal; each question is asked
/// once.
async fn watch(
    mut events: mpsc::Receiver<Notification>,
    questions: mpsc::Sender<Approval>,
    client: Arc<Client>,
    params: ToolCallParams,
) {
    let mut asking = ClaimedQuestions(client, Vec::new());
    while let Some(notification) = events.recv().await {
        if notification.method != rpc::EVENT {
            continue;
        }
        let Ok(event) = serde_json::from_value::<EventNotification>(notification.params) else {
            continue;
        };
        let Some(AgentEvt::ApprovalRequired { approval }) = event.record.body.evt() else {
            continue;
        };
        // Deprecated tool names are approved under the present name.
        let same = approval.tool == params.name || approval.arguments == params.arguments;
        if same
            && asking.claim(&approval.approval_id)
            && questions.send((**approval).clone()).await.is_err()
        {
            return;
        }
    }
}

/// Renders the question for the user.
fn question(approval: &Approval) -> ElicitRequestParams {
    if let Some(form) = &approval.form {
        return ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: visible(&forms::message(form)),
            requested_schema: forms::schema(form),
        };
    }
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
    add("reason", &approval.rule);
    add("an answer for more than this call would allow", &approval.grants.join(", "));
    add("'always' holds in", approval.project.as_deref().unwrap_or_default());
    let diff = preview.diff.as_deref().unwrap_or_default();
    add(
        "change",
        &super::format::bounded(
            diff.to_owned(),
            MAX_DIFF,
            "the complete change is in the session's log",
        ),
    );
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: visible(&text),
        requested_schema: choices(approval),
    }
}

/// Returns a text without control characters, and with invisible ones escaped.
fn visible(text: &str) -> String {
    let mut visible = String::new();
    for c in text.chars().filter(|c| !c.is_control() || *c == '\n') {
        if is_invisible(c) {
            visible.extend(c.escape_unicode());
        } else {
            visible.push(c);
        }
    }
    visible
}

/// Returns true for invisible characters that change how others are displayed.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn choices(approval: &Approval) -> ElicitationSchema {
    // If there is no rule to grant, only a single approval can be offered.
    let stores = !approval.grants.is_empty();
    let all = [
        ("once", "Yes, this once", true),
        ("session", "Yes, for this session", stores),
        ("always", "Yes, always in this project", stores && approval.project.is_some()),
        ("everywhere", "Yes, always in every project", stores),
        ("deny", "No", true),
    ];
    let offered = || all.iter().filter(|(.., is_offered)| *is_offered);
    let names: Vec<&str> = offered().map(|(name, ..)| *name).collect();
    let titles: Vec<&str> = offered().map(|(_, title, _)| *title).collect();
    let schema = json!({
        "type": "object", "required": ["decision"],
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": names, "enumNames": titles},
            "reason": {"type": "string", "title": "Reason, sent to the agent", "maxLength": 2000},
        },
    });
    let Value::Object(schema) = schema else { return ElicitationSchema::new(Default::default()) };
    ElicitationSchema::from_json_schema(schema)
        .unwrap_or_else(|_| ElicitationSchema::new(Default::default()))
}

/// Interprets the user's answer. Anything but a clear yes is a no.
fn decision(answer: Result<ElicitResult, String>) -> (ApprovalDecision, Option<String>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return (
                ApprovalDecision::Deny,
                Some(format!("the client could not show the question: {error}")),
            );
        }
    };
    let field =
        |name: &str| answer.content.as_ref().and_then(|c| c.get(name)).and_then(Value::as_str);
    let reason =
        field("reason").map(|r| r.chars().take(2000).collect::<String>()).filter(|r| !r.is_empty());
    match answer.action {
        ElicitationAction::Accept => (
            field("decision").and_then(ApprovalDecision::parse).unwrap_or(ApprovalDecision::Deny),
            reason,
        ),
        _ => (ApprovalDecision::Deny, reason),
    }
}

async fn resolve(client: &Client, approval: &Approval, answer: Result<ElicitResult, String>) {
    if approval.form.is_some() && resolve_form(client, approval, &answer).await {
        return;
    }
    let (decision, reason) = match approval.form {
        Some(_) => (ApprovalDecision::Deny, None),
        None => decision(answer),
    };
    let params = ApprovalResolveParams {
        approval_id: approval.approval_id.clone(),
        decision,
        reason,
        pattern: None,
        values: Default::default(),
    };
    if let Err(error) = client.api.request::<Value>("approval.resolve", &params).await {
        // Another client was faster; its answer counts.
        tracing::debug!(%error, "an approval was answered elsewhere");
    }
}

/// Sends the values of a form; false if there are none, or they do not fit it.
async fn resolve_form(
    client: &Client,
    approval: &Approval,
    answer: &Result<ElicitResult, String>,
) -> bool {
    let Ok(ElicitResult { action: ElicitationAction::Accept, content: Some(values), .. }) = answer
    else {
        return false;
    };
    let Value::Object(values) = values else { return false };
    let params = ApprovalResolveParams {
        approval_id: approval.approval_id.clone(),
        decision: ApprovalDecision::Once,
        reason: None,
        pattern: None,
        values: values.clone().into_iter().collect(),
    };
    client.api.request::<Value>("approval.resolve", &params).await.is_ok()
}

/// Calls that wait for the user's answer in another request, by an unguessable handle.
#[derive(Default)]
pub struct Parked(Mutex<HashMap<String, ParkedCall>>);

/// A call that waits for the user's answer.
pub struct ParkedCall {
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
        // Calls past their deadline have finished.
        all.retain(|_, waiting| !waiting.running.call.is_finished());
        if all.len() >= MAX_PARKED {
            return Err(Failure::new(
                Reason::Overloaded,
                format!("{MAX_PARKED} calls are already waiting for an answer"),
            ));
        }
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)
            .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
        let handle = hex::encode(secret);
        let input_request = InputRequest::Elicitation(ElicitRequest::new(question(&approval)));
        let name = request.name.clone().into_owned();
        let arguments = arguments_of(request);
        all.insert(handle.clone(), ParkedCall { running, approval, name, arguments });
        Ok(InputRequiredResult::new(
            Some([(QUESTION.to_owned(), input_request)].into()),
            Some(handle),
        ))
    }

    /// Returns the parked call of `handle` if `request` repeats it.
    ///
    /// # Errors
    /// `approval_not_found` when there is none.
    pub fn take(
        &self,
        handle: &str,
        request: &CallToolRequestParams,
    ) -> Result<ParkedCall, Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |w: &ParkedCall| w.name == request.name && w.arguments == arguments_of(request);
        if all.get(handle).is_some_and(same)
            && let Some(waiting) = all.remove(handle)
        {
            return Ok(waiting);
        }
        let text = "no such call is waiting for an answer: it was answered, it has expired, or its arguments differ";
        Err(Failure::new(Reason::ApprovalNotFound, text))
    }
}

fn arguments_of(request: &CallToolRequestParams) -> Value {
    Value::Object(request.arguments.clone().unwrap_or_default())
}

/// Resumes a call whose question was shown to the user.
pub async fn resume(
    waiting: ParkedCall,
    request: &CallToolRequestParams,
    client: &Arc<Client>,
) -> Result<Step, Failure> {
    let answer = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
    let answer = answer.ok_or_else(|| "the answer was not sent".to_owned());
    let answer = answer
        .and_then(|a| serde_json::from_value::<ElicitResult>(a.clone()).map_err(|e| e.to_string()));
    resolve(client, &waiting.approval, answer).await;
    let mut running = waiting.running;
    match running.next(&mut Progress::none()).await? {
        Next::Done(result) => running.done(client, result).await,
        Next::Question(approval) => client
            .host
            .parked
            .park(running, approval, request)
            .map(|q| Step::QuestionPending(Box::new(q))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_explicit_acceptance_approves() {
        let answer = |action, content: Value| {
            let mut answer = ElicitResult::new(action);
            answer.content = Some(content);
            decision(Ok(answer)).0
        };
        use ApprovalDecision::{Always, Deny, Once};
        for (action, content, expected) in [
            (ElicitationAction::Accept, json!({"decision": "once"}), Once),
            (ElicitationAction::Accept, json!({"decision": "always"}), Always),
            (ElicitationAction::Accept, json!({"decision": "yes"}), Deny),
            (ElicitationAction::Accept, json!({}), Deny),
            (ElicitationAction::Decline, json!({"decision": "once"}), Deny),
            (ElicitationAction::Cancel, json!(null), Deny),
        ] {
            assert_eq!(answer(action, content.clone()), expected, "{content}");
        }
        let (no, why) = decision(Err("gone".into()));
        assert!(no == Deny && why.unwrap().contains("gone"));
    }
}
