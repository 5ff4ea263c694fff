//! The order of rules is the same for every caller: one table of rules, and the calls of it made by
//! turns, clients, devices, editors, agents, schedules, fleets and hooks. The effect of each call and
//! its row of the audit are compared with the order of the guide.

mod table;

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use cairn_protocol::remote::Right;
use serde_json::{Value, json};
use table::{
    Expected, Kind, MODES, Verdict, calls_of, config, effect_of, expected, prepare, rows,
    rows_of_turn,
};

use crate::{
    hooks, mcp,
    remote::machine::{Den, Laptop},
    sealed::{Daemon, Raw, command, wait_for},
    ways::broker,
};

/// Calls in one answer of the model.
const CALLS: usize = 60;

/// One caller in one mode, with a root of its own.
struct Case {
    caller: &'static str,
    mode: &'static str,
    root: PathBuf,
}

/// The answers of a model that makes every call of a turn.
fn answers() -> Vec<Value> {
    let step =
        |(name, arguments): (&str, Value)| json!({"call": {"name": name, "arguments": arguments}});
    let all: Vec<Value> = rows_of_turn().iter().map(|row| step(calls_of(row))).collect();
    // The last call, which ends the turn, is alone: others of its answer would not be made.
    let (last, others) = all.split_last().unwrap();
    let mut answers: Vec<Value> =
        others.chunks(CALLS).map(|steps| json!({ "steps": steps })).collect();
    answers.push(json!({ "steps": [last] }));
    answers
}

/// Callers whose calls come from a model, in the order in which they run.
const OF_MODELS: [&str; 6] = ["turn", "agent", "unattended", "schedule", "editor", "fleet"];

/// The modes that a caller can choose. An editor's turns ask.
fn modes_of(caller: &str) -> &'static [&'static str] {
    if caller == "editor" { &["ask"] } else { &MODES }
}

fn script() -> Value {
    let mut all = Vec::new();
    for caller in OF_MODELS {
        for _ in modes_of(caller) {
            if caller == "agent" {
                let task = json!({"task": "do it", "access": "edit"});
                all.push(json!({"steps": [{"call": {"name": "run_agent", "arguments": task}}]}));
            }
            all.extend(answers());
            if caller == "agent" {
                all.push(json!({"steps": [{"text": "it was denied"}]}));
            }
        }
    }
    json!({"model": "script", "contextTokens": 4_000_000, "answers": all})
}

struct Scene {
    den: Den,
    raw: Raw,
    dir: tempfile::TempDir,
    /// The digest of each call's arguments, by its place in the table.
    digests: HashMap<String, usize>,
    full_sandbox: bool,
    wrong: Vec<String>,
    count: usize,
}

