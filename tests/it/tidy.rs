//! House rules that no compiler checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Crates that each crate may import, in addition to `cairn-protocol`, which contains only types
/// and is available to all.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("cairn-protocol", &[]),
    ("cairn-pairing", &[]),
    ("cairn-config", &[]),
    ("cairn-sqlite", &[]),
    ("cairn-parsing", &[]),
    (
        "cairn-test-support",
        &["cairn-engine", "cairn-harness", "cairn-code-search", "cairn-workspace"],
    ),
    ("cairn-workspace", &[]),
    ("cairn-trace", &["cairn-sqlite"]),
    ("cairn-symbols", &["cairn-parsing"]),
    ("cairn-code-graph", &["cairn-parsing", "cairn-symbols"]),
    ("cairn-index-base", &["cairn-sqlite", "cairn-workspace"]),
    ("cairn-tokenizer", &[]),
    ("cairn-text-index", &["cairn-index-base", "cairn-sqlite", "cairn-tokenizer"]),
    ("cairn-trigram-index", &["cairn-index-base", "cairn-sqlite", "cairn-workspace"]),
    ("cairn-vectors", &["cairn-index-base", "cairn-tokenizer"]),
    (
        "cairn-code-search",
        &[
            "cairn-code-graph",
            "cairn-index-base",
            "cairn-sqlite",
            "cairn-symbols",
            "cairn-text-index",
            "cairn-tokenizer",
            "cairn-trigram-index",
            "cairn-vectors",
            "cairn-workspace",
        ],
    ),
    (
        "cairn-fleet",
        &[
            "cairn-engine",
            "cairn-harness",
            "cairn-methods",
            "cairn-sqlite",
            "cairn-trace",
            "cairn-transport",
            "cairn-workspace",
        ],
    ),
    ("cairn-command", &["cairn-parsing"]),
    ("cairn-sandbox", &["cairn-workspace"]),
    (
        "cairn-harness",
        &["cairn-command", "cairn-sandbox", "cairn-sqlite", "cairn-trace", "cairn-workspace"],
    ),
    ("cairn-tools", &["cairn-harness", "cairn-knowledge", "cairn-code-search", "cairn-workspace"]),
    ("cairn-model-presets", &[]),
    ("cairn-schedule", &[]),
    ("cairn-llm", &["cairn-model-presets"]),
    ("cairn-knowledge", &[]),
    (
        "cairn-engine",
        &[
            "cairn-harness",
            "cairn-llm",
            "cairn-code-search",
            "cairn-schedule",
            "cairn-sqlite",
            "cairn-trace",
            "cairn-workspace",
        ],
    ),
    ("cairn-agent", &["cairn-engine"]),
    ("cairn-methods", &["cairn-engine"]),
    ("cairn-transport", &["cairn-explore-report", "cairn-methods", "cairn-pairing"]),
    ("cairn-client-sdk", &["cairn-pairing"]),
    ("cairn-explore-report", &[]),
    ("cairn-search-metrics", &[]),
    (
        "cairn-command-line",
        &[
            "cairn-client-sdk",
            "cairn-config",
            "cairn-explore-report",
            "cairn-model-presets",
            "cairn-schedule",
            "cairn-search-metrics",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that may import everything.
const COMPOSERS: &[&str] = &["cairn-daemon", "cairn-embedded", "cairn-tests", "cairn-bench"];

/// Crates that may depend on a heavy library.
const OWNERS: &[(&str, &[&str])] = &[
    ("axum", &["cairn-transport"]),
    ("async-nats", &["cairn-fleet"]),
    ("hyper", &["cairn-harness"]),
    ("tower-http", &["cairn-transport"]),
    ("tokio-tungstenite", &["cairn-transport", "cairn-client-sdk"]),
    ("jsonrpsee-core", &["cairn-client-sdk"]),
    ("jsonrpsee-types", &["cairn-methods", "cairn-client-sdk"]),
    ("rusqlite", &["cairn-sqlite"]),
    ("git2", &["cairn-workspace"]),
    ("notify", &["cairn-workspace"]),
    ("cronexpr", &["cairn-schedule"]),
    ("tokei", &["cairn-workspace"]),
    ("cap-std", &["cairn-workspace"]),
    ("tree-sitter", &["cairn-code-graph", "cairn-parsing", "cairn-symbols", "cairn-command"]),
    ("mdns-sd", &["cairn-daemon", "cairn-client-sdk"]),
    ("clap", &["cairn-command-line", "cairn-daemon", "xtask"]),
    ("clap_mangen", &["cairn-command-line"]),
    ("indicatif", &["cairn-command-line"]),
    ("syntect", &["cairn-command-line"]),
    ("two-face", &["cairn-command-line"]),
    ("boon", &["cairn-harness"]),
    // The daemon uses it for requests outside of any tool: telemetry.
    ("reqwest", &["cairn-llm", "cairn-harness", "cairn-daemon"]),
    ("opentelemetry", &["cairn-daemon"]),
    ("llama-cpp-2", &["cairn-llm"]),
    ("candle-core", &["cairn-vectors", "cairn-code-search"]),
    ("candle-nn", &["cairn-vectors"]),
    ("tokenizers", &["cairn-vectors"]),
    // In tests only: the real tokenizers that the estimate is compared with.
    ("tiktoken-rs", &["cairn-tokenizer", "cairn-code-search"]),
    ("landlock", &["cairn-sandbox"]),
    ("seccompiler", &["cairn-sandbox"]),
    ("reedline", &["cairn-command-line"]),
    ("inquire", &["cairn-command-line"]),
    ("fuzzy-matcher", &["cairn-command-line"]),
    ("terminal-colorsaurus", &["cairn-command-line"]),
    ("html2text", &["cairn-tools"]),
    ("crossterm", &["cairn-command-line"]),
    // The server is part of the transport; the client is part of the daemon, which starts servers
    // that outlive every permit.
    ("rmcp", &["cairn-transport", "cairn-daemon"]),
    ("spake2", &["cairn-pairing"]),
    ("qrcode", &["cairn-command-line"]),
    ("rcgen", &["cairn-pairing"]),
    ("tokio-rustls", &["cairn-transport", "cairn-client-sdk", "cairn-pairing"]),
    ("dagre", &["cairn-command-line"]),
    ("jsonc-parser", &["cairn-command-line"]),
    ("toml_edit", &["cairn-command-line"]),
];

/// Files that may check for macOS at compile time.
const MACOS_FILES: &[&str] = &[];

/// Licences that a dependency may have; one of its alternatives is enough.
const LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "BSL-1.0",
    "MPL-2.0",
    "CDLA-Permissive-2.0",
];

/// Maximum lines of a file.
const FILE_LIMIT: usize = 600;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).exec().unwrap()
}

