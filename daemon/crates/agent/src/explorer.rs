//! Exploring without a model: plans from the known facts, acts through the gate, converges on a
//! summary.

mod changes;
mod commands;
mod comments;
mod components;
mod concepts;
mod conventions;
mod describe;
mod entrypoints;
mod facts;
mod flows;
mod followups;
mod guided;
mod library;
mod manifests;
mod order;
mod overview;
mod paths;
mod planner;
mod prose;
mod purpose;
mod roles;
mod summary;

use std::time::Instant;

use cairn_engine::{Agent, Offered, OpQueue, RunContext};
use cairn_protocol::{
    command::ToolCall,
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{AgentOp, ExplorePlan, ExploreSummary, Overview, ProjectCommands},
};
use serde_json::Value;
use tokio::task::JoinSet;

use facts::Facts;
use planner::{PlannedOp, Planner, Purpose};

/// Most operations of one explore.
const MAX_OPS: usize = 200;
/// Most operations that run at once.
const AT_ONCE: usize = 4;

pub(crate) use manifests::is_manifest;
pub use manifests::{NAMES as MANIFESTS, longest_part as longest_manifest_part};

/// Returns the commands that build, test and run a project according to its manifests: path and
/// text of each.
pub(crate) fn commands_of(texts: &[(String, String)]) -> ProjectCommands {
    let mut facts = Facts::default();
    for (path, text) in texts {
        facts.files.insert(path.clone());
        facts.listed.insert(path.clone(), cairn_protocol::content::EntryKind::File);
        facts.texts.insert(path.clone(), text.clone());
    }
    let manifests = manifests::read_all(&facts);
    commands::find(&facts, &manifests, &[])
}

/// Most plans that a model writes in one explore.
const ROUNDS: u32 = 2;
/// Most files that one operation summarizes, and the lines at the beginning of each.
const MAX_SUMMARIZED: usize = 8;
const SUMMARY_LINES: u32 = 40;
/// Most characters of a result that a model receives.
const FACT: usize = 600;

/// The explorer that is built in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Explorer;

#[async_trait::async_trait]
impl Agent for Explorer {
    async fn explore(&self, cx: &RunContext, goals: &[String]) -> Result<ExploreSummary, Failure> {
        let began = Instant::now();
        let mut work = Work::new(cx.clone(), goals);
        if let Some(since) = cx.since() {
            work.compare(since).await?;
        }
        work.revise().await?;
        while let Some(FinishedOp { call, purpose, outcome }) = work.next().await? {
            work.facts.absorb(&call, &purpose, outcome);
            // A plan follows from all facts, and while operations wait nothing is gained by it.
            if work.queue.is_empty() {
                work.revise().await?;
            }
        }
        if cx.wants_model() {
            work.guide().await?;
        }
        let mut summary = summary::converge(&work.facts, &work.planner.goals, cx.since());
        if cx.wants_model() {
            summary.details.overview = work.overview(&summary).await?;
        }
        let (ops, failed) = cx.ops();
        summary.details.stats.ops = ops;
        summary.details.stats.failed_ops = failed;
        summary.details.stats.millis =
            u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(summary)
    }
}

/// An operation with its result.
struct FinishedOp {
    call: ToolCall,
    purpose: Purpose,
    outcome: Result<Value, Failure>,
}

/// State of a running explore.
struct Work {
    cx: RunContext,
    facts: Facts,
    planner: Planner,
    queue: OpQueue<Purpose>,
    running: JoinSet<FinishedOp>,
    revision: u32,
}

impl Work {
    fn new(cx: RunContext, goals: &[String]) -> Self {
        let folder =
            cx.root_path().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
        let mut facts = Facts::new(folder.unwrap_or_default());
        facts.limited = cx.paths().is_some();
        let planner = Planner::new(goals);
        Self {
            cx,
            facts,
            planner,
            queue: OpQueue::new(MAX_OPS),
            running: JoinSet::new(),
            revision: 0,
        }
    }

