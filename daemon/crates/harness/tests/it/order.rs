//! The documented order of rules, for every kind of rule: each combination of lists, answers, limits
//! of the run and modes is decided by the gate, and compared with the order as the guide states it.

use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cairn_harness::{
    Call, Caller, DomainUse, FetchRequest, GrantedRules, Grants, Harness, Intent, Output, Permit,
    Registry, Rule, Rules, Sandbox, Tool, ToolEffect, ToolSpec, Verdict, WhenMissing,
    egress::{Dialer, Egress},
};
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    error::{Failure, Reason},
    id::SessionId,
    trace::{AuditEntry, AuditQueryParams},
    turn::ExecutionMode,
};
use cairn_trace::{NewSession, Trace};
use cairn_workspace::{Root, Roots};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    Edit,
    Remove,
    Read,
    Command,
    /// A tool that needs the complete network.
    Network,
    /// One request of a tool that does nothing but requests.
    Domain,
}

impl Kind {
    fn tool(self) -> &'static str {
        match self {
            Self::Tool => "note",
            Self::Edit => "write_file",
            Self::Remove => "delete_file",
            Self::Read => "read_file",
            Self::Command => "run_shell",
            Self::Network => "publish",
            Self::Domain => "reach",
        }
    }

    /// The rule about exactly what the call does.
    fn rule(self) -> Rule {
        let text = match self {
            Self::Tool | Self::Network => self.tool().to_owned(),
            Self::Edit | Self::Remove | Self::Read => format!("{}(src/**)", self.tool()),
            Self::Command => "run_shell(echo *)".to_owned(),
            Self::Domain => "network(files.example)".to_owned(),
        };
        text.parse().unwrap()
    }

    fn arguments(self) -> Value {
        match self {
            Self::Edit | Self::Remove | Self::Read => json!({"path": "src/a.txt"}),
            Self::Command => json!({"command": "echo hi"}),
            Self::Domain => json!({"url": "http://files.example/a"}),
            Self::Tool | Self::Network => json!({}),
        }
    }
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Arguments {
    path: Option<String>,
    command: Option<String>,
    url: Option<String>,
}

/// A tool of one kind, which counts its effects.
struct Probe {
    kind: Kind,
    effects: Arc<AtomicU64>,
}

#[async_trait::async_trait]
impl Tool for Probe {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::reading::<Arguments>(self.kind.tool(), "a probe");
        ToolSpec {
            read_only: self.kind == Kind::Read,
            network: matches!(self.kind, Kind::Network | Kind::Domain),
            domains: match self.kind {
                Kind::Domain => DomainUse::EveryRequest,
                _ => DomainUse::None,
            },
            effect: match self.kind {
                Kind::Edit => ToolEffect::Edit,
                Kind::Remove => ToolEffect::Remove,
                _ => ToolEffect::Any,
            },
            command: (self.kind == Kind::Command).then_some("command"),
            ..spec
        }
    }

    async fn intent(&self, _: &Caller<'_>, _: &Value) -> Result<Intent, Failure> {
        Ok(Intent { grants: vec![self.kind.rule()], ..Intent::default() })
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        if self.kind == Kind::Domain {
            let request = FetchRequest {
                url: arguments["url"].as_str().unwrap().to_owned(),
                headers: vec![],
                max_bytes: 1,
                timeout: Duration::from_secs(60),
                near: false,
            };
            permit.fetch(&request).await?;
        }
        self.effects.fetch_add(1, Ordering::SeqCst);
        Output::of("probe", &"done", false)
    }
}

/// Resolves each name to nothing: a request that gets here was admitted.
struct Nowhere(Arc<AtomicU64>);

#[async_trait::async_trait]
impl Dialer for Nowhere {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(vec![])
    }

    async fn connect(&self, _: SocketAddr) -> io::Result<TcpStream> {
        Err(io::Error::other("no test connects"))
    }
}

/// A limit of the run that the call breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    Ops,
    Paths,
    Network,
}

/// The list `confirm`: no rule, the tool as such, or exactly what the call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirm {
    None,
    Tool,
    Exact,
}

