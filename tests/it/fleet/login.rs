//! Logging in to the broker: passwords, credentials of accounts, certificates, and what is
//! refused.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::{json_of, ok};
use crate::{
    chat::{Scripted, configured},
    sealed::{git, tree, wait_for},
    ways::broker::Server,
};

/// A private file with this text.
fn private(folder: &Path, name: &str, text: &str) -> String {
    tree(folder, &[(name, text)]);
    let path = folder.join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Waits until a daemon is connected, or knows why it is not.
fn link(cairn: &Scripted) -> Result<(), String> {
    wait_for("a connection or a reason", || {
        let status = json_of(cairn, &["fleet"]);
        match (status["connected"] == true, status["error"].as_str()) {
            (true, _) => Some(Ok(())),
            (false, Some(error)) => Some(Err(error.to_owned())),
            (false, None) => None,
        }
    })
}

fn with(fleet: Value) -> Scripted {
    configured(&json!([]), &json!({"fleet": fleet}))
}

#[test]
fn daemon_logs_in_by_name_and_password() {
    let users = "authorization { users = [ { user: \"build\", password: \"right\" } ] }";
    let Some(server) = Server::with_config(users) else { return };
    let dir = tempfile::tempdir().unwrap();
    for (password, fits) in [("right", true), ("wrong", false)] {
        let file = private(dir.path(), password, password);
        let fleet = json!({"server": server.address(), "user": "build", "passwordFile": file});
        let outcome = link(&with(fleet));
        assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
        assert!(fits || outcome.unwrap_err().to_lowercase().contains("authorization"));
    }
}

/// A token that a key of the operator or of an account signs.
fn token(signer: &KeyPair, subject: &KeyPair, kind: &str, expires: Option<u64>) -> String {
    let header = BASE64.encode(json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string());
    let mut claims = json!({
        "jti": "x", "iat": 1_700_000_000_u64, "iss": signer.public_key(), "name": kind,
        "sub": subject.public_key(), "nats": {"type": kind, "version": 2},
    });
    if matches!(kind, "account" | "system") {
        // The broker's own account may have no streams.
        let streams = if kind == "system" { 0 } else { -1 };
        claims["nats"]["type"] = "account".into();
        claims["nats"]["limits"] = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": streams, "disk_storage": streams, "streams": streams, "consumer": streams,
        });
    }
    if let Some(expires) = expires {
        claims["exp"] = expires.into();
    }
    let body = format!("{header}.{}", BASE64.encode(claims.to_string()));
    let signature = signer.sign(body.as_bytes()).unwrap();
    format!("{body}.{}", BASE64.encode(signature))
}

#[test]
fn daemon_logs_in_by_credentials_over_tls_and_not_by_expired_ones() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let cert = private(dir.path(), "cert.pem", &certificate.cert.pem());
    let key = private(dir.path(), "key.pem", &certificate.signing_key.serialize_pem());
    let (operator, account, user) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let system = KeyPair::new_account();
    let preload = |key: &KeyPair, kind: &str| {
        format!("{}: \"{}\"", key.public_key(), token(&operator, key, kind, None))
    };
    let config = format!(
        "tls {{ cert_file: \"{cert}\", key_file: \"{key}\" }}\noperator: \"{}\"\n\
         system_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}\n {} }}",
        token(&operator, &operator, "operator", None),
        system.public_key(),
        preload(&account, "account"),
        preload(&system, "system"),
    );
    let Some(server) = Server::with_config(&config) else { return };
    let address = format!("tls://localhost:{}", server.port);
    let credentials = |name: &str, expires| {
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(&account, &user, "user", expires),
            user.seed().unwrap(),
        );
        private(dir.path(), name, &text)
    };
    let (valid, expired) =
        (credentials("valid", None), credentials("expired", Some(1_700_000_001)));
    let fleet = |credentials: &str, ca: Option<&str>| {
        let mut fleet = json!({"server": address, "credentialsFile": credentials});
        if let Some(ca) = ca {
            fleet["caFile"] = ca.into();
        }
        fleet
    };
    let connected = with(fleet(&valid, Some(&cert)));
    wait_for("a connection by TLS", || {
        (json_of(&connected, &["fleet"])["connected"] == true).then_some(())
    });
    let refused = link(&with(fleet(&expired, Some(&cert)))).unwrap_err().to_lowercase();
    assert!(refused.contains("authorization") || refused.contains("expired"), "{refused}");
    // Without its authority the certificate is not trusted.
    let unknown = link(&with(fleet(&valid, None))).unwrap_err();
    assert!(!unknown.is_empty());
    // A daemon whose credentials are missing serves its own machine.
    let missing = with(fleet(dir.path().join("none").to_str().unwrap(), Some(&cert)));
    let (code, _, err) = missing.cairn(&["fleet"]);
    assert!(code == 3 && err.contains("fleet"), "{err}");
    ok(&missing, &["status"]);
}

