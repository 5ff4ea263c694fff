//! Logins to an MCP server whose authorization server is that of the official Python package.

use std::{
    io::{BufRead as _, BufReader},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::sealed::{Daemon, Raw, command, logged, python, tree, wait_for};

/// The server, which is killed with the test.
struct Tracker {
    python: String,
    port: u16,
    child: Child,
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let _stopped = self.child.kill();
        let _stopped = self.child.wait();
    }
}

impl Tracker {
    fn start() -> Option<Self> {
        let python = python("mcp")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/mcp_login.py");
        let mut server = Command::new(&python);
        server.arg(script).arg(port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = server.spawn().unwrap();
        wait_for("the server", || TcpStream::connect(("127.0.0.1", port)).ok());
        Some(Self { python, port, child })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Requests a page as a browser does: with redirects. Returns its text, also of an error.
    fn browse(&self, url: &str) -> String {
        let script = "import sys, urllib.request, urllib.error\n\
            try: print(urllib.request.urlopen(sys.argv[1]).read().decode())\n\
            except urllib.error.HTTPError as e: print(e.code, e.read().decode())";
        let output = Command::new(&self.python).args(["-c", script, url]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn control(&self, what: &str) -> Value {
        let text = self.browse(&format!("http://127.0.0.1:{}/control?{what}=1", self.port));
        serde_json::from_str(&text).unwrap()
    }
}

struct Scene {
    home: PathBuf,
    root: PathBuf,
    _dir: tempfile::TempDir,
}

fn scene(tracker: &Tracker) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    tree(&root, &[("a.txt", "a\n")]);
    let config = json!({
        "daemon": {"log": "debug"},
        "mcp": {"servers": {
            "tracker": {"url": tracker.url()},
            "program": {"command": "/nonexistent/server"},
            "off": {"url": "https://off.example/mcp?key=hidden", "enabled": false},
        }},
    });
    tree(&home, &[("config/config.json", &config.to_string())]);
    Scene { home, root, _dir: dir }
}

fn servers(home: &Path) -> Vec<Value> {
    let output =
        command(home).args(["mcp", "list", "--json"]).stdout(Stdio::piped()).output().unwrap();
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    page["data"].as_array().unwrap().clone()
}

fn state(home: &Path, expected: &str) -> Value {
    wait_for(expected, || {
        let all = servers(home);
        let server = all.into_iter().find(|server| server["name"] == "tracker").unwrap();
        (server["state"] == expected).then_some(server)
    })
}

/// Starts a login by the command line and returns the address for the browser.
fn login(home: &Path) -> (Child, String) {
    let mut login = command(home);
    login.args(["mcp", "login", "tracker", "--no-browser"]).stdout(Stdio::piped());
    let mut login = login.stderr(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(login.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (login, url.trim().to_owned())
}

fn call_tickets(scene: &Scene) -> (bool, String) {
    let mut call = command(&scene.home);
    call.args(["tools", "call", "mcp_tracker_tickets", "{}", "--yes", "--root"]).arg(&scene.root);
    let output = call.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Returns the files of a folder that contain one of the texts.
fn containing(folder: &Path, texts: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(containing(&path, texts));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let has = |text: &&str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(texts.iter().any(has).then_some(path));
        }
    }
    found
}

#[test]
fn login_is_stored_refreshed_and_deleted() {
    let Some(tracker) = Tracker::start() else { return };
    let scene = scene(&tracker);
    let mut daemon = Daemon::start_in(&scene.home, &[]);
    let before = state(&scene.home, "login_required");
    assert_eq!((&before["loggedIn"], &before["tools"]), (&json!(false), &json!(0)), "{before}");
    assert!(before["error"].as_str().unwrap().contains("cairn mcp login tracker"), "{before}");
    wait_for("the warning", || {
        logged(&scene.home).contains("cairn mcp login tracker").then_some(())
    });
    // A chat says so too; its turn fails, since there is no model.
    let (_, _, notes) = crate::sealed::cairn(&scene.home, &scene.root, &["chat", "-p", "hi"]);
    assert!(notes.contains("run 'cairn mcp login tracker'"), "{notes}");
    let off = servers(&scene.home).into_iter().find(|server| server["name"] == "off").unwrap();
    assert_eq!(off["state"], "disabled");
    assert_eq!(off["url"], "https://off.example/mcp", "a query may have a secret");

    let (mut child, url) = login(&scene.home);
    assert!(url.contains("code_challenge_method=S256") && url.contains("state="), "{url}");
    let page = tracker.browse(&url);
    assert!(page.contains("Cairn has received the login"), "{page}");
    assert!(child.wait().unwrap().success());
    let after = state(&scene.home, "connected");
    assert_eq!((&after["loggedIn"], &after["tools"]), (&json!(true), &json!(1)), "{after}");
    let file = scene.home.join("mcp-logins.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // No tool reads it, even if the data folder is declared as a root.
    let home = scene.home.to_str().unwrap();
    let path = json!({"path": file}).to_string();
    let read = ["tools", "call", "read_file", &path, "--yes", "--root", home];
    let (code, out, errors) = crate::sealed::cairn(&scene.home, &scene.root, &read);
    assert!(code != 0 && errors.contains("is a blocked path"), "{out}{errors}");
    assert_eq!(call_tickets(&scene), (true, "one ticket\n".into()));

    // The server forgets the token: it is refreshed and the call succeeds.
    assert_eq!(tracker.control("forget")["refreshed"], 0);
    assert_eq!(call_tickets(&scene), (true, "one ticket\n".into()));
    assert_eq!(tracker.control("x")["refreshed"], 1);
    // The login is still there after a restart.
    assert!(daemon.stop().success());
    drop(daemon);
    let mut daemon = Daemon::start_in(&scene.home, &[]);
    state(&scene.home, "connected");
    assert_eq!(call_tickets(&scene), (true, "one ticket\n".into()));

    // The refresh token is refused too: a new login is needed, and the error names the line.
    tracker.control("revoke");
    let (ok, text) = call_tickets(&scene);
    assert!(!ok && text.contains("cairn mcp login tracker"), "{text}");
    state(&scene.home, "login_required");
    assert_eq!(scene.logout(), "logged out of 'tracker'\n");
    assert_eq!(state(&scene.home, "login_required")["loggedIn"], false);
    assert_eq!(scene.logout(), "there was no login to 'tracker'\n");
    assert!(daemon.stop().success());
    let secrets = ["secret-access-", "secret-refresh-"];
    assert_eq!(containing(&scene.home, &secrets), Vec::<PathBuf>::new());
}

impl Scene {
    fn logout(&self) -> String {
        let mut logout = command(&self.home);
        let output =
            logout.args(["mcp", "logout", "tracker"]).stderr(Stdio::piped()).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

async fn begin(raw: &mut Raw) -> (Value, String, String) {
    let login = raw.ok("mcp.login", json!({"name": "tracker"})).await;
    let url = login["url"].as_str().unwrap().to_owned();
    let parameter = |name: &str| {
        let (_, rest) = url.split_once(&format!("{name}=")).unwrap();
        let value = rest.split('&').next().unwrap();
        value.replace("%3A", ":").replace("%2F", "/")
    };
    let (redirect, state) = (parameter("redirect_uri"), parameter("state"));
    (login, redirect, state)
}

#[tokio::test]
async fn redirects_of_others_do_not_finish_a_login() {
    let Some(tracker) = Tracker::start() else { return };
    let scene = scene(&tracker);
    let daemon = Daemon::start_in(&scene.home, &[]);
    let mut raw = daemon.client().await;
    state(&scene.home, "login_required");
    let (login, redirect, state_text) = begin(&mut raw).await;
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
    for wrong in [
        format!("{redirect}?code=x&state=wrong"),
        format!("{redirect}?code=x"),
        format!("{redirect}?state={state_text}"),
        redirect.replace("/callback", &format!("/other?code=x&state={state_text}")),
    ] {
        let page = tracker.browse(&wrong);
        assert!(page.starts_with("400 ") && page.contains("no answer"), "{wrong}: {page}");
    }
    // None of them ended it: the right one still does.
    let finish = json!({"loginId": login["loginId"]});
    tracker.browse(login["url"].as_str().unwrap());
    assert_eq!(raw.ok("mcp.finishLogin", finish).await["loggedIn"], true);
    assert_eq!(raw.ok("mcp.logout", json!({"name": "tracker"})).await["wasLoggedIn"], true);

    // An address that a user pastes is checked in the same way.
    let (login, redirect, state_text) = begin(&mut raw).await;
    for wrong in [
        format!("{redirect}?code=x&state=wrong"),
        format!("https://127.0.0.1/callback?code=x&state={state_text}"),
        "nonsense".to_owned(),
    ] {
        let (again, ..) = begin(&mut raw).await;
        let params = json!({"loginId": again["loginId"], "redirectUrl": wrong});
        assert_eq!(raw.refused("mcp.finishLogin", params).await, "login_failed", "{wrong}");
    }
    // The first of these logins was replaced by the others.
    let params = json!({"loginId": login["loginId"]});
    assert_eq!(raw.refused("mcp.finishLogin", params).await, "invalid_params");
    // A code that the server does not know is refused by it.
    let (login, redirect, state_text) = begin(&mut raw).await;
    let pasted = format!("{redirect}?code=forged&state={state_text}");
    let params = json!({"loginId": login["loginId"], "redirectUrl": pasted});
    assert_eq!(raw.refused("mcp.finishLogin", params).await, "login_failed");
    let list = raw.ok("mcp.list", json!({})).await;
    assert!(list["data"].as_array().unwrap().iter().all(|server| server["loggedIn"] == false));
    for (name, reason) in [("nobody", "mcp_server_not_found"), ("program", "invalid_params")] {
        assert_eq!(raw.refused("mcp.login", json!({"name": name})).await, reason);
    }
}

#[test]
fn login_file_of_others_is_not_used() {
    let Some(tracker) = Tracker::start() else { return };
    let scene = scene(&tracker);
    let mut daemon = Daemon::start_in(&scene.home, &[]);
    state(&scene.home, "login_required");
    let (mut child, url) = login(&scene.home);
    tracker.browse(&url);
    assert!(child.wait().unwrap().success());
    state(&scene.home, "connected");
    assert!(daemon.stop().success());
    drop(daemon);
    let file = scene.home.join("mcp-logins.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _daemon = Daemon::start_in(&scene.home, &[]);
    let refused = state(&scene.home, "failed");
    assert!(refused["error"].as_str().unwrap().contains("chmod 600"), "{refused}");
    // Control: with the right mode it is used again.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    state(&scene.home, "connected");
}