    /// Gets the changes since a revision, before anything else: an explore that was started for
    /// them has no result without them.
    async fn compare(&mut self, since: &str) -> Result<(), Failure> {
        let PlannedOp { op, purpose } = planner::compare(since);
        let call = planner::call_of(&op);
        self.revision += 1;
        let plan = ExplorePlan { goals: self.planner.goals.clone(), next_ops: vec![op] };
        self.cx.emit(AgentEvt::PlanSnapshot { revision: self.revision, plan }).await?;
        let changes = self.cx.call(&call.name, call.arguments.clone()).await?;
        self.facts.absorb(&call, &purpose, Ok(changes));
        Ok(())
    }

    /// Requests the next operations from the planner; new ones are queued and, as a snapshot,
    /// logged.
    async fn revise(&mut self) -> Result<(), Failure> {
        planner::determine_parts(&mut self.facts);
        flows::determine_starts(&mut self.facts);
        let mut fresh = Vec::new();
        for PlannedOp { op, purpose } in self.planner.next(&self.facts) {
            match self.queue.offer(planner::call_of(&op), purpose) {
                Offered::Queued => fresh.push(op),
                Offered::Known => {}
                Offered::Full => self.facts.cut = true,
            }
        }
        self.cx.set_pending(self.queue.len() + self.running.len());
        if fresh.is_empty() {
            return Ok(());
        }
        self.revision += 1;
        let plan = ExplorePlan { goals: self.planner.goals.clone(), next_ops: fresh };
        self.cx.emit(AgentEvt::PlanSnapshot { revision: self.revision, plan }).await?;
        let done = self.cx.ops().0 as f64;
        let all = done + (self.queue.len() + self.running.len()) as f64;
        let percent = (100.0 * done / all.max(1.0)).floor();
        self.cx
            .emit(AgentEvt::Progress {
                op: "explore".into(),
                percent,
                message: Some(self.stage().into()),
            })
            .await
    }

