//! Finding and starting a daemon.

use std::path::PathBuf;

use cairn_client_sdk::{ClientError, Connector, Starter, ensure_daemon, is_root_locked};
use cairn_protocol::{
    location::{DaemonFile, DataRoot, Env},
    time::Timestamp,
};

use crate::fake::{Fake, TOKEN};

fn env(dir: &tempfile::TempDir) -> (Env, DataRoot) {
    let home = dir.path().join("home");
    (Env { cairn_home: Some(home.clone()), ..Env::default() }, DataRoot(home))
}

fn publish(fake: &Fake, root: &DataRoot) {
    std::fs::create_dir_all(root.path()).unwrap();
    std::fs::write(root.token(), format!("{TOKEN}\n")).unwrap();
    let file = DaemonFile {
        pid: 1,
        instance_id: fake.instance.clone(),
        addresses: vec![fake.address.clone()],
        version: "0.0.1".into(),
        token_path: root.token(),
        started_at: Timestamp::now(),
        config_dir: None,
    };
    std::fs::write(root.daemon_json(), serde_json::to_vec(&file).unwrap()).unwrap();
}

fn shell(script: &str) -> Starter {
    Starter { exe: PathBuf::from("/bin/sh"), args: vec!["-c".into(), script.into()] }
}

#[tokio::test]
async fn running_daemon_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let (env, root) = env(&dir);
    let connector = Connector::local(env.clone());
    let error = connector.connect().await.err();
    assert!(matches!(error, Some(ClientError::NotRunning { .. })), "{error:?}");
    let fake = Fake::start(0).await;
    publish(&fake, &root);
    let client = ensure_daemon(&env, &connector, &shell("exit 1")).await.unwrap();
    assert_eq!(client.server().server.instance_id, fake.instance);
}

#[tokio::test]
async fn started_daemon_is_awaited() {
    let dir = tempfile::tempdir().unwrap();
    let (env, root) = env(&dir);
    let fake = Fake::start(0).await;
    publish(&fake, &root);
    // The fake daemon publishes its file some time after its start.
    let (ready, file) = (dir.path().join("ready"), root.daemon_json());
    std::fs::rename(&file, &ready).unwrap();
    let script = format!("sleep 0.2; mv '{}' '{}'", ready.display(), file.display());
    let connector = Connector::local(env.clone());
    let client = ensure_daemon(&env, &connector, &shell(&script)).await.unwrap();
    assert_eq!(client.server().server.instance_id, fake.instance);
}

#[tokio::test]
async fn failed_start_reports_its_cause() {
    let dir = tempfile::tempdir().unwrap();
    let (env, root) = env(&dir);
    let connector = Connector::local(env.clone());
    let script = "echo noise; echo 'error: the disk is full' >&2; exit 1";
    let error = ensure_daemon(&env, &connector, &shell(script)).await.err().unwrap();
    match &error {
        ClientError::Start { cause, log } => {
            assert_eq!(cause, "the disk is full");
            assert_eq!(*log, root.log_file());
        }
        other => panic!("{other:?}"),
    }
    let missing = Starter { exe: dir.path().join("nothing"), args: vec![] };
    let error = ensure_daemon(&env, &connector, &missing).await.err();
    assert!(matches!(error, Some(ClientError::Start { .. })), "{error:?}");
}

#[tokio::test]
async fn second_starter_waits_for_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let (env, root) = env(&dir);
    let fake = Fake::start(0).await;
    publish(&fake, &root);
    let (ready, file) = (dir.path().join("ready"), root.daemon_json());
    std::fs::rename(&file, &ready).unwrap();
    // The first process that is started exits with an error; the second one publishes the file, as
    // if the winner had left meanwhile.
    let (lost, second) = (dir.path().join("lost"), dir.path().join("again"));
    let script = format!(
        "if mkdir '{}'; then exit {}; else mkdir '{}'; mv '{}' '{}'; fi",
        lost.display(),
        cairn_client_sdk::ALREADY_RUNNING,
        second.display(),
        ready.display(),
        file.display()
    );
    let client =
        ensure_daemon(&env, &Connector::local(env.clone()), &shell(&script)).await.unwrap();
    assert_eq!(client.server().server.instance_id, fake.instance);
    assert!(second.exists());
}

#[test]
fn locked_root_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let root = DataRoot(dir.path().to_owned());
    assert!(!is_root_locked(&root));
    let lock = std::fs::File::create(root.lock()).unwrap();
    assert!(!is_root_locked(&root));
    lock.lock().unwrap();
    assert!(is_root_locked(&root));
    drop(lock);
    assert!(!is_root_locked(&root));
}
