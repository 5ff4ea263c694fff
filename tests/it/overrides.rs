//! Settings of a single command, and the folder from which the configuration is read.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    config_keys::{ConfiguredDaemon, model_config},
    fake_model::FakeModel,
    sealed::{binary, tree},
};

/// P6: settings of a command apply to its own session, or are refused; they never persist in the
/// daemon.
#[test]
fn command_overrides_are_not_stored() {
    let model = FakeModel::agreeable();
    let fixture = ConfiguredDaemon::new();
    fixture.write(&model_config("openai-compatible", &model, &json!({})));
    let own = fixture.home.join("own.json");
    let text =
        json!({"llm": {"model": "m-own", "temperature": 0.5}, "agent": {"maxIterations": 3}});
    std::fs::write(&own, text.to_string()).unwrap();
    let own = own.to_str().unwrap();
    let chat = |more: &[&str], environment: &[(&str, &str)]| {
        let (code, out, err) = fixture
            .cairn_with(&[&["chat", "--no-local-session", "-p", "hi"], more].concat(), environment);
        assert_eq!(code, 0, "{out}{err}");
        let body = model.latest().body;
        (body["model"].as_str().unwrap().to_owned(), body["temperature"].clone())
    };
    // The first command starts the daemon.
    assert_eq!(chat(&["-c", own], &[]), ("m-own".into(), json!(0.5)));
    assert_eq!(chat(&[], &[]), ("m-1".into(), json!(null)));
    let variables = [("CAIRN_LLM_MODEL", "m-variable"), ("CAIRN_LLM_TEMPERATURE", "0.1")];
    assert_eq!(chat(&[], &variables), ("m-variable".into(), json!(0.1)));
    assert_eq!(chat(&[], &[]), ("m-1".into(), json!(null)));
    // A command without a turn is not stopped by a setting of the model, but by one of the daemon.
    let (code, _, err) = fixture.cairn_with(&["status"], &variables);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = fixture.cairn_with(&["models"], &variables);
    assert!(code != 2, "{err}");
    for (name, value, key) in [
        ("CAIRN_LISTEN_PORT", "9", "listen.port"),
        ("CAIRN_LLM_API_KEY", "k", "llm.apiKey"),
        ("CAIRN_LLM_ENDPOINT", "http://user:pass-word@127.0.0.1:9/v1", "llm.endpoint"),
        ("CAIRN_PERMISSIONS_DENY", "read_file", "permissions.deny"),
        ("CAIRN_LOG", "trace", "daemon.log"),
        ("CAIRN_SAFETY_SANDBOX_ENABLED", "true", ""),
    ] {
        let (code, out, err) = fixture.cairn_with(&["chat", "-p", "hi"], &[(name, value)]);
        if key.is_empty() {
            assert_eq!(code, 0, "{name} is in force: {out}{err}");
        } else {
            assert_eq!(code, 2, "{name}: {out}{err}");
            assert!(
                err.contains(key) && err.contains(name) && err.contains("config.json"),
                "{err}"
            );
            assert!(!err.contains("pass-word"), "{err}");
        }
    }
    let (_, out, _) = fixture.cairn(&["config", "--json"]);
    assert!(!out.contains("m-own") && !out.contains("m-variable"), "{out}");
    fixture.cairn(&["stop"]);
}

/// `CAIRN_HOME` moves the data; the user's own configuration applies until another folder is named
/// or exists.
#[test]
fn user_config_folder_is_used_unless_another_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (home, data, other) =
        (dir.path().join("user"), dir.path().join("data"), dir.path().join("other"));
    tree(&home, &[(".config/cairn/config.json", r#"{"agent": {"maxIterations": 7}}"#)]);
    tree(&other, &[("config.json", r#"{"agent": {"maxIterations": 8}}"#)]);
    let cairn = |args: &[&str], config: Option<&Path>| {
        let mut command = Command::new(binary());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        command.env("HOME", &home).env("CAIRN_HOME", &data).args(args).current_dir(dir.path());
        command.envs(config.map(|path| ("CAIRN_CONFIG", path)));
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let value = |config: Option<&Path>| {
        let (code, out, err) = cairn(&["config", "agent.maxIterations", "--json"], config);
        assert_eq!(code, 0, "{out}{err}");
        serde_json::from_str::<Value>(&out).unwrap()["values"]["agent.maxIterations"]["value"]
            .clone()
    };
    assert_eq!((value(None), value(Some(&other))), (json!(7), json!(8)));
    assert_eq!(cairn(&["index", "status"], None).0, 0);
    let (_, out, _) = cairn(&["status"], None);
    assert!(out.contains(home.join(".config/cairn").to_str().unwrap()), "{out}");
    // The daemon uses the user's folder: a different one is refused, and its name is shown once it
    // is in force.
    let (code, _, err) = cairn(&["index", "status"], Some(&other));
    assert!(code == 2 && err.contains("cairn stop"), "{err}");
    assert_eq!(cairn(&["stop"], None).0, 0);
    assert_eq!(cairn(&["index", "status"], Some(&other)).0, 0);
    let (_, out, _) = cairn(&["status"], None);
    assert!(out.contains("which CAIRN_CONFIG names"), "{out}");
    let (_, _, err) = cairn(&["index", "status"], None);
    assert!(err.contains("the running daemon reads its configuration from"), "{err}");
    assert_eq!(cairn(&["stop"], None).0, 0);
    let (code, _, err) = cairn(&["index", "status"], Some(&dir.path().join("none")));
    assert!(code != 0 && err.contains("is not a folder"), "{err}");
}
