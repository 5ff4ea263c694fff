//! Programs of hooks: in the sandbox, with the session's folder, and no network.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::Root;

use crate::{
    Call, Harness, WaitClock,
    sandbox::{Confined, ProcessOutput, Wake},
};

/// A program that runs at an event of a session.
#[derive(Debug)]
pub struct HookProcess {
    /// Command line for `/bin/sh`.
    pub command: String,
    /// Variables in addition to those of every command.
    pub env: Vec<(String, String)>,
    /// Bytes of its standard input.
    pub input: Vec<u8>,
    /// Files and folders that it may read besides the session's folder.
    pub readable: Vec<PathBuf>,
    pub timeout: Duration,
    /// Most bytes of each output that are stored.
    pub max_output: usize,
}

impl Harness {
    /// Runs a hook in the sandbox until it and all of its descendants have exited. What it writes
    /// into files that run later is put back unless a rule allows it, and then noted in the log of
    /// the daemon.
    ///
    /// # Errors
    /// `sandbox_missing`, `tool_failed`, `internal`.
    pub async fn run_hook(
        &self,
        session: &SessionId,
        root: Option<&Root>,
        hook: HookProcess,
    ) -> Result<ProcessOutput, Failure> {
        let folder = root.map_or_else(|| Path::new("/tmp"), |root| &root.path).to_owned();
        let argv = vec!["/bin/sh".into(), "-c".into(), hook.command.clone()];
        let mut confined = Confined::program(argv, folder);
        confined.root = root.map(|root| root.path.clone());
        confined.writable = root.is_some();
        confined.readable = hook.readable.into_iter().filter(|path| path.exists()).collect();
        confined.env = hook.env;
        confined.limits.wall = hook.timeout;
        confined.limits.output = hook.max_output;
        let mut call =
            Call::new(session.clone(), "hook", serde_json::json!({"command": hook.command}));
        call.root = root.cloned();
        let memory = self.approvals().memory(session).await?;
        let gate = self.autorun_gate(&call, &self.judge(&call, memory));
        let (sandbox, wake) = (Arc::clone(self.sandbox()), Wake::new()?);
        let running = wake.clone();
        let _ends_with_this = wake.cancel_on_drop();
        let most = hook.max_output;
        let (root, input, autorun) = (root.cloned(), hook.input, Arc::clone(&gate));
        let job = tokio::task::spawn_blocking(move || {
            let (reader, writer) = std::io::pipe().map_err(|e| {
                Failure::new(Reason::ToolFailed, format!("the hook has no input: {e}"))
            })?;
            confined.input_pipe = Some(Arc::new(reader.into()));
            if let Some(root) = &root {
                confined.expect(root, ".")?;
                confined.mask(root, &root.view())?;
            }
            let run = |sockets| {
                confined.hide(sockets);
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let mut writer = writer;
                        // A hook may exit without reading the event.
                        let _exited = writer.write_all(&input);
                    });
                    let mut bytes = 0;
                    let outcome = sandbox.run(&confined, &running, &mut |_, piece| {
                        bytes += piece.len();
                        // Both streams together have room for twice as much.
                        if bytes > 2 * most {
                            running.cancel();
                        }
                    });
                    // The writer ends when no process has the pipe any more.
                    confined.input_pipe = None;
                    outcome
                })
            };
            match &root {
                Some(root) => {
                    let (outcome, unsettled) = autorun.around((root, true), run);
                    outcome.map(|output| (output, unsettled))
                }
                None => run(vec![]).map(|output| (output, None)),
            }
        });
        let lost = |e| Failure::new(Reason::Internal, format!("the hook was lost: {e}"));
        let (output, unsettled) = job.await.map_err(lost)??;
        if let Some(unsettled) = unsettled {
            let undone = gate.settle(unsettled, &WaitClock::default()).await;
            if !undone.is_empty() {
                tracing::warn!(paths = undone.join(", "), "a hook changed files that run later");
            }
        }
        Ok(output)
    }
}
