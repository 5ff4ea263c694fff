//! The part of the machine that a run sees: converts the request and the host into arguments of
//! bubblewrap and rules of Landlock.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use cairn_protocol::error::{Failure, Reason};

use super::{
    Confined, Host, Limits,
    placeholder::{self, PROTECTED, PROTECTED_IF_THERE, Placeholders},
    spec::{PROXY_PORT, PROXY_SOCKET},
    toolchain::{SECRETS, Toolchains, toolchains},
};

/// Folders that programs need.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu/store",
];
/// Files in them that no command may read.
const SECRET: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/letsencrypt",
    "/etc/security/opasswd",
];
/// Path of the helper inside the sandbox.
pub(super) const HELPER: &str = "/run/cairn-sandbox";
/// Path of the home folder inside the sandbox.
const HOME: &str = "/tmp/home";
/// The user's file of ignore patterns in a home folder, as git finds it.
const GIT_IGNORE: &str = ".config/git/ignore";
/// Most repositories in one workspace.
const MAX_REPOSITORIES: usize = 1000;
/// Most Landlock rules of one run.
const MAX_RULES: usize = 8192;
/// Devices for tier B; bubblewrap creates its own.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// View of a run, independent of the tier.
pub(super) struct Layout {
    /// Visible parts of the workspace.
    spaces: Vec<PathBuf>,
    /// Writable parts of the workspace, and writable folders in them.
    writable: Vec<PathBuf>,
    /// Further visible paths, read-only.
    readable: Vec<PathBuf>,
    /// Read-only paths inside a visible part.
    protected: Vec<PathBuf>,
    /// Paths that are not visible.
    hidden: Vec<PathBuf>,
    tools: Toolchains,
    /// Placeholders for names that must not be created.
    _placeholders: Option<Placeholders>,
    /// Patterns by which git ignores the placeholders.
    ignored: Option<tempfile::NamedTempFile>,
}

impl Layout {
    /// Computes the layout from the machine's state.
    ///
    /// # Errors
    /// `path_blocked` for a workspace that is blocked, `tool_failed` when it cannot be protected,
    /// `invalid_params` for a working folder that is not visible.
    pub(super) fn of(confined: &Confined, host: &Host) -> Result<Self, Failure> {
        let spaces: Vec<PathBuf> = match (&confined.root, &confined.parts) {
            (None, _) => vec![],
            (Some(root), None) => vec![root.clone()],
            (Some(root), Some(parts)) => {
                parts.iter().map(|p| root.join(p)).filter(|p| p.exists()).collect()
            }
        };
        let mut blocked = host.blocked();
        // The targets of blocked names are blocked as well.
        let real: Vec<PathBuf> = blocked.iter().filter_map(|p| p.canonicalize().ok()).collect();
        blocked.extend(real);
        if let Some(space) = spaces.iter().find(|s| blocked.iter().any(|b| s.starts_with(b))) {
            return Err(Failure::new(
                Reason::PathBlocked,
                format!("'{}' is blocked", space.display()),
            ));
        }
        let home = host.home.as_deref();
        let tools = home.map(|home| toolchains(home, &host.path, Path::exists)).unwrap_or_default();
        let mut hidden = blocked;
        hidden.extend(SECRET.iter().map(PathBuf::from));
        hidden.extend(home.iter().flat_map(|home| SECRETS.iter().map(|s| home.join(s))));
        hidden.extend(host_keys());
        hidden.extend(confined.masked.iter().cloned());
        for folder in &host.closed {
            let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            let visible_folders: Vec<PathBuf> =
                spaces.iter().chain(&confined.readable).cloned().collect();
            except(&real, &visible_folders, &mut hidden);
        }
        hidden.retain(|p| fs::symlink_metadata(p).is_ok());
        hidden.sort();
        hidden.dedup();
        // A path in a hidden folder is hidden with it; the empty cover has no place for its own.
        hidden.dedup_by(|inner, outer| inner.starts_with(&*outer));
        let writable = writable(confined, &spaces);
        let root = confined.root.as_deref().filter(|r| writable.iter().any(|s| s == r));
        let placeholders = root
            .map(|root| {
                let expected = confined.expected.iter().find(|e| e.path == root);
                placeholder::create_placeholders(root, expected)
            })
            .transpose()
            .map_err(unprotected)?;
        let ignored = placeholders.as_ref().map(ignore_file).transpose().map_err(unprotected)?;
        let protected = if writable.is_empty() { vec![] } else { protected(root, &writable)? };
        let readable = confined.readable.clone();
        let layout = Self {
            spaces,
            writable,
            readable,
            protected,
            hidden,
            tools,
            _placeholders: placeholders,
            ignored,
        };
        layout.check_folder(&confined.folder)?;
        Ok(layout)
    }

