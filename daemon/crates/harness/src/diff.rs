//! Changes as unified diffs.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use similar::TextDiff;

/// Largest diff of one change that is shown, in bytes.
pub const MAX_DIFF: usize = 64 * 1024;
/// Most lines that are compared line by line; larger files are described by their sizes.
const MAX_LINES: usize = 50_000;

/// Returns the change of a file as a unified diff with three lines of context; binary and huge
/// files are described by their sizes. Truncated at `limit` bytes, with a note that says so.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>, limit: usize) -> String {
    let (from, to) = (
        before.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}")),
        after.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{path}")),
    );
    let described = |kind: &str| {
        // Two changes of equal sizes must not be equal: one may have been approved.
        let digest = hex::encode(Sha256::digest(after.unwrap_or_default()));
        format!(
            "--- {from}\n+++ {to}\n{kind}: {} to {} bytes, SHA-256 {digest}\n",
            size(before),
            size(after)
        )
    };
    let text = |bytes: Option<&[u8]>| {
        cairn_workspace::decode_text(bytes.unwrap_or_default()).map(|(_, text)| text.into_owned())
    };
    let (Some(old), Some(new)) = (text(before), text(after)) else {
        return described("binary");
    };
    if old.lines().count().max(new.lines().count()) > MAX_LINES {
        return described("large");
    }
    let diff = TextDiff::from_lines(&old, &new);
    let mut patch = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    if patch.len() > limit {
        let mut end = limit;
        while !patch.is_char_boundary(end) {
            end -= 1;
        }
        let end = patch[..end].rfind('\n').map_or(end, |at| at + 1);
        let omitted = patch[end..].lines().count();
        // Two diffs that differ in what is omitted must not be equal: one may have been approved.
        let digest = cairn_trace::digest(&patch);
        patch.truncate(end);
        let _infallible = writeln!(
            patch,
            "[{omitted} further lines of this diff are omitted; SHA-256 of all: {digest}]"
        );
    }
    patch
}

/// True if a part of the diffs was omitted because it was too long.
pub fn is_truncated(diffs: &str) -> bool {
    // No line of a diff begins like this.
    diffs.lines().any(|line| line.starts_with('[') && line.contains("of this diff are omitted"))
}

fn size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_is_accepted_by_patch() {
        let patch = unified("x.txt", Some(b"a\nb\nc\n"), Some(b"a\nB\nc\n"), MAX_DIFF);
        assert_eq!(patch, "--- a/x.txt\n+++ b/x.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert!(
            unified("n", None, Some(b"one\n"), MAX_DIFF).starts_with("--- /dev/null\n+++ b/n\n")
        );
        assert!(unified("b", Some(b"\xff"), Some(b"x"), MAX_DIFF).contains("binary: 1 to 1 bytes"));
        let wide = unified("w", Some(b"\xff\xfea\0\n\0"), Some(b"\xff\xfeb\0\n\0"), MAX_DIFF);
        assert!(wide.ends_with("-\u{feff}a\n+\u{feff}b\n"), "{wide}");
        let binary = |byte: u8| unified("b", Some(b"\xff"), Some(&[0xff, byte]), MAX_DIFF);
        assert_ne!(binary(1), binary(2));
        let long = unified("l", None, Some("line\n".repeat(1000).as_bytes()), 200);
        assert!(long.len() < 400 && is_truncated(&long) && !is_truncated(&patch), "{long}");
        assert!(long.contains("\n[974 further lines of this diff are omitted;"), "{long}");
        let other = format!("{}end\n", "line\n".repeat(999));
        assert_ne!(unified("l", None, Some(other.as_bytes()), 200), long);
        assert_eq!(unified("s", Some(b"a"), Some(b"a"), MAX_DIFF), "");
    }
}
