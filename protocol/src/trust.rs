//! Trust in what a folder brings: by its content, never by its path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thing that a folder brings and that runs, or that tells an agent what to do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrustKind {
    /// Instructions for agents: `AGENTS.md` or `CLAUDE.md`.
    Instructions,
    /// The folder's own configuration, which may then loosen safety: `.cairn.json`.
    Settings,
    /// Hooks of a settings file, with the scripts that they name.
    Hooks,
    /// An agent plugin with all of its files.
    Plugin,
    /// A skill with all of its files.
    Skill,
}

impl TrustKind {
    /// Returns the name for people, for one or several.
    pub fn noun(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Instructions, 1) => "instruction file",
            (Self::Instructions, _) => "instruction files",
            (Self::Settings, 1) => "configuration",
            (Self::Settings, _) => "configurations",
            (Self::Hooks, 1) => "file of hooks",
            (Self::Hooks, _) => "files of hooks",
            (Self::Plugin, 1) => "plugin",
            (Self::Plugin, _) => "plugins",
            (Self::Skill, 1) => "skill",
            (Self::Skill, _) => "skills",
        }
    }
}

/// The state of an item compared with what was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// Its content is the trusted one.
    Trusted,
    /// It was never trusted.
    New,
    /// Its content differs from the trusted one: it is not used.
    Changed,
    /// This content was refused: it is not used, and not asked about again.
    Refused,
}

/// One item of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustItem {
    /// Kind of the item.
    pub kind: TrustKind,
    /// Path of its file or folder, relative to the folder.
    pub path: String,
    /// SHA-256 of the names and contents of its files, in hexadecimal.
    pub sha256: String,
    /// State compared with the trusted content.
    pub state: TrustState,
    /// Command lines that it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Parts for other programs, such as events of theirs, which are not run here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
    /// Its files, relative to the folder.
    pub files: Vec<String>,
    /// The change from the trusted content as a unified diff, cut at 64 KiB; the complete text of
    /// an item that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Reason why it cannot be trusted, such as its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The trust in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FolderTrust {
    /// Absolute path of the folder, or of the repository's for one of its work trees.
    pub folder: String,
    /// True if the user trusted the folder by its content before.
    pub is_known: bool,
    /// True if `trust.folders` of the configuration names it, or a folder around it: instructions,
    /// skills and language servers are used then, and nothing that runs by itself.
    pub is_configured: bool,
    /// Everything that it brings.
    pub items: Vec<TrustItem>,
}

impl FolderTrust {
    /// Returns the items that were not decided about yet, and that can be.
    pub fn undecided(&self) -> impl Iterator<Item = &TrustItem> {
        self.items.iter().filter(|item| {
            matches!(item.state, TrustState::New | TrustState::Changed) && item.problem.is_none()
        })
    }
}

impl TrustItem {
    /// Returns the item by exactly its content, for a decision about it.
    pub fn content(&self) -> TrustedContent {
        let (kind, path, sha256) = (self.kind, self.path.clone(), self.sha256.clone());
        TrustedContent { kind, path, sha256 }
    }
}

/// Parameters of the method `trust.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustGetParams {
    /// Absolute path of the folder.
    pub folder: String,
    /// Returns the differences from the trusted contents too.
    #[serde(default)]
    pub diff: bool,
}

/// An item with exactly this content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustedContent {
    /// Kind of the item.
    pub kind: TrustKind,
    /// Path of its file or folder, relative to the folder.
    pub path: String,
    /// The SHA-256 that `trust.get` answered.
    pub sha256: String,
}

/// Parameters of the method `trust.set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustSetParams {
    /// Absolute path of the folder.
    pub folder: String,
    /// Items that are trusted from now on. Their contents must still be these.
    #[serde(default)]
    pub trust: Vec<TrustedContent>,
    /// Items that are refused: they are not asked about again until they change.
    #[serde(default)]
    pub refuse: Vec<TrustedContent>,
}

/// Parameters of the method `trust.remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustRemoveParams {
    /// Absolute path of the folder, which need not exist any more.
    pub folder: String,
}

/// Answer of the method `trust.remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustRemoved {
    /// True if the folder was trusted before.
    pub removed: bool,
}
