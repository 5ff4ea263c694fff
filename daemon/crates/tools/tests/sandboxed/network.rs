//! The network of commands by domain, with real programs in the real sandbox.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use cairn_harness::{
    Rules, Verdict,
    egress::{Dialer, Egress, EgressOptions},
};
use cairn_protocol::approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

const PUBLIC: &str = "93.184.216.34";

/// Names with their addresses, one list for each look-up; every connection leads to one server.
struct TestDialer {
    server: SocketAddr,
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    connected: Mutex<Vec<SocketAddr>>,
}

#[async_trait::async_trait]
impl Dialer for TestDialer {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut names = self.names.lock().unwrap();
        let lists = names.get_mut(host).ok_or_else(|| io::Error::other("no such name"))?;
        let list = if lists.len() > 1 { lists.remove(0) } else { lists[0].clone() };
        Ok(list.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.connected.lock().unwrap().push(address);
        TcpStream::connect(self.server).await
    }
}

impl TestDialer {
    fn connected(&self) -> Vec<String> {
        self.connected.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

/// Serves each request of a path by `answer`: status with further headers, and body.
async fn serve(answer: fn(&str) -> (String, Vec<u8>)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream, answer));
        }
    });
    address
}

async fn respond(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: fn(&str) -> (String, Vec<u8>),
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let (status, body) = answer(&path);
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _gone = stream.write_all(head.as_bytes()).await;
    let _gone = stream.write_all(&body).await;
    let _gone = stream.shutdown().await;
}

/// Serves pages by TLS, with a certificate that no client trusts by itself, to any name.
async fn serve_tls(answer: fn(&str) -> (String, Vec<u8>)) -> SocketAddr {
    let cert = rcgen::generate_simple_self_signed(["crates.test".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(cert.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    respond(stream, answer).await;
                }
            });
        }
    });
    address
}

fn page(path: &str) -> (String, Vec<u8>) {
    match path {
        "/redirect" => ("302 Found\r\nLocation: http://private.test/secret".into(), vec![]),
        _ => ("200 OK".into(), format!("page {path}\n").into_bytes()),
    }
}

async fn scene(
    answer: fn(&str) -> (String, Vec<u8>),
    names: &[(&str, &[&[&str]])],
    rules: &[&str],
) -> Option<(Fixture, Arc<TestDialer>)> {
    scene_at(serve(answer).await, names, rules).await
}

async fn scene_at(
    server: SocketAddr,
    names: &[(&str, &[&[&str]])],
    rules: &[&str],
) -> Option<(Fixture, Arc<TestDialer>)> {
    let sandbox = sandbox()?;
    let lists = |lists: &[&[&str]]| {
        lists.iter().map(|l| l.iter().map(|ip| ip.parse().unwrap()).collect()).collect()
    };
    let names = names.iter().map(|(name, all)| ((*name).to_owned(), lists(all))).collect();
    let dialer =
        Arc::new(TestDialer { server, names: Mutex::new(names), connected: Mutex::default() });
    let egress = Arc::new(Egress::with_dialer(Arc::clone(&dialer) as Arc<dyn Dialer>));
    let rules = allow(&[&["run_shell"], rules].concat());
    let fixture = Fixture::connected(&[], rules, |deps| deps, sandbox, egress).await;
    Some((fixture, dialer))
}

fn by_domain() -> Grants {
    Grants { domains: true, ..Grants::default() }
}

async fn run(fixture: &Fixture, command: &str) -> Value {
    fixture.with("run_shell", json!({"command": command}), by_domain()).await.unwrap()
}

/// Returns the rows of the audit about connections, oldest first: target, decision, outcome.
async fn connections(fixture: &Fixture) -> Vec<(String, String, String)> {
    let rows = fixture.audit().await.into_iter().filter(|row| row.tool == "network");
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| row.id);
    let text = |text: Option<String>| text.unwrap_or_default();
    rows.into_iter().map(|row| (text(row.command), row.decision, text(row.outcome))).collect()
}

