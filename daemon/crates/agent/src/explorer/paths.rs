//! Properties of a file that follow from its path.

/// Folders whose content is not the product itself.
const SECONDARY: &[&str] = &[
    "test",
    "tests",
    "testing",
    "testdata",
    "test-data",
    "__tests__",
    "spec",
    "specs",
    "e2e",
    "fixtures",
    "fixture",
    "mocks",
    "example",
    "examples",
    "sample",
    "samples",
    "demo",
    "demos",
    "playground",
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "fuzz",
    "vendor",
    "vendored",
    "third_party",
    "third-party",
    "thirdparty",
    "deps",
    "external",
    "extern",
    "node_modules",
    "docs",
    "doc",
    "documentation",
    "site",
    "website",
    "dist",
    "build",
    "out",
    "target",
    "generated",
    "template",
    "templates",
    "skeleton",
    "contrib",
    "archive",
    "legacy",
    "hack",
];

/// Returns the components of a path.
pub fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty() && *c != ".")
}

/// Returns the folder of a path; empty for the root.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Returns the last component.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the number of folders above a file.
pub fn depth(path: &str) -> usize {
    parts(path).count().saturating_sub(1)
}

/// Returns true if a file is test, example, documentation, vendored or generated, by its folders
/// and name.
pub fn secondary(path: &str) -> bool {
    let folders: Vec<&str> = parts(folder(path)).collect();
    let name = file_name(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or("");
    folders.iter().any(|f| secondary_folder(&f.to_ascii_lowercase()))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem == "conftest"
        || ["test", "tests", "benchmark"].iter().any(|e| stem.ends_with(e))
            && name.ends_with(".java")
}

fn secondary_folder(name: &str) -> bool {
    SECONDARY.contains(&name)
        || ["test-", "test_", "tests-", "template-", "docs_", "docs-"]
            .iter()
            .any(|s| name.starts_with(s))
        || ["-test", "_test", "-tests", "_tests"].iter().any(|s| name.ends_with(s))
}

/// Joins a folder and a relative path, resolving `.` and `..`; `None` when it leaves the root.
pub fn join(folder: &str, relative: &str) -> Option<String> {
    let mut all: Vec<&str> = parts(folder).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                all.pop()?;
            }
            part => all.push(part),
        }
    }
    (!all.is_empty()).then(|| all.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_secondary_folders() {
        for path in [
            "tests/it/main.rs",
            "a/examples/x.rs",
            "src/foo_test.go",
            "docs/conf.py",
            "pkg/x.spec.ts",
            "test_app.py",
        ] {
            assert!(secondary(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "cmd/contest/main.go",
            "latest/app.py",
            "src/attestation.rs",
            "server/testimony.py",
        ] {
            assert!(!secondary(path), "{path}");
        }
    }

    #[test]
    fn joined_paths_stay_inside_base() {
        assert_eq!(join("a/b", "../c.js").as_deref(), Some("a/c.js"));
        assert_eq!(join("", "./lib/x.js").as_deref(), Some("lib/x.js"));
        assert_eq!(join("a", "../../x"), None);
    }
}