    fn stage(&self) -> &'static str {
        match self.revision {
            _ if !self.facts.looked => "listing the folder",
            _ if self.facts.index.is_none() => "reading while the index is built",
            _ => "reading key files",
        }
    }

    /// Lets a model plan further, in rounds: it receives the results of its operations. If it
    /// fails, the explorer's own findings remain, with a warning.
    async fn guide(&mut self) -> Result<(), Failure> {
        let mut results = String::new();
        for round in 0..ROUNDS {
            let mut plan = guided::ask(&self.cx, format!("{}{results}", self.known()));
            let mut writing = true;
            let mut fresh = 0;
            results.clear();
            loop {
                self.start();
                tokio::select! {
                    message = plan.recv(), if writing => match message {
                        Some(guided::PlanMessage::Op(op)) => fresh += self.take(op).await?,
                        Some(guided::PlanMessage::End(end)) => {
                            writing = false;
                            self.planned(round, end).await?;
                        }
                        None => writing = false,
                    },
                    Some(joined) = self.running.join_next() => {
                        let FinishedOp { call, purpose, outcome } = check_finished(joined)?;
                        results.push_str(&guided_fact(&call, &outcome));
                        self.facts.absorb(&call, &purpose, outcome);
                    }
                    else => break,
                }
            }
            if fresh == 0 {
                break;
            }
        }
        self.revise().await?;
        while let Some(FinishedOp { call, purpose, outcome }) = self.next().await? {
            self.facts.absorb(&call, &purpose, outcome);
        }
        Ok(())
    }

    /// Queues an operation of a model's plan: it is logged, and starts as soon as a slot is free.
    async fn take(&mut self, op: AgentOp) -> Result<u32, Failure> {
        let AgentOp::Summarize { paths } = op else { return self.take_one(op).await };
        let mut fresh = 0;
        for path in paths.into_iter().take(MAX_SUMMARIZED) {
            let (start_line, end_line, context) = (1, SUMMARY_LINES, None);
            let read = AgentOp::ReadSpan { path, start_line, end_line, context };
            fresh += self.take_one(read).await?;
        }
        Ok(fresh)
    }

    async fn take_one(&mut self, op: AgentOp) -> Result<u32, Failure> {
        let PlannedOp { op, purpose } = PlannedOp::of_model(op);
        match self.queue.offer(planner::call_of(&op), purpose) {
            Offered::Queued => {}
            Offered::Known => return Ok(0),
            Offered::Full => {
                self.facts.cut = true;
                return Ok(0);
            }
        }
        self.revision += 1;
        let plan = ExplorePlan { goals: self.planner.goals.clone(), next_ops: vec![op] };
        self.cx.emit(AgentEvt::PlanSnapshot { revision: self.revision, plan }).await?;
        Ok(1)
    }

    async fn planned(
        &self,
        round: u32,
        end: Result<guided::PlanTotals, Failure>,
    ) -> Result<(), Failure> {
        let evt = match end {
            Ok(totals) => AgentEvt::Progress {
                op: "plan".into(),
                percent: 100.0 * f64::from(round + 1) / f64::from(ROUNDS),
                message: Some(format!("the model planned {} operations", totals.ops)),
            },
            Err(failure) if failure.reason == Reason::Cancelled => return Err(failure),
            Err(failure) => AgentEvt::Warning {
                op: "plan".into(),
                message: format!("the model returned no plan, using the built-in plan: {failure}"),
            },
        };
        self.cx.emit(evt).await
    }

    /// Lets a model write about the findings. If it fails, they remain, with a warning.
    async fn overview(&self, summary: &ExploreSummary) -> Result<Option<Overview>, Failure> {
        match overview::write(&self.cx, &self.facts, summary).await {
            Ok(overview) => Ok(Some(overview)),
            Err(failure) if failure.reason == Reason::Cancelled => Err(failure),
            Err(failure) => {
                let message = format!("the model wrote no overview: {failure}");
                self.cx.emit(AgentEvt::Warning { op: "overview".into(), message }).await?;
                Ok(None)
            }
        }
    }

    /// Returns the facts about the repository that a model receives before it plans.
    fn known(&self) -> String {
        let mut text = format!("Repository {}.", self.facts.folder);
        let goals = self.planner.goals.join("; ");
        if !goals.is_empty() {
            text.push_str(&format!("\nGoals: {goals}"));
        }
        let languages: Vec<String> =
            self.facts.languages.iter().map(|(l, n)| format!("{l} {n}")).collect();
        text.push_str(&format!("\nLines by language: {}", languages.join(", ")));
        let paths: Vec<&str> = self.facts.listed.keys().map(String::as_str).take(120).collect();
        text.push_str(&format!("\nPaths: {}\n", paths.join(", ")));
        text
    }

    /// Starts queued operations, as far as slots are free.
    fn start(&mut self) {
        while self.running.len() < AT_ONCE
            && let Some((call, purpose)) = self.queue.take()
        {
            let cx = self.cx.clone();
            self.running.spawn(async move {
                let outcome = cx.call(&call.name, call.arguments.clone()).await;
                FinishedOp { call, purpose, outcome }
            });
        }
    }

    /// Waits for the next operation to finish; `None` when all have.
    async fn next(&mut self) -> Result<Option<FinishedOp>, Failure> {
        self.start();
        match self.running.join_next().await {
            None => Ok(None),
            Some(joined) => check_finished(joined).map(Some),
        }
    }
}

/// Maps the result of an operation's task.
fn check_finished(
    joined: Result<FinishedOp, tokio::task::JoinError>,
) -> Result<FinishedOp, Failure> {
    let finished =
        joined.map_err(|e| Failure::new(Reason::Internal, format!("an operation failed: {e}")))?;
    match &finished.outcome {
        // These errors end the complete run; any other failure is a fact about one operation.
        Err(failure)
            if matches!(
                failure.reason,
                Reason::Cancelled | Reason::AuditFailed | Reason::DiskFull
            ) =>
        {
            Err(failure.clone())
        }
        _ => Ok(finished),
    }
}

/// Returns a result in the short form that a model receives.
fn guided_fact(call: &ToolCall, outcome: &Result<Value, Failure>) -> String {
    let text = match outcome {
        Ok(value) => value.to_string(),
        Err(failure) => failure.to_string(),
    };
    let short: String = text.chars().take(FACT).collect();
    format!("\n{} {}: {short}", call.name, call.arguments)
}