pub async fn allowed_domain_is_reached() {
    let names: &[(&str, &[&[&str]])] =
        &[("crates.test", &[&[PUBLIC]]), ("cdn.crates.test", &[&[PUBLIC]])];
    let rules = ["network(crates.test)", "network(*.crates.test)"];
    let Some((fixture, dialer)) = scene(page, names, &rules).await else { return };
    let plain = run(&fixture, "curl -sS http://crates.test/a").await;
    assert_eq!(plain["stdout"], "page /a\n", "{plain}");
    // By CONNECT, as for TLS.
    let tunnel = run(&fixture, "curl -sS --proxytunnel http://cdn.crates.test/b").await;
    assert_eq!(tunnel["stdout"], "page /b\n", "{tunnel}");
    assert_eq!(dialer.connected(), [format!("{PUBLIC}:80"), format!("{PUBLIC}:80")]);
    let refused = run(&fixture, "curl -sS http://other.test/; curl -sS https://other.test/").await;
    let text = refused["stdout"].as_str().unwrap();
    assert!(text.contains("the domain other.test is not allowed"), "{refused}");
    assert!(refused["stderr"].as_str().unwrap().contains("403"), "{refused}");
    let listed = refused["network_refused"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{refused}");
    assert_eq!(dialer.connected().len(), 2);
    let rows = connections(&fixture).await;
    assert_eq!((rows[0].0.as_str(), rows[0].1.as_str()), ("crates.test:80", "allow"));
    assert_eq!(rows[0].2, "ok, 0 bytes sent, 8 received");
    assert_eq!((rows[1].0.as_str(), rows[1].1.as_str()), ("cdn.crates.test:80", "allow"));
    assert!(rows[1].2.starts_with("ok, ") && !rows[1].2.contains(" 0 "), "{rows:?}");
    assert_eq!((rows[2].0.as_str(), rows[2].1.as_str()), ("other.test:80", "deny"));
    assert_eq!((rows[3].0.as_str(), rows[3].1.as_str()), ("other.test:443", "deny"));
    // Without the network by domain there is no way out at all.
    let closed = json!({"command": "curl -sS http://crates.test/a; env"});
    let closed = fixture.call("run_shell", closed).await.unwrap();
    assert!(!closed["stdout"].as_str().unwrap().contains("PROXY"), "{closed}");
    assert!(closed["stderr"].as_str().unwrap().contains("resolve host"), "{closed}");
}

pub async fn tunnel_must_name_its_domain() {
    let names: &[(&str, &[&[&str]])] = &[("crates.test", &[&[PUBLIC]])];
    let server = serve_tls(page).await;
    let rules = ["network(crates.test)"];
    let Some((fixture, dialer)) = scene_at(server, names, &rules).await else { return };
    // Control: the same server, with the name that was decided about.
    let fine = run(&fixture, "curl -sSk https://crates.test/a").await;
    assert_eq!(fine["stdout"], "page /a\n", "{fine}");
    assert_eq!(fine["network_refused"], Value::Null, "{fine}");
    for (command, why) in [
        // Another name of the same address, as behind a shared front.
        (
            "curl -sSk --connect-to other.test:443:crates.test:443 https://other.test/a",
            "its TLS greeting names other.test",
        ),
        // No name, since the address stands in for it.
        (
            "curl -sSk --connect-to 192.0.2.7:443:crates.test:443 https://192.0.2.7/a",
            "its TLS greeting names no server",
        ),
        ("curl -sS --proxytunnel http://crates.test:443/a", "it does not speak TLS"),
    ] {
        let refused = run(&fixture, command).await;
        assert!(!refused["stdout"].as_str().unwrap().contains("page"), "{command}: {refused}");
        assert_ne!(refused["exit_code"], 0, "{command}: {refused}");
        let text = refused["network_refused"].to_string();
        assert!(text.contains("a tunnel to crates.test was closed"), "{command}: {refused}");
        assert!(text.contains(why), "{command}: {refused}");
        let rows = connections(&fixture).await;
        let (target, _, outcome) = rows.last().unwrap();
        assert_eq!(target, "crates.test:443");
        assert!(outcome.starts_with("network_denied (") && outcome.contains(why), "{outcome}");
        // Nothing of the client reached the server.
        assert!(outcome.contains(", 0 bytes sent"), "{outcome}");
    }
    assert_eq!(dialer.connected().len(), 4);
}

pub async fn requests_in_a_tunnel_must_name_their_domain() {
    let names: &[(&str, &[&[&str]])] = &[("crates.test", &[&[PUBLIC]])];
    let rules = ["network(crates.test)"];
    let Some((fixture, dialer)) = scene(page, names, &rules).await else { return };
    let tunnelled = |request: &str| {
        let python = format!(
            "import os, socket\n\
             s = socket.create_connection((\"127.0.0.1\", 3128))\n\
             s.sendall(b\"CONNECT crates.test:80 HTTP/1.1\\r\\nHost: crates.test:80\\r\\n\\r\\n\")\n\
             s.recv(4096)\n\
             s.sendall(b\"{request}\")\n\
             while (t := s.recv(4096)): os.write(1, t)\n"
        );
        format!("python3 -c '{python}'")
    };
    let get = |path: &str, host: &str| format!("GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n");
    let last = |path: &str| {
        format!("GET {path} HTTP/1.1\\r\\nHost: crates.test\\r\\nConnection: close\\r\\n\\r\\n")
    };
    // Control: requests that name the domain, also several in one tunnel.
    let both = format!("{}{}", get("/a", "CRATES.test:80"), last("/b"));
    let fine = run(&fixture, &tunnelled(&both)).await;
    let text = fine["stdout"].as_str().unwrap();
    assert!(text.contains("page /a") && text.contains("page /b"), "{fine}");
    assert_eq!(fine["network_refused"], Value::Null, "{fine}");
    for (request, why) in [
        (get("/a", "other.test"), "its request names other.test"),
        (get("/a", "crates.test:81"), "its request names crates.test:81"),
        (format!("{}{}", get("/a", "crates.test"), get("/c", "other.test")), "names other.test"),
        (get("http://other.test/c", "crates.test"), "its request names other.test"),
        ("GET /c HTTP/1.0\\r\\n\\r\\n".to_owned(), "does not name one server"),
        ("EHLO crates.test\\r\\n".to_owned(), "neither TLS nor HTTP"),
        ("\\x00\\x01".to_owned(), "neither TLS nor HTTP"),
    ] {
        let refused = run(&fixture, &tunnelled(&request)).await;
        assert!(!refused["stdout"].as_str().unwrap().contains("page /c"), "{request}: {refused}");
        let text = refused["network_refused"].to_string();
        assert!(text.contains("a tunnel to crates.test was closed"), "{request}: {refused}");
        assert!(text.contains(why), "{request}: {refused}");
    }
    assert!(dialer.connected().iter().all(|address| *address == format!("{PUBLIC}:80")));
}

const WHEEL: &str = "/files/tinypkg-1.0-py3-none-any.whl";

fn registry(path: &str) -> (String, Vec<u8>) {
    let body = match path {
        "/simple/tinypkg/" => format!("<a href=\"{WHEEL}\">tinypkg-1.0-py3-none-any.whl</a>"),
        "/tinypkg" => json!({
            "name": "tinypkg", "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {"name": "tinypkg", "version": "1.0.0", "description": "Tiny.",
                "dist": {"tarball": "http://npm.test/tinypkg-1.0.0.tgz", "shasum": "00"}}},
        })
        .to_string(),
        path if path == WHEEL => {
            let script = "import zipfile, sys\nz = zipfile.ZipFile(sys.stdout.buffer, 'w')\n\
                d = 'tinypkg-1.0.dist-info/'\n\
                z.writestr('tinypkg.py', 'x = 1\\n')\n\
                z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: tinypkg\\nVersion: 1.0\\n')\n\
                z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
                z.writestr(d + 'RECORD', '')\nz.close()\n";
            let built = std::process::Command::new("python3").args(["-c", script]).output();
            return ("200 OK\r\nContent-Type: application/zip".into(), built.unwrap().stdout);
        }
        _ => return ("404 Not Found".into(), vec![]),
    };
    let kind = if body.starts_with('{') { "application/json" } else { "text/html" };
    (format!("200 OK\r\nContent-Type: {kind}"), body.into_bytes())
}