/// One combination; the lists name exactly what the call does.
#[derive(Debug, Clone, Copy)]
struct Row {
    mode: ExecutionMode,
    limit: Limit,
    final_deny: bool,
    session: bool,
    overrides: Option<Verdict>,
    deny: bool,
    allow: bool,
    granted: bool,
    confirm: Confirm,
    default: Verdict,
}

const MODES: [ExecutionMode; 4] =
    [ExecutionMode::Plan, ExecutionMode::Ask, ExecutionMode::AcceptEdits, ExecutionMode::Auto];
/// Reasons for a request about a domain.
const PROMPTS: [&str; 2] = ["(default: a domain in no list)", "(confirm: network(files.example))"];
const SWITCH: [bool; 2] = [false, true];

/// All combinations. Those with another default than to ask leave out answers and overrides, which
/// precede it.
fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    let overrides = [None, Some(Verdict::Allow), Some(Verdict::Deny)];
    for mode in MODES {
        for limit in [Limit::None, Limit::Ops, Limit::Paths, Limit::Network] {
            for bits in 0..32_u8 {
                let [final_deny, session, deny, allow, granted] =
                    [0, 1, 2, 3, 4].map(|bit| SWITCH[usize::from(bits >> bit & 1)]);
                for confirm in [Confirm::None, Confirm::Tool, Confirm::Exact] {
                    for overrides in overrides {
                        for default in [Verdict::Ask, Verdict::Deny, Verdict::Allow] {
                            let answered = session || overrides.is_some();
                            if default == Verdict::Ask || !answered {
                                all.push(Row {
                                    mode,
                                    limit,
                                    final_deny,
                                    session,
                                    overrides,
                                    deny,
                                    allow,
                                    granted,
                                    confirm,
                                    default,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    all
}

/// The verdict and the beginning of its reason, as `docs/guide/safety.md` states the order.
fn expected(kind: Kind, row: &Row) -> (Verdict, &'static str) {
    let changes = kind != Kind::Read;
    let by_path = matches!(kind, Kind::Edit | Kind::Remove | Kind::Read);
    let uses_network = matches!(kind, Kind::Network | Kind::Domain);
    // A rule about a domain is judged when the call, which needs no other rule, connects.
    if row.final_deny && kind != Kind::Domain {
        return (Verdict::Deny, "finalDeny: ");
    }
    if row.mode == ExecutionMode::Plan && changes {
        return (Verdict::Deny, "mode plan");
    }
    match row.limit {
        Limit::Ops => return (Verdict::Deny, "policy.ops"),
        Limit::Paths if by_path => return (Verdict::Deny, "policy.paths"),
        Limit::Network if uses_network => return (Verdict::Deny, "policy.network"),
        _ => {}
    }
    if row.final_deny {
        return (Verdict::Deny, "finalDeny: ");
    }
    if row.session {
        return (Verdict::Allow, "session: ");
    }
    if let Some(verdict) = row.overrides {
        return (verdict, "overrides: ");
    }
    if row.deny {
        return (Verdict::Deny, "deny: ");
    }
    if row.allow {
        return (Verdict::Allow, "allow: ");
    }
    if row.granted {
        return (Verdict::Allow, "granted: ");
    }
    let in_mode = match row.mode {
        ExecutionMode::AcceptEdits => kind == Kind::Edit,
        // Commands have no sandbox here, without which this mode asks.
        ExecutionMode::Auto => matches!(kind, Kind::Edit | Kind::Remove),
        _ => false,
    };
    match row.confirm {
        Confirm::Exact if !(in_mode && kind.rule() == Rule::of_tool(kind.tool())) => {
            return (Verdict::Ask, "confirm: ");
        }
        // A rule about a tool as such gives way to the mode, and is not about domains.
        Confirm::Tool if !in_mode && kind != Kind::Domain => return (Verdict::Ask, "confirm: "),
        _ => {}
    }
    match kind {
        Kind::Read | Kind::Network => (Verdict::Allow, "default: "),
        Kind::Domain => (Verdict::Ask, "default: a domain in no list"),
        _ if in_mode && row.default == Verdict::Ask => (Verdict::Allow, "mode "),
        _ => (row.default, "default: "),
    }
}

fn rules(kind: Kind, row: &Row) -> Rules {
    let list = |is: bool| if is { vec![kind.rule()] } else { vec![] };
    Rules {
        final_deny: list(row.final_deny),
        overrides: row.overrides.iter().map(|verdict| (kind.rule(), *verdict)).collect(),
        deny: list(row.deny),
        allow: list(row.allow),
        confirm: match row.confirm {
            Confirm::None => vec![],
            // A confirmation of the tool that makes requests asks before any of them.
            Confirm::Tool if kind == Kind::Domain => vec![],
            Confirm::Tool => vec![Rule::of_tool(kind.tool())],
            Confirm::Exact => vec![kind.rule()],
        },
        default: row.default,
        ..Rules::default()
    }
}

fn grants(kind: Kind, row: &Row) -> Grants {
    let network = row.limit != Limit::Network;
    Grants {
        network: network && kind == Kind::Network,
        domains: network && kind == Kind::Domain,
        ops: (row.limit == Limit::Ops).then(|| vec!["other".to_owned()]),
        paths: (row.limit == Limit::Paths).then(|| vec!["docs".to_owned()]),
        mode: row.mode,
        ..Grants::default()
    }
}

struct Scene {
    kind: Kind,
    /// The gate without a granted rule, and the one with it.
    gates: [Harness; 2],
    /// The session without an answer, and the one with it.
    sessions: [SessionId; 2],
    trace: Trace,
    root: Root,
    effects: Arc<AtomicU64>,
    _dir: tempfile::TempDir,
}

impl Scene {
    async fn new(kind: Kind) -> Self {
        // In memory if there is such a folder: the cost of the log is measured elsewhere.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.unwrap();
        let at = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(at.join("work/src")).unwrap();
        std::fs::write(at.join("work/src/a.txt"), "old\n").unwrap();
        let trace = Trace::open(&at.join("trace.db")).unwrap();
        let roots = Arc::new(Roots::new(vec![]));
        let root = roots.declare(&at.join("work")).unwrap();
        let effects = Arc::new(AtomicU64::new(0));
        let granted = json!({"allow": [{"rule": kind.rule().to_string(), "grantedBy": "tester",
            "grantedAt": "2026-01-01T00:00:00.000Z"}]});
        std::fs::write(at.join("granted.json"), granted.to_string()).unwrap();
        let gate = |granted: GrantedRules| {
            let registry = Registry::default();
            registry.add(Arc::new(Probe { kind, effects: Arc::clone(&effects) })).unwrap();
            let (wait, stopping) = (Duration::from_secs(60), CancellationToken::new());
            let rules = Rules::default();
            Harness::new(registry, rules, trace.clone(), granted, wait, stopping)
                .with_roots(Arc::clone(&roots) as _)
                .with_sandbox(Arc::new(Sandbox::new(None).when_missing(WhenMissing::Off)))
                .with_egress(Arc::new(Egress::with_dialer(Arc::new(Nowhere(Arc::clone(&effects))))))
        };
        let gates = [None, Some(at.join("granted.json"))];
        let gates = gates.map(|path| gate(GrantedRules::load(path).unwrap()));
        let mut sessions = Vec::new();
        for _ in 0..2 {
            sessions.push(trace.create_session(NewSession::default()).await.unwrap().session_id);
        }
        let sessions = sessions.try_into().unwrap();
        let scene = Self { kind, gates, sessions, trace, root, effects, _dir: dir };
        scene.answer().await;
        scene
    }

    fn call(&self, session: bool, grants: Grants) -> Call {
        let session = self.sessions[usize::from(session)].clone();
        let call = Call::new(session, self.kind.tool(), self.kind.arguments());
        Call { root: Some(self.root.clone()), grants, ..call }
    }

    /// Answers a question of one session with `session`.
    async fn answer(&self) {
        let gate = &self.gates[0];
        let approver = gate.approvals().join();
        gate.set_rules(Rules { confirm: vec![self.kind.rule()], ..Rules::default() });
        let mode = ExecutionMode::Ask;
        let (network, domains) = (self.kind == Kind::Network, self.kind == Kind::Domain);
        let grants = Grants { network, domains, mode, ..Grants::default() };
        let answering = async {
            let approval = loop {
                let waiting = self.trace.approvals(ApprovalListParams::default()).await.unwrap();
                match waiting.into_iter().next() {
                    Some(approval) => break approval,
                    None => tokio::task::yield_now().await,
                }
            };
            let params = ApprovalResolveParams {
                approval_id: approval.approval_id,
                decision: ApprovalDecision::Session,
                reason: None,
                pattern: None,
                values: Default::default(),
            };
            gate.resolve(params, "tester").await.unwrap();
        };
        let calling = async {
            // The request to the domain fails after it was admitted.
            let outcome = gate.call(self.call(true, grants)).await;
            let has_effect = self.effects.load(Ordering::SeqCst) > 0;
            assert!(has_effect, "{:?}: {outcome:?} without a question", self.kind);
        };
        let ((), ()) = tokio::join!(calling, answering);
        drop(approver);
    }

    /// Returns the verdict of the gate, by its effect: no approver is connected.
    async fn verdict(&self, row: &Row) -> Verdict {
        for gate in &self.gates {
            gate.set_rules(rules(self.kind, row));
        }
        let before = self.effects.load(Ordering::SeqCst);
        let call = self.call(row.session, grants(self.kind, row));
        let outcome = self.gates[usize::from(row.granted)].call(call).await;
        let has_effect = self.effects.load(Ordering::SeqCst) != before;
        match outcome {
            _ if has_effect => Verdict::Allow,
            Err(failure) if failure.reason == Reason::NoApprover => Verdict::Ask,
            // A request to a domain that nobody can be asked about is refused with that reason.
            Err(failure) if PROMPTS.iter().any(|why| failure.message.contains(why)) => Verdict::Ask,
            Err(_) => Verdict::Deny,
            Ok(output) => panic!("{row:?}: {output:?} without an effect"),
        }
    }

    async fn audit(&self) -> Vec<AuditEntry> {
        let mut all: Vec<AuditEntry> = Vec::new();
        loop {
            let after = all.last().map_or(0, |entry| entry.id);
            let query = AuditQueryParams { after, ..AuditQueryParams::default() };
            let page = self.trace.audit_query(query).await.unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }
}

/// Decides every row, and compares each with the guide and with the audit. Returns their number.
async fn judge(kind: Kind) -> usize {
    let scene = Scene::new(kind).await;
    let seeded = scene.audit().await.len();
    let rows = rows();
    let mut wrong = Vec::new();
    let mut ends = Vec::new();
    for row in &rows {
        let verdict = scene.verdict(row).await;
        if verdict != expected(kind, row).0 {
            wrong.push(format!("{row:?}: {verdict:?}, expected {:?}", expected(kind, row)));
        }
        ends.push(verdict);
    }
    let audit = scene.audit().await;
    let mut entries = audit.iter().skip(seeded).peekable();
    for (row, verdict) in rows.iter().zip(ends) {
        let mut last = entries.next().expect("a row of the audit");
        // An admitted request has a row of its own.
        if let Some(entry) = entries.next_if(|entry| entry.tool == "network") {
            last = entry;
        }
        let (_, reason) = expected(kind, row);
        let admitted = last.decision == "allow";
        if !last.rule.starts_with(reason) || admitted != (verdict == Verdict::Allow) {
            wrong.push(format!("{row:?}: audit {} by {}, not {reason}", last.decision, last.rule));
        }
    }
    assert!(entries.next().is_none(), "{kind:?}: more rows of the audit than calls");
    let first: Vec<&String> = wrong.iter().take(20).collect();
    assert!(wrong.is_empty(), "{kind:?}: {} of {} rows: {first:#?}", wrong.len(), rows.len());
    rows.len()
}

macro_rules! order_of {
    ($($name:ident: $kind:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            assert!(judge($kind).await >= 5_000);
        }
    )*};
}

order_of! {
    rules_about_tools_apply_in_the_documented_order: Kind::Tool;
    rules_about_edits_apply_in_the_documented_order: Kind::Edit;
    rules_about_removals_apply_in_the_documented_order: Kind::Remove;
    rules_about_reading_apply_in_the_documented_order: Kind::Read;
    rules_about_commands_apply_in_the_documented_order: Kind::Command;
    rules_about_the_network_apply_in_the_documented_order: Kind::Network;
    rules_about_domains_apply_in_the_documented_order: Kind::Domain;
}
