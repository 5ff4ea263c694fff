//! The gate's parts, as a host puts them together.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, RwLock},
    time::Duration,
};

use cairn_protocol::{approval::Resolution, error::Failure};
use cairn_trace::Trace;
use cairn_workspace::Roots;
use tokio_util::sync::CancellationToken;

use super::{Harness, RuleSets, decide::Judge};
use crate::{
    Approvals, Call, GrantedRules, Hooks, Intent, Registry, Rules, Sandbox,
    autorun::{AutorunGate, AutorunWatch},
    background::Background,
    egress::Egress,
    service::ServiceRunner,
};

impl Harness {
    /// Creates a gate over `registry` under `rules`, recording in `trace`. Approval requests wait
    /// for `timeout`; `stopping` is cancelled when the daemon stops.
    pub fn new(
        registry: Registry,
        rules: Rules,
        trace: Trace,
        granted: GrantedRules,
        timeout: Duration,
        stopping: CancellationToken,
    ) -> Self {
        let approvals = Arc::new(Approvals::new(trace.clone(), granted, timeout, stopping));
        let sandbox = Arc::new(Sandbox::new(None));
        let rules = RwLock::new(RuleSets { base: Arc::new(rules), ..RuleSets::default() });
        let background = Arc::new(Background::new(trace.clone()));
        let services = Arc::new(ServiceRunner::new(trace.clone()));
        Self {
            registry,
            rules,
            roots: None,
            hooks: None,
            approvals,
            trace,
            sandbox,
            snapshots: Arc::default(),
            background,
            services,
            egress: Arc::default(),
            autorun: Arc::new(AutorunWatch::new(std::env::temp_dir().join("cairn-set-aside"))),
        }
    }

    /// Sets the declared roots: paths of calls are resolved in all of them, and paths that rules
    /// hide are hidden from every answer about them.
    #[must_use]
    pub fn with_roots(mut self, roots: Arc<Roots>) -> Self {
        self.roots = Some(roots);
        self.publish();
        self
    }

    /// Sets the sandbox for processes; without one no process is started.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Arc<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Sets the hooks that are notified of calls.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Sets the source of connections to domains.
    #[must_use]
    pub fn with_egress(mut self, egress: Arc<Egress>) -> Self {
        self.egress = egress;
        self
    }

    /// Sets the folder of what commands wrote into files that run later, and nobody accepted.
    #[must_use]
    pub fn with_rejected(mut self, folder: PathBuf) -> Self {
        self.autorun = Arc::new(AutorunWatch::new(folder));
        self
    }

    /// Returns the settings of the network by domain.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Returns the background commands of all sessions.
    pub fn background(&self) -> &Arc<Background> {
        &self.background
    }

    /// Returns the services of all tools.
    pub fn services(&self) -> &Arc<ServiceRunner> {
        &self.services
    }

    /// Returns the sandbox for processes.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Requests an approval of something that is no call of a tool, and waits for the answer.
    ///
    /// # Errors
    /// `no_approver`; `cancelled` when the call is cancelled or the daemon stops; errors of the
    /// log.
    pub async fn ask(
        &self,
        call: &Call,
        intent: &Intent,
        question: &str,
    ) -> Result<Resolution, Failure> {
        self.approvals.ask(call, intent, question, false).await
    }

    /// Returns the gate of what the processes of a call leave behind.
    pub(crate) fn autorun_gate(&self, call: &Call, judge: &Judge) -> Arc<AutorunGate> {
        Arc::new(AutorunGate {
            watch: Arc::clone(&self.autorun),
            approvals: Arc::clone(&self.approvals),
            trace: self.trace.clone(),
            judge: judge.clone(),
            call: call.clone(),
            notes: Mutex::default(),
        })
    }
}
