//! Language servers of this machine: the known ones and those of the configuration, found on the
//! search path.

use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_config::{Config, DiagnosticsMode};
use cairn_tools::{LanguageServerLimits, LanguageServers, Program, ServerSpec, known_servers};

use crate::trust::TrustStore;

/// Most caches of servers; those that are unused for longest are removed when the daemon starts.
const MAX_CACHES: usize = 16;
/// Longest first line of a script, in bytes.
const MAX_LINE: u64 = 256;

/// Creates the servers of a configuration; `None` if none may be used.
pub fn create(
    config: &Config,
    caches: PathBuf,
    trust: std::sync::Arc<TrustStore>,
) -> Option<LanguageServers> {
    if !matches!(config.diagnostics.mode, DiagnosticsMode::Auto | DiagnosticsMode::Server) {
        return None;
    }
    remove_old_caches(&caches);
    let wait = Duration::from_secs(config.diagnostics.wait);
    let limits = LanguageServerLimits { wait, ..LanguageServerLimits::default() };
    let path = search_path();
    let find = Box::new(move |spec: &ServerSpec| find(spec, &path));
    let trusted = Box::new(move |folder: &Path| trust.covers(folder));
    Some(LanguageServers::new(specs(config), caches, limits, find, trusted))
}

/// Returns the known servers as the configuration changes them, and its own.
pub fn specs(config: &Config) -> Vec<ServerSpec> {
    let mut all = known_servers();
    for (name, own) in &config.diagnostics.servers {
        let at = all.iter().position(|spec| spec.name == *name);
        let mut spec = at.map_or_else(|| unknown(name), |at| all.remove(at));
        if let Some(command) = &own.command {
            spec.commands = [command.clone()].into_iter().filter(|line| !line.is_empty()).collect();
        }
        if let Some(extensions) = &own.extensions {
            let plain = |text: &String| text.trim_start_matches('.').to_owned();
            spec.extensions = extensions.iter().map(plain).collect();
        }
        if let Some(markers) = &own.markers {
            spec.markers.clone_from(markers);
        }
        // A server of the user comes before a known one for the same files.
        all.insert(0, spec);
    }
    all
}

fn unknown(name: &str) -> ServerSpec {
    ServerSpec {
        name: name.to_owned(),
        commands: vec![],
        extensions: vec![],
        markers: vec![],
        options: serde_json::Value::Null,
        reports_status: false,
    }
}

/// Returns the folders of programs, as in `PATH`.
pub fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH");
    path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Finds the first command line of a server whose program is installed.
pub fn find(spec: &ServerSpec, path: &[PathBuf]) -> Option<Program> {
    spec.commands.iter().find_map(|command| {
        let (name, arguments) = command.split_first()?;
        let file = find_program(name, path)?;
        let mut readable = BTreeSet::new();
        add_folders(&file, path, true, &mut readable);
        for script in arguments.iter().map(Path::new).filter(|a| a.is_absolute() && a.is_file()) {
            add_folders(script, path, false, &mut readable);
        }
        // A program in the home folder itself must not disclose it.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        readable.retain(|folder| !home.as_ref().is_some_and(|home| home.starts_with(folder)));
        let mut argv = vec![file.to_string_lossy().into_owned()];
        argv.extend(arguments.iter().cloned());
        Some(Program { argv, readable: readable.into_iter().collect() })
    })
}

fn find_program(name: &str, path: &[PathBuf]) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.is_absolute() && runs(file));
    }
    path.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(runs)
}

/// Collects the folders that a program needs: its own, those of its package, and those of the
/// interpreter of a script.
fn add_folders(
    file: &Path,
    path: &[PathBuf],
    is_script_possible: bool,
    readable: &mut BTreeSet<PathBuf>,
) {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    readable.extend(file.parent().map(Path::to_owned));
    let is_package =
        |folder: &&Path| folder.ends_with("node_modules") || folder.join("pyvenv.cfg").is_file();
    let package = real.ancestors().skip(1).find(is_package).or(real.parent());
    readable.extend(package.map(Path::to_owned));
    readable.extend(
        file.ancestors()
            .skip(1)
            .find(|folder| folder.join("pyvenv.cfg").is_file())
            .map(Path::to_owned),
    );
    if let Some(interpreter) = interpreter(&real, path).filter(|_| is_script_possible) {
        add_folders(&interpreter, path, false, readable);
    }
}