pub async fn registries_are_reached_by_their_programs() {
    let names: &[(&str, &[&[&str]])] = &[("pypi.test", &[&[PUBLIC]]), ("npm.test", &[&[PUBLIC]])];
    let rules = ["network(pypi.test)", "network(npm.test)"];
    let Some((fixture, _)) = scene(registry, names, &rules).await else { return };
    let has = |program: &'static str| {
        let fixture = &fixture;
        async move { run(fixture, program).await["exit_code"] == 0 }
    };
    if has("python3 -m pip --version").await {
        let got = run(
            &fixture,
            "python3 -m pip download --no-deps --disable-pip-version-check \
            --index-url http://pypi.test/simple --trusted-host pypi.test tinypkg && ls",
        )
        .await;
        assert!(got["stdout"].as_str().unwrap().contains("tinypkg-1.0-py3-none-any.whl"), "{got}");
    } else {
        println!("skipped: pip");
    }
    if has("npm --version").await {
        let got = run(&fixture, "npm view --registry http://npm.test/ tinypkg description").await;
        assert!(got["stdout"].as_str().unwrap().contains("Tiny."), "{got}");
    } else {
        println!("skipped: npm");
    }
}

pub async fn no_trick_reaches_another_address() {
    let names: &[(&str, &[&[&str]])] = &[
        ("good.test", &[&[PUBLIC]]),
        ("private.test", &[&["10.0.0.7"]]),
        ("mixed.test", &[&[PUBLIC, "127.0.0.1"]]),
        ("metadata.test", &[&["169.254.169.254"]]),
        // Its second answer is this machine.
        ("rebind.test", &[&[PUBLIC], &["127.0.0.1"]]),
    ];
    let Some((fixture, dialer)) = scene(page, names, &["network"]).await else { return };
    let port = dialer.server.port();
    let control = run(&fixture, "curl -sS http://good.test/ok").await;
    assert_eq!(control["stdout"], "page /ok\n", "{control}");
    let first = run(&fixture, "curl -sS http://rebind.test/").await;
    assert_eq!(first["stdout"], "page /\n", "{first}");
    let before = dialer.connected();
    assert_eq!(before, [format!("{PUBLIC}:80"), format!("{PUBLIC}:80")]);
    for (command, want) in [
        ("curl -sS http://private.test/", "not a public address"),
        ("curl -sS http://mixed.test/", "not a public address"),
        ("curl -sS http://metadata.test/latest", "not a public address"),
        ("curl -sS http://rebind.test/", "not a public address"),
        ("curl -sS http://93.184.216.34/", "no domain name"),
        ("curl -sS -x $HTTP_PROXY --noproxy '' http://127.0.0.1/", "no domain name"),
        ("curl -sS -x $HTTP_PROXY --noproxy '' http://[::1]/", "no domain name"),
        ("curl -sS -x $HTTP_PROXY --noproxy '' http://localhost/", "in no list"),
        ("curl -sS -x $HTTP_PROXY --noproxy '' http://0x7f.1/", "no domain name"),
        ("curl -sS -x $HTTP_PROXY --noproxy '' http://2130706433/", "no domain name"),
        ("curl -sS http://good.test:22/", "network.ports"),
        ("curl -sS http://missing.test/", "cannot be resolved"),
        ("curl -sSL http://good.test/redirect", "not a public address"),
    ] {
        let got = run(&fixture, command).await;
        assert!(got["stdout"].as_str().unwrap().contains(want), "{command}: {got}");
    }
    // The redirect itself came from the allowed server.
    assert_eq!(dialer.connected().len(), before.len() + 1);
    // Without the proxy there is nothing to connect to, neither here nor outside.
    let direct = format!(
        "curl -sS --noproxy '*' -m 2 http://127.0.0.1:{port}/; \
        curl -sS --noproxy '*' -m 2 http://93.184.216.34/"
    );
    let got = run(&fixture, &direct).await;
    assert_eq!(got["stdout"], "", "{got}");
    // The complete network does not reach this machine either.
    let open = Grants { network: true, ..Grants::default() };
    let arguments =
        || json!({"command": format!("curl -sS --noproxy '*' http://127.0.0.1:{port}/open")});
    let got = fixture.with("run_shell", arguments(), open).await.unwrap();
    assert_eq!(got["stdout"], "", "{got}");
    // Control: outside the sandbox the same command does.
    let unconfined = Grants { unconfined: true, ..Grants::default() };
    let got = fixture.with("run_shell", arguments(), unconfined).await.unwrap();
    assert_eq!(got["stdout"], "page /open\n", "{got}");
    // A port that is configured is reached.
    let options = EgressOptions { ports: vec![8080], ..EgressOptions::default() };
    fixture.harness.egress().configure(options);
    let got = run(&fixture, "curl -sS http://good.test:8080/x").await;
    assert_eq!(got["stdout"], "page /x\n", "{got}");
}

