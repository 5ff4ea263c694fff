//! Remote control: pairing, the rights of a paired device, and the refusal of all others.

mod attack;
mod browser;
mod doors;
pub mod machine;

use std::time::{Duration, Instant};

use cairn_client_sdk::{ClientError, Connector, Hosts};
use cairn_protocol::{
    explore::ExploreStartParams,
    location::{DataRoot, Env},
    remote::{DeviceRef, Right},
    session::{Empty, SessionCreateParams},
    trace::AuditQueryParams,
};
use serde_json::Value;

use self::machine::{Den, Laptop};
use crate::sealed::tree;

#[tokio::test(flavor = "multi_thread")]
async fn paired_machine_explores_until_it_is_revoked() {
    let den = Den::start().await;
    let dir = tempfile::tempdir().unwrap();
    tree(
        dir.path(),
        &[
            ("src/main.rs", "fn main() { ledger(); }\nfn ledger() {}\n"),
            ("README.md", "# Ledger\n"),
        ],
    );
    let root = dir.path().canonicalize().unwrap();
    den.ok(&["index", "add", root.to_str().unwrap()]);
    let laptop = Laptop::new();
    laptop.pair(&den, &[Right::Observe, Right::Prompt, Right::Approve], "den").await;

    let local = den.ok(&["explore", root.to_str().unwrap(), "--json"]);
    let there = laptop.ok(&["--host", "den", "explore", "--json"]);
    let summary = |text: &str| -> Value {
        let last: Value = serde_json::from_str(text.trim().lines().last().unwrap()).unwrap();
        last["evt"]["summary"]["languages"].clone()
    };
    assert_eq!(summary(&there), summary(&local));
    assert!(summary(&there)["Rust"].is_number(), "{there}");
    for (args, want) in [
        (&["search", "ledger"][..], "src/main.rs"),
        (&["grep", "ledger"], "src/main.rs"),
        (&["symbols", "ledger"], "ledger"),
        (&["status"], "listens"),
        (&["index"], root.to_str().unwrap()),
    ] {
        let output = laptop.ok(&[&["--host", "den"], args].concat());
        assert!(output.contains(want), "{args:?}: {output}");
    }
    // Nothing of it was created here: no daemon was started on this machine.
    assert!(!laptop.home().join("daemon.json").exists());

    let open = laptop.connect("den").await.unwrap();
    let mut stream = {
        let session = open.session_create(&SessionCreateParams::default()).await.unwrap();
        open.subscribe(&session.session_id, cairn_protocol::session::After::Seq(0)).await.unwrap()
    };
    let admin = den.client().await;
    let device = admin.client_list(&Empty {}).await.unwrap().data.remove(0);
    // R4
    let query =
        AuditQueryParams { tool: Some("pair.complete".into()), ..AuditQueryParams::default() };
    let rows = admin.audit_query(&query).await.unwrap().data;
    assert_eq!(rows.iter().filter_map(|row| row.outcome.as_deref()).collect::<Vec<_>>(), ["ok"]);
    assert_eq!((&*device.name, device.connections), ("laptop", 1));
    let began = Instant::now();
    admin.client_revoke(&DeviceRef { id: device.id }).await.unwrap();
    let cut = tokio::time::timeout(Duration::from_secs(60), async {
        while stream.next().await.is_ok() {}
    });
    cut.await.expect("the stream ends");
    assert!(matches!(open.daemon_status(&Empty {}).await, Err(ClientError::Closed(_))));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(matches!(laptop.connect("den").await.err(), Some(ClientError::NotPaired { .. })));
    let (code, output) = laptop.run(&["--host", "den", "status"]);
    assert!(code == 4 && output.contains("not paired"), "{code} {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn device_has_only_its_granted_rights() {
    let den = Den::start().await;
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.rs", "fn ledger() {}\n")]);
    let root = dir.path().canonicalize().unwrap();
    den.ok(&["index", "add", root.to_str().unwrap()]);
    let start =
        ExploreStartParams { root: Some(root.to_string_lossy().into()), ..Default::default() };
    let looker = Laptop::new();
    looker.pair(&den, &[Right::Observe], "den").await;
    let looking = looker.connect("den").await.unwrap();
    looking.daemon_status(&Empty {}).await.unwrap();
    let reason = |error: ClientError| error.reason().unwrap_or_default().to_owned();
    assert_eq!(reason(looking.explore_start(&start).await.unwrap_err()), "right_missing");
    let none: Value = serde_json::json!({"approvalId": "apr_00000000000000000000000000000000", "decision": "once"});
    let resolve = looking.call::<_, Value>("approval.resolve", &none).await.unwrap_err();
    assert_eq!(reason(resolve), "right_missing");
    for method in ["pair.begin", "client.list", "daemon.stop"] {
        let params = serde_json::json!({"rights": ["admin"]});
        let params = if method == "pair.begin" { params } else { serde_json::json!({}) };
        assert_eq!(
            reason(looking.call::<_, Value>(method, &params).await.unwrap_err()),
            "right_missing",
            "{method}"
        );
    }
    // An MCP client sends requests and starts work by itself, so it needs more than the right to
    // observe.
    let (code, output) = looker.run(&["--host", "den", "mcp"]);
    assert!(code != 0 && output.contains("right 'prompt'"), "{code} {output}");

    // Control: the same calls succeed with the rights.
    let doer = Laptop::new();
    doer.pair(&den, &[Right::Observe, Right::Prompt, Right::Approve], "den").await;
    let doing = doer.connect("den").await.unwrap();
    doing.explore_start(&start).await.unwrap();
    let resolve = doing.call::<_, Value>("approval.resolve", &none).await.unwrap_err();
    assert_eq!(reason(resolve), "approval_not_found");
    // An administrator cannot grant a right that he lacks.
    let keeper = Laptop::new();
    keeper.pair(&den, &[Right::Admin], "den").await;
    let keeping = keeper.connect("den").await.unwrap();
    let begin = |rights: &str| serde_json::json!({"rights": [rights]});
    assert_eq!(
        reason(keeping.call::<_, Value>("pair.begin", &begin("observe")).await.unwrap_err()),
        "right_missing"
    );
    keeping.call::<_, Value>("pair.begin", &begin("admin")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_pair_from_two_terminals() {
    let den = Den::start().await;
    let laptop = Laptop::new();
    let (offer, code) = den.offer_by_command(&["--rights", "observe", "--name", "kitchen"]);
    let output = laptop.ok(&["pair", &den.lan, "--code", &code, "--as", "cellar"]);
    assert!(output.contains("paired with cellar") && output.contains("observe"), "{output}");
    let offered = offer.wait_with_output().unwrap();
    let offer_output = String::from_utf8_lossy(&offered.stdout);
    assert!(
        offered.status.success() && offer_output.contains("paired with kitchen"),
        "{offer_output}"
    );
    let listed = den.ok(&["clients"]);
    assert!(listed.contains("kitchen") && listed.contains("observe"), "{listed}");
    laptop.ok(&["--host", "cellar", "status"]);
    laptop.ok(&["--host", &den.lan, "status"]);
    assert!(den.ok(&["clients", "revoke", "kitchen"]).contains("may no longer connect"));
    assert_eq!(laptop.run(&["--host", "cellar", "status"]).0, 4);
    laptop.ok(&["pair", "--forget", "cellar"]);
    let (code, output) = laptop.run(&["--host", "cellar", "status"]);
    assert!(code == 4 && output.contains("not paired with cellar"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_requires_a_listener() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = crate::sealed::Daemon::start_in(&dir.path().join("home"), &[]);
    assert_eq!(daemon.file().unwrap().addresses.len(), 1);
    let mut raw = daemon.client().await;
    let refused = raw.refused("pair.begin", serde_json::json!({"rights": ["observe"]})).await;
    assert_eq!(refused, "remote_off");
    assert_eq!(raw.ok("client.list", serde_json::json!({})).await["data"], serde_json::json!([]));
    assert!(!daemon.home.join("remote").exists());
    daemon.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn tunnel_requires_no_pairing() {
    let den = Den::start().await;
    let laptop = Laptop::new();
    // Replacement for `ssh -L`: forwards bytes in both directions.
    let near = machine::forward(den.daemon.address()).await;
    let token = laptop.home().join("den.token");
    std::fs::create_dir_all(laptop.home()).unwrap();
    std::fs::write(&token, den.daemon.token()).unwrap();
    let token = token.to_str().unwrap();
    let output = laptop.ok(&["--address", &near, "--token-file", token, "status"]);
    assert!(output.contains("listens"), "{output}");
    std::fs::write(token, "wrong").unwrap();
    let (code, output) = laptop.run(&["--address", &near, "--token-file", token, "status"]);
    assert!(code == 4 && output.contains("rejected the token"), "{code} {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_device_lists_are_private_and_persist() {
    let den = Den::start().await;
    let laptop = Laptop::new();
    laptop.pair(&den, &[Right::Observe], "den").await;
    for (home, names) in [
        (&den.daemon.home, &["daemon-key.pem", "devices.json"][..]),
        (&laptop.home().to_owned(), &["client-key.pem", "hosts.json"]),
    ] {
        for name in names {
            let mode = std::fs::metadata(home.join("remote").join(name)).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "{name}");
        }
    }
    let den = den.restart().await;
    laptop.connect("den").await.unwrap();
    drop(den);
    let env = Env { cairn_home: Some(laptop.home().to_owned()), ..Env::default() };
    assert!(Connector::remote(env, "den").connect().await.is_err());
    assert_eq!(Hosts::of(&DataRoot(laptop.home().to_owned())).list().unwrap().len(), 1);
}
