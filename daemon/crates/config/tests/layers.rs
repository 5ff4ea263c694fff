//! Layers, sources, warnings and restrictions on projects, over given file contents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic where it stands")]

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use cairn_config::{
    Config, ConfigErrors, DiskFiles, Files as _, Inputs, Loaded, ProjectTrust, Rule, Source, load,
    redacted, rows, rule_of, schema, variables,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const SYSTEM: &str = "/etc/cairn/config.json";
const USER: &str = "/h/.config/cairn/config.json";
const HOME: &str = "/h/.cairn.json";
const PROJECT: &str = "/w/p/.cairn.json";
const EXPLICIT: &str = "/x.json";

fn inputs() -> Inputs {
    Inputs {
        config_dir: Some("/h/.config/cairn".into()),
        home: Some("/h".into()),
        project_dir: Some("/w/p".into()),
        ..Inputs::default()
    }
}

fn try_load(inputs: &Inputs, files: &[(&str, Value)]) -> Result<Loaded, ConfigErrors> {
    let files: HashMap<PathBuf, String> =
        files.iter().map(|(p, v)| (p.into(), v.to_string())).collect();
    load(inputs, &files)
}

fn loaded(files: &[(&str, Value)]) -> Loaded {
    try_load(&inputs(), files).unwrap()
}

#[test]
fn later_layers_override_and_sources_are_reported() {
    let mut inputs = Inputs { explicit: Some(EXPLICIT.into()), ..inputs() };
    let model = |name: &str| json!({"llm": {"model": name}, "ui": {"color": false}});
    let mut files = vec![];
    for path in [SYSTEM, USER, HOME] {
        files.push((path, model(path)));
        files.retain(|(p, _)| *p != EXPLICIT);
        files.push((EXPLICIT, json!({})));
        let got = try_load(&inputs, &files).unwrap();
        assert_eq!(got.config.llm.model, path);
        assert_eq!(got.sources["llm.model"], Source::File(path.into()));
        assert_eq!(got.sources["llm.provider"], Source::Default);
    }
    files.retain(|(p, _)| *p != EXPLICIT);
    files.push((EXPLICIT, model(EXPLICIT)));
    assert_eq!(try_load(&inputs, &files).unwrap().config.llm.model, EXPLICIT);
    inputs.env = vec![("CAIRN_LLM_MODEL".into(), "123".into())];
    let got = try_load(&inputs, &files).unwrap();
    assert_eq!(
        (got.config.llm.model.as_str(), &got.sources["llm.model"]),
        ("123", &Source::Env("CAIRN_LLM_MODEL".into()))
    );
    inputs.overrides = vec![("llm.model".into(), json!("flag"))];
    let got = try_load(&inputs, &files).unwrap();
    assert_eq!((got.config.llm.model.as_str(), &got.sources["llm.model"]), ("flag", &Source::Flag));
    let row = rows(&got).into_iter().find(|r| r.key == "llm.model").unwrap();
    assert_eq!((row.value, row.source.to_string().as_str()), (json!("flag"), "command line"));
}

#[test]
fn environment_variables_set_every_kind_of_value() {
    for (name, text, key, expected) in [
        ("CAIRN_LISTEN_PORT", "9000", "/listen/port", json!(9000)),
        ("CAIRN_RESOURCES_MAX_FILE_BYTES", "10", "/resources/maxFileBytes", json!(10)),
        ("CAIRN_DISCOVERY", "off", "/discovery", json!("off")),
        ("CAIRN_SAFETY_SANDBOX_ENABLED", "true", "/safety/sandboxEnabled", json!(true)),
        ("CAIRN_EXCLUSIONS", "a, *.b", "/exclusions", json!(["a", "*.b"])),
        ("CAIRN_EXCLUSIONS", r#"["x,y"]"#, "/exclusions", json!(["x,y"])),
        ("SHELL_TOOL_TIMEOUT_MS", "1500", "/tools/builtin/run_shell/timeoutSeconds", json!(2)),
        (
            "SHELL_TOOL_ALLOWED_PREFIXES",
            "git,ls",
            "/tools/builtin/run_shell/allowedPrefixes",
            json!(["git", "ls"]),
        ),
    ] {
        let inputs = Inputs { env: vec![(name.into(), text.into())], ..inputs() };
        let got = serde_json::to_value(try_load(&inputs, &[]).unwrap().config).unwrap();
        assert_eq!(got.pointer(key), Some(&expected), "{name}={text}");
    }
    let bad = Inputs { env: vec![("CAIRN_LISTEN_PORT".into(), "many".into())], ..inputs() };
    let text = try_load(&bad, &[]).unwrap_err().to_string();
    assert!(text.contains("$CAIRN_LISTEN_PORT: listen.port:"), "{text}");
    let near = Inputs {
        env: vec![("CAIRN_LISTEN_PROT".into(), "1".into()), ("CAIRN_HOME".into(), "/".into())],
        ..inputs()
    };
    let warnings = try_load(&near, &[]).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("CAIRN_LISTEN_PORT"), "{warnings:?}");
    let mut names: Vec<_> = variables().into_iter().map(|v| v.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "two keys share a variable");
}

#[test]
fn unknown_keys_are_reported_with_a_suggestion() {
    for (value, key, near) in [
        (json!({"exclusion": []}), "exclusion", "exclusions"),
        (json!({"llm": {"modle": "x"}}), "llm.modle", "llm.model"),
        (json!({"llm": {"api_key": "x"}}), "llm.api_key", "llm.apiKey"),
        (
            json!({"resources": {"max_file_bytes": 1}}),
            "resources.max_file_bytes",
            "resources.maxFileBytes",
        ),
        (json!({"sandbox_enabled": true}), "sandbox_enabled", "safety.sandboxEnabled"),
        (
            json!({"tools": {"builtin": {"x": {"enabeld": true}}}}),
            "tools.builtin.x.enabeld",
            "tools.builtin.x.enabled",
        ),
        (
            json!({"tools": {"external": [{"name": "x", "pth": "/x"}]}}),
            "tools.external[0].pth",
            "path",
        ),
    ] {
        let got = loaded(&[(USER, value)]);
        let warning = got
            .warnings
            .iter()
            .find(|w| w.key == key)
            .unwrap_or_else(|| panic!("{key}: {:?}", got.warnings));
        assert!(warning.message.contains(near), "{warning}");
        assert!(warning.to_string().starts_with(USER));
    }
    assert_eq!(loaded(&[(USER, json!({"zzzzqqq": 1}))]).warnings[0].message, "no such key");
    assert!(loaded(&[(USER, json!({"$schema": "x"}))]).warnings.is_empty());
    assert!(!loaded(&[(USER, json!({"zz": 1}))]).sources.contains_key("zz"));
}

#[test]
fn type_errors_name_file_and_key() {
    for (value, key) in [
        (json!({"listen": {"port": "x"}}), "listen.port"),
        (json!({"listen": {"port": 70000}}), "listen.port"),
        (json!({"safety": {"sandboxBlockedPaths": ["a", 1]}}), "safety.sandboxBlockedPaths[1]"),
        (
            json!({"tools": {"builtin": {"run_shell": {"enabled": 1}}}}),
            "tools.builtin.run_shell.enabled",
        ),
        (json!({"discovery": "sometimes"}), "discovery"),
        (json!({"llm": {"temperature": 3.5}}), "llm.temperature"),
        (json!({"listen": {"address": "localhost"}}), "listen.address"),
    ] {
        let errors = try_load(&inputs(), &[(USER, value)]).unwrap_err();
        assert_eq!(
            (errors.0[0].key.as_deref(), &errors.0[0].origin),
            (Some(key), &Source::File(USER.into())),
            "{errors}"
        );
    }
    let files: HashMap<PathBuf, String> =
        [(USER, "{"), (HOME, "[]")].map(|(p, t)| (p.into(), t.into())).into();
    assert_eq!(load(&inputs(), &files).unwrap_err().0.len(), 2);
    let none = Inputs { explicit: Some("/none".into()), ..inputs() };
    assert!(try_load(&none, &[]).unwrap_err().to_string().contains("does not exist"));
}

/// User's file, project's file, key, expected value (`None`: refused).
const PROJECT_CASES: &[(&str, &str, &str, Option<&str>)] = &[
    (r#"{}"#, r#"{"safety": {"sandboxEnabled": false}}"#, "safety.sandboxEnabled", None),
    (
        r#"{"safety": {"sandboxEnabled": false}}"#,
        r#"{"safety": {"sandboxEnabled": true}}"#,
        "safety.sandboxEnabled",
        Some(r#"true"#),
    ),
    (
        r#"{"safety": {"sandboxBlockedPaths": ["/a"]}}"#,
        r#"{"safety": {"sandboxBlockedPaths": ["/b", "c"]}}"#,
        "safety.sandboxBlockedPaths",
        Some(r#"["/a", "/b", "/w/p/c"]"#),
    ),
    (
        r#"{"safety": {"sandboxBlockedPaths": ["/a"]}}"#,
        r#"{"safety": {"sandboxBlockedPaths": []}}"#,
        "safety.sandboxBlockedPaths",
        Some(r#"["/a"]"#),
    ),
    (
        r#"{"permissions": {"allow": ["a", "b"]}}"#,
        r#"{"permissions": {"allow": ["b"]}}"#,
        "permissions.allow",
        Some(r#"["b"]"#),
    ),
    (
        r#"{"permissions": {"allow": ["a"]}}"#,
        r#"{"permissions": {"allow": ["a", "run_shell"]}}"#,
        "permissions.allow",
        None,
    ),
    (r#"{}"#, r#"{"permissions": {"defaultAction": "allow"}}"#, "permissions.defaultAction", None),
    (
        r#"{}"#,
        r#"{"permissions": {"defaultAction": "deny"}}"#,
        "permissions.defaultAction",
        Some(r#""deny""#),
    ),
    (r#"{}"#, r#"{"llm": {"endpoint": "http://evil"}}"#, "llm.endpoint", None),
    (r#"{}"#, r#"{"llm": {"apiKey": "k"}}"#, "llm.apiKey", None),
    (r#"{}"#, r#"{"llm": {"model": "m"}}"#, "llm.model", None),
    (r#"{}"#, r#"{"llm": {"maxTokens": 10}}"#, "llm.maxTokens", Some(r#"10"#)),
    (r#"{}"#, r#"{"llm": {"maxTokens": 1000000}}"#, "llm.maxTokens", None),
    (r#"{}"#, r#"{"listen": {"lan": true}}"#, "listen.lan", None),
    (r#"{}"#, r#"{"listen": {"allowedOrigins": ["https://evil"]}}"#, "listen.allowedOrigins", None),
    (r#"{"exclusions": ["a"]}"#, r#"{"exclusions": ["b"]}"#, "exclusions", Some(r#"["a", "b"]"#)),
    (
        r#"{}"#,
        r#"{"tools": {"builtin": {"run_shell": {"enabled": false}}}}"#,
        "tools.builtin.run_shell.enabled",
        Some(r#"false"#),
    ),
    (
        r#"{"tools": {"builtin": {"run_shell": {"enabled": false}}}}"#,
        r#"{"tools": {"builtin": {"run_shell": {"enabled": true}}}}"#,
        "tools.builtin.run_shell.enabled",
        None,
    ),
    (
        r#"{}"#,
        r#"{"tools": {"builtin": {"run_shell": {"mode": "full"}}}}"#,
        "tools.builtin.run_shell.mode",
        None,
    ),
    (
        r#"{}"#,
        r#"{"tools": {"builtin": {"run_shell": {"timeoutSeconds": 9999}}}}"#,
        "tools.builtin.run_shell.timeoutSeconds",
        None,
    ),
    (
        r#"{}"#,
        r#"{"tools": {"external": [{"name": "read_file", "path": "./evil"}]}}"#,
        "tools.external",
        None,
    ),
    (r#"{}"#, r#"{"models": {"allowExternal": true}}"#, "models.allowExternal", None),
    (r#"{}"#, r#"{"models": {"maxTokensPerDay": 5}}"#, "models.maxTokensPerDay", Some(r#"5"#)),
    (r#"{}"#, r#"{"roots": ["/"]}"#, "roots", None),
    (r#"{}"#, r#"{"embedder": "/evil"}"#, "embedder", None),
    (r#"{}"#, r#"{"rerank": {"model": "/evil"}}"#, "rerank.model", None),
    (r#"{}"#, r#"{"rerank": {"maxMs": 60000}}"#, "rerank.maxMs", None),
    (r#"{}"#, r#"{"trust": {"folders": ["/"]}}"#, "trust.folders", None),
    (
        r#"{"sandbox": {"whenMissing": "ask"}}"#,
        r#"{"sandbox": {"whenMissing": "refuse"}}"#,
        "sandbox.whenMissing",
        Some(r#""refuse""#),
    ),
    (r#"{}"#, r#"{"sandbox": {"whenMissing": "ask"}}"#, "sandbox.whenMissing", None),
    (r#"{}"#, r#"{"discovery": "off"}"#, "discovery", Some(r#""off""#)),
    (r#"{}"#, r#"{"git": {"autoCommit": true}}"#, "git.autoCommit", None),
    (r#"{}"#, r#"{"ui": {"color": false}}"#, "ui.color", Some(r#"false"#)),
    (r#"{}"#, r#"{"daemon": {"idleExitSeconds": 1}}"#, "daemon.idleExitSeconds", None),
];

fn at(config: &Config, key: &str) -> Value {
    let value = serde_json::to_value(config).unwrap();
    value.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or(Value::Null)
}

#[test]
fn untrusted_project_can_only_tighten() {
    let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    for (user, project, key, expected) in PROJECT_CASES {
        let user = parse(user);
        let project = parse(project);
        let expected = expected.map(parse);
        let before = loaded(&[(USER, user.clone())]);
        let got = loaded(&[(USER, user.clone()), (PROJECT, project.clone())]);
        let refused: Vec<_> = got.warnings.iter().map(|w| w.key.as_str()).collect();
        match expected {
            Some(expected) => {
                assert_eq!(
                    (at(&got.config, key), refused.len()),
                    (expected, 0),
                    "{key}: {:?}",
                    got.warnings
                );
            }
            None => {
                assert_eq!(
                    (at(&got.config, key), refused),
                    (at(&before.config, key), vec![*key]),
                    "{project}"
                );
                assert_eq!(got.sources.get(*key), before.sources.get(*key));
                // Control: the user's own file can set the same value.
                let own = loaded(&[(USER, user.clone()), (HOME, project.clone())]);
                assert_ne!(at(&own.config, key), at(&before.config, key), "{key}");
                // A project whose text is trusted can too, unless trust does not lift the rule.
                let text = project.to_string();
                let trusts =
                    trusting(move |folder, own| folder == Path::new("/w/p") && own == text);
                let inputs = Inputs { trusts, ..inputs() };
                let trusted = try_load(&inputs, &[(USER, user), (PROJECT, project)]).unwrap();
                assert_eq!(trusted.warnings.is_empty(), rule_of(key).1, "{key}");
            }
        }
    }
}

#[test]
fn version_1_0_file_is_accepted() {
    let old = json!({
        "version": "1.0",
        "llm": {"provider": "ollama", "model": "m", "endpoint": "http://h", "api_key": null, "temperature": 0.7, "max_tokens": 4096, "timeout_seconds": 120},
        "context": {"max_tokens": 0, "compaction_threshold": 0.95, "repo_map_tokens": 1024, "max_tool_output_chars": 10000},
        "agent": {"max_iterations": 25, "retry_attempts": 3, "retry_backoff_base_ms": 1000},
        "safety": {"sandbox_enabled": true, "sandbox_allowed_paths": ["./"], "sandbox_blocked_paths": ["~/.ssh"], "require_confirmation": ["write_file"], "blocked_commands": ["sudo"]},
        "tools": {"builtin": {"run_shell": {"enabled": true, "timeout_seconds": 30}}, "external": [{"name": "web", "type": "executable", "path": "~/t", "enabled": true}]},
        "git": {"auto_commit": true, "commit_message_prefix": "[x]"},
        "ui": {"color": true, "show_token_usage": true, "show_tool_calls": true, "stream_responses": true},
    });
    let got = loaded(&[(USER, old.clone())]);
    // One warning names the former spelling of its keys.
    let [warning] = &got.warnings[..] else { panic!("{:?}", got.warnings) };
    let text = warning.to_string();
    assert!(text.contains("read as agent.maxIterations") && text.contains("other keys"), "{text}");
    assert_eq!(got.config.tools.external[0].path, PathBuf::from("/h/t"));
    assert_eq!(got.sources["tools.builtin.run_shell.timeoutSeconds"], Source::File(USER.into()));
    let shape = serde_json::to_value(&got.config).unwrap();
    for section in ["llm", "context", "agent", "safety", "git", "ui"] {
        let keys = |v: &Value| {
            v[section]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<std::collections::BTreeSet<_>>()
        };
        // Keys added since are allowed.
        for key in keys(&old) {
            let letters = key.replace('_', "");
            let has = keys(&shape).iter().any(|name| name.to_lowercase() == letters);
            assert!(has, "{section}.{key}");
        }
    }
}

fn trusting(judge: impl Fn(&Path, &str) -> bool + Send + Sync + 'static) -> Option<ProjectTrust> {
    Some(ProjectTrust::new(judge))
}

#[test]
fn trust_is_of_the_text_and_no_path_of_the_configuration_gives_it() {
    let wish = json!({"llm": {"model": "m"}, "trust": {"folders": ["/w/p"]}});
    let files = [(USER, json!({"trust": {"folders": ["/w", "/w/p"]}})), (PROJECT, wish.clone())];
    assert_ne!(loaded(&files).config.llm.model, "m");
    for (trusted, expected) in [(wish.to_string(), true), (format!("{wish} "), false)] {
        let inputs = Inputs { trusts: trusting(move |_, text| text == trusted), ..inputs() };
        let got = try_load(&inputs, &files).unwrap();
        assert_eq!(got.config.llm.model == "m", expected);
        assert_eq!(at(&got.config, "trust.folders"), json!(["/w", "/w/p"]));
    }
    // Only paths of the user's files count, by complete components.
    let folders = |text: &str| {
        let own = json!({"trust": {"folders": [text]}});
        loaded(&[(USER, own), (PROJECT, wish.clone())]).config.trust
    };
    for (named, expected) in
        [("/w", true), ("/w/p", true), ("/w/pp", false), ("/w/p/q", false), ("w", false)]
    {
        assert_eq!(folders(named).covers(Path::new("/w/p")), expected, "{named}");
    }
    // `.cairn.json` in the home folder is the user's own file.
    let home = Inputs { project_dir: Some("/h".into()), ..inputs() };
    assert_eq!(
        try_load(&home, &[(HOME, json!({"llm": {"model": "m"}}))]).unwrap().config.llm.model,
        "m"
    );
}

#[test]
fn every_key_has_an_explicit_project_rule() {
    let never: Vec<_> =
        variables().into_iter().map(|v| v.key).filter(|k| rule_of(k).0 == Rule::Never).collect();
    for key in [
        "roots",
        "embedder",
        "rerank.model",
        "ann",
        "listen.port",
        "llm.provider",
        "models.providers",
        "trust.folders",
    ] {
        assert!(never.iter().any(|n| n == key), "{key}: {never:?}");
    }
    assert_eq!(rule_of("something.new").0, Rule::Never);
}

#[test]
fn home_is_expanded_and_secrets_are_redacted() {
    let got = loaded(&[(
        USER,
        json!({"roots": ["~/code", "~"], "llm": {"api_key": "hunter2", "endpoint": "https://u:hunter2@h/x"},
            "telemetry": {"endpoint": "https://u:hunter2@c/y", "headers": {"x-key": "hunter2"}}}),
    )]);
    assert_eq!(got.config.roots, [PathBuf::from("/h/code"), PathBuf::from("/h")]);
    assert!(got.config.safety.sandbox_blocked_paths.contains(&"/h/.ssh".into()));
    assert_eq!(got.config.llm.api_key.as_deref(), Some("hunter2"));
    let rendered = redacted(&got.config);
    assert!(!rendered.to_string().contains("hunter2"), "{rendered}");
    assert_eq!(rendered["llm"]["endpoint"], "https://(set)@h/x");
    assert_eq!(rendered["telemetry"]["endpoint"], "https://(set)@c/y");
    assert_eq!(rendered["telemetry"]["headers"]["x-key"], "(set)");
    let rows = rows(&got);
    assert!(!rows.iter().any(|r| r.value.to_string().contains("hunter2")));
    let redacted: Vec<&str> =
        rows.iter().filter(|r| r.is_redacted).map(|r| r.key.as_str()).collect();
    assert_eq!(
        redacted,
        ["llm.apiKey", "llm.endpoint", "telemetry.endpoint", "telemetry.headers.x-key"]
    );
}

#[test]
fn file_reads_are_bounded() {
    let schema = schema();
    assert!(schema["properties"]["safety"].is_object());
    let dir = tempfile::tempdir().unwrap();
    assert!(DiskFiles.read(&dir.path().join("none")).unwrap().is_none());
    assert!(DiskFiles.read(dir.path()).is_err());
    std::fs::File::create(dir.path().join("big")).unwrap().set_len(1 << 40).unwrap();
    assert!(DiskFiles.read(&dir.path().join("big")).is_err());
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("endless")).unwrap();
    assert!(DiskFiles.read(&dir.path().join("endless")).is_err());
}

proptest! {
    /// No project file makes a safety value looser than it is without the file.
    #[test]
    fn no_project_file_loosens_safety(allow in prop::collection::vec("[a-c]", 0..3), mine in prop::collection::vec("[a-c]", 0..3), blocked in prop::collection::vec("/[a-c]", 0..3), on in any::<bool>(), n in 0_u64..2000) {
        let user = json!({"permissions": {"allow": mine}, "agent": {"maxIterations": 50}});
        let wish = json!({"permissions": {"allow": allow}, "safety": {"sandbox_enabled": on, "sandbox_blocked_paths": blocked}, "agent": {"max_iterations": n}});
        let before = loaded(&[(USER, user.clone())]).config;
        let after = loaded(&[(USER, user), (PROJECT, wish)]).config;
        prop_assert!(after.permissions.allow.iter().all(|a| before.permissions.allow.contains(a)));
        prop_assert!(before.safety.sandbox_blocked_paths.iter().all(|b| after.safety.sandbox_blocked_paths.contains(b)));
        prop_assert!(after.safety.sandbox_enabled);
        prop_assert!(after.agent.max_iterations <= before.agent.max_iterations);
    }
}

#[test]
fn keys_in_the_other_spelling_are_read_with_a_notice() {
    let user = json!({
        "llm": {"api_key": "k", "max_tokens": 7},
        "resources": {"max_file_bytes": 10},
        "models": {"allow_external": true},
        "plugins": [{"name": "p", "timeout_ms": 9}],
    });
    let got = loaded(&[(USER, user)]);
    assert_eq!(got.config.llm.api_key.as_deref(), Some("k"));
    assert_eq!(got.config.llm.max_tokens, 7);
    assert_eq!(got.config.resources.max_file_bytes, 10);
    assert!(got.config.models.allow_external);
    assert_eq!(got.config.plugins[0].timeout_ms, 9);
    let [warning] = &got.warnings[..] else { panic!("{:?}", got.warnings) };
    assert_eq!(warning.key, "llm.api_key");
    let text = &warning.message;
    assert!(text.contains("read as llm.apiKey") && text.contains("4 other keys"), "{text}");
    // Control: a key that is there in both spellings keeps its value.
    let both = loaded(&[(USER, json!({"llm": {"max_tokens": 7, "maxTokens": 8}}))]);
    assert_eq!(both.config.llm.max_tokens, 8);
    // A project cannot loosen a setting by its other spelling.
    let project = loaded(&[(PROJECT, json!({"models": {"allow_external": true}}))]);
    assert!(!project.config.models.allow_external);
}