/// Returns the program that runs a script, by its first line.
fn interpreter(script: &Path, path: &[PathBuf]) -> Option<PathBuf> {
    let mut head = Vec::new();
    fs::File::open(script).ok()?.take(MAX_LINE).read_to_end(&mut head).ok()?;
    let line = String::from_utf8_lossy(&head).lines().next()?.to_owned();
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some(PathBuf::from(program));
    }
    find_program(words.find(|word| !word.starts_with('-'))?, path)
}

/// Removes the caches that are unused for longest. This blocks on file I/O.
fn remove_old_caches(caches: &Path) {
    let entries = fs::read_dir(caches).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    all.sort();
    let surplus = all.len().saturating_sub(MAX_CACHES);
    for (_, folder) in all.into_iter().take(surplus) {
        if let Err(error) = fs::remove_dir_all(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "an old cache cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_config::LanguageServer;

    use super::*;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn configuration_changes_and_adds_servers() {
        let mut config = Config::default();
        let own = |command: &[&str], extensions: &[&str]| LanguageServer {
            command: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            extensions: Some(extensions.iter().map(|text| (*text).to_owned()).collect()),
            markers: None,
        };
        let servers = &mut config.diagnostics.servers;
        servers.insert("pyright".into(), own(&["basedpyright-langserver", "--stdio"], &[".py"]));
        servers.insert("gopls".into(), own(&[], &["go"]));
        servers.insert("zls".into(), own(&["zls"], &["zig"]));
        let all = specs(&config);
        let find = |name: &str| all.iter().find(|spec| spec.name == name).unwrap();
        assert_eq!(find("pyright").commands, [["basedpyright-langserver", "--stdio"]]);
        assert_eq!(find("pyright").extensions, ["py"]);
        assert!(find("pyright").markers.contains(&"pyproject.toml".to_owned()));
        assert!(find("gopls").commands.is_empty());
        assert_eq!(find("zls").extensions, ["zig"]);
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn program_brings_the_folders_that_it_needs() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        let package = at.join("lib/node_modules");
        program(&package.join("x/cli.js"), "#!/usr/bin/env -S node\n");
        program(&at.join("node/node"), "");
        fs::create_dir(at.join("bin")).unwrap();
        std::os::unix::fs::symlink(package.join("x/cli.js"), at.join("bin/x-server")).unwrap();
        let mut spec = unknown("x");
        let command = |name: &str| vec![name.to_owned(), "--stdio".to_owned()];
        spec.commands = vec![command("missing"), command("x-server")];
        let path = [at.join("bin"), at.join("node"), "relative".into()];
        let found = super::find(&spec, &path).unwrap();
        assert_eq!(found.argv, [at.join("bin/x-server").to_str().unwrap(), "--stdio"]);
        assert_eq!(found.readable, [at.join("bin"), package, at.join("node")]);
        assert_eq!(super::find(&spec, &path[1..]), None);
        // A program in a virtual environment of Python needs all of it.
        program(&at.join("venv/bin/y-server"), &format!("#!{}/venv/bin/python\n", at.display()));
        program(&at.join("venv/pyvenv.cfg"), "");
        spec.commands = vec![command("y-server")];
        let found = super::find(&spec, &[at.join("venv/bin")]).unwrap();
        assert_eq!(found.readable, [at.join("venv"), at.join("venv/bin")]);
    }

    #[test]
    fn oldest_caches_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..MAX_CACHES + 3 {
            fs::create_dir(dir.path().join(format!("{n:02}"))).unwrap();
        }
        remove_old_caches(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), MAX_CACHES);
    }
}
