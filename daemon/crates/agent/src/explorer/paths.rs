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
    folders.iter().any(|f| secondary_folder(&f.to_ascii_lowercase()) || is_test_target(f))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || name.contains(".test.")
        || name.contains(".spec.")
        || ["conftest", "testutil", "testutils", "test_util", "test_utils", "testing"]
            .contains(&stem)
        || stem.starts_with("integrationtest")
        || ["test", "tests", "benchmark"].iter().any(|e| stem.ends_with(e))
            && name.ends_with(".java")
}

fn secondary_folder(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "test-",
        "test_",
        "tests-",
        "template-",
        "docs_",
        "docs-",
        "__test",
        "benchmark",
        "benchsuite",
        "example-",
        "sample-",
    ];
    const ENDS: &[&str] = &[
        "-test",
        "_test",
        "-tests",
        "_tests",
        ".test",
        ".tests",
        ".unittests",
        ".specs",
        " tests",
        " example",
        "-example",
        "_example",
        "-examples",
        ".benchmarks",
        ".samples",
        ".xcodeproj",
    ];
    SECONDARY.contains(&name)
        || STARTS.iter().any(|s| name.starts_with(s))
        || ENDS.iter().any(|s| name.ends_with(s))
}

/// True for a folder that is spelled as the tests of a target: `AppTests`, `commonTest`.
fn is_test_target(name: &str) -> bool {
    ["Tests", "Test", "UITests", "TestApp"].iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|rest| rest.ends_with(|c: char| c.is_lowercase() || c.is_ascii_digit()))
    })
}

/// Returns the words of a path or name in lower case: `src/HTTPServer_v2` has `src`, `http`,
/// `server` and `v2`.
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = text.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let follows_lower = before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit());
        let precedes_lower = before.is_some_and(char::is_uppercase)
            && chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        let is_hump = c.is_uppercase() && (follows_lower || precedes_lower);
        if (is_hump || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
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
            "Core.Tests/a.cs",
            "NetTests/a.swift",
            "src/commonTest/kotlin/a.kt",
            "watchOS Example/a.swift",
            "benchsuite/run",
            "src/__tests_dts__/a.ts",
        ] {
            assert!(secondary(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "cmd/contest/main.go",
            "latest/app.py",
            "Contest/app.py",
            "LATEST/app.py",
            "examplesque/app.py",
            "src/attestation.rs",
            "server/testimony.py",
        ] {
            assert!(!secondary(path), "{path}");
        }
    }

    #[test]
    fn names_have_words() {
        for (name, want) in [
            ("", vec![]),
            ("src/HTTPServer_v2", vec!["src", "http", "server", "v2"]),
            ("createPropertyValue", vec!["create", "property", "value"]),
            ("a--b.c", vec!["a", "b", "c"]),
            ("ÄpfelBaum", vec!["äpfel", "baum"]),
        ] {
            assert_eq!(words(name), want, "{name}");
        }
    }

    #[test]
    fn joined_paths_stay_inside_base() {
        assert_eq!(join("a/b", "../c.js").as_deref(), Some("a/c.js"));
        assert_eq!(join("", "./lib/x.js").as_deref(), Some("lib/x.js"));
        assert_eq!(join("a", "../../x"), None);
    }
}
