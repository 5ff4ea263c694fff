//! Facts about the project that its packages state.

use std::path::{Path, PathBuf};

use crate::{files, process};

/// Address of the project; releases are published below it. Set in the workspace's `Cargo.toml`.
pub const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
pub const LICENCE: &str = env!("CARGO_PKG_LICENSE");
pub const SUMMARY: &str =
    "Local daemon that gives coding agents search, exploration and audited tools";
/// Name on PyPI and npm, where `cairn` belongs to other projects. The command is `cairn` everywhere.
pub const REGISTRY_NAME: &str = "cairn-agent";

/// Platforms that have packages.
pub const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-gnu",
        name: "x86_64-linux",
        machine: "x86_64",
        debian: "amd64",
        node: ("linux", "x64"),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        name: "aarch64-linux",
        machine: "aarch64",
        debian: "arm64",
        node: ("linux", "arm64"),
    },
    Target {
        triple: "x86_64-apple-darwin",
        name: "x86_64-macos",
        machine: "x86_64",
        debian: "",
        node: ("darwin", "x64"),
    },
    Target {
        triple: "aarch64-apple-darwin",
        name: "aarch64-macos",
        machine: "arm64",
        debian: "",
        node: ("darwin", "arm64"),
    },
];

/// A platform under the names that the package formats use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub triple: &'static str,
    /// Part of the archive's name.
    pub name: &'static str,
    /// Machine in RPM's names and in tags of wheels.
    pub machine: &'static str,
    /// Debian's name of the architecture; empty where there is no such package.
    pub debian: &'static str,
    /// Node's `process.platform` and `process.arch`.
    pub node: (&'static str, &'static str),
}

impl Target {
    /// Returns the target of a triple.
    ///
    /// # Errors
    /// The list of targets, if it is none of them.
    pub fn named(triple: &str) -> Result<Self, String> {
        TARGETS.iter().copied().find(|target| target.triple == triple).ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
            format!("there is no package for {triple}; there is one for {}", known.join(", "))
        })
    }

    /// Returns the target that this program was built for.
    pub fn host() -> Result<Self, String> {
        let system = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-gnu" };
        Self::named(&format!("{}-{system}", std::env::consts::ARCH))
    }

    pub fn is_linux(&self) -> bool {
        self.node.0 == "linux"
    }

    /// Returns the name of npm's package with the program for this platform.
    pub fn npm_package(&self) -> String {
        format!("{REGISTRY_NAME}-{}-{}", self.node.0, self.node.1)
    }
}

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Returns the maintainer of the packages: the owner of the repository.
pub fn maintainer() -> String {
    let owner =
        REPOSITORY.trim_start_matches("https://github.com/").split('/').next().unwrap_or_default();
    format!("The Cairn developers <{owner}@users.noreply.github.com>")
}

/// Returns the time that packages carry, in seconds since 1970: `SOURCE_DATE_EPOCH`, else that of
/// the last commit, so that a package built twice is the same.
pub fn source_date() -> Result<u64, String> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().map_err(|_| format!("SOURCE_DATE_EPOCH is no number: {text}"));
    }
    let text = process::output("git", &["log", "-1", "--format=%ct"], &root())?;
    text.trim().parse().map_err(|_| format!("git printed no time: {text}"))
}

/// Reads a template of `packaging/` and fills in the words between at-signs.
pub fn template(path: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut text = files::read_text(&root().join("packaging").join(path))?;
    let common = [("@REPOSITORY@", REPOSITORY), ("@SUMMARY@", SUMMARY), ("@LICENCE@", LICENCE)];
    for (word, value) in common.iter().chain(values) {
        text = text.replace(word, value);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_the_configured_repository() {
        let documents = [
            "README.md",
            "docs/guide/install.md",
            "packaging/npm/cairn.cjs",
            "client-sdk/python/pyproject.toml",
            "client-sdk/typescript/package.json",
            "flake.nix",
            "daemon/Cargo.toml",
        ];
        for document in documents {
            let text = std::fs::read_to_string(root().join(document)).unwrap();
            for (at, _) in text.match_indices("https://github.com/") {
                let rest = &text[at..];
                let is_other = rest.starts_with("https://github.com/NixOS/");
                assert!(
                    rest.starts_with(REPOSITORY) || is_other,
                    "{document}: {}",
                    &rest[..60.min(rest.len())]
                );
            }
        }
    }

    #[test]
    fn unknown_platform_is_refused_with_the_known_ones() {
        let message = Target::named("riscv64gc-unknown-linux-gnu").unwrap_err();
        assert!(
            message.contains("riscv64gc") && message.contains("aarch64-unknown-linux-gnu"),
            "{message}"
        );
    }
}
