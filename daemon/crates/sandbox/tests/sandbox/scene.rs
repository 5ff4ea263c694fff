//! The scene of the attacks: a workspace, files outside it, processes and sockets of other users.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use cairn_sandbox::{Confined, Host, ProcessOutput, Sandbox, Wake, WhenMissing};

pub struct Scene {
    pub role: String,
    pub base: PathBuf,
    pub root: PathBuf,
    pub empty: PathBuf,
    pub outside: PathBuf,
    tcp: u16,
    udp: u16,
    abstract_name: String,
    victim: Child,
    shm: i32,
    _unix: (UnixListener, UnixListener, UnixDatagram),
    inherited: OwnedFd,
}

/// Returns true if the machine has the requirements; where it must have them, their absence is a
/// failure.
pub fn possible() -> bool {
    let missing: Vec<&str> = ["bwrap", "python3", "setpriv", "git", "unshare"]
        .into_iter()
        .filter(|p| !Path::new("/usr/bin").join(p).exists())
        .collect();
    if missing.is_empty() {
        return true;
    }
    assert!(
        std::env::var("CAIRN_TEST_PEERS").as_deref() != Ok("required"),
        "{missing:?} must be installed in /usr/bin"
    );
    println!("skipped: {missing:?} are not in /usr/bin");
    false
}

pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

impl Scene {
    /// Creates a scene in a folder of its own.
    pub fn set(role: &str, name: &str) -> Self {
        let home = PathBuf::from(std::env::var_os("CAIRN_TEST_BASE").unwrap());
        let base = home.join(name);
        let [root, empty, outside] = ["work", "empty", "out"].map(|n| base.join(n));
        furnish(&base, &root, &empty, &outside);
        let abstract_name = format!("cairn-attack-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let unix = (
            UnixListener::bind_addr(&address).unwrap(),
            UnixListener::bind(outside.join("socket")).unwrap(),
            UnixDatagram::bind(outside.join("datagrams")).unwrap(),
        );
        let (tcp, udp) = network();
        let victim = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shm = i32::try_from(std::process::id()).unwrap()
            + i32::try_from(name.len()).unwrap() * 100_000;
        let make =
            format!("import ctypes\nassert ctypes.CDLL(None).shmget({shm}, 4096, 0o1666) >= 0");
        assert!(Command::new("python3").args(["-c", &make]).status().unwrap().success());
        let inherited = inherit(&outside.join("secret"));
        Self {
            role: role.into(),
            base,
            root,
            empty,
            outside,
            tcp,
            udp,
            abstract_name,
            victim,
            shm,
            _unix: unix,
            inherited,
        }
    }

    pub fn host(&self) -> Host {
        Host {
            home: Some(self.base.join("home")),
            path: vec!["/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()],
            lang: None,
            blocked: ["blocked", "blocked2", "blocked.txt"].map(|b| self.root.join(b)).to_vec(),
            closed: vec![],
        }
    }

    /// Returns the full sandbox.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox::new(Some(std::env::current_exe().unwrap())).for_host(self.host())
    }

    /// Returns a sandbox with Landlock and seccomp alone.
    pub fn weaker(&self) -> Sandbox {
        self.sandbox().with_bubblewrap(None).when_missing(WhenMissing::Accept)
    }

    /// Returns no sandbox, for the controls.
    pub fn none(&self) -> Sandbox {
        self.sandbox().when_missing(WhenMissing::Off)
    }

    /// Creates a command line in the workspace.
    pub fn script(&self, text: &str) -> Confined {
        let mut confined = Confined::script(&self.filled(text), self.root.clone());
        confined.root = Some(self.root.clone());
        confined.limits.wall = Duration::from_secs(60);
        confined
    }

    /// Returns the text with the scene's names filled in.
    pub fn filled(&self, text: &str) -> String {
        let path = |p: &Path| p.to_str().unwrap().to_owned();
        [
            ("{W}", path(&self.root)),
            ("{E}", path(&self.empty)),
            ("{O}", path(&self.outside)),
            ("{HOME}", path(&self.base.join("home"))),
            ("{PID}", std::process::id().to_string()),
            ("{VICTIM}", self.victim.id().to_string()),
            ("{TCP}", self.tcp.to_string()),
            ("{UDP}", self.udp.to_string()),
            ("{ABSTRACT}", self.abstract_name.clone()),
            ("{SHM}", self.shm.to_string()),
            ("{FD}", self.inherited.as_raw_fd().to_string()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _result = self.victim.kill();
        let _result = self.victim.wait();
        let remove = format!(
            "import ctypes\nl = ctypes.CDLL(None)\nl.shmctl(l.shmget({}, 0, 0), 0, None)",
            self.shm
        );
        let _result = Command::new("python3").args(["-c", &remove]).status();
    }
}

pub fn run(sandbox: &Sandbox, confined: &Confined) -> ProcessOutput {
    sandbox.run(confined, &Wake::new().unwrap(), &mut |_, _| {}).unwrap()
}

/// Creates the files of a scene.
fn furnish(base: &Path, root: &Path, empty: &Path, outside: &Path) {
    for dir in [
        "",
        "blocked",
        "blocked2",
        ".git/hooks",
        "sub/deep/.git/hooks",
        "gone/.git",
        "away/.git",
        "tree",
        "part",
    ] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    for (file, text) in [
        ("blocked/key", "s3cret"),
        ("blocked2/key", "s3cret"),
        ("blocked.txt", "s3cret"),
        (".git/config", "[core]\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("sub/deep/.git/config", "[core]\n"),
        ("gone/.git/config", "[core]\n"),
        ("away/.git/config", "[core]\n"),
        ("tree/.git", "gitdir: /nowhere\n"),
        (".cairn.json", "{}"),
        ("read.txt", "inside"),
        ("part/read.txt", "part"),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    fs::create_dir_all(empty).unwrap();
    fs::create_dir_all(outside).unwrap();
    for file in [
        "secret",
        "append",
        "truncate",
        "delete",
        "rename",
        "mode",
        "owner",
        "times",
        "attribute",
        "linked",
        "linkable",
    ] {
        fs::write(outside.join(file), "s3cret").unwrap();
    }
    fs::write(outside.with_file_name("out-tmp"), "s3cret").unwrap();
    fs::create_dir_all(base.join("home")).unwrap();
    fs::write(base.join("home/.private"), "s3cret").unwrap();
    fs::write(base.join("home/.bashrc"), "before\n").unwrap();
}

/// Starts listeners that accept every connection and answer every datagram.
fn network() -> (u16, u16) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    std::thread::spawn(move || for _connection in tcp.incoming() {});
    std::thread::spawn(move || {
        let mut buffer = [0; 16];
        while let Ok((n, from)) = udp.recv_from(&mut buffer) {
            let _result = udp.send_to(&buffer[..n], from);
        }
    });
    ports
}

/// Opens a file as a descriptor that children inherit.
fn inherit(path: &Path) -> OwnedFd {
    rustix::io::dup(fs::File::open(path).unwrap()).unwrap()
}
