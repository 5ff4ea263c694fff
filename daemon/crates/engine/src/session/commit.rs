//! Changes of a session's log, one transaction each.

use cairn_protocol::{
    approval::ApprovalListParams,
    envelope::{Body, Origin},
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{RunReceipt, RunState},
    id::RunId,
    turn::{Outcome, RunError, RunResult},
};
use cairn_trace::{Append, NewRecord};
use uuid::Uuid;

use super::{
    Request, Response,
    actor::Actor,
    step::{Active, Commit, Then},
};
use crate::{
    explore,
    turns::{self, QueuedTurn},
};

fn event(run: Option<RunId>, client: Option<String>, evt: AgentEvt) -> NewRecord {
    let origin =
        (run.is_some() || client.is_some()).then_some(Origin { client, run_id: run, tool: None });
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin, body: Body::Evt { evt } }
}

fn unknown(what: &str) -> Failure {
    Failure::new(Reason::Internal, format!("the session's actor does not know {what}"))
}

/// Adds the records that follow a terminal record: the session's state, and the mark that turns
/// stay pending.
fn then_state(
    mut records: Vec<NewRecord>,
    then: Then,
    idle: RunState,
) -> (Vec<NewRecord>, Option<RunState>) {
    match then {
        Then::Idle => (records, Some(idle)),
        Then::Next => (records, None),
        Then::Halt => {
            records.push(event(None, None, AgentEvt::Interrupted { op: turns::OP.into() }));
            (records, Some(RunState::Interrupted))
        }
    }
}

impl Actor {
    pub(super) async fn write(&mut self, commit: &Commit<RunId>) -> Result<(), Failure> {
        match commit {
            Commit::Accept { run, start, replaces } => {
                self.accept(run, *start, replaces.as_ref()).await
            }
            Commit::Begin { run, resumed } => self.begin(run, *resumed).await,
            Commit::End { run, then } => {
                self.end_run(run, *then).await?;
                self.turns.remove(run);
                Ok(())
            }
            Commit::EndExplore { run } => self.end_run(run, Then::Idle).await,
            Commit::Fail { run, then } => self.fail(run, *then).await,
            Commit::CancelQueued { run, then } => self.cancel_queued(run, *then).await,
            Commit::BeginExplore { run, replaces } => {
                self.begin_explore(run, replaces.as_ref()).await
            }
            Commit::ResumeExplore { run } => self.resume_explore(run).await,
            Commit::Interrupt { .. } => self.interrupt().await,
            Commit::Steer { run } => self.steer(run).await,
            Commit::Answer { .. } => self.resolve().await,
            Commit::Edit => self.edit().await,
            Commit::Delete => Ok(self.engine.inner.trace.delete_session(&self.session).await?),
        }
    }

    async fn append(&self, append: Append) -> Result<u64, Failure> {
        Ok(self.engine.inner.trace.append(append).await?.first)
    }

    fn receipt(&mut self, run: &RunId, seq: u64) {
        let receipt = RunReceipt { session_id: self.session.clone(), run_id: run.clone(), seq };
        self.response = Some(Response::Receipt(receipt));
    }

    /// Finishes an interrupted explore that other work replaces. Its terminal record precedes the
    /// other work's first one, so that no subscriber of the latter mistakes it for its end.
    async fn end_replaced(&self, explore: Option<&RunId>) -> Result<(), Failure> {
        let Some(run) = explore else { return Ok(()) };
        self.withdraw(run).await?;
        let reason = "replaced by another run".to_owned();
        let evt = AgentEvt::Stopped { op: explore::OP.into(), reason };
        let record = event(Some(run.clone()), None, evt);
        self.append(Append::new(&self.session, vec![record]).state(RunState::Stopped))
            .await
            .map(drop)
    }

    /// Denies the open approvals of a run that finishes without a task that waits for them.
    async fn withdraw(&self, run: &RunId) -> Result<(), Failure> {
        let list = ApprovalListParams { session_id: Some(self.session.clone()), resolved: false };
        let open = self.engine.inner.trace.approvals(list).await?;
        for approval in open.iter().filter(|approval| approval.run_id.as_ref() == Some(run)) {
            self.engine.inner.harness.approvals().withdraw(approval).await?;
        }
        Ok(())
    }

