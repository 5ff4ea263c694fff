//! Settings of the output in a terminal.

use super::*;

/// Keys `ui.*` in a terminal's own output.
#[test]
fn terminal_output_follows_configuration() {
    let model = FakeModel::start(|n, _| {
        if n % 2 == 0 {
            Answer::Call("read_file", json!({"path": "notes.txt"}))
        } else {
            Answer::Text("done")
        }
    });
    let fixture = ConfiguredDaemon::started(&model_config("openai-compatible", &model, &json!({})));
    let rendered = |ui: Value| {
        fixture.write(&model_config("openai-compatible", &model, &json!({"ui": ui})));
        let (code, out, err) = fixture.cairn(&["chat", "-p", "hi"]);
        assert_eq!(code, 0, "{out}{err}");
        format!("{out}\n{err}")
    };
    let all = rendered(json!({}));
    assert!(all.contains("read_file") && all.contains("tok"), "{all}");
    assert!(!rendered(json!({"showToolCalls": false})).contains("read_file"));
    assert!(!rendered(json!({"showTokenUsage": false})).contains("tok"), "{all}");
}

/// `ui.color` in a terminal.
#[test]
fn terminal_colours_follow_configuration() {
    let model = FakeModel::start(|_, _| Answer::Text("**bold** words"));
    let fixture = ConfiguredDaemon::started(&model_config("openai-compatible", &model, &json!({})));
    let rendered = |ui: Value| {
        fixture.write(&model_config("openai-compatible", &model, &json!({"ui": ui})));
        let line = format!(
            "cd {} && {} chat -p hi --no-local-session",
            fixture.folder.display(),
            binary().display()
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env_clear().env("TERM", "xterm-256color");
        script.env("HOME", &fixture.home).env("CAIRN_HOME", &fixture.home);
        script.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        let output = script.stderr(Stdio::piped()).stdout(Stdio::piped()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (colored, plain) = (rendered(json!({})), rendered(json!({"color": false})));
    assert!(colored.contains("\u{1b}[") && colored.contains("words"), "{colored:?}");
    assert!(!plain.contains("\u{1b}[3") && plain.contains("words"), "{plain:?}");
}
