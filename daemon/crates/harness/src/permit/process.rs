//! Processes that a permit runs.

use std::{sync::Arc, time::Duration};

use cairn_protocol::{
    background::{BackgroundCommand, BackgroundOutput},
    error::{Failure, Reason},
};
use cairn_workspace::{Root, View};
use tokio_util::sync::CancellationToken;

use super::Permit;
use crate::{
    WaitClock, WhenMissing,
    egress::{DomainGate, Proxy},
    live_output::{INTERVAL, LiveOutput},
    sandbox::{Confined, ProcessOutput, Stream, Tier, Wake},
    service::{self, ServiceOutput, ServiceProcess, ServiceSpec},
};

/// Wait for a background command that ends at once, as for a misspelt program.
const FIRST_LOOK: Duration = Duration::from_millis(250);

impl Permit {
    /// Runs a process in the sandbox until it and all its descendants have exited. The workspace is
    /// the session's root, limited to the paths of this run; the network is available only if both
    /// the request and the permit allow it. Changes to the workspace are recorded if the call's
    /// changes are watched. `output` receives the output as it is written. The run stops when the
    /// permit is cancelled or the future is dropped.
    ///
    /// # Errors
    /// `no_roots`, `network_denied`, and errors of [`crate::Sandbox::run`].
    pub async fn run(
        &self,
        mut confined: Confined,
        mut output: impl FnMut(Stream, &[u8]) + Send + 'static,
    ) -> Result<ProcessOutput, Failure> {
        let root = self.require_root()?;
        self.mount(root, &mut confined)?;
        let gate = self.domains.clone();
        let proxy = self.connect(&mut confined, gate).await?;
        let waits = proxy.as_ref().map(|proxy| Arc::clone(&proxy.gate().clock));
        let (sandbox, mut wake) = (Arc::clone(&self.sandbox), Wake::new()?);
        if let Some(clock) = waits {
            wake = wake.excluding(Arc::new(move || clock.waited()));
        }
        let running = wake.clone();
        let _ends_with_this = wake.cancel_on_drop();
        let (snapshots, changes) = (Arc::clone(&self.snapshots), self.changes.clone());
        let watched = (changes.watched && confined.writable).then(|| root.clone());
        let live = self.sink.as_ref().map(|_| Arc::new(LiveOutput::default()));
        let pushed = live.clone();
        let (autorun, root, writable) =
            (Arc::clone(&self.autorun), root.clone(), confined.writable);
        let job = tokio::task::spawn_blocking(move || {
            let mut output = |stream: Stream, bytes: &[u8]| {
                if let Some(live) = &pushed {
                    live.push(bytes);
                }
                output(stream, bytes);
            };
            let (outcome, unsettled) = autorun.around((&root, writable), |sockets| {
                confined.hide(sockets);
                let mut run = || sandbox.run(&confined, &running, &mut output);
                match watched {
                    Some(root) => snapshots.around(&root, &changes, run),
                    None => run(),
                }
            });
            outcome.map(|output| (output, unsettled))
        });
        tokio::pin!(job);
        let mut ticks = tokio::time::interval(INTERVAL);
        let mut cancelled = false;
        let joined = loop {
            tokio::select! {
                joined = &mut job => break joined,
                () = self.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    wake.cancel();
                }
                _tick = ticks.tick(), if live.is_some() => self.publish(live.as_deref(), false),
            }
        };
        self.publish(live.as_deref(), true);
        let lost =
            |e| Failure::new(Reason::Internal, format!("the process could not be monitored: {e}"));
        let (process, unsettled) = joined.map_err(lost)??;
        if let Some(unsettled) = unsettled {
            let undone = self.autorun.settle(unsettled, &self.wait_clock).await;
            self.changes.forget(&undone);
        }
        Ok(process)
    }

    fn publish(&self, live: Option<&LiveOutput>, over: bool) {
        if let (Some(sink), Some(live)) = (&self.sink, live)
            && let Some(piece) = live.take(over)
        {
            (sink.0)(piece);
        }
    }

    /// Sets the network of a process: a proxy that judges each domain, where the process can have no
    /// other way out. A network that is granted whole opens every public domain there that no rule
    /// denies, so that a denial holds for it as well.
    async fn connect(
        &self,
        confined: &mut Confined,
        gate: Option<Arc<DomainGate>>,
    ) -> Result<Option<Proxy>, Failure> {
        confined.proxy = None;
        let wants_all = std::mem::take(&mut confined.network);
        if wants_all {
            self.require_network()?;
        }
        let gate = gate.filter(|_| wants_all || confined.domains);
        let Some(gate) = gate else { return Ok(None) };
        let is_off = self.sandbox.when_missing_is() == WhenMissing::Off;
        let sandbox = Arc::clone(&self.sandbox);
        let tier = tokio::task::spawn_blocking(move || sandbox.probe().tier).await;
        // Only the full sandbox has a network of its own, in which nothing but the proxy is.
        let has_own =
            !is_off && tier.is_ok_and(|tier| tier == Tier::Full) && !cfg!(target_os = "macos");
        if !has_own {
            if wants_all && !is_off && self.admission.judge.rules().restrict_network() {
                let text = "rules deny domains, and without the complete sandbox no connection of \
                    a command can be compared with them";
                return Err(Failure::new(Reason::NetworkDenied, text));
            }
            confined.network = wants_all;
            return Ok(None);
        }
        let proxy = Proxy::open(gate)?;
        confined.proxy = Some(proxy.socket().to_owned());
        Ok(Some(proxy))
    }

    /// Returns the connections of this call that were refused, one line for each domain.
    pub fn refused_connections(&self) -> Vec<String> {
        self.domains.as_ref().map(|gate| gate.refusals()).unwrap_or_default()
    }

    /// Starts a process in the sandbox that continues after this call, until it exits, is stopped,
    /// or its session or its lifetime ends. `line` is the command line.
    ///
    /// # Errors
    /// `no_roots`, `network_denied`; `overloaded` with the limit; errors of the log.
    pub async fn start(
        &self,
        mut confined: Confined,
        line: String,
    ) -> Result<BackgroundOutput, Failure> {
        let root = self.require_root()?;
        self.mount(root, &mut confined)?;
        let closed = CancellationToken::new();
        let gate = self.domains.as_ref().map(|gate| Arc::new(gate.detached(closed.clone())));
        let proxy = self.connect(&mut confined, gate).await?;
        if self.changes.watched && confined.writable {
            self.changes.mark_incomplete("it runs in the background".into());
        }
        let sandbox = Arc::clone(&self.sandbox);
        let autorun = Arc::new(self.autorun.detached(closed.clone()));
        let runtime = tokio::runtime::Handle::current();
        let (root, writable) = (root.clone(), confined.writable);
        let started = self
            .background
            .start(&self.session, line, confined, move |mut confined, wake, output| {
                let _closes = closed.drop_guard();
                let (outcome, unsettled) = autorun.around((&root, writable), |sockets| {
                    confined.hide(sockets);
                    sandbox.run(&confined, wake, &mut |_, bytes| output(bytes))
                });
                drop(proxy);
                if let Some(unsettled) = unsettled {
                    let _undone =
                        runtime.block_on(autorun.settle(unsettled, &WaitClock::default()));
                    for note in autorun.take_notes() {
                        output(format!("[{note}]\n").as_bytes());
                    }
                }
                outcome
            })
            .await?;
        self.background.first_output(&self.session, &started.id, FIRST_LOOK).await
    }

    /// Returns the background commands of the session.
    pub fn background_commands(&self) -> Vec<BackgroundCommand> {
        self.background.list(&self.session)
    }

    /// Returns the output of a background command of the session from a position on.
    ///
    /// # Errors
    /// `invalid_params` for an id that the session does not have.
    pub fn background_output(&self, id: &str, cursor: u64) -> Result<BackgroundOutput, Failure> {
        self.background.output(&self.session, id, cursor)
    }

    /// Stops a background command of the session.
    ///
    /// # Errors
    /// `invalid_params` for an id that the session does not have; `tool_timed_out`.
    pub async fn stop_background(&self, id: &str) -> Result<BackgroundCommand, Failure> {
        self.background.stop(&self.session, id).await
    }

    /// Returns the view of the workspace that a service has, by which calls share one; `None` for a
    /// run that is limited to paths, which a service is not.
    pub fn service_view(&self) -> Option<View> {
        let root = self.root.as_ref().filter(|_| self.paths.is_none())?;
        // Every tool that uses a service reads by it.
        Some(self.admission.judge.view_for("read_file", root).unwrap_or_else(|| root.view()))
    }

    /// Starts a program that serves later calls too: in the sandbox whatever this run has chosen,
    /// without the network, with the session's root to read and a folder of its own to write.
    /// `output` receives its standard output.
    ///
    /// # Errors
    /// `no_roots`, `tool_denied` in a run that is limited to paths, `overloaded`, `audit_failed`,
    /// `tool_failed`.
    pub async fn start_service(
        &self,
        spec: &ServiceSpec,
        output: Box<ServiceOutput>,
    ) -> Result<ServiceProcess, Failure> {
        let root = self.require_root()?.clone();
        let limited = || Failure::new(Reason::ToolDenied, "the run is limited to paths");
        let view = self.service_view().ok_or_else(limited)?;
        let mut confined = Confined::program(spec.argv.clone(), spec.folder.clone());
        confined.root = Some(root.path.clone());
        let spaces = [&root.path, &spec.cache].map(|path| path.to_string_lossy().into_owned());
        confined.parts = Some(spaces.to_vec());
        confined.write_paths = Some(vec![spec.cache.clone()]);
        confined.readable.clone_from(&spec.readable);
        confined.env.clone_from(&spec.env);
        let cache = spec.cache.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            service::create_cache(&cache)?;
            confined.expect(&root, ".")?;
            confined.mask(&root, &view)?;
            Ok::<Confined, Failure>(confined)
        });
        let lost = |e| Failure::new(Reason::Internal, format!("preparing a service failed: {e}"));
        let confined = prepared.await.map_err(lost)??;
        let sandbox = Arc::clone(&self.service_sandbox);
        self.runner.start(&self.session, sandbox, spec, confined, output).await
    }

    /// Sets up the workspace of a process: the visible folders, each with the identity that its
    /// mount must have, and the paths in them that rules hide.
    fn mount(&self, root: &Root, confined: &mut Confined) -> Result<(), Failure> {
        confined.root = Some(root.path.clone());
        confined.parts.clone_from(&self.paths);
        confined.accepted = self.accepted;
        confined.write_paths = self.admission.judge.write_paths(root);
        for path in confined.write_paths.clone().unwrap_or_default() {
            let rel = path.strip_prefix(&root.path).unwrap_or(&path).to_string_lossy().into_owned();
            confined.expect(root, if rel.is_empty() { "." } else { &rel })?;
        }
        match &self.paths {
            None => confined.expect(root, ".")?,
            Some(paths) => {
                for rel in paths {
                    confined.expect(root, rel)?;
                }
            }
        }
        for other in std::mem::take(&mut confined.roots) {
            confined.expect(&other, ".")?;
            confined.mask(&other, &other.view())?;
            confined.readable.push(other.path.clone());
        }
        confined.mask(root, &self.view_of(root))
    }
}
