//! The installed program: the way by which it was installed, and the lines that update and remove
//! it.

use std::path::{Path, PathBuf};

/// The list of installed files below the prefix, which `install.sh` writes.
const RECEIPT: &str = "share/doc/cairn/installed-files";

/// The owner of the program's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// `install.sh`, below this prefix.
    Script(PathBuf),
    Dpkg,
    Rpm,
    Pip,
    Npm,
    Homebrew,
    Nix,
    Cargo,
    /// A build folder of the sources.
    Sources,
    Unknown,
}

impl Owner {
    /// Determines the owner of the program at `exe`, a path without links.
    pub fn of(exe: &Path) -> Self {
        let text = exe.to_string_lossy();
        let prefix = exe.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent);
        if text.contains("/node_modules/") {
            return Self::Npm;
        }
        if text.starts_with("/nix/store/") {
            return Self::Nix;
        }
        if text.contains("/Cellar/") {
            return Self::Homebrew;
        }
        if exe.ancestors().skip(1).take(3).any(|dir| dir.join("CACHEDIR.TAG").is_file()) {
            return Self::Sources;
        }
        if prefix.is_some_and(has_wheel) {
            return Self::Pip;
        }
        if let Some(prefix) = prefix.filter(|prefix| prefix.join(RECEIPT).is_file()) {
            return Self::Script(prefix.to_owned());
        }
        if prefix.is_some_and(|p| p.ends_with(".cargo") || p.join(".crates.toml").is_file()) {
            return Self::Cargo;
        }
        // The packages' `/usr/bin/cairn` is a link to the program beside its helper.
        if [Path::new("/usr/lib/cairn/cairn"), Path::new("/usr/bin/cairn")].contains(&exe) {
            if Path::new("/var/lib/dpkg/info/cairn.list").is_file() {
                return Self::Dpkg;
            }
            // Only the .deb and the .rpm install it there; where rpm has its list differs.
            return Self::Rpm;
        }
        Self::Unknown
    }

    /// Names the owner for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Script(_) => "install.sh",
            Self::Dpkg => "dpkg",
            Self::Rpm => "rpm",
            Self::Pip => "pip or uv",
            Self::Npm => "npm",
            Self::Homebrew => "Homebrew",
            Self::Nix => "Nix",
            Self::Cargo => "cargo install",
            Self::Sources => "a build of the sources",
            Self::Unknown => "an unknown installer",
        }
    }

    /// Returns the line that updates the program.
    pub fn update_line(&self) -> &'static str {
        match self {
            Self::Script(_) => "cairn update",
            Self::Dpkg => "sudo apt install ./cairn_VERSION-1_ARCH.deb",
            Self::Rpm => "sudo dnf install ./cairn-VERSION-1.ARCH.rpm",
            Self::Pip => "pip install --upgrade cairn-agent (or: uv tool upgrade cairn-agent)",
            Self::Npm => "npm install --global cairn-agent@latest",
            Self::Homebrew => "brew upgrade cairn",
            Self::Nix => "nix profile upgrade cairn",
            Self::Cargo => "cargo install cairn-daemon",
            Self::Sources => "git pull && cargo build --release",
            Self::Unknown => "install it again the way it was installed",
        }
    }

    /// Returns the line that removes the program.
    pub fn remove_line(&self) -> &'static str {
        match self {
            Self::Script(_) => "cairn uninstall",
            Self::Dpkg => "sudo apt purge cairn",
            Self::Rpm => "sudo dnf remove cairn",
            Self::Pip => "pip uninstall cairn-agent (or: uv tool uninstall cairn-agent)",
            Self::Npm => "npm uninstall --global cairn-agent",
            Self::Homebrew => "brew uninstall cairn",
            Self::Nix => "nix profile remove cairn",
            Self::Cargo => "cargo uninstall cairn-daemon",
            Self::Sources => "cargo clean",
            Self::Unknown => "remove its file",
        }
    }
}

/// True if the package `cairn-agent` of Python is installed below the prefix.
fn has_wheel(prefix: &Path) -> bool {
    let folders = ["lib", "lib64"].map(|lib| prefix.join(lib));
    let pythons = folders.iter().flat_map(|lib| std::fs::read_dir(lib).into_iter().flatten());
    pythons.flatten().any(|python| {
        ["site-packages", "dist-packages"].iter().any(|packages| {
            let entries = std::fs::read_dir(python.path().join(packages));
            entries.into_iter().flatten().flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("cairn_agent-") && name.ends_with(".dist-info")
            })
        })
    })
}

/// Removes the files that `install.sh` recorded below its prefix, and returns those that it
/// removed. A folder with other files remains.
///
/// # Errors
/// An unreadable list, or a file that cannot be removed.
pub fn remove_installed(prefix: &Path) -> std::io::Result<Vec<PathBuf>> {
    let list = std::fs::read_to_string(prefix.join(RECEIPT))?;
    let mut removed = Vec::new();
    for line in list.lines() {
        let path = Path::new(line);
        // The list is a file that others may have changed.
        if !path.components().all(|part| matches!(part, std::path::Component::Normal(_))) {
            continue;
        }
        let path = prefix.join(path);
        if line.ends_with('/') {
            let _has_other_files = std::fs::remove_dir(&path);
            continue;
        }
        match std::fs::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(std::io::Error::new(e.kind(), format!("{}: {e}", path.display())));
            }
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn owner_is_determined_by_path_and_neighbours() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        file(&at("script/share/doc/cairn/installed-files"));
        file(&at("venv/lib/python3.12/site-packages/cairn_agent-0.1.0.dist-info/RECORD"));
        file(&at("target/CACHEDIR.TAG"));
        file(&at("home/.cargo/bin/cairn"));
        for (exe, owner) in [
            (at("script/bin/cairn"), Owner::Script(at("script"))),
            (at("venv/bin/cairn"), Owner::Pip),
            (at("target/release/cairn"), Owner::Sources),
            (at("target/x86_64-unknown-linux-gnu/dist/cairn"), Owner::Sources),
            (at("home/.cargo/bin/cairn"), Owner::Cargo),
            ("/p/node_modules/@cairn/linux/bin/cairn".into(), Owner::Npm),
            ("/nix/store/x-cairn/bin/cairn".into(), Owner::Nix),
            ("/opt/homebrew/Cellar/cairn/1/bin/cairn".into(), Owner::Homebrew),
            (at("elsewhere/cairn"), Owner::Unknown),
        ] {
            assert_eq!(Owner::of(&exe), owner, "{}", exe.display());
        }
    }

    #[test]
    fn listed_files_are_removed_and_others_remain() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        let prefix = dir.path().join("prefix");
        for path in [&outside, &prefix.join("bin/cairn"), &prefix.join("share/x/foreign")] {
            file(path);
        }
        std::fs::create_dir_all(prefix.join("share/doc/cairn")).unwrap();
        let list = format!("bin/cairn\n../outside\n{RECEIPT}\nshare/doc/cairn/\nshare/x/\nbin/\n");
        std::fs::write(prefix.join(RECEIPT), list).unwrap();
        assert_eq!(remove_installed(&prefix).unwrap().len(), 2);
        assert!(outside.exists() && prefix.join("share/x/foreign").exists());
        assert!(!prefix.join("bin").exists() && !prefix.join("share/doc/cairn").exists());
        assert!(remove_installed(&prefix).is_err());
    }
}
