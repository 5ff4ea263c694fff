//! Reach of a call beyond the workspace: the network, and the system outside the sandbox.

use std::sync::{Arc, Mutex, atomic::AtomicU64};

use cairn_protocol::error::{Failure, Reason};

use super::{Harness, Judge};
use crate::{
    Call, Intent, MustAsk, Verdict, WhenMissing,
    egress::{Domain, DomainGate, displayed_host},
};

impl Harness {
    /// Adds warnings about the network and the sandbox to the preview of a command.
    pub(super) fn warn_of_sandbox(
        &self,
        call: &Call,
        judge: &Judge,
        intent: &mut Intent,
    ) -> Result<(), Failure> {
        let preview = &mut intent.preview;
        preview.network = call.grants.network;
        if call.grants.network {
            preview.warnings.push("it reaches every public domain that no rule denies".into());
        } else if call.grants.domains {
            preview.domains = judge.allowed_domains();
        }
        if call.grants.unconfined {
            preview.warnings.push("it runs outside the sandbox".into());
        } else if self.sandbox.when_missing_is() == WhenMissing::Off {
            preview
                .warnings
                .push("it runs outside the sandbox: safety.sandboxEnabled is false".into());
        } else if let Some(why) = self.sandbox.consent()? {
            preview.warnings.push(why.clone());
            intent.must_ask = Some(MustAsk::Always(why));
        }
        Ok(())
    }

    /// Checks a host that a client of the daemon names: what the rules of the user deny is refused.
    ///
    /// # Errors
    /// `network_denied` with the rule.
    pub fn require_host(&self, host: &str) -> Result<(), Failure> {
        let decision = self.rules(None).decide_domain(Domain::parse(host).as_ref(), &[], &[]);
        if decision.verdict != Verdict::Deny {
            return Ok(());
        }
        let name = displayed_host(host);
        let text = format!("{name} is not allowed ({})", decision.by);
        Err(Failure::new(Reason::NetworkDenied, text))
    }

    /// Returns the gate of a call's connections, if it may reach domains.
    pub(super) fn domain_gate(&self, call: &Call, judge: &Judge) -> Option<Arc<DomainGate>> {
        let gate = DomainGate {
            approvals: Arc::clone(&self.approvals),
            trace: self.trace.clone(),
            rules: Arc::clone(judge.rules()),
            egress: Arc::clone(&self.egress),
            call: call.clone(),
            clock: Arc::default(),
            answers: Mutex::default(),
            refusals: Mutex::default(),
            count: AtomicU64::new(0),
        };
        (call.grants.domains || call.grants.network).then(|| Arc::new(gate))
    }
}