pub async fn complete_network_is_judged_by_domain() {
    let names: &[(&str, &[&[&str]])] = &[
        ("free.test", &[&[PUBLIC]]),
        ("bad.test", &[&[PUBLIC]]),
        ("never.test", &[&[PUBLIC]]),
        ("localhost", &[&["127.0.0.1", "::1"]]),
        ("tricky.localhost", &[&[PUBLIC]]),
    ];
    let rules = ["network(localhost)", "network(tricky.localhost)"];
    for local in [&rules[..0], &rules[..]] {
        let Some(sandbox) = sandbox() else { return };
        let server = serve(page).await;
        let names = names.iter().map(|(name, all)| {
            let all = all.iter().map(|l| l.iter().map(|ip| ip.parse().unwrap()).collect());
            ((*name).to_owned(), all.collect())
        });
        let dialer = Arc::new(TestDialer {
            server,
            names: Mutex::new(names.collect()),
            connected: Mutex::default(),
        });
        let egress = Arc::new(Egress::with_dialer(Arc::clone(&dialer) as Arc<dyn Dialer>));
        let rules = Rules {
            deny: vec!["network(bad.test)".parse().unwrap()],
            final_deny: vec!["network(never.test)".parse().unwrap()],
            ..allow(&[&["run_shell"], local].concat())
        };
        let fixture = Fixture::connected(&[], rules, |deps| deps, sandbox, egress).await;
        let open = || Grants { network: true, ..Grants::default() };
        let reached = async |url: &str| {
            let command = format!("curl -sS -x $HTTP_PROXY --noproxy '' {url}");
            let got = fixture.with("run_shell", json!({"command": command}), open()).await.unwrap();
            got["stdout"].as_str().unwrap().to_owned()
        };
        // Control: a domain that no rule names.
        assert_eq!(reached("http://free.test/a").await, "page /a\n");
        for (url, rule) in [
            ("http://bad.test/", "deny: network(bad.test)"),
            ("http://never.test/", "finalDeny: network(never.test)"),
        ] {
            let text = reached(url).await;
            assert!(text.contains(rule), "{url}: {text}");
        }
        let (here, trick) =
            (reached("http://localhost/b").await, reached("http://tricky.localhost/").await);
        if local.is_empty() {
            assert!(here.contains("in no list") && trick.contains("in no list"), "{here}{trick}");
        } else {
            assert_eq!(here, "page /b\n", "a rule that names this machine opens it");
            assert!(trick.contains("not a public address"), "{trick}");
        }
    }
}

