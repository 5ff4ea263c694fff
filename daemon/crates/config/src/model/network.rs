//! The network that commands and web tools may reach, by domain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Domains of a package registry or a host of repositories, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPreset {
    /// crates.io, for cargo.
    Crates,
    /// The registry of npm, and that of Yarn.
    Npm,
    /// PyPI, for pip and uv.
    Pypi,
    /// The proxy and the checksums of Go modules.
    Go,
    /// Maven Central, and the plugins of Gradle.
    Maven,
    /// RubyGems.
    Rubygems,
    /// GitHub, for git over HTTPS and for releases.
    Github,
}

impl NetworkPreset {
    /// Returns the domains, as patterns.
    pub fn domains(self) -> &'static [&'static str] {
        match self {
            Self::Crates => &["crates.io", "index.crates.io", "static.crates.io"],
            Self::Npm => &["registry.npmjs.org", "registry.yarnpkg.com"],
            Self::Pypi => &["pypi.org", "files.pythonhosted.org"],
            Self::Go => &["proxy.golang.org", "sum.golang.org"],
            Self::Maven => &[
                "repo1.maven.org",
                "repo.maven.apache.org",
                "plugins.gradle.org",
                "services.gradle.org",
            ],
            Self::Rubygems => &["rubygems.org", "index.rubygems.org"],
            Self::Github => &[
                "github.com",
                "api.github.com",
                "codeload.github.com",
                "objects.githubusercontent.com",
                "raw.githubusercontent.com",
                "release-assets.githubusercontent.com",
            ],
        }
    }
}

section! {
    /// Domains that commands, and then also the web tools, may reach in turns of a chat.
    NetworkConfig "camelCase" {
        /// Domains that may be reached: `crates.io`, or `*.npmjs.org` for all beneath it.
        domains: Vec<String> = vec![],
        /// Registries that may be reached: `crates`, `npm`, `pypi`, `go`, `maven`, `rubygems`,
        /// `github`.
        presets: Vec<NetworkPreset> = vec![],
        /// Ports that may be reached besides 80 and 443.
        ports: Vec<u16> = vec![],
        /// Prompts the user for a domain in no list; refuses it otherwise.
        ask: bool = true,
        /// Seconds until an unanswered prompt for a domain counts as refused.
        ask_timeout_seconds: u64 = 120,
    }
}
