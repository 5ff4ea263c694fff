//! Exploring without a model: plan from what is known, act through the gate, converge on a summary.

mod commands;
mod describe;
mod entrypoints;
mod facts;
mod followups;
mod manifests;
mod paths;
mod planner;
mod summary;

use std::time::Instant;

use cairn_engine::{Agent, Offered, OpQueue, RunContext};
use cairn_protocol::{
    command::ToolCall,
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{ExplorePlan, ExploreSummary, ProjectCommands},
};
use serde_json::Value;
use tokio::task::JoinSet;

use facts::Facts;
use planner::Planner;

/// Operations of one explore at most.
const MAX_OPS: usize = 200;
/// Operations at work at once.
const AT_ONCE: usize = 4;

pub(crate) use manifests::is_manifest;

/// How a project is built, tested and run by its manifests: path and text of each.
pub(crate) fn commands_of(texts: &[(String, String)]) -> ProjectCommands {
    let mut facts = Facts::default();
    for (path, text) in texts {
        facts.files.insert(path.clone());
        facts.listed.insert(path.clone(), cairn_protocol::content::EntryKind::File);
        facts.texts.insert(path.clone(), text.clone());
    }
    let found = manifests::read_all(&facts);
    commands::find(&facts, &found, &[])
}

/// The explorer that is built in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Explorer;

#[async_trait::async_trait]
impl Agent for Explorer {
    async fn explore(&self, cx: &RunContext, goals: &[String]) -> Result<ExploreSummary, Failure> {
        let began = Instant::now();
        let mut work = Work::new(cx.clone(), goals);
        work.revise().await?;
        while let Some((call, outcome)) = work.next().await? {
            work.facts.absorb(&call, outcome);
            work.revise().await?;
        }
        let mut summary = summary::converge(&work.facts, &work.planner.goals);
        let (ops, failed) = cx.ops();
        summary.details.stats.ops = ops;
        summary.details.stats.failed_ops = failed;
        summary.details.stats.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(summary)
    }
}

type Ended = (ToolCall, Result<Value, Failure>);

/// One explore at work.
struct Work {
    cx: RunContext,
    facts: Facts,
    planner: Planner,
    queue: OpQueue,
    running: JoinSet<Ended>,
    revision: u32,
}

impl Work {
    fn new(cx: RunContext, goals: &[String]) -> Self {
        let folder = cx.root_path().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
        let mut facts = Facts::new(folder.unwrap_or_default());
        facts.limited = cx.paths().is_some();
        let planner = Planner::new(goals);
        Self { cx, facts, planner, queue: OpQueue::new(MAX_OPS), running: JoinSet::new(), revision: 0 }
    }

    /// Asks the planner what is next; what is new goes into the queue and, as a snapshot, into the log.
    async fn revise(&mut self) -> Result<(), Failure> {
        let mut fresh = Vec::new();
        for op in self.planner.next(&self.facts) {
            match self.queue.offer(planner::call_of(&op)) {
                Offered::Taken => fresh.push(op),
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
            .emit(AgentEvt::Progress { op: "explore".into(), percent, message: Some(self.stage().into()) })
            .await
    }

    fn stage(&self) -> &'static str {
        match self.revision {
            0 | 1 => "looking around",
            _ if self.facts.index.is_none() => "reading while the index is built",
            _ => "reading what matters",
        }
    }

    /// Waits for the next operation to end; `None` when all have.
    async fn next(&mut self) -> Result<Option<Ended>, Failure> {
        while self.running.len() < AT_ONCE
            && let Some(call) = self.queue.take()
        {
            let cx = self.cx.clone();
            self.running.spawn(async move {
                let outcome = cx.call(&call.name, call.arguments.clone()).await;
                (call, outcome)
            });
        }
        let Some(ended) = self.running.join_next().await else { return Ok(None) };
        let ended = ended.map_err(|e| Failure::new(Reason::Internal, format!("an operation failed: {e}")))?;
        match &ended.1 {
            // These end the whole run; any other failure is a fact about one operation.
            Err(failure)
                if matches!(failure.reason, Reason::Cancelled | Reason::AuditFailed | Reason::DiskFull) =>
            {
                Err(failure.clone())
            }
            _ => Ok(Some(ended)),
        }
    }
}