/// Answers the next approval with `decision` and returns it.
pub async fn answer(
    fixture: &Fixture,
    decision: ApprovalDecision,
) -> cairn_protocol::approval::Approval {
    loop {
        let open = fixture.trace().approvals(ApprovalListParams::default()).await.unwrap();
        let Some(approval) = open.into_iter().next() else {
            tokio::task::yield_now().await;
            continue;
        };
        let params = ApprovalResolveParams {
            approval_id: approval.approval_id.clone(),
            decision,
            reason: None,
            pattern: None,
            values: Default::default(),
        };
        fixture.harness.resolve(params, "test").await.unwrap();
        return approval;
    }
}

pub async fn unlisted_domain_is_requested_once() {
    let names: &[(&str, &[&[&str]])] =
        &[("static.crates.test", &[&[PUBLIC]]), ("bad.test", &[&[PUBLIC]])];
    let Some((fixture, dialer)) = scene(page, names, &[]).await else { return };
    // No approver: refused at once, without a request.
    let got = run(&fixture, "curl -sS http://bad.test/").await;
    assert!(got["stdout"].as_str().unwrap().contains("in no list"), "{got}");
    let _approver = fixture.harness.approvals().join();
    // Several connections of one command cause one request.
    let command = "for n in 1 2 3; do curl -sS http://static.crates.test/$n & done; wait";
    let (got, approval) =
        tokio::join!(run(&fixture, command), answer(&fixture, ApprovalDecision::Once));
    let text = got["stdout"].as_str().unwrap();
    assert!(["/1", "/2", "/3"].iter().all(|page| text.contains(page)), "{got}");
    assert_eq!(
        (approval.tool.as_str(), approval.grants.as_slice()),
        ("network", &["network(static.crates.test)".to_owned()][..])
    );
    assert_eq!(approval.patterns, [["network(*.crates.test)"]]);
    assert_eq!(approval.preview.domains, ["static.crates.test"]);
    assert_eq!(approval.preview.command.as_deref(), Some(command));
    // `once` was for that command; `session` stores a rule.
    let command = "curl -sS http://static.crates.test/x";
    let (got, _) =
        tokio::join!(run(&fixture, command), answer(&fixture, ApprovalDecision::Session));
    assert_eq!(got["stdout"], "page /x\n", "{got}");
    assert_eq!(run(&fixture, command).await["stdout"], "page /x\n");
    let count = dialer.connected().len();
    let (got, _) = tokio::join!(
        run(&fixture, "curl -sS http://bad.test/"),
        answer(&fixture, ApprovalDecision::Deny)
    );
    assert!(got["stdout"].as_str().unwrap().contains("denied by test"), "{got}");
    assert_eq!(dialer.connected().len(), count);
    // `always` is a rule that can be listed and revoked.
    let (got, _) = tokio::join!(
        run(&fixture, "curl -sS http://bad.test/"),
        answer(&fixture, ApprovalDecision::Always)
    );
    assert_eq!(got["stdout"], "page /\n", "{got}");
    assert_eq!(fixture.harness.granted()[0].rule, "network(bad.test)");
    // A denial of the user's rules is not asked about, and an allowance of everything is none.
    let deny = vec!["network(bad.test)".parse().unwrap()];
    let rules = Rules { deny, default: Verdict::Allow, ..allow(&["*"]) };
    fixture.set_rules(rules);
    let got = run(&fixture, "curl -sS http://bad.test/").await;
    assert!(got["stdout"].as_str().unwrap().contains("deny: network(bad.test)"), "{got}");
    let soon = std::time::Duration::from_millis(300);
    let quick = EgressOptions { ask_timeout: soon, ..EgressOptions::default() };
    fixture.harness.egress().configure(quick);
    let got = run(&fixture, "curl -sS http://late.test/").await;
    assert!(got["stdout"].as_str().unwrap().contains("no answer in time"), "{got}");
    let off = EgressOptions { ask: false, ..EgressOptions::default() };
    fixture.harness.egress().configure(off);
    let got = run(&fixture, "curl -sS http://new.test/").await;
    assert!(got["stdout"].as_str().unwrap().contains("in no list"), "{got}");
}