    async fn accept(
        &mut self,
        run: &RunId,
        start: bool,
        replaces: Option<&RunId>,
    ) -> Result<(), Failure> {
        self.end_replaced(replaces).await?;
        let turn = self.turns.get(run).ok_or_else(|| unknown("a turn"))?;
        let mut records = vec![turn.accepted()];
        let params = serde_json::to_string(&turn.params).unwrap_or_default();
        if start {
            let prepared = self.prepared.as_ref().ok_or_else(|| unknown("a turn's context"))?;
            records.push(prepared.cx.record(None, None, prepared.started()));
        }
        let mut append = Append::new(&self.session, records);
        if start {
            append = append.state(RunState::Running).run(run, turns::OP, params);
        }
        if let Some((scope, key, digest)) = self.retry.take() {
            let receipt = serde_json::json!({"sessionId": self.session, "runId": run});
            append = append.receipt(&scope, &key, digest, receipt);
        }
        let seq = self.append(append).await?;
        self.receipt(run, seq);
        Ok(())
    }

    async fn begin(&mut self, run: &RunId, resumed: bool) -> Result<(), Failure> {
        let prepared = self.prepared.as_ref().ok_or_else(|| unknown("a turn's context"))?;
        let turn = self.turns.get(run).ok_or_else(|| unknown("a turn"))?;
        let evt =
            if resumed { AgentEvt::Resumed { op: turns::OP.into() } } else { prepared.started() };
        let params = serde_json::to_string(&turn.params).unwrap_or_default();
        let append = Append::new(&self.session, vec![prepared.cx.record(None, None, evt)])
            .state(RunState::Running)
            .run(run, turns::OP, params);
        let seq = self.append(append).await?;
        if matches!(self.request, Some(Request::Resume(_))) {
            self.receipt(run, seq);
        }
        Ok(())
    }

    async fn end_run(&mut self, run: &RunId, then: Then) -> Result<(), Failure> {
        // Calls that a stop of the daemon interrupted leave their requests open for a resume. A run
        // that a client cancelled at that moment is not resumed.
        if self.engine.inner.shutdown.is_cancelled() {
            self.withdraw(run).await?;
        }
        let end = self.end.take().ok_or_else(|| unknown("a run's end"))?;
        let (records, state) = then_state(end.records, then, end.state);
        let mut append = Append::new(&self.session, records);
        if let Some(state) = state {
            append = append.state(state);
        }
        if let Some((name, content)) = end.artifact {
            append = append.artifact(name, content);
        }
        self.append(append).await.map(drop)
    }

    async fn fail(&mut self, run: &RunId, then: Then) -> Result<(), Failure> {
        let failure = self.cause();
        self.withdraw(run).await?;
        let turn = self.turns.get(run).ok_or_else(|| unknown("a turn"))?;
        let result = turn.result(Outcome::Failed, Some(&failure));
        let records = [turns::error(&failure), AgentEvt::RunCompleted { result: Box::new(result) }];
        let of = |evt| event(Some(run.clone()), turn.client.clone(), evt);
        let (records, state) = then_state(records.map(of).into(), then, RunState::Failed);
        let append = Append::new(&self.session, records);
        self.append(state.into_iter().fold(append, Append::state)).await?;
        self.turns.remove(run);
        Ok(())
    }

    async fn cancel_queued(&mut self, run: &RunId, then: Then) -> Result<(), Failure> {
        self.withdraw(run).await?;
        let turn = self.turns.get(run).ok_or_else(|| unknown("a turn"))?;
        let evt =
            AgentEvt::RunCompleted { result: Box::new(turn.result(Outcome::Cancelled, None)) };
        let (records, state) =
            then_state(vec![event(Some(run.clone()), None, evt)], then, RunState::Stopped);
        let append = Append::new(&self.session, records);
        self.append(state.into_iter().fold(append, Append::state)).await?;
        self.turns.remove(run);
        Ok(())
    }

    async fn begin_explore(
        &mut self,
        run: &RunId,
        replaces: Option<&RunId>,
    ) -> Result<(), Failure> {
        let Some(Request::StartExplore(start)) = self.request.take() else {
            return Err(unknown("an explore"));
        };
        self.end_replaced(replaces).await?;
        let details = start.params.remote_url.clone().or_else(|| start.params.root.clone());
        let started =
            start.cx.record(None, None, AgentEvt::Started { op: explore::OP.into(), details });
        let allowed_states = [
            RunState::Idle,
            RunState::Completed,
            RunState::Stopped,
            RunState::Failed,
            RunState::Interrupted,
        ];
        let stored = serde_json::to_string(&start.params).unwrap_or_default();
        let mut append = Append::new(&self.session, vec![started])
            .state(RunState::Running)
            .only_if(&allowed_states)
            .run(run, explore::OP, stored);
        if let Some((scope, key, digest)) = &start.retry {
            let receipt = serde_json::json!({"sessionId": self.session, "runId": run});
            append = append.receipt(scope, key, digest.clone(), receipt);
        }
        let seq = self.append(append).await?;
        self.explore = Some(*start);
        self.receipt(run, seq);
        Ok(())
    }

