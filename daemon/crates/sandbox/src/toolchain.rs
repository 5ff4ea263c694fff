//! Folders of the home folder that contain programs which commands need.

use std::path::{Path, PathBuf};

/// A toolchain in the home folder: its folder of programs, the folders that belong to it, the
/// variable that names it.
type Known = (&'static str, &'static [&'static str], Option<(&'static str, &'static str)>);

const KNOWN: &[Known] = &[
    (".cargo/bin", &[".cargo", ".rustup"], Some(("CARGO_HOME", ".cargo"))),
    (".rustup", &[".rustup"], Some(("RUSTUP_HOME", ".rustup"))),
    (".pyenv", &[".pyenv"], Some(("PYENV_ROOT", ".pyenv"))),
    (".rbenv", &[".rbenv"], Some(("RBENV_ROOT", ".rbenv"))),
    (".nvm", &[".nvm"], Some(("NVM_DIR", ".nvm"))),
    (".volta", &[".volta"], Some(("VOLTA_HOME", ".volta"))),
    (".asdf", &[".asdf"], None),
    (".sdkman", &[".sdkman"], None),
    (".bun", &[".bun"], None),
    (".deno", &[".deno"], None),
    (".ghcup", &[".ghcup"], None),
    ("go/bin", &["go"], None),
    (".local/bin", &[".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx"], None),
    (".nix-profile", &[".nix-profile"], None),
];

/// Files in them that contain keys.
pub(super) const SECRETS: &[&str] =
    &[".cargo/credentials", ".cargo/credentials.toml", ".nvm/.npmrc"];

/// The toolchains that the search path leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Toolchains {
    /// Readable folders of the toolchains.
    pub folders: Vec<PathBuf>,
    /// Environment variables that name them.
    pub env: Vec<(String, String)>,
}

/// Finds the toolchains in `home` that `path` leads to. `exists` says if a path exists.
pub(super) fn toolchains(
    home: &Path,
    path: &[PathBuf],
    exists: impl Fn(&Path) -> bool,
) -> Toolchains {
    let mut result = Toolchains::default();
    let mut used: Vec<&str> = path
        .iter()
        .filter_map(|dir| {
            let inner = dir.strip_prefix(home).ok()?;
            KNOWN.iter().find(|(bin, ..)| inner.starts_with(bin)).map(|(bin, ..)| *bin)
        })
        .collect();
    if used.contains(&".cargo/bin") {
        used.push(".rustup");
    }
    for (_, folders, env) in KNOWN.iter().filter(|(bin, ..)| used.contains(bin)) {
        for folder in folders.iter().map(|f| home.join(f)) {
            if exists(&folder) && !result.folders.contains(&folder) {
                result.folders.push(folder);
            }
        }
        if let Some((name, folder)) = env {
            result.env.push(((*name).into(), home.join(folder).to_string_lossy().into_owned()));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_toolchains_on_search_path_are_readable() {
        let home = Path::new("/home/a");
        let find = |dirs: &[&str]| {
            toolchains(home, &dirs.iter().map(PathBuf::from).collect::<Vec<_>>(), |_| true)
        };
        assert_eq!(find(&["/usr/bin", "/home/a/bin", "/home/a"]), Toolchains::default());
        let rust = find(&["/home/a/.cargo/bin"]);
        assert_eq!(rust.folders, [Path::new("/home/a/.cargo"), Path::new("/home/a/.rustup")]);
        assert_eq!(rust.env[0], ("CARGO_HOME".into(), "/home/a/.cargo".into()));
        assert_eq!(find(&["/home/a/.pyenv/shims"]).folders, [Path::new("/home/a/.pyenv")]);
        assert_eq!(
            find(&["/home/a/.nvm/versions/node/v22/bin"]).folders,
            [Path::new("/home/a/.nvm")]
        );
        assert_eq!(find(&["/home/ab/.cargo/bin"]), Toolchains::default());
    }
}