pub async fn time_of_an_approver_does_not_count() {
    let names: &[(&str, &[&[&str]])] = &[("slow.test", &[&[PUBLIC]])];
    let Some((fixture, _)) = scene(page, names, &[]).await else { return };
    let _approver = fixture.harness.approvals().join();
    let arguments = json!({"command": "curl -sS http://slow.test/", "timeout_seconds": 1});
    let answered = async {
        let open = loop {
            let open = fixture.trace().approvals(ApprovalListParams::default()).await.unwrap();
            match open.first() {
                Some(approval) => break approval.created_at,
                None => tokio::task::yield_now().await,
            }
        };
        // Longer than the time limit of the command.
        while cairn_protocol::time::Timestamp::now().0 - open.0 < 1500 {
            tokio::task::yield_now().await;
        }
        answer(&fixture, ApprovalDecision::Once).await
    };
    let (got, _) = tokio::join!(fixture.with("run_shell", arguments, by_domain()), answered);
    let got = got.unwrap();
    assert_eq!(
        (got["timed_out"].as_bool(), got["stdout"].as_str()),
        (Some(false), Some("page /\n")),
        "{got}"
    );
}

pub async fn declared_variables_reach_external_programs_alone() {
    let names: &[(&str, &[&[&str]])] = &[("api.test", &[&[PUBLIC]])];
    let rules = ["network(api.test)", "online"];
    let Some((fixture, _)) = scene(page, names, &rules).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().canonicalize().unwrap().join("online");
    let script = "#!/bin/sh\nprintf '\"%s %s\"' \"$API_KEY\" \"$(curl -sS http://api.test/)\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let env = vec![("API_KEY".to_owned(), "s3cret".to_owned())];
    let spec = ExternalSpec { env, ..spec("online", &program, true) };
    assert!(!format!("{spec:?}").contains("s3cret"));
    assert_eq!(Externals::default().set(fixture.harness.registry(), vec![spec]), [""; 0]);
    let got = fixture.with("online", json!({"path": "x"}), by_domain()).await.unwrap();
    assert_eq!(got, "s3cret page /");
    // A command of the model has neither the variable nor the program's file.
    let got = run(&fixture, &format!("env; cat {}", program.display())).await;
    assert!(!got.to_string().contains("s3cret") && got["exit_code"] != 0, "{got}");
    // Without any network it cannot be called.
    let failure = fixture.call("online", json!({"path": "x"})).await.unwrap_err();
    assert_eq!(failure.reason, Reason::NetworkDenied);
}
