//! Sockets of other programs: container engines, agents with keys, buses, terminals, displays.

use std::{
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    path::PathBuf,
    sync::{Arc, Mutex},
};

use serde_json::json;

use super::{Form, answers, has_programs, play};
use crate::hooks::Scene;

/// Connects to a Unix socket by its path, or by an abstract name after `@`, and sends its name.
const CONNECT: &str = "python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); \
    p=sys.argv[1]; s.connect(\"\\0\"+p[1:] if p[0]==\"@\" else p); s.sendall(b\"x\")'";

/// Sockets as they are found on machines, below the folder of the test.
const PATHS: &[&str] = &[
    "run/docker.sock",
    "run/podman/podman.sock",
    "run/user/bus",
    "user/.gnupg/S.gpg-agent",
    "user/.ssh/agent.sock",
    "tmp/tmux-0/default",
    "tmp/screens/S-me/1.session",
    "tmp/.X11-unix/X7",
    "run/wayland-0",
    "home/daemon.sock",
    "repo/.git/fsmonitor--daemon.ipc",
    "repo/tools/agent.sock",
];

/// Listens at sockets, and notes which of them were connected to.
struct Servers {
    connected: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    fn start(scene: &Scene, hidden: &[String]) -> (Self, Vec<String>) {
        let connected: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut names: Vec<String> =
            PATHS.iter().map(|path| scene.path(path).to_string_lossy().into_owned()).collect();
        names.extend_from_slice(hidden);
        for name in names.clone() {
            let listener = match name.strip_prefix('@') {
                Some(hidden) => {
                    let address = SocketAddr::from_abstract_name(hidden).unwrap();
                    UnixListener::bind_addr(&address).unwrap()
                }
                None => {
                    let path = PathBuf::from(&name);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    UnixListener::bind(path).unwrap()
                }
            };
            let connected = Arc::clone(&connected);
            std::thread::spawn(move || {
                for _stream in listener.incoming().flatten() {
                    connected.lock().unwrap().push(name.clone());
                }
            });
        }
        (Self { connected }, names)
    }

    fn connected(&self) -> Vec<String> {
        let mut all = self.connected.lock().unwrap().clone();
        all.sort();
        all.dedup();
        all
    }
}

/// The control: without a sandbox, which only the user can choose, each socket is reached.
#[test]
fn commands_reach_no_socket_of_another_program() {
    if !has_programs(&["python3", "bwrap"]) {
        return;
    }
    for (flags, is_control) in [(&["--mode", "auto"][..], false), (&["--no-sandbox"], true)] {
        let id = format!("{}-{is_control}", std::process::id());
        let hidden = [format!("@/tmp/.X11-unix/X{id}"), format!("@dbus-{id}")];
        let paths = PATHS.iter().map(|path| format!("{{DIR}}/{path}"));
        let forms: Vec<Form> = paths
            .chain(hidden.clone())
            .map(|name| Form::shell(&name, &format!("{CONNECT} {name}")))
            .collect();
        let config = json!({"permissions": {"allow": ["run_shell"]}});
        let scene = Scene::new(&answers(&forms), &config, &[]);
        let (servers, mut names) = Servers::start(&scene, &hidden);
        let results = play(&scene, &forms, flags);
        std::thread::sleep(std::time::Duration::from_millis(200));
        names.sort();
        let expected = if is_control { names } else { Vec::new() };
        assert_eq!(servers.connected(), expected, "{results:#?}");
    }
}