/// Returns every Rust file of the project, relative to its root.
pub fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && !name.starts_with('.') && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.insert(relative, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn crates_import_only_what_they_may() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if COMPOSERS.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(n, _)| *n == name) else {
            wrong.push(format!("{name} is not in the import table"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let other = dependency.name.as_str();
            let internal = other.starts_with("cairn-") && other != "cairn-protocol";
            if internal && !allowed.contains(&other) {
                wrong.push(format!("{name} imports {other}"));
            }
            if let Some((_, owners)) = OWNERS.iter().find(|(n, _)| *n == other)
                && !owners.contains(&name)
            {
                wrong.push(format!("{name} depends on {other}, which belongs to {owners:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn folders_are_named_like_their_crates() {
    for package in metadata().workspace_packages() {
        let folder = package.manifest_path.parent().unwrap().file_name().unwrap();
        // Some packages have another name than their library, which belongs to another project on
        // crates.io.
        let library = package.targets.iter().find(|target| target.is_lib());
        let name = library.map_or_else(|| package.name.to_string(), |t| t.name.replace('_', "-"));
        let prefixed = format!("cairn-{folder}");
        // The second one has the name that cargo's users know.
        let expected = if matches!(folder, "cairn" | "xtask") { folder } else { prefixed.as_str() };
        assert_eq!(name, expected);
    }
}

#[test]
fn only_the_edges_name_rpc() {
    let edges = [
        "protocol/",
        "daemon/crates/api/",
        "daemon/crates/transport/",
        "client-sdk/src/",
        "tests/",
        "bench/",
    ];
    for (path, text) in sources() {
        let names = text.contains("protocol::rpc") || text.contains("rpc::EVENT");
        assert!(!names || edges.iter().any(|e| path.starts_with(e)), "{path} names protocol::rpc");
    }
}

#[test]
fn files_have_a_purpose_line_and_are_small() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//! ") {
            wrong.push(format!("{path}: the first line is not `//! …`"));
        }
        let lines = text.lines().count();
        if lines > FILE_LIMIT {
            wrong.push(format!("{path}: {lines} lines"));
        }
        let stem = Path::new(&path).file_stem().unwrap().to_string_lossy().into_owned();
        if ["utils", "util", "helpers", "helper", "common", "manager", "misc"]
            .contains(&stem.as_str())
        {
            wrong.push(format!("{path}: the name says nothing"));
        }
        if text.contains("target_os = \"macos\"")
            && text.contains("#[cfg(")
            && !text.contains("cfg!(target_os")
        {
            let listed = MACOS_FILES.contains(&path.as_str()) || path.ends_with("tidy.rs");
            if !listed {
                wrong.push(format!("{path}: asks for macOS at compile time"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Code that may inspect the text of a failure, with the reason.
const READS_ERROR_TEXTS: &[(&str, &str)] = &[
    ("daemon/crates/sandbox/src/run.rs", "the words of bubblewrap, which has no exit code for it"),
    ("daemon/crates/llm/src/program.rs", "the last words of a program that is not ours"),
    ("daemon/crates/tools/src/evaluate.rs", "the words of a launcher that finds no program"),
];

/// Methods that inspect a text.
const LOOKS: &[&str] = &[".contains(", ".starts_with(", ".ends_with(", ".find(", ".strip_prefix("];

/// Names of texts that hold the reason for a decision or failure.
const REASON_TEXTS: &[&str] = &[
    "message",
    "rule",
    "reason",
    "why",
    "cause",
    "error",
    "failure",
    "err",
    "e.to_string()",
    "stderr.text",
];

/// Calls between a text and the inspecting method.
const ADAPTORS: &[&str] =
    &[".as_str()", ".as_ref()", ".to_lowercase()", ".to_ascii_lowercase()", ".to_string()"];

/// True for a line that inspects the text of an error, or of the rule that decided.
fn reads_reason_text(line: &str) -> bool {
    let reads = |at: usize| {
        let mut before = &line[..at];
        while let Some(shorter) = ADAPTORS.iter().find_map(|adaptor| before.strip_suffix(adaptor)) {
            before = shorter;
        }
        REASON_TEXTS.iter().any(|text| {
            let name = before.strip_suffix(text.trim_end_matches(".to_string()"));
            let rendered = !text.ends_with(".to_string()") || line[..at].ends_with(".to_string()");
            let bounded = |rest: &str| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            rendered && name.is_some_and(bounded)
        })
    };
    !line.trim_start().starts_with("//")
        && LOOKS.iter().any(|look| line.match_indices(look).any(|(at, _)| reads(at)))
}

/// Returns the code of a file without its tests, with a chain of calls on one line: number of its
/// first line, and text.
fn statements(code: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    for (at, line) in code.split("#[cfg(test)]").next().unwrap_or_default().lines().enumerate() {
        match all.last_mut() {
            Some((_, before)) if line.trim_start().starts_with('.') => {
                before.push_str(line.trim_start())
            }
            _ => all.push((at + 1, line.to_owned())),
        }
    }
    all
}

#[test]
fn looks_into_reason_texts_are_recognised() {
    for line in [
        "if decision.rule.starts_with(\"default:\") {",
        "failure.message.contains(\"x\")",
        "error.to_string().to_lowercase().contains(\"x\")",
        "e.to_string().ends_with('x')",
        "entry.reason.as_str().strip_prefix(\"x\")",
    ] {
        assert!(reads_reason_text(line), "{line}");
    }
    for line in [
        "rules.contains(&rule)",
        "[\"a\"].contains(&reason.as_str())",
        "// rule.starts_with(",
        "e.find(x)",
    ] {
        assert!(!reads_reason_text(line), "{line}");
    }
    assert_eq!(statements("a\n    .b()\nc"), [(1, "a.b()".to_owned()), (3, "c".to_owned())]);
}

// W3
#[test]
fn no_code_decides_by_the_text_of_an_error() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let of_tests = ["/tests/", "tests/it/", "tests/conformance/", "/examples/", "bench/"];
        if of_tests.iter().any(|part| path.contains(part) || path.starts_with(part))
            || path.ends_with("tests.rs")
        {
            continue;
        }
        if READS_ERROR_TEXTS.iter().any(|(listed, _)| path == *listed) {
            continue;
        }
        let lines = statements(&text).into_iter().filter(|(_, line)| reads_reason_text(line));
        wrong.extend(lines.map(|(at, line)| format!("{path}:{at}: {}", line.trim())));
    }
    assert!(wrong.is_empty(), "give the error a type that says it: {wrong:#?}");
}

/// Folders whose public functions fail with their own error type, and exceptions below them.
const TYPED_ERRORS: &[(&str, &[&str])] = &[
    ("daemon/crates/config/src/", &[]),
    ("daemon/crates/llm/src/", &["daemon/crates/llm/src/scripted/"]),
    ("daemon/crates/memory/src/", &[]),
    ("daemon/crates/store/src/", &[]),
    ("daemon/crates/trace/src/", &[]),
    ("pairing/src/", &[]),
    // No caller distinguishes git's messages or the exit of a user's program.
    ("daemon/crates/workspace/src/", &["daemon/crates/workspace/src/git/"]),
];

/// Folders whose public functions never fail with a bare text.
const NO_TEXT_ERRORS: &[&str] = &[
    "daemon/crates/agent/src/",
    "daemon/crates/harness/src/",
    "daemon/crates/sandbox/src/",
    "daemon/crates/tools/src/",
];

/// Returns the public signatures of a file, each with its line number.
fn public_signatures(code: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in code.split("#[cfg(test)]").next().unwrap_or_default().lines().enumerate() {
        let text = line.trim_start();
        if text.starts_with("pub fn ") || text.starts_with("pub async fn ") {
            all.push((at + 1, String::new()));
            open = true;
        }
        if let (true, Some((_, signature))) = (open, all.last_mut()) {
            signature.push_str(text);
            open = !line.ends_with('{') && !line.ends_with(';') && !line.ends_with('}');
        }
    }
    all
}

#[test]
fn public_functions_fail_with_types() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let typed = TYPED_ERRORS.iter().any(|(folder, others)| {
            path.starts_with(folder) && !others.iter().any(|other| path.starts_with(other))
        });
        if !typed && !NO_TEXT_ERRORS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let fails_with = |signature: &str, error: &str| {
            signature
                .split_once("->")
                .is_some_and(|(_, result)| result.contains(&format!(", {error}>")))
        };
        let is_wrong = |(_, signature): &(usize, String)| {
            fails_with(signature, "String") || (typed && fails_with(signature, "Failure"))
        };
        let found = public_signatures(&text).into_iter().filter(is_wrong);
        wrong.extend(found.map(|(at, signature)| format!("{path}:{at}: {signature}")));
    }
    assert!(wrong.is_empty(), "give the crate's error a variant for it: {wrong:#?}");
}

#[test]
fn permits_are_created_in_the_gate_alone() {
    // Its documentation shows that other code cannot create one: these lines are compiled, and must
    // fail to compile.
    let makes = |text: &str| {
        text.lines()
            .any(|line| line.contains("Permit::grant(") && !line.trim_start().starts_with("///"))
    };
    let makers: Vec<String> = sources()
        .into_iter()
        .filter(|(path, text)| makes(text) && !path.ends_with("tidy.rs"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(makers, ["daemon/crates/harness/src/gate.rs"]);
}

#[test]
fn the_map_names_every_crate() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for package in metadata().workspace_packages() {
        let folder =
            package.manifest_path.parent().unwrap().strip_prefix(root().to_str().unwrap()).unwrap();
        assert!(map.contains(&format!("`{folder}`")), "ARCHITECTURE.md does not name `{folder}`");
    }
}

/// Returns the texts between backticks that could be paths.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let plain = |part: &&str| part.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    text.split('`').skip(1).step_by(2).filter(plain)
}

/// A path in a row or item may be relative to a folder named before it.
#[test]
fn every_path_in_the_architecture_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let starts_item = |line: &str| {
        line.starts_with(['|', '*', '#'])
            || line.split('.').next().is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let (mut missing, mut folders) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if starts_item(line) || line.is_empty() || folders.is_empty() {
            folders = vec![root(), root().join("daemon/crates")];
        }
        for path in quoted(line) {
            let is_path =
                path.contains('/') || [".rs", ".sql", ".md"].iter().any(|end| path.ends_with(end));
            let Some(found) =
                folders.iter().rev().map(|folder| folder.join(path)).find(|path| path.exists())
            else {
                if is_path && !path.starts_with('/') {
                    missing.push(format!("{path} in: {line}"));
                }
                continue;
            };
            let inside = found.ancestors().take_while(|folder| *folder != root().as_path());
            let mut inside: Vec<PathBuf> =
                inside.flat_map(|folder| [folder.join("src"), folder.to_path_buf()]).collect();
            inside.reverse();
            folders.extend(inside.into_iter().filter(|folder| folder.is_dir()));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn cargo_run_means_the_binary_of_the_readme() {
    let metadata = metadata();
    for package in metadata.workspace_default_packages() {
        let binaries = package.targets.iter().filter(|target| target.is_bin()).count();
        assert!(
            binaries < 2 || package.default_run.as_deref() == Some("cairn"),
            "{}",
            package.name
        );
    }
}

#[test]
fn dependencies_are_permissive() {
    let allowed: BTreeSet<&str> = LICENCES.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in metadata().packages.iter().filter(|p| p.source.is_some()) {
        let licence = package.license.clone().unwrap_or_default();
        // An expression is valid if one of its alternatives is, with all of its parts.
        let alternatives = licence.replace('/', " OR ").replace(['(', ')'], "");
        let fine = alternatives
            .split(" OR ")
            .any(|one| one.split(" AND ").all(|part| allowed.contains(part.trim())));
        if !fine {
            wrong.push(format!("{} {}: '{licence}'", package.name, package.version));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
