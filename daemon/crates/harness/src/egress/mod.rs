//! The network of tools by domain: every connection is decided by the rules `network(domain)`,
//! recorded in the audit, and goes to the very address that was checked.

mod dialer;
mod domain;
mod hello;
mod proxy;
mod rules;
mod tunnel;

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cairn_protocol::{
    approval::{ApprovalDecision, Preview},
    error::{Failure, Reason},
};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use serde_json::json;
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_util::sync::CancellationToken;

use crate::{
    Answered, Approvals, Call, DecidedBy, Decision, Fallback, Intent, Rules, Verdict, WaitClock,
    is_public, policy::NETWORK,
};
pub use dialer::Dialer;
use dialer::SystemDialer;
pub(crate) use domain::displayed_host;
pub use domain::{Domain, DomainPattern};
pub(crate) use proxy::Proxy;

/// Time limit of resolving a name, and of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Ports that need no configuration.
const PORTS: [u16; 2] = [80, 443];
/// Most refusals that a command's result lists.
const MAX_REFUSALS: usize = 16;
/// Most connections of one command: each has a row in the audit.
const MAX_CONNECTIONS: u64 = 10_000;
/// Most domains that one command may ask about.
const MAX_QUESTIONS: usize = 32;

/// Settings of the network by domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressOptions {
    /// True if an approver is asked about a domain that no rule covers.
    pub ask: bool,
    /// Longest wait for an answer.
    pub ask_timeout: Duration,
    /// Ports besides 80 and 443.
    pub ports: Vec<u16>,
}

impl Default for EgressOptions {
    fn default() -> Self {
        Self { ask: true, ask_timeout: Duration::from_secs(120), ports: vec![] }
    }
}

/// Settings and means of the network by domain, for all calls.
pub struct Egress {
    options: RwLock<EgressOptions>,
    dialer: Arc<dyn Dialer>,
}

impl Default for Egress {
    fn default() -> Self {
        Self { options: RwLock::default(), dialer: Arc::new(SystemDialer) }
    }
}

impl Egress {
    /// Creates one with a source of connections of its own, for tests.
    pub fn with_dialer(dialer: Arc<dyn Dialer>) -> Self {
        Self { options: RwLock::default(), dialer }
    }

    /// Replaces the settings for later calls.
    pub fn configure(&self, options: EgressOptions) {
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = options;
    }

    pub(crate) fn options(&self) -> EgressOptions {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A refused connection: the text is for the program and for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub domain: String,
    pub text: String,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(Reason::NetworkDenied, refusal.text)
    }
}

/// An admitted connection: its row of the audit, which is completed at its end.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub addresses: Vec<SocketAddr>,
    audit: u64,
    started: Instant,
}

/// Bytes of a connection.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub sent: AtomicU64,
    pub received: AtomicU64,
}

/// The gate of one call's connections.
pub(crate) struct DomainGate {
    pub approvals: Arc<Approvals>,
    pub trace: Trace,
    pub rules: Arc<Rules>,
    pub egress: Arc<Egress>,
    /// The call whose connections these are; its arguments are for the approver.
    pub call: Call,
    /// Time that this call waits for approvers.
    pub clock: Arc<WaitClock>,
    /// Answers by domain: several connections to one domain cause one request.
    pub answers: Mutex<HashMap<Domain, Arc<OnceCell<Decision>>>>,
    pub refusals: Mutex<Vec<Refusal>>,
    /// Number of connections so far.
    pub count: AtomicU64,
}

impl DomainGate {
    /// Returns the same gate for a command that outlives its call.
    pub fn detached(&self, cancel: CancellationToken) -> Self {
        Self {
            approvals: Arc::clone(&self.approvals),
            trace: self.trace.clone(),
            rules: Arc::clone(&self.rules),
            egress: Arc::clone(&self.egress),
            call: Call { cancel, clock: Arc::default(), ..self.call.clone() },
            clock: Arc::default(),
            answers: Mutex::default(),
            refusals: Mutex::default(),
            count: AtomicU64::new(0),
        }
    }

    /// Returns what was refused so far, one line for each domain.
    pub fn refusals(&self) -> Vec<String> {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.iter().map(|refusal| refusal.text.clone()).collect()
    }

    /// Checks a host that another program connects to: what the rules deny is refused, and whether
    /// the call may be made at all was decided before.
    ///
    /// # Errors
    /// The refusal, with the rule.
    pub async fn require_host(&self, host: &str) -> Result<(), Refusal> {
        let name = displayed_host(host);
        let refuse = |text: String| Refusal { domain: name.clone(), text };
        let memory = self.approvals.memory(&self.call.session).await;
        let memory = memory.map_err(|failure| refuse(failure.message))?;
        let granted = self.approvals.granted_in(self.call.root.as_ref());
        let decision = self.rules.decide_domain(Domain::parse(host).as_ref(), &memory, &granted);
        match decision.verdict {
            Verdict::Deny => Err(refuse(format!("{name} is not allowed ({})", decision.by))),
            Verdict::Allow | Verdict::Ask => Ok(()),
        }
    }

