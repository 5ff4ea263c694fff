//! Reading files and folders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum lines of one span.
pub const MAX_SPAN_LINES: u32 = 2_000;
/// Maximum bytes of one span.
pub const MAX_SPAN_BYTES: usize = 256 * 1024;
/// Maximum entries of one listing.
pub const MAX_DIR_ENTRIES: usize = 5_000;

/// Parameters of the method `content.getSpan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpanParams {
    /// Path, absolute or relative to `root` (to the session's root in a command).
    pub path: String,
    /// Root id or root path for a relative `path`; may be omitted when only one root is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// First line, starting at 1.
    #[serde(alias = "startLine")]
    pub start: u32,
    /// Last line of the range, inclusive.
    #[serde(alias = "endLine")]
    pub end: u32,
    /// Lines of context before and after, at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Hash that a search returned; the answer then reports whether the file has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
}

/// A range of lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Path relative to its root.
    pub path: String,
    /// First line that is returned.
    pub start_line: u32,
    /// Last line returned; less than `startLine` when the file has no such line.
    pub end_line: u32,
    /// Number of lines of the file, when it was read to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u32>,
    /// Text of the lines, with invalid UTF-8 replaced.
    pub text: String,
    /// True when a limit cut the range: 2,000 lines or 256 KiB.
    pub truncated: bool,
    /// SHA-256 (hex) of the current file; absent for files over 8 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<String>,
    /// True if the file differs from the given `contentHash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
}

/// Parameters of the method `fs.listDir`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListDirParams {
    /// Path, absolute or relative to `root`.
    pub path: String,
    /// Levels below the folder, 1 to 16.
    #[serde(default = "one")]
    pub depth: u32,
    /// Root id or root path for a relative `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

fn one() -> u32 {
    1
}

/// Bounded listing of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirListing {
    /// The folder, relative to its root (`.` for the root itself).
    pub path: String,
    /// Entries sorted by path, without ignored files.
    pub entries: Vec<DirEntry>,
    /// True when the listing was cut at 5,000 entries.
    pub truncated: bool,
    /// True if rules hide some of the requested paths, which are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restricted: bool,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirEntry {
    /// Path relative to the root.
    pub path: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes, for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Kind of a listing entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file on disk.
    File,
    /// A folder on the disk.
    Dir,
    /// A symbolic link, not followed.
    Symlink,
    /// A socket, device or pipe.
    Other,
}
