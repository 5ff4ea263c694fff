//! The profile for `sandbox-exec` on macOS, as text.

use std::{fmt::Write as _, path::Path};

/// Paths of a run on macOS; all absolute and without symlinks.
#[derive(Debug, Clone, Default)]
pub struct SandboxPaths<'a> {
    /// Readable paths besides the system's.
    pub read: Vec<&'a Path>,
    pub write: Vec<&'a Path>,
    /// Never writable, even beneath a writable path; they need not exist.
    pub protected: Vec<&'a Path>,
    /// Neither readable nor writable.
    pub blocked: Vec<&'a Path>,
    /// True if the network may be used.
    pub network: bool,
}

/// Paths that every program reads.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Developer",
    "/Library/Frameworks",
    "/Library/Preferences",
    "/opt",
    "/Applications/Xcode.app",
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/db/dyld",
    "/private/var/select",
    "/dev",
    "/nix",
];

/// Returns the profile: everything is denied that is not named. Later rules win, so blocked paths
/// come last.
pub fn profile(sandbox_paths: &SandboxPaths<'_>) -> String {
    let mut out = String::from(
        "(version 1)\n(deny default)\n(allow process-fork)\n(allow process-exec)\n(allow signal (target same-sandbox))\n\
         (allow sysctl-read)\n(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n\
         (allow mach-lookup (global-name \"com.apple.system.logger\"))\n(allow ipc-posix-sem)\n\
         (allow file-read-metadata)\n(allow file-read* (literal \"/\"))\n",
    );
    let mut rule = |what: &str, path: &Path| {
        let _infallible = writeln!(out, "({what} (subpath {}))", quoted(path));
    };
    for path in SYSTEM.iter().map(Path::new).chain(sandbox_paths.read.iter().copied()) {
        rule("allow file-read*", path);
    }
    for path in &sandbox_paths.write {
        rule("allow file-read* file-write*", path);
    }
    for path in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"] {
        rule("allow file-write* file-ioctl", Path::new(path));
    }
    for path in &sandbox_paths.protected {
        rule("deny file-write*", path);
    }
    for path in &sandbox_paths.blocked {
        rule("deny file-read* file-write*", path);
    }
    out.push_str(if sandbox_paths.network {
        "(allow network*)\n(allow system-socket)\n(allow mach-lookup (global-name \"com.apple.trustd.agent\"))\n"
    } else {
        "(deny network*)\n"
    });
    out
}

/// Quotes a string for the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_rules_follow_allow_rules() {
        let paths = ["/w", "/w/.git", "/w/secret\"(allow default)\\"].map(Path::new);
        let sandbox_paths = SandboxPaths {
            write: vec![paths[0]],
            protected: vec![paths[1]],
            blocked: vec![paths[2]],
            ..SandboxPaths::default()
        };
        let text = profile(&sandbox_paths);
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(
            at("(allow file-read* file-write* (subpath \"/w\"))")
                < at("(deny file-write* (subpath \"/w/.git\"))")
        );
        at("(deny file-read* file-write* (subpath \"/w/secret\\\"(allow default)\\\\\"))");
        assert!(text.ends_with("(deny network*)\n"));
        assert!(
            profile(&SandboxPaths { network: true, ..sandbox_paths }).contains("(allow network*)")
        );
        // Parentheses outside strings are balanced.
        let mut depth = 0_i32;
        let (mut inside, mut escaped) = (false, false);
        for c in text.chars() {
            match c {
                '"' if !escaped => inside = !inside,
                '(' if !inside => depth += 1,
                ')' if !inside => depth -= 1,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
        }
        assert_eq!(depth, 0);
    }
}