    fn check_folder(&self, folder: &Path) -> Result<(), Failure> {
        let system = SYSTEM.iter().map(Path::new);
        let seen = self
            .spaces
            .iter()
            .chain(&self.readable)
            .chain(&self.tools.folders)
            .map(PathBuf::as_path);
        // The target of the path counts, not its spelling.
        let real = folder.canonicalize().unwrap_or_default();
        let hidden = self.hidden.iter().any(|h| real.starts_with(h));
        let visible =
            folder == Path::new("/tmp") || seen.chain(system).any(|p| real.starts_with(p));
        if !hidden && visible && folder.is_dir() {
            return Ok(());
        }
        let text = format!("folder '{}' is not visible in the sandbox", folder.display());
        Err(Failure::new(Reason::InvalidParams, text))
    }

    /// Returns true if a path is inside a visible part.
    fn shows(&self, path: &Path) -> bool {
        let system = SYSTEM.iter().map(Path::new);
        let seen = self
            .spaces
            .iter()
            .chain(&self.readable)
            .chain(&self.tools.folders)
            .map(PathBuf::as_path);
        system.chain(seen).any(|p| path.starts_with(p))
    }

    /// Returns the options of bubblewrap.
    pub(super) fn bubblewrap(&self, confined: &Confined, helper: &Path) -> Vec<OsString> {
        let mut args = Arguments::default();
        args.plain(&[
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]);
        args.plain(&["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
        if !confined.network {
            args.plain(&["--unshare-net"]);
        }
        for path in SYSTEM.iter().map(Path::new) {
            match (fs::read_link(path), path.exists()) {
                (Ok(target), _) => args.two("--symlink", &target, path),
                (Err(_), true) => args.two("--ro-bind", path, path),
                (Err(_), false) => {}
            }
        }
        let room = tmpfs_room(&confined.limits);
        args.plain(&["--proc", "/proc", "--dev", "/dev"]);
        args.plain(&[
            "--size", &room, "--tmpfs", "/tmp", "--dir", HOME, "--size", &room, "--tmpfs",
            "/var/tmp",
        ]);
        args.two("--ro-bind", helper, Path::new(HELPER));
        if let Some(ignored) = &self.ignored {
            args.two("--ro-bind", ignored.path(), &Path::new(HOME).join(GIT_IGNORE));
        }
        if confined.network {
            // It is often a link into /run, which is not visible.
            let names = fs::canonicalize("/etc/resolv.conf").unwrap_or_default();
            if names.is_absolute() && !self.shows(&names) {
                args.two("--ro-bind", &names, &names);
            }
        }
        if let Some(socket) = &confined.proxy {
            args.two("--ro-bind", socket, Path::new(PROXY_SOCKET));
        }
        for path in self.tools.folders.iter().chain(&self.readable).filter(|p| p.exists()) {
            args.two("--ro-bind", path, path);
        }
        for path in self.spaces.iter().filter(|space| !self.writable.contains(space)) {
            args.two("--ro-bind", path, path);
        }
        for path in &self.writable {
            args.two("--bind", path, path);
        }
        for path in &self.protected {
            args.two("--ro-bind", path, path);
        }
        for path in self.hidden.iter().filter(|p| self.shows(p)) {
            args.hide(path);
        }
        args.plain(&["--remount-ro", "/", "--chdir"]);
        args.0.push(confined.folder.clone().into());
        args.0
    }

    /// Writes the patterns of the placeholders into a home folder outside of bubblewrap's view.
    pub(super) fn write_ignored(&self, home: &Path) -> io::Result<()> {
        let Some(ignored) = &self.ignored else { return Ok(()) };
        let file = home.join(GIT_IGNORE);
        file.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::copy(ignored.path(), file).map(drop)
    }

    /// Returns the readable and the writable paths for the helper's Landlock inside bubblewrap,
    /// whose view contains only readable paths.
    pub(super) fn inside(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut write: Vec<PathBuf> = ["/tmp", "/var/tmp", "/dev"].map(PathBuf::from).to_vec();
        write.extend(self.writable.iter().cloned());
        (vec![PathBuf::from("/")], write)
    }

    /// Returns the paths for tier B, where Landlock alone decides what may be read: it can only
    /// allow, so a folder that contains something protected is allowed child by child, and no entry
    /// can be created directly in it.
    ///
    /// # Errors
    /// `tool_failed` when that needs too many rules.
    pub(super) fn outside(&self, temp: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
        let (mut read, mut write) = (Vec::new(), vec![temp.to_owned()]);
        let system = SYSTEM.iter().map(PathBuf::from);
        let seen = self.tools.folders.iter().chain(&self.readable).chain(&self.spaces).cloned();
        for tree in system.chain(seen) {
            without(&tree, &self.hidden, &mut read);
        }
        read.extend(["/proc".into(), "/dev/fd".into()]);
        write.extend(DEVICES.iter().map(PathBuf::from));
        let mut closed: Vec<PathBuf> = self.hidden.iter().chain(&self.protected).cloned().collect();
        closed.extend(
            self.writable.iter().flat_map(|s| PROTECTED.iter().map(|(name, _)| s.join(name))),
        );
        for space in &self.writable {
            without(space, &closed, &mut write);
        }
        if read.len() + write.len() > MAX_RULES {
            let text =
                format!("the workspace has more than {MAX_RULES} entries beside protected ones");
            return Err(Failure::new(Reason::ToolFailed, text));
        }
        Ok((read, write))
    }

    /// Returns the paths for the profile of macOS.
    pub(super) fn seatbelt<'a>(
        &'a self,
        temp: &'a Path,
        network: bool,
        absent: &'a [PathBuf],
    ) -> String {
        let mut sandbox_paths = super::seatbelt::SandboxPaths { network, ..Default::default() };
        sandbox_paths
            .read
            .extend(self.tools.folders.iter().chain(&self.readable).map(PathBuf::as_path));
        sandbox_paths.write.push(temp);
        sandbox_paths.read.extend(
            self.spaces.iter().filter(|s| !self.writable.contains(s)).map(PathBuf::as_path),
        );
        sandbox_paths.write.extend(self.writable.iter().map(PathBuf::as_path));
        sandbox_paths.protected.extend(self.protected.iter().chain(absent).map(PathBuf::as_path));
        sandbox_paths.blocked.extend(self.hidden.iter().map(PathBuf::as_path));
        super::seatbelt::profile(&sandbox_paths)
    }

    /// Returns the environment of the command. `home` is its home folder.
    pub(super) fn env(
        &self,
        confined: &Confined,
        host: &Host,
        home: &str,
        temp: &str,
    ) -> Vec<(String, String)> {
        let visible =
            host.path.iter().filter(|p| self.shows(p)).map(|p| p.to_string_lossy().into_owned());
        let mut path: Vec<String> = visible.collect();
        for usual in ["/usr/local/bin", "/usr/bin", "/bin"] {
            if !path.iter().any(|p| p == usual) {
                path.push(usual.into());
            }
        }
        let lang = host.lang.clone().unwrap_or_else(|| "C.UTF-8".into());
        let mut env: Vec<(String, String)> = [
            ("PATH", path.join(":").as_str()),
            ("HOME", home),
            ("TMPDIR", temp),
            ("LANG", &lang),
            ("TERM", "dumb"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // A repository can contain a folder that git takes for a bare repository, and the
            // configuration in it names programs; a nested one may name a monitor. Both would run
            // for commands that only read.
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
            ("GIT_CONFIG_VALUE_0", "explicit"),
            ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_1", "false"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        env.extend(self.tools.env.iter().cloned());
        if confined.proxy.is_some() {
            env.extend(proxy_variables());
        } else if !confined.network {
            env.push(("CARGO_NET_OFFLINE".into(), "true".into()));
        }
        env.extend(confined.env.iter().cloned());
        env
    }
}

/// Writes the patterns by which git ignores the placeholders.
fn ignore_file(placeholders: &Placeholders) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("cairn-ignore-").tempfile()?;
    io::Write::write_all(&mut file, placeholders.ignore_patterns().as_bytes())?;
    Ok(file)
}

/// Returns the variables by which programs find the proxy.
fn proxy_variables() -> impl Iterator<Item = (String, String)> {
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let names = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "CARGO_HTTP_PROXY",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "PIP_PROXY",
    ];
    // Programs of the Java machine read no variable of the usual names.
    let java = ["http", "https"]
        .map(|scheme| format!("-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={PROXY_PORT}"));
    let java = java.join(" ");
    let own = "localhost,127.0.0.1,::1".to_owned();
    let others = [
        ("NO_PROXY", own.clone()),
        ("no_proxy", own),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
        ("MAVEN_OPTS", java.clone()),
        ("GRADLE_OPTS", java),
    ];
    let addressed = names.into_iter().map(move |name| (name.to_owned(), address.clone()));
    addressed.chain(others.into_iter().map(|(name, value)| (name.to_owned(), value)))
}

/// Returns the home folder inside bubblewrap.
pub(super) const fn inner_home() -> &'static str {
    HOME
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn plain(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn two(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.extend([option.into(), from.into(), to.into()]);
    }

    /// Covers a path with an empty file or folder that cannot be opened.
    fn hide(&mut self, path: &Path) {
        if path.is_dir() {
            self.plain(&["--perms", "0000", "--size", "4096", "--tmpfs"]);
            self.0.push(path.into());
            self.plain(&["--remount-ro"]);
            self.0.push(path.into());
        } else {
            self.two("--ro-bind", Path::new("/dev/null"), path);
        }
    }
}

fn tmpfs_room(limits: &Limits) -> String {
    (limits.memory / 2).max(1 << 20).to_string()
}

/// Adds the parts of a folder that hold none of `spaces`.
fn except(folder: &Path, spaces: &[PathBuf], hidden: &mut Vec<PathBuf>) {
    if !spaces.iter().any(|space| space.starts_with(folder)) {
        hidden.push(folder.to_owned());
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !spaces.iter().any(|space| path.starts_with(space)) {
            except(&path, spaces, hidden);
        }
    }
}

/// Returns the private keys of the SSH server.
fn host_keys() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|e| e.path());
    let is_key = |p: &PathBuf| p.to_string_lossy().ends_with("_key");
    entries.filter(is_key).collect()
}