impl Scene {
    async fn new(server: &broker::Server) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script.json");
        std::fs::write(&path, script().to_string()).unwrap();
        let mut config = config();
        config["llm"] = json!({"provider": "scripted", "endpoint": path,
            "maxRequestsPerMinute": 100_000});
        config["fleet"] = json!({"server": format!("nats://127.0.0.1:{}", server.port),
            "name": "member", "pools": ["ci"]});
        let den = Den::start_with(&config).await;
        let mut raw = den.daemon.client().await;
        let full_sandbox = raw.ok("sandbox.probe", json!({})).await["tier"] == "full";
        Self { den, raw, dir, digests: HashMap::new(), full_sandbox, wrong: vec![], count: 0 }
    }

    async fn case(&mut self, caller: &'static str, mode: &'static str) -> Case {
        let root =
            self.dir.path().canonicalize().unwrap().join(format!("{caller}-{mode}-{}", self.count));
        prepare(&root);
        self.raw.ok("index.addRoot", json!({ "path": root })).await;
        Case { caller, mode, root }
    }

    async fn session(&mut self, case: &Case) -> Value {
        self.raw.ok("session.create", json!({"root": case.root})).await["sessionId"].clone()
    }

    async fn audit(&mut self, session: &Value) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all.last().map_or(json!(0), |entry| entry["id"].clone());
            let page = self.raw.ok("audit.query", json!({"sessionId": session, "after": after}));
            let page = page.await["data"].as_array().cloned().unwrap_or_default();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    /// Compares the effects of a caller with the order, and the audit with both.
    async fn check(&mut self, case: &Case, session: Option<&Value>, refused: Option<&str>) {
        let audit = match session {
            Some(session) => self.audit(session).await,
            None => vec![],
        };
        let mut reasons: HashMap<usize, (String, String)> = HashMap::new();
        for entry in &audit {
            let digest = entry["argsDigest"].as_str().unwrap();
            if let Some(at) = self.digests.get(digest) {
                let part = |key: &str| entry[key].as_str().unwrap().to_owned();
                reasons.insert(*at, (part("decision"), part("rule")));
            }
        }
        let tried = if OF_MODELS.contains(&case.caller) { rows_of_turn() } else { rows() };
        let digest_of = rows();
        for row in &tried {
            self.count += 1;
            let at = digest_of.iter().position(|known| known == row).unwrap();
            let want = match refused {
                Some(_) => Expected { verdict: Verdict::Deny, reason: "" },
                None => expected(row, case.mode, self.full_sandbox),
            };
            let has_effect = effect_of(row, &case.root, reasons.get(&at));
            let name = format!("{} {} {row:?}", case.caller, case.mode);
            if has_effect != (want.verdict == Verdict::Allow) {
                let audited = audit.iter().find(|entry| {
                    self.digests.get(entry["argsDigest"].as_str().unwrap()) == Some(&at)
                });
                self.wrong
                    .push(format!("{name}: effect {has_effect}, expected {want:?}: {audited:?}"));
                continue;
            }
            match reasons.get(&at) {
                None if refused.is_some() => {}
                None => self.wrong.push(format!("{name}: no row of the audit")),
                Some((_, rule)) if rule.contains(want.reason) => {}
                Some((decision, rule)) => {
                    self.wrong.push(format!("{name}: {decision} by {rule}, expected {want:?}"));
                }
            }
        }
    }

    /// Makes every call with `tool.call`. The first such caller names the digests.
    async fn direct(&mut self, caller: &'static str) {
        let case = self.case(caller, "ask").await;
        let session = self.session(&case).await;
        for row in rows() {
            let (name, arguments) = calls_of(&row);
            if caller == "command" {
                let cmd = json!({"type": "tool_call", "name": name, "arguments": arguments});
                let cmd = json!({"sessionId": session, "cmd": {"payload": cmd}});
                self.raw.ok("orchestrate.command", cmd).await;
            } else {
                self.raw.call_tool(&session, name, arguments).await;
            }
        }
        if caller == "command" {
            self.until_audited(&session).await;
        }
        if self.digests.is_empty() {
            let audit = self.audit(&session).await;
            assert_eq!(audit.len(), rows().len());
            let digest = |entry: &Value| entry["argsDigest"].as_str().unwrap().to_owned();
            self.digests = audit.iter().map(digest).zip(0..).collect();
            assert_eq!(self.digests.len(), rows().len());
        }
        self.check(&case, Some(&session), None).await;
    }

    /// Waits until each call of a session has a complete row.
    async fn until_audited(&mut self, session: &Value) {
        let started = Instant::now();
        loop {
            let audit = self.audit(session).await;
            let known = |entry: &&Value| {
                self.digests.contains_key(entry["argsDigest"].as_str().unwrap_or_default())
                    && (entry["decision"] == "deny" || entry["outcome"].is_string())
            };
            if audit.iter().filter(known).count() == rows().len() {
                return;
            }
            assert!(started.elapsed() < crate::sealed::PATIENCE, "calls without a row: {audit:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn device(&mut self, caller: &'static str, rights: &[Right]) {
        let case = self.case(caller, "ask").await;
        let session = self.session(&case).await;
        let laptop = Laptop::new();
        laptop.pair(&self.den, rights, "den").await;
        let client = laptop.connect("den").await.unwrap();
        let mut refusals = 0;
        for row in rows() {
            let (name, arguments) = calls_of(&row);
            let params = json!({"sessionId": session, "name": name, "arguments": arguments});
            let answer = client.call::<_, Value>("tool.call", &params).await;
            if let Err(error) = &answer {
                assert_eq!(error.reason(), Some("right_missing"), "{error:?}");
                refusals += 1;
            }
        }
        let refused = (rights == [Right::Observe]).then_some("right_missing");
        assert_eq!(refusals, if refused.is_some() { rows().len() } else { 0 }, "{caller}");
        self.check(&case, Some(&session), refused).await;
    }

    async fn mcp(&mut self) {
        let case = self.case("mcp", "ask").await;
        let tools = "tools=write_file,delete_file,read_file,run_shell";
        let query = format!("?root={}&{tools}", case.root.display());
        let mut raw = mcp::socket(&self.den.daemon, &query).await;
        mcp::begin(&mut raw).await;
        for row in rows() {
            let (name, arguments) = calls_of(&row);
            mcp::tool(&mut raw, name, arguments).await;
        }
        let session = self.newest_session_of(&case).await;
        self.check(&case, Some(&session), None).await;
    }

    /// Returns the newest session of a case's root, whoever created it.
    async fn newest_session_of(&mut self, case: &Case) -> Value {
        let all = self.raw.ok("session.list", json!({"limit": 200, "archived": true})).await;
        let all = all["data"].as_array().unwrap();
        let root = self.raw.ok("index.list", json!({})).await;
        let root = root["data"].as_array().unwrap().iter();
        let root = root.clone().find(|r| r["path"] == json!(case.root)).unwrap()["root"].clone();
        let of = |session: &&Value| session["root"] == root || session["root"] == json!(case.root);
        all.iter().find(of).unwrap_or_else(|| panic!("no session of {root}: {all:#?}"))["sessionId"]
            .clone()
    }

    async fn end_of(&mut self, session: &Value) -> Value {
        self.raw.ok("orchestrate.subscribe", json!({"sessionId": session})).await;
        loop {
            let record = self.raw.notification("orchestrate.event").await;
            if record["sessionId"] == *session && record["evt"]["type"] == "run_completed" {
                return record["evt"]["result"].clone();
            }
        }
    }

    /// Runs the turn of a model in every mode.
    async fn model(&mut self, caller: &'static str) {
        for mode in modes_of(caller) {
            let case = self.case(caller, mode).await;
            let policy = json!({"mode": mode, "allowExternalLLMs": true});
            let session = match caller {
                "editor" => {
                    self.editor(&case);
                    self.newest_session_of(&case).await
                }
                _ => self.start(&case, &policy).await,
            };
            let result = match caller {
                "editor" => json!({"status": "denied"}),
                _ => self.end_of(&session).await,
            };
            let end = if caller == "agent" { "completed" } else { "denied" };
            assert_eq!(result["status"], end, "{caller} {mode}: {result} {:#?}", self.wrong);
            let session = match caller {
                "agent" => self.agent_of(&session).await,
                _ => session,
            };
            self.check(&case, Some(&session), None).await;
        }
    }

    async fn start(&mut self, case: &Case, policy: &Value) -> Value {
        let job = json!({"request": "go", "root": case.root, "policy": policy});
        match case.caller {
            "schedule" => {
                let add = json!({"when": "every day 7:00", "job": job});
                let id = self.raw.ok("schedule.add", add).await["scheduleId"].clone();
                let run = self.raw.ok("schedule.run", json!({ "scheduleId": id })).await;
                run["sessionId"].clone()
            }
            "fleet" => {
                let work = json!({"type": "turn", "input": "go", "policy": policy});
                let run = json!({"pool": "ci", "root": case.root, "work": work});
                self.raw.ok("fleet.run", run).await;
                let root = case.root.clone();
                let den = self.den.daemon.home.clone();
                wait_for("a session of the fleet's run", || session_in(&den, &root))
            }
            caller => {
                let session = self.session(case).await;
                let turn =
                    json!({"sessionId": session, "turnId": "t", "input": "go", "policy": policy});
                let (method, params) = match caller {
                    "unattended" => ("unattended.start", json!({ "turn": turn })),
                    _ => ("orchestrate.run.start", turn),
                };
                self.raw.ok(method, params).await;
                session
            }
        }
    }

    /// Returns the session of the agent that a turn started.
    async fn agent_of(&mut self, session: &Value) -> Value {
        let records = self.raw.records(session.as_str().unwrap()).await;
        let of = |record: &Value| {
            let evt = &record["evt"];
            let output = &evt["output"];
            (evt["type"] == "tool_result" && evt["name"] == "run_agent")
                .then(|| output["sessionId"].clone())
        };
        records.iter().find_map(of).unwrap_or_else(|| {
            let evts: Vec<_> = records.iter().map(|record| &record["evt"]["type"]).collect();
            panic!("no agent: {evts:?}, before {:#?}", self.wrong)
        })
    }

    /// A prompt from an editor, whose user refuses every request.
    fn editor(&self, case: &Case) {
        let mut editor = Editor::start(&self.den.daemon.home, &case.root);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        editor.call("initialize", hello);
        let new = json!({"cwd": case.root, "mcpServers": []});
        let session = editor.call("session/new", new)["sessionId"].clone();
        let prompt = json!([{"type": "text", "text": "go"}]);
        let end = editor.call("session/prompt", json!({"sessionId": session, "prompt": prompt}));
        assert_eq!(end["stopReason"], "refusal", "{end}");
    }
}

/// Refuses every request of a daemon: without an approver a turn would end at its first one.
async fn refuse_all(daemon: &Daemon) -> tokio::task::JoinHandle<()> {
    let mut approver = daemon.approver().await;
    tokio::spawn(async move {
        loop {
            let open = approver.ok("approval.list", json!({})).await;
            for approval in open["data"].as_array().into_iter().flatten() {
                let answer = json!({"approvalId": approval["approvalId"], "decision": "deny"});
                // The question may have ended with its call.
                let _finished = approver.call("approval.resolve", answer).await;
            }
            approver.backlog.clear();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

fn session_in(home: &Path, root: &Path) -> Option<Value> {
    let mut list = command(home);
    list.args(["--json", "sessions"]).stdout(Stdio::piped());
    let output = list.output().unwrap();
    let board: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = board["rows"].as_array()?;
    let of = |row: &&Value| row.to_string().contains(&format!("{}\"", root.display()));
    rows.iter().find(of).map(|row| row["session"]["sessionId"].clone())
}

/// `cairn acp`, spoken to by its lines.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u32,
}

impl Drop for Editor {
    fn drop(&mut self) {
        // It may have ended.
        let _finished = self.child.kill();
        let _finished = self.child.wait();
    }
}

impl Editor {
    fn start(home: &Path, folder: &Path) -> Self {
        let mut child = command(home)
            .arg("acp")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, next: 0 }
    }

    fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Returns the result of a call; requests for a permission are refused meanwhile.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "{method}: no answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                let result = message.get("result");
                return result.unwrap_or_else(|| panic!("{method}: {message}")).clone();
            }
            if message["method"] == "session/request_permission" {
                let options = message["params"]["options"].as_array().unwrap();
                let refuse = options.iter().find(|o| o["kind"] == "reject_once").unwrap();
                let outcome = json!({"outcome": "selected", "optionId": refuse["optionId"]});
                let result = json!({ "outcome": outcome });
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn order_of_rules_is_the_same_for_every_caller() {
    let Some(server) = broker::Server::start() else { return };
    let mut scene = Scene::new(&server).await;
    scene.direct("tool").await;
    scene.direct("command").await;
    scene.mcp().await;
    scene.device("observer", &[Right::Observe]).await;
    scene.device("prompter", &[Right::Observe, Right::Prompt]).await;
    scene.device("approver", &[Right::Observe, Right::Prompt, Right::Approve]).await;
    scene.device("admin", &[Right::Observe, Right::Prompt, Right::Approve, Right::Admin]).await;
    let refusing = refuse_all(&scene.den.daemon).await;
    for caller in OF_MODELS {
        scene.model(caller).await;
    }
    refusing.abort();
    let first: Vec<&String> = scene.wrong.iter().take(20).collect();
    assert!(scene.wrong.is_empty(), "{} of {}: {first:#?}", scene.wrong.len(), scene.count);
    assert!(scene.count >= 2_000, "{}", scene.count);
}

/// The answer of a hook changes a decision only where the user lets it, and never a denial.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_change_only_what_they_may() {
    for (answer, may_allow) in [("allow", false), ("allow", true), ("deny", false)] {
        let reply = json!({"hookSpecificOutput": {"permissionDecision": answer}});
        let hook = json!({"command": format!("cat > /dev/null; printf %s '{reply}'")});
        let mut config = config();
        config["hooks"] = json!({"PreToolUse": [{"hooks": [hook]}], "mayAllow": may_allow});
        let scene = hooks::Scene::new(&json!(answers()), &config, &[]);
        let root = scene.path("repo");
        prepare(&root);
        let refusing = refuse_all(&scene.daemon).await;
        let events = tokio::task::block_in_place(|| scene.turn("go"));
        refusing.abort();
        assert_eq!(events.last().unwrap()["status"], "denied", "{answer} {may_allow}");
        let mut wrong = Vec::new();
        // A chat without a terminal runs no commands unless it is asked to, and reads leave no trace.
        let is_offered = |kind: Kind| matches!(kind, Kind::Write | Kind::Remove);
        for row in rows_of_turn().into_iter().filter(|row| is_offered(row.kind)) {
            let plain = expected(&row, "ask", true);
            // A confirmation of exactly this call, and one that the tool itself requires, stay.
            let is_question = plain.reason == "default: not read-only" && row.kind == Kind::Write;
            let want = match answer {
                "deny" => false,
                _ => plain.verdict == Verdict::Allow || (may_allow && is_question),
            };
            if effect_of(&row, &root, None) != want {
                wrong.push(format!("{answer} {may_allow} {row:?}: expected {want}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?} {events:#?}");
    }
}
