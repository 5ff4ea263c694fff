//! Third-party clients: Python's `websockets`, jsonrpsee's own client, the WebSocket cases of
//! kosoku.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use jsonrpsee::{
    core::{
        ClientError,
        client::{ClientT, Subscription, SubscriptionClientT},
        params::ObjectParams,
    },
    ws_client::{HeaderMap, HeaderValue, WsClientBuilder},
};
use serde_json::{Value, json};

use crate::sealed::{Daemon, built, ends, hello, python, tree, wait_for};

/// Runs the console script of that name, which has no module.
const KOSOKU: &str = "import sys\nfrom importlib.metadata import entry_points\n\
    (script,) = entry_points(group='console_scripts', name='kosoku')\nsys.exit(script.load()())";

/// Creates a small project with searchable content.
fn project(root: &Path) {
    tree(
        root,
        &[
            (
                "pyproject.toml",
                "[project]\nname = \"sample\"\nversion = \"1.0\"\n[project.scripts]\nsample = \"sample.app:main\"\n",
            ),
            ("sample/__init__.py", ""),
            (
                "sample/app.py",
                "from sample.store import open_ledger\n\n\ndef main():\n    print(open_ledger(\"x\"))\n",
            ),
            (
                "sample/store.py",
                "def open_ledger(path):\n    \"\"\"Opens the ledger of accounts.\"\"\"\n    return path\n",
            ),
        ],
    );
}

#[test]
fn generic_python_client_explores_searches_and_follows() {
    let Some(python) = python("websockets") else { return };
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/client.py");
    let output = Command::new(python)
        .arg(script)
        .args([&daemon.home, dir.path()])
        .arg("open ledger")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["version"], "1");
    assert_eq!(report["end"]["type"], "completed", "{report}");
    assert_eq!(report["end"]["summary"]["languages"]["Python"], 8);
    let seqs: Vec<u64> = serde_json::from_value(report["seqs"].clone()).unwrap();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(report["synced"].as_u64().unwrap() <= 1);
    assert_eq!(report["found"]["items"][0]["path"], "sample/store.py", "{report}");
}

#[test]
fn oversized_messages_close_with_1009() {
    let Some(python) = python("websockets") else { return };
    let daemon = Daemon::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/oversize.py");
    let output = Command::new(python)
        .arg(script)
        .arg(&daemon.home)
        .args(["33554432", "8"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["codes"], Value::from(vec![1009; 8]));
}

fn object(value: Value) -> ObjectParams {
    let mut params = ObjectParams::new();
    for (name, value) in value.as_object().unwrap() {
        params.insert(name, value).unwrap();
    }
    params
}

#[tokio::test]
async fn jsonrpsee_client_explores_searches_and_follows() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let mut headers = HeaderMap::new();
    headers.insert(
        "authorization",
        HeaderValue::from_str(&format!("Bearer {}", daemon.token())).unwrap(),
    );
    let url = format!("ws://{}/rpc", daemon.address());
    let client = WsClientBuilder::new().set_headers(headers).build(url).await.unwrap();
    let shaken: Value = client.request("initialize", object(hello())).await.unwrap();
    assert_eq!(shaken["protocolVersion"], "1");
    let mut events: Subscription<Value> =
        client.subscribe_to_method("orchestrate.event").await.unwrap();
    let receipt: Value = client
        .request("orchestrate.explore.start", object(json!({"root": dir.path()})))
        .await
        .unwrap();
    let _given: Value = client
        .request(
            "orchestrate.subscribe",
            object(json!({"sessionId": receipt["sessionId"], "after": 0})),
        )
        .await
        .unwrap();
    let mut seqs = Vec::new();
    loop {
        let record = events.next().await.unwrap().unwrap();
        seqs.push(record["seq"].as_u64().unwrap());
        if ends(&record) {
            assert_eq!(record["evt"]["type"], "completed", "{record}");
            break;
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let results: Value =
        client.request("search.lexical", object(json!({"query": "open_ledger"}))).await.unwrap();
    assert_eq!(results["items"][0]["path"], "sample/store.py", "{results}");
    let wrong: Result<Value, _> =
        client.request("search.lexical", object(json!({"query": 7}))).await;
    assert!(matches!(wrong, Err(ClientError::Call(e)) if e.code() == -32602));
}

/// Groups of cases for permessage-deflate, which the daemon does not negotiate (see decision 7):
/// the suite must report them as unimplemented, and nothing worse.
const NOT_OFFERED: [&str; 2] = ["12", "13"];

#[test]
fn websocket_passes_kosoku() {
    let Some(python) = python("kosoku") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (address_file, out) = (dir.path().join("address"), dir.path().join("out"));
    let echo = built(&["-p", "cairn-transport", "--example", "echo"], "examples/echo");
    let mut echo = Command::new(echo).arg("127.0.0.1:0").arg(&address_file).spawn().unwrap();
    let address = wait_for("the echo server", || {
        std::fs::read_to_string(&address_file).ok().filter(|a| a.contains(':'))
    });
    let mut suite = Command::new(python);
    suite.args(["-c", KOSOKU, "-m", "fuzzingclient", "-p", "4", "-o"]).arg(&out).arg(&address);
    let output = suite.stdin(Stdio::null()).output().unwrap();
    echo.kill().unwrap();
    echo.wait().unwrap();
    let report = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // The suite's exit code counts cases that were not negotiated as failed; its report
    // distinguishes them.
    let index = std::fs::read(out.join("index.json")).unwrap_or_else(|_| panic!("{report}"));
    let index: Value = serde_json::from_slice(&index).unwrap();
    let cases = index.as_object().unwrap().values().next().unwrap().as_object().unwrap();
    let (mut passed, mut not_offered, mut wrong) = (0, 0, Vec::new());
    for (id, case) in cases {
        let group = id.split('.').next().unwrap();
        match (case["behavior"].as_str().unwrap(), case["behaviorClose"].as_str().unwrap()) {
            ("OK" | "NON-STRICT" | "INFORMATIONAL", "OK" | "INFORMATIONAL") => passed += 1,
            ("UNIMPLEMENTED", _) if NOT_OFFERED.contains(&group) => not_offered += 1,
            outcome => wrong.push(format!("{id}: {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(passed > 290 && not_offered == 216, "{passed} passed, {not_offered} not offered");
    crate::sealed::note(&format!(
        "kosoku: {passed} cases passed, {not_offered} not offered, 0 failed"
    ));
}