/// Returns the protected names that exist, and every repository's own folder.
fn protected(root: Option<&Path>, spaces: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for space in spaces {
        all.extend(placeholder::repositories(space, MAX_REPOSITORIES));
    }
    if all.len() >= MAX_REPOSITORIES {
        let text = format!(
            "the workspace contains {MAX_REPOSITORIES} repositories or more, too many to protect"
        );
        return Err(Failure::new(Reason::ToolFailed, text));
    }
    if let Some(root) = root {
        let names =
            PROTECTED.iter().map(|(name, _)| *name).chain(PROTECTED_IF_THERE.iter().copied());
        all.extend(names.map(|name| root.join(name)));
    }
    all.retain(|p| fs::symlink_metadata(p).is_ok());
    all.sort();
    all.dedup();
    let link = |p: &&PathBuf| fs::symlink_metadata(p).is_ok_and(|m| m.is_symlink());
    if let Some(link) = all.iter().find(|p| link(p) && p.ends_with(".git")) {
        let text = format!(
            "'{}' is a symlink, which cannot be protected: replace it with a file 'gitdir: …'",
            link.display()
        );
        return Err(Failure::new(Reason::ToolFailed, text));
    }
    all.retain(|p| !link(&p));
    Ok(all)
}

/// Returns the parts of `spaces` that a command may write to.
fn writable(confined: &Confined, spaces: &[PathBuf]) -> Vec<PathBuf> {
    if !confined.writable {
        return vec![];
    }
    let Some(allowed) = &confined.write_paths else { return spaces.to_vec() };
    let inner = allowed
        .iter()
        .filter(|path| spaces.iter().any(|space| path.starts_with(space)) && path.exists());
    let outer = spaces.iter().filter(|space| allowed.iter().any(|path| space.starts_with(path)));
    let mut all: Vec<PathBuf> = inner.chain(outer).cloned().collect();
    all.sort();
    all.dedup();
    all
}

fn unprotected(error: std::io::Error) -> Failure {
    Failure::new(Reason::ToolFailed, format!("the workspace cannot be protected: {error}"))
}

/// Collects the parts of a tree that contain nothing of `closed`.
fn without(tree: &Path, closed: &[PathBuf], out: &mut Vec<PathBuf>) {
    if closed.iter().any(|c| tree.starts_with(c)) || !tree.exists() || out.len() > MAX_RULES {
        return;
    }
    let real = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    if !closed.iter().any(|c| c.starts_with(tree) || c.starts_with(&real)) {
        out.push(tree.to_owned());
        return;
    }
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        // A rule for a symlink would apply to its target.
        if !entry.file_type().is_ok_and(|t| t.is_symlink()) {
            without(&entry.path(), closed, out);
        }
    }
}

/// Returns protected names of `root`, which the profile of macOS can name before they exist.
pub(super) fn absent(root: Option<&Path>) -> Vec<PathBuf> {
    root.map(|root| PROTECTED.iter().map(|(name, _)| root.join(name)).collect()).unwrap_or_default()
}
