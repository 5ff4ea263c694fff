//! Model servers on this machine, and keys in the environment.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

/// Time limit of each step with a server.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum bytes of a server's answer.
const MAX_ANSWER: u64 = 1024 * 1024;

/// Known servers: name, port, path of its models, provider, and path of its API.
const SERVERS: [(&str, u16, &str, &str, &str); 5] = [
    ("Ollama", 11434, "/api/tags", "ollama", ""),
    ("LM Studio", 1234, "/v1/models", "openai-compatible", "/v1"),
    ("llama.cpp", 8080, "/v1/models", "openai-compatible", "/v1"),
    ("vLLM", 8000, "/v1/models", "openai-compatible", "/v1"),
    ("Jan", 1337, "/v1/models", "openai-compatible", "/v1"),
];

/// Variables with keys, and their providers.
const KEYS: [(&str, &str); 4] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("GEMINI_API_KEY", "gemini"),
    ("OPENROUTER_API_KEY", "openrouter"),
];

/// Agents that take MCP servers, by their folder below the user's home.
pub const AGENTS: [(&str, &str); 5] = [
    ("claude", ".claude"),
    ("cursor", ".cursor"),
    ("codex", ".codex"),
    ("gemini", ".gemini"),
    ("windsurf", ".codeium/windsurf"),
];

/// Location of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    Local,
    /// On another machine, which receives what the model reads.
    Outside,
}

/// A model that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Name for people.
    pub label: String,
    pub provider: String,
    pub endpoint: Option<String>,
    /// The provider's default if absent.
    pub model: Option<String>,
    pub location: Location,
}

impl Found {
    /// Renders the model in one line.
    pub fn row(&self) -> String {
        let model = self.model.as_deref().unwrap_or("its default model");
        let note = match self.location {
            Location::Local => "on this machine",
            Location::Outside => "outside of this machine: receives what the model reads",
        };
        format!("{}: {model} ({note})", self.label)
    }

    /// Renders the command that chooses it.
    pub fn command(&self) -> String {
        let mut line = format!("cairn setup --provider {}", self.provider);
        for (flag, value) in [("--model", &self.model), ("--endpoint", &self.endpoint)] {
            if let Some(value) = value {
                line.push_str(&format!(" {flag} {value}"));
            }
        }
        line
    }

    /// Returns the settings that choose it; null removes one.
    pub fn settings(&self) -> Vec<(String, Value)> {
        let mut all = vec![
            ("llm.provider".to_owned(), json!(self.provider)),
            ("llm.model".to_owned(), json!(self.model)),
            ("llm.endpoint".to_owned(), json!(self.endpoint)),
        ];
        if self.location == Location::Outside {
            all.push(("models.allowExternal".to_owned(), json!(true)));
        }
        all
    }
}

/// True if a provider's models are on another machine.
pub fn is_outside(provider: &str, endpoint: Option<&str>) -> bool {
    match endpoint {
        Some(url) => !is_loopback(url),
        None => !matches!(provider, "ollama" | "apple" | "llamaCpp" | "scripted"),
    }
}

/// True if the host of a URL is this machine.
fn is_loopback(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or(url);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Finds the models of this machine, then those for which there is a key.
pub fn find() -> Vec<Found> {
    let servers = std::thread::scope(|scope| {
        let probes: Vec<_> =
            SERVERS.iter().map(|server| scope.spawn(move || models_of(*server))).collect();
        probes.into_iter().flat_map(|probe| probe.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    let has_key = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let keys = KEYS.iter().filter(|(name, _)| has_key(name));
    let outside = keys.map(|(name, provider)| Found {
        label: format!("{provider} ({name})"),
        provider: (*provider).to_owned(),
        endpoint: None,
        model: None,
        location: Location::Outside,
    });
    servers.into_iter().chain(outside).collect()
}

fn models_of((name, port, list, provider, api): (&str, u16, &str, &str, &str)) -> Vec<Found> {
    let Some(answer) = get(port, list) else { return Vec::new() };
    let models = names(&answer).into_iter();
    models
        .map(|model| Found {
            label: name.to_owned(),
            provider: provider.to_owned(),
            endpoint: Some(format!("http://localhost:{port}{api}")),
            model: Some(model),
            location: Location::Local,
        })
        .collect()
}

/// Returns the names of models in the answer of Ollama or of a server with OpenAI's API.
fn names(answer: &Value) -> Vec<String> {
    let list = |list: &str, name: &str| {
        let all = answer[list].as_array().cloned().unwrap_or_default();
        let name = |model: &Value| model[name].as_str().map(str::to_owned);
        all.iter().filter_map(name).filter(|name| is_name(name)).take(20).collect::<Vec<_>>()
    };
    let found = list("models", "name");
    if found.is_empty() { list("data", "id") } else { found }
}

/// True for a name that can stand in a command line and in a terminal.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-:/@+".contains(c))
}

/// Reads JSON from a server on this machine; `None` if there is none.
fn get(port: u16, path: &str) -> Option<Value> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nAccept: application/json\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let is_ok = head.split(' ').nth(1) == Some("200");
    // A server may answer in chunks all the same; the object is between the first and last brace.
    let body = body.get(body.find('{')?..=body.rfind('}')?)?;
    serde_json::from_str(body).ok().filter(|_| is_ok)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn models_of_a_server_are_found() {
        let ollama = json!({"models": [{"name": "qwen3:14b"}, {"name": "bad\u{1b}[2J"}]});
        assert_eq!(names(&ollama), ["qwen3:14b"]);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap();
            let body = r#"{"data": [{"id": "local/model"}]}"#;
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes()).unwrap();
            head
        });
        let found = models_of(("vLLM", port, "/v1/models", "openai-compatible", "/v1"));
        assert!(server.join().unwrap().starts_with("GET /v1/models HTTP/1.0\r\n"));
        assert_eq!(
            found[0].command(),
            format!(
                "cairn setup --provider openai-compatible --model local/model --endpoint http://localhost:{port}/v1"
            )
        );
        assert!(models_of(("vLLM", port, "/v1/models", "x", "")).is_empty(), "no server");
    }

    #[test]
    fn models_outside_need_a_permission() {
        for (provider, endpoint, expected) in [
            ("ollama", None, false),
            ("ollama", Some("http://gpu.example:11434"), true),
            ("openai", None, true),
            ("openai-compatible", Some("http://localhost:8080/v1"), false),
            ("openai-compatible", Some("http://127.0.0.1:1"), false),
            ("openai-compatible", Some("http://[::1]:8080/v1"), false),
            ("openai-compatible", Some("https://127.example.org"), true),
            ("openai-compatible", Some("https://localhost@example.org/v1"), true),
        ] {
            assert_eq!(is_outside(provider, endpoint), expected, "{provider} {endpoint:?}");
        }
    }
}