#[test]
fn only_sessions_of_the_chosen_folders_are_mirrored() {
    let Some(server) = Server::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folders = ["open", "closed"].map(|name| dir.path().join(name));
    for folder in &folders {
        tree(folder, &[("a.py", "def a():\n    return 1\n")]);
        git(folder, &["init", "-q"]);
    }
    let open = folders[0].canonicalize().unwrap();
    let fleet = json!({"server": server.address(), "name": "one", "mirror": "all", "mirrorFolders": [open]});
    let cairn = with(fleet);
    for folder in &folders {
        ok(&cairn, &["explore", folder.to_str().unwrap()]);
    }
    let daemon = wait_for("the sessions of the fleet", || {
        let status = json_of(&cairn, &["fleet"]);
        let daemon = status["daemons"].get(0)?.clone();
        let confirmed = status["mirror"]["confirmed"].as_u64()?;
        (confirmed > 0 && status["mirror"]["waiting"] == 0 && daemon["sessions"].get(0).is_some())
            .then_some(daemon)
    });
    assert_eq!(daemon["sessions"].as_array().unwrap().len(), 1, "{daemon}");
    let board = json_of(&cairn, &["sessions"]);
    let rows = board["rows"].as_array().unwrap();
    let root = |row: &&Value| row["session"]["root"] == open.to_str().unwrap();
    let mirrored = rows.iter().find(root).unwrap();
    assert_eq!(daemon["sessions"][0]["sessionId"], mirrored["session"]["sessionId"]);
    let closed = rows.iter().find(|row| !root(row)).unwrap()["session"]["sessionId"].clone();
    let records = json_of_lines(&cairn, closed.as_str().unwrap());
    assert!(records.is_empty(), "{records}");
}

fn json_of_lines(cairn: &Scripted, session: &str) -> String {
    ok(cairn, &["--json", "fleet", "records", "one", session])
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_repository_is_cloned_for_a_run_and_others_are_refused() {
    let Some(server) = Server::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().canonicalize().unwrap().join("sources");
    for name in ["allowed/app", "other/app"] {
        tree(&source.join(name), &[("a.py", "def a():\n    return 1\n")]);
        git(&source.join(name), &["init", "-q"]);
        crate::sealed::commit_all(&source.join(name));
    }
    let url = |name: &str| format!("file://{}", source.join(name).display());
    let fleet = json!({
        "server": server.address(), "name": "one", "pools": ["ci"], "cloneFrom": [url("allowed/")],
    });
    let cairn = with(fleet);
    let mut raw = cairn.daemon.client().await;
    // Local repositories are cloned from declared roots only.
    raw.ok("index.addRoot", json!({"path": source})).await;
    tokio::task::block_in_place(|| super::until_listed(&cairn, 1));
    for (name, want) in [("allowed/app", "completed"), ("other/app", "refused")] {
        let params = json!({
            "pool": "ci", "work": {"type": "explore"}, "repository": {"remoteURL": url(name)},
        });
        let run = raw.ok("fleet.run", params).await;
        let run = loop {
            let params = json!({"pool": "ci", "turnId": run["turnId"]});
            let run = raw.ok("fleet.runs", params).await["data"][0].clone();
            if !matches!(run["state"].as_str(), Some("queued" | "running")) {
                break run;
            }
        };
        assert_eq!(run["state"], want, "{run}");
        assert!(want == "completed" || run["reason"].as_str().unwrap().contains("fleet.cloneFrom"));
    }
}

#[test]
fn broker_of_another_machine_needs_tls_or_the_users_word() {
    let file = |fleet: Value| {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path(), &[("config.json", &json!({"fleet": fleet}).to_string())]);
        dir
    };
    let loaded = |fleet: Value| {
        let dir = file(fleet);
        let inputs = cairn_config::Inputs {
            explicit: Some(dir.path().join("config.json")),
            ..cairn_config::Inputs::default()
        };
        cairn_config::load(&inputs, &cairn_config::DiskFiles)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let plain = json!({"server": "nats://10.0.0.7:4222"});
    assert!(loaded(plain).unwrap_err().contains("fleet.plaintext"));
    assert_eq!(loaded(json!({"server": "nats://10.0.0.7:4222", "plaintext": true})), Ok(()));
    for (wrong, key) in [
        (json!({"name": "a.b"}), "fleet.name"),
        (json!({"pools": ["ok", "not ok"]}), "fleet.pools"),
        (json!({"user": "u"}), "fleet.passwordFile"),
        (json!({"server": "http://x"}), "fleet.server"),
    ] {
        let error = loaded(wrong).unwrap_err();
        assert!(error.contains(key), "{error}");
    }
}