    /// Decides about a connection and resolves its name. The answer is in the audit before this
    /// returns.
    pub async fn admit(&self, host: &str, port: u16) -> Result<Admitted, Refusal> {
        let outcome = self.admit_or_refuse(host, port).await;
        if let Err(refusal) = &outcome {
            self.note_refusal(refusal);
        }
        outcome
    }

    fn note_refusal(&self, refusal: &Refusal) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !refusals.iter().any(|known| known.domain == refusal.domain);
        if is_new && refusals.len() < MAX_REFUSALS {
            refusals.push(refusal.clone());
        }
    }

    /// Completes the audit of a tunnel whose content is not for the domain that was decided about.
    pub(crate) async fn finish_mismatch(
        &self,
        admitted: Admitted,
        (domain, why): (&Domain, &str),
        traffic: &Traffic,
    ) {
        let text = format!("a tunnel to {domain} was closed: {why}");
        self.note_refusal(&Refusal { domain: domain.to_string(), text });
        self.finish(admitted, &format!("network_denied ({why})"), traffic).await;
    }

    async fn admit_or_refuse(&self, host: &str, port: u16) -> Result<Admitted, Refusal> {
        let host = displayed_host(host);
        let refuse = |text: String| Refusal { domain: host.clone(), text };
        if self.count.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            let text = format!("a command may open {MAX_CONNECTIONS} connections");
            return Err(refuse(text));
        }
        let Some(domain) = Domain::parse(&host) else {
            let text = format!("'{host}' is no domain name: rules open domains, not addresses");
            let by = DecidedBy::Tool("not a domain name".into());
            self.record(&host, port, Verdict::Deny, &by, "network_denied").await?;
            return Err(refuse(text));
        };
        let options = self.egress.options();
        if !PORTS.contains(&port) && !options.ports.contains(&port) {
            let by = DecidedBy::Tool(format!("port {port} is not in network.ports"));
            self.record(&host, port, Verdict::Deny, &by, "network_denied").await?;
            return Err(refuse(format!(
                "port {port} of {domain} is refused: network.ports does not name it"
            )));
        }
        let decision = self.decide(&domain, port, &options).await;
        if decision.verdict != Verdict::Allow {
            self.record(&host, port, Verdict::Deny, &decision.by, "network_denied").await?;
            return Err(refuse(format!(
                "the domain {domain} is not allowed ({}); network.domains of the user's \
                configuration lists the domains that commands may reach",
                decision.by
            )));
        }
        let audit = self.record(&host, port, Verdict::Allow, &decision.by, "").await?;
        let mut admitted = Admitted { addresses: vec![], audit, started: Instant::now() };
        match self.resolve(&domain, port).await {
            Ok(addresses) => {
                admitted.addresses = addresses;
                Ok(admitted)
            }
            Err(text) => {
                self.finish(admitted, "network_denied", &Traffic::default()).await;
                Err(refuse(text))
            }
        }
    }

    /// Resolves a name, once: each of its addresses must be public.
    async fn resolve(&self, domain: &Domain, port: u16) -> Result<Vec<SocketAddr>, String> {
        let resolving = self.egress.dialer.resolve(domain.as_str(), port);
        let addresses = match tokio::time::timeout(CONNECT, resolving).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(format!("{domain} cannot be resolved: {error}")),
            Err(_) => return Err(format!("{domain} was not resolved in time")),
        };
        // The name of this machine was opened by a rule that names it, and leads nowhere else.
        let is_open =
            |ip: IpAddr| if domain.is_loopback() { ip.is_loopback() } else { is_public(ip) };
        match addresses.iter().find(|address| !is_open(address.ip())) {
            Some(closed) => {
                Err(format!("{domain} is at {}, which is not a public address", closed.ip()))
            }
            None if addresses.is_empty() => Err(format!("{domain} has no address")),
            None => Ok(addresses),
        }
    }

    /// Connects to the first address that answers.
    pub(crate) async fn connect(&self, admitted: &Admitted) -> Result<TcpStream, String> {
        let mut cause = String::new();
        for address in &admitted.addresses {
            let connecting = self.egress.dialer.connect(*address);
            match tokio::time::timeout(CONNECT, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => cause = error.to_string(),
                Err(_) => cause = "no answer in time".into(),
            }
        }
        Err(cause)
    }

    /// Completes the audit of a connection.
    pub async fn finish(&self, admitted: Admitted, outcome: &str, traffic: &Traffic) {
        let (sent, received) =
            (traffic.sent.load(Ordering::Relaxed), traffic.received.load(Ordering::Relaxed));
        let outcome = AuditOutcome {
            millis: u64::try_from(admitted.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            outcome: format!("{outcome}, {sent} bytes sent, {received} received"),
            exit_code: None,
            truncated: false,
        };
        if let Err(error) = self.trace.audit_outcome(admitted.audit, outcome, None).await {
            tracing::error!(%error, "the end of a connection cannot be recorded");
        }
    }

    async fn record(
        &self,
        host: &str,
        port: u16,
        verdict: Verdict,
        by: &DecidedBy,
        outcome: &str,
    ) -> Result<u64, Refusal> {
        let intent = AuditIntent {
            session: self.call.session.clone(),
            tool: NETWORK.into(),
            args_digest: cairn_trace::digest(&json!({"host": host, "port": port})),
            decision: if verdict == Verdict::Allow { "allow" } else { "deny" },
            rule: by.to_string(),
            call: None,
            command: Some(format!("{host}:{port}")),
        };
        let unrecorded = |error| {
            tracing::error!(%error, "a connection cannot be recorded");
            Refusal { domain: host.to_owned(), text: "the connection cannot be recorded".into() }
        };
        let audit = self.trace.audit_intent(intent, None).await.map_err(unrecorded)?;
        if verdict != Verdict::Allow {
            let admitted = Admitted { addresses: vec![], audit, started: Instant::now() };
            self.finish(admitted, outcome, &Traffic::default()).await;
        }
        Ok(audit)
    }

    async fn decide(&self, domain: &Domain, port: u16, options: &EgressOptions) -> Decision {
        let session = &self.call.session;
        let unreadable = |failure: Failure| Decision {
            verdict: Verdict::Deny,
            by: DecidedBy::UnreadableRules(failure.message),
        };
        let memory = match self.approvals.memory(session).await {
            Ok(memory) => memory,
            Err(failure) => return unreadable(failure),
        };
        let granted = self.approvals.granted_in(self.call.root.as_ref());
        let decision = self.rules.decide_domain(Some(domain), &memory, &granted);
        let is_unlisted = decision.by == DecidedBy::Fallback(Fallback::UnlistedDomain);
        if is_unlisted && self.call.grants.network && !domain.is_loopback() {
            let by = DecidedBy::Fallback(Fallback::NetworkGranted);
            return Decision { verdict: Verdict::Allow, by };
        }
        let can_ask = options.ask && self.approvals.has_approver(session);
        if decision.verdict != Verdict::Ask || !can_ask {
            return decision;
        }
        let answer = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if answers.len() >= MAX_QUESTIONS && !answers.contains_key(domain) {
                return decision;
            }
            Arc::clone(answers.entry(domain.clone()).or_default())
        };
        answer.get_or_init(|| self.ask(domain, port, decision.by, options)).await.clone()
    }

    /// Requests an approval of the domain.
    async fn ask(
        &self,
        domain: &Domain,
        port: u16,
        by: DecidedBy,
        options: &EgressOptions,
    ) -> Decision {
        let command = self.call.arguments.get("command").cloned().unwrap_or_default();
        let call = Call {
            name: NETWORK.into(),
            arguments: json!({"domain": domain.as_str(), "port": port, "command": command}),
            call_id: None,
            resumed: false,
            ..self.call.clone()
        };
        let rule = |domain: &dyn std::fmt::Display| {
            format!("{NETWORK}({domain})").parse::<crate::Rule>().ok()
        };
        let wider = domain.siblings().and_then(|pattern| rule(&pattern));
        let intent = Intent {
            preview: Preview {
                summary: format!("network {domain}"),
                command: command.as_str().map(str::to_owned),
                network: true,
                domains: vec![domain.to_string()],
                ..Preview::default()
            },
            grants: rule(domain).into_iter().collect(),
            patterns: wider.map(|rule| vec![rule]).into_iter().collect(),
            ..Intent::default()
        };
        let question = by.to_string();
        let asking = self.approvals.ask(&call, &intent, &question, false);
        let asking = tokio::time::timeout(options.ask_timeout, asking);
        let asking = self.call.clock.while_waiting(self.clock.while_waiting(asking));
        let denied = |by| Decision { verdict: Verdict::Deny, by };
        match asking.await {
            Ok(Ok(answer)) => {
                let verdict = match answer.decision {
                    ApprovalDecision::Deny => Verdict::Deny,
                    _ => Verdict::Allow,
                };
                let (decision, client) = (answer.decision, answer.by);
                let answered = Answered { decision, client, question: Box::new(by) };
                Decision { verdict, by: DecidedBy::Answered(answered) }
            }
            Ok(Err(failure)) => denied(DecidedBy::Tool(failure.message)),
            Err(_) => denied(DecidedBy::Tool("no answer in time".into())),
        }
    }
}
