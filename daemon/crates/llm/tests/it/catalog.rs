//! Names and keys of providers, and their properties before and after the first request.

use std::{collections::HashMap, os::unix::fs::PermissionsExt};

use cairn_llm::{
    LlmError, Settings, connect, find_key, find_provider, is_external, providers, read_key_file,
};

use crate::{
    ask, connected,
    peer::{Peer, Reply},
    question, settings,
};

#[test]
fn names_have_defaults_and_unknown_ones_are_refused() {
    let names: Vec<&str> = providers().iter().map(|known| known.name).collect();
    assert_eq!(
        names,
        [
            "ollama",
            "openai",
            "anthropic",
            "gemini",
            "openrouter",
            "openai-compatible",
            "apple",
            "llamaCpp",
            "claudeCode",
            "codex",
            "scripted"
        ]
    );
    assert_eq!(find_provider("appleOnDevice").map(|known| known.name), Some("apple"));
    for known in providers() {
        assert_eq!(is_external(known.name, None), known.external, "{}", known.name);
    }
    assert!(!is_external("openai", Some("http://127.0.0.1:8080")));
    assert!(is_external("ollama", Some("https://ollama.com")));
    assert!(is_external("nobody", Some("http://127.0.0.1")) && is_external("openai", Some("?")));

    let of =
        |provider: &str| connect(&Settings { provider: provider.into(), ..Settings::default() });
    let Err(unknown) = of("gpt") else { panic!("a provider of any name") };
    assert_eq!(
        unknown.to_string(),
        "there is no provider 'gpt'; available: ollama, openai, anthropic, gemini, openrouter, openai-compatible, apple, llamaCpp, \
         claudeCode, codex, scripted"
    );
    let Err(LlmError::NotSupported(text)) = of("apple") else { panic!("apple") };
    assert!(text.contains(std::env::consts::OS) || cfg!(target_os = "macos"), "{text}");
    for provider in ["openai", "anthropic", "gemini", "openrouter"] {
        let Err(LlmError::Unauthorized(text)) = of(provider) else {
            panic!("{provider} without a key")
        };
        assert!(text.contains(find_provider(provider).unwrap().key_variables[0]), "{text}");
    }
    for provider in ["openai-compatible", "scripted"] {
        assert!(
            matches!(of(provider), Err(LlmError::Rejected(_))),
            "{provider} without an endpoint"
        );
    }
    let ollama = of("ollama").unwrap();
    assert_eq!((ollama.name(), ollama.model(), ollama.external()), ("ollama", "qwen3:14b", false));
    assert!(ollama.count_tokens("fn main() {}") >= 4);
    let hosted = settings("anthropic", "https://api.anthropic.com");
    let hosted = connect(&Settings { model: "claude-sonnet-4-5".into(), ..hosted }).unwrap();
    assert_eq!((hosted.external(), hosted.context_tokens()), (true, Some(200_000)));
}

#[test]
fn environment_key_takes_precedence_and_key_files_must_be_private() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "from-file\n").unwrap();
    let mode =
        |mode: u32| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let variables = HashMap::from([("OPENAI_API_KEY", "from-env"), ("ANTHROPIC_API_KEY", "  ")]);
    let lookup = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    mode(0o600);
    // Keys cannot be compared, but the texts from which they are redacted can.
    assert!(find_key("openai", lookup, None).unwrap().is_some());
    assert!(find_key("anthropic", lookup, None).unwrap().is_none());
    assert!(find_key("anthropic", lookup, Some(&file)).unwrap().is_some());
    for wide in [0o644, 0o640, 0o604, 0o660, 0o601] {
        mode(wide);
        let Err(LlmError::Unauthorized(text)) = read_key_file(&file) else { panic!("{wide:o}") };
        assert!(text.contains("chmod 600") && text.contains(&format!("{wide:04o}")), "{text}");
        // The environment has a key, so the file is not read.
        assert!(find_key("openai", lookup, Some(&file)).is_ok());
    }
    mode(0o400);
    assert!(read_key_file(&file).is_ok());
    mode(0o600);
    for bad in ["", " \n", &"x".repeat(20_000)] {
        std::fs::write(&file, bad).unwrap();
        assert!(read_key_file(&file).is_err());
    }
    assert!(read_key_file(folder.path()).is_err());
    assert!(read_key_file(&folder.path().join("none")).is_err());
}