    async fn resume_explore(&mut self, run: &RunId) -> Result<(), Failure> {
        let Some(Request::Resume(Some(start))) = self.request.take() else {
            let text = format!("session {} has no known run", self.session);
            return Err(Failure::new(Reason::NotResumable, text));
        };
        let record = start.cx.record(None, None, AgentEvt::Resumed { op: explore::OP.into() });
        let append = Append::new(&self.session, vec![record])
            .state(RunState::Running)
            .only_if(&[RunState::Interrupted]);
        let seq = self.append(append).await?;
        self.explore = Some(*start);
        self.receipt(run, seq);
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), Failure> {
        let op = match self.state.active {
            Some(Active::Explore { .. }) => explore::OP,
            _ => turns::OP,
        };
        let record = event(None, None, AgentEvt::Interrupted { op: op.into() });
        self.append(Append::new(&self.session, vec![record]).state(RunState::Interrupted))
            .await
            .map(drop)
    }

    async fn steer(&mut self, run: &RunId) -> Result<(), Failure> {
        let Some(Request::Steer { text, client }) = &self.request else {
            return Err(unknown("a text"));
        };
        let evt = AgentEvt::Steered { run_id: run.clone(), text: text.clone() };
        let record = event(Some(run.clone()), client.clone(), evt);
        let seq = self.append(Append::new(&self.session, vec![record])).await?;
        self.receipt(run, seq);
        Ok(())
    }

    async fn resolve(&mut self) -> Result<(), Failure> {
        let Some(Request::Answer { params, by, .. }) = &self.request else {
            return Err(unknown("an answer"));
        };
        let approval = self.engine.inner.harness.resolve(params.clone(), by).await?;
        self.response = Some(Response::Approval(Box::new(approval)));
        Ok(())
    }

    async fn edit(&mut self) -> Result<(), Failure> {
        let trace = &self.engine.inner.trace;
        let response = match &self.request {
            Some(Request::Fork { before, title }) => {
                self.engine.fork(&self.session, before.as_deref(), title.clone()).await?
            }
            Some(Request::Archive(archived)) => trace.archive(&self.session, *archived).await?,
            Some(Request::Clear(client)) => {
                let record = event(None, client.clone(), AgentEvt::Cleared {});
                self.append(Append::new(&self.session, vec![record])).await?;
                return Ok(());
            }
            Some(Request::Compact { head, evt }) => {
                let later = trace.records(&self.session, *head, cairn_trace::PAGE).await?;
                if !later.iter().all(|r| matches!(r.body.evt(), Some(AgentEvt::Warning { .. }))) {
                    let text = "the conversation continued while it was being condensed";
                    return Err(Failure::new(Reason::SessionBusy, text));
                }
                let record = event(None, None, (**evt).clone());
                self.append(Append::new(&self.session, vec![record])).await?;
                return Ok(());
            }
            _ => return Err(unknown("a change")),
        };
        self.response = Some(Response::Session(Box::new(response)));
        Ok(())
    }
}

impl super::actor::PreparedTurn {
    fn started(&self) -> AgentEvt {
        let handle = &self.cx.inner.handle;
        AgentEvt::RunStarted {
            run_id: handle.run.clone(),
            turn_id: handle.turn_id.clone(),
            model: self.model.clone(),
            shown_chars: self.cx.settings().shown_chars,
        }
    }
}

impl QueuedTurn {
    /// Returns the result of a turn that did nothing.
    fn result(&self, status: Outcome, failure: Option<&Failure>) -> RunResult {
        RunResult {
            session_id: self.params.session_id.clone(),
            turn_id: self.params.turn_id.clone(),
            run_id: self.run.clone(),
            status,
            final_output: None,
            usage: Default::default(),
            tool_trace: vec![],
            error: failure.map(|f| RunError {
                reason: f.reason.as_str().to_owned(),
                retryable: f.reason.retryable(),
                hint: f.reason.hint().to_owned(),
                message: f.message.clone(),
            }),
            metadata: self.params.metadata.clone(),
        }
    }
}
