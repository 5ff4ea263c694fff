//! Versions of this program and of the daemon that it meets.

/// Version of this program.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// Returns true if both are versions and `a` precedes `b`. A suffix such as `-rc.1` precedes the
/// release.
pub fn is_older(a: &str, b: &str) -> bool {
    matches!((parse(a), parse(b)), (Some(a), Some(b)) if a < b)
}

fn parse(version: &str) -> Option<([u64; 3], bool)> {
    let version = version.split('+').next().unwrap_or_default();
    let (numbers, is_release) = match version.split_once('-') {
        Some((numbers, _)) => (numbers, false),
        None => (version, true),
    };
    let mut parts = numbers.split('.').map(str::parse);
    let numbers = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
    parts.next().is_none().then_some((numbers, is_release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (a, b, older) in [
            ("0.1.0", "0.1.1", true),
            ("0.9.0", "0.10.0", true),
            ("0.1.0-rc.1", "0.1.0", true),
            ("0.1.0", "0.1.0", false),
            ("1.0.0", "0.9.9", false),
            ("of unknown version", "0.1.0", false),
            ("0.1", "0.1.1", false),
            ("0.1.0+build", "0.1.1", true),
        ] {
            assert_eq!(is_older(a, b), older, "{a} {b}");
        }
    }
}