#[tokio::test]
async fn models_are_listed_with_their_properties() {
    for (provider, expected) in [
        ("openai", &[("gpt-4o", Some(128_000), None), ("gpt-5-mini", Some(272_000), None)][..]),
        ("gemini", &[("gemini-3.8-flash", Some(1_048_576), None)]),
        ("openai-compatible", &[("qwen3-8b", Some(40_960), Some(5_021_747_200))]),
        (
            "anthropic",
            &[
                ("claude-sonnet-4-5-20250929", Some(200_000), None),
                ("claude-haiku-4-5-20251001", Some(200_000), None),
            ],
        ),
        (
            "ollama",
            &[
                ("qwen3:14b", None, Some(9_276_198_565)),
                ("gemma3:latest", None, Some(3_338_801_804)),
            ],
        ),
    ] {
        let peer = Peer::start(provider, vec![]).await;
        let models = connected(provider, &peer.url).models().await.unwrap();
        let sizes: Vec<_> =
            models.iter().map(|m| (m.model.as_str(), m.context_tokens, m.size_bytes)).collect();
        assert_eq!(sizes, expected, "{provider}");
        assert!(models.iter().all(|model| model.provider == provider));
        let priced = matches!(provider, "openai" | "anthropic" | "gemini");
        assert!(models.iter().all(|model| model.price.is_some() == priced), "{models:?}");
    }
    // A server that is not a model provider.
    let peer = Peer::start("openai", vec![]).await;
    let error = connected("openai", &format!("{}/elsewhere", peer.url)).models().await.unwrap_err();
    assert!(
        matches!(&error, LlmError::Malformed(text) if text.contains("check the endpoint")),
        "{error:?}"
    );
}

#[tokio::test]
async fn list_of_models_is_requested_twice_at_most() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let provider = connected("ollama", &url);
    let mut connections = 0;
    let mut list = provider.models();
    let error = loop {
        tokio::select! {
            answer = &mut list => break answer.unwrap_err(),
            accepted = listener.accept() => {
                // Closed without an answer, like a server that is about to end.
                drop(accepted.unwrap());
                connections += 1;
            }
        }
    };
    assert_eq!(connections, 2, "{error:?}");
    assert!(matches!(error, LlmError::Cut(_)), "{error:?}");
}

#[tokio::test]
async fn first_model_and_its_context_are_queried() {
    let peer = Peer::start("openai-compatible", vec![Reply::fixture("openai/text.sse")]).await;
    let unnamed =
        Settings { model: String::new(), key: None, ..settings("openai-compatible", &peer.url) };
    let provider = connect(&unnamed).unwrap();
    assert_eq!((provider.model(), provider.context_tokens()), ("", None));
    provider.prepare().await.unwrap();
    // The size that the server runs with, not the one that the weights were trained for.
    assert_eq!((provider.model(), provider.context_tokens()), ("qwen3-8b", Some(8192)));
    for _ in 0..2 {
        assert_eq!(ask(&*provider, question()).await.1, None);
    }
    assert_eq!(peer.chats()[1].body["model"], "qwen3-8b");
    assert_eq!(peer.requests().len(), 4, "{:?}", peer.requests());

    // A listing has the size that the weights were trained for; it changes nothing.
    let named = Settings { model: "qwen3-8b".into(), ..settings("openai-compatible", &peer.url) };
    let provider = connect(&named).unwrap();
    assert_eq!(provider.models().await.unwrap()[0].context_tokens, Some(40_960));
    assert_eq!(provider.context_tokens(), None);
    provider.prepare().await.unwrap();
    provider.models().await.unwrap();
    assert_eq!(provider.context_tokens(), Some(8192));

    let peer = Peer::start("ollama", vec![Reply::fixture("ollama/text.ndjson")]).await;
    let named = Settings { model: "qwen3:14b".into(), ..settings("ollama", &peer.url) };
    let provider = connect(&named).unwrap();
    assert_eq!(ask(&*provider, question()).await.1, None);
    assert_eq!(provider.context_tokens(), Some(4096));
    // A server that does not report its context size is not queried forever.
    let unknown = connected("ollama", &peer.url);
    let before = peer.requests().len();
    for _ in 0..5 {
        assert_eq!(ask(&*unknown, question()).await.1, None);
    }
    // Ollama is requested to have the default size, so that it is known.
    let expected = (5 + 3, Some(32_000));
    assert_eq!((peer.requests().len() - before, unknown.context_tokens()), expected);
    assert_eq!(peer.chats().last().unwrap().body["options"]["num_ctx"], 32_000);
}
