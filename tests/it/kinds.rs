//! Explores of repositories of every kind return correct languages, entrypoints and commands.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::sealed::{Daemon, tree};

/// A repository and the expected content of its summary.
struct Kind {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    entrypoints: &'static [&'static str],
    build: &'static [&'static str],
    test: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "rust",
        files: &[
            ("Cargo.toml", "[workspace]\nmembers = [\"app\", \"lib\"]\nresolver = \"2\"\n"),
            (
                "app/Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nlib = { path = \"../lib\" }\n",
            ),
            ("app/src/main.rs", "fn main() {\n    println!(\"{}\", lib::answer());\n}\n"),
            (
                "lib/Cargo.toml",
                "[package]\nname = \"lib\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            (
                "lib/src/lib.rs",
                "//! The answer.\n\n/// The answer.\npub fn answer() -> u32 {\n    42\n}\n",
            ),
        ],
        entrypoints: &["app/src/main.rs", "lib/src/lib.rs"],
        build: &["cargo build"],
        test: &["cargo test"],
    },
    Kind {
        name: "python",
        files: &[
            (
                "pyproject.toml",
                "[project]\nname = \"tool\"\nversion = \"1\"\n[project.scripts]\ntool = \"tool.cli:main\"\n[tool.pytest.ini_options]\n[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n",
            ),
            ("tool/__init__.py", ""),
            ("tool/cli.py", "from tool.core import run\n\n\ndef main():\n    run()\n"),
            ("tool/core.py", "def run():\n    return 1\n"),
            (
                "tests/test_core.py",
                "from tool.core import run\n\n\ndef test_run():\n    assert run() == 1\n",
            ),
        ],
        entrypoints: &["tool/cli.py"],
        build: &[],
        test: &["pytest"],
    },
    Kind {
        name: "node",
        files: &[
            (
                "package.json",
                "{\"name\": \"mono\", \"private\": true, \"workspaces\": [\"packages/*\"], \"scripts\": {\"build\": \"tsc -b\", \"test\": \"jest\"}}\n",
            ),
            (
                "packages/server/package.json",
                "{\"name\": \"server\", \"main\": \"src/index.js\", \"scripts\": {\"start\": \"node src/index.js\"}}\n",
            ),
            (
                "packages/server/src/index.js",
                "const { greet } = require('../../shared/src/greet');\nrequire('http').createServer((q, s) => s.end(greet())).listen(8080);\n",
            ),
            (
                "packages/shared/package.json",
                "{\"name\": \"shared\", \"main\": \"src/greet.js\"}\n",
            ),
            (
                "packages/shared/src/greet.js",
                "function greet() {\n  return 'hi';\n}\nmodule.exports = { greet };\n",
            ),
        ],
        entrypoints: &["packages/server/src/index.js"],
        build: &["npm run build"],
        test: &["npm test"],
    },
    Kind {
        name: "go",
        files: &[
            ("go.mod", "module example.org/service\n\ngo 1.22\n"),
            (
                "cmd/service/main.go",
                "package main\n\nimport \"example.org/service/internal/web\"\n\nfunc main() {\n\tweb.Serve()\n}\n",
            ),
            (
                "internal/web/web.go",
                "package web\n\nimport \"net/http\"\n\n// Serve serves.\nfunc Serve() {\n\t_ = http.ListenAndServe(\":80\", nil)\n}\n",
            ),
        ],
        entrypoints: &["cmd/service/main.go"],
        build: &["go build ./..."],
        test: &["go test ./..."],
    },
    Kind {
        name: "c-make",
        files: &[
            (
                "Makefile",
                "all: prog\n\nprog: main.c list.c\n\tcc -o prog main.c list.c\n\ntest: prog\n\t./prog\n",
            ),
            ("main.c", "#include \"list.h\"\n\nint main(void) {\n    return list_length(0);\n}\n"),
            (
                "list.c",
                concat!(
                    "#include \"list.h\"\n\nint list_length(const int *list) {\n    return list ? 1 : 0;\n}\n",
                    "\n#ifdef LIST_TEST\n#include <stdio.h>\n\nstatic int cases[] = {\n    1,\n    2,\n    3,\n    4,\n    5,\n};\n",
                    "\nstatic int check(void) {\n    return list_length(cases);\n}\n\nint main(void) {\n    return check();\n}\n#endif\n",
                ),
            ),
            ("list.h", "int list_length(const int *list);\n"),
        ],
        entrypoints: &["main.c"],
        build: &["make"],
        test: &["make test"],
    },
    Kind {
        name: "c-cmake",
        files: &[
            (
                "CMakeLists.txt",
                "cmake_minimum_required(VERSION 3.20)\nproject(thing C)\nenable_testing()\nadd_executable(thing src/main.c)\nadd_test(NAME t COMMAND thing)\n",
            ),
            ("src/main.c", "int main(void) {\n    return 0;\n}\n"),
        ],
        entrypoints: &["src/main.c"],
        build: &["cmake"],
        test: &["ctest"],
    },
    Kind {
        name: "maven",
        files: &[
            (
                "pom.xml",
                "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>org.example</groupId>\n  <artifactId>shop</artifactId>\n  <version>1</version>\n</project>\n",
            ),
            (
                "src/main/java/org/example/Shop.java",
                "package org.example;\n\npublic class Shop {\n    public static void main(String[] args) {\n        System.out.println(1);\n    }\n}\n",
            ),
        ],
        entrypoints: &["src/main/java/org/example/Shop.java"],
        build: &["mvn"],
        test: &["mvn test"],
    },
    Kind {
        name: "gradle",
        files: &[
            ("settings.gradle", "rootProject.name = 'shop'\n"),
            (
                "build.gradle",
                "plugins {\n    id 'application'\n}\napplication {\n    mainClass = 'org.example.Shop'\n}\n",
            ),
            (
                "src/main/java/org/example/Shop.java",
                "package org.example;\n\npublic class Shop {\n    public static void main(String[] args) {\n        System.out.println(1);\n    }\n}\n",
            ),
        ],
        entrypoints: &["src/main/java/org/example/Shop.java"],
        build: &["gradle"],
        test: &["gradle"],
    },
    Kind {
        name: "docs",
        files: &[
            ("README.md", "# Handbook\n\nHow we work.\n"),
            ("guide/first.md", "# First\n\nText.\n"),
        ],
        entrypoints: &[],
        build: &[],
        test: &[],
    },
    Kind { name: "empty", files: &[], entrypoints: &[], build: &[], test: &[] },
];

/// Counts lines per language with tokei's library and its defaults.
fn tokei(root: &Path) -> BTreeMap<String, u64> {
    let mut languages = tokei::Languages::new();
    languages.get_statistics(&[root], &[], &tokei::Config::default());
    let lines = |l: &tokei::Language| (l.code + l.comments + l.blanks) as u64;
    languages.iter().map(|(t, l)| (t.name().to_owned(), lines(l))).filter(|(_, n)| *n > 0).collect()
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Checks that each expected command is a prefix of one that was found.
fn check_commands(kind: &Kind, commands: &Value) -> Result<(), String> {
    for (expected, actual) in [(kind.build, &commands["build"]), (kind.test, &commands["test"])] {
        let actual = strings(actual);
        for want in expected {
            if !actual.iter().any(|f| f.contains(want)) {
                return Err(format!("{}: '{want}' is not among {actual:?}", kind.name));
            }
        }
        if expected.is_empty() && kind.files.is_empty() && !actual.is_empty() {
            return Err(format!("{}: {actual:?} out of nothing", kind.name));
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_kind_of_repository_is_summarised() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    let mut wrong = Vec::new();
    for (kind, git) in KINDS.iter().map(|k| (k, true)).chain([(&KINDS[0], false)]) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(kind.name);
        std::fs::create_dir(&root).unwrap();
        tree(&root, kind.files);
        if git {
            crate::sealed::commit_all(&root);
        }
        let records = raw.explore(&root, &[]).await;
        let end = &records[records.len() - 1]["evt"];
        if end["type"] != "completed" {
            wrong.push(format!("{}: {end}", kind.name));
            continue;
        }
        let summary = &end["summary"];
        let languages: BTreeMap<String, u64> =
            serde_json::from_value(summary["languages"].clone()).unwrap();
        if languages != tokei(&root) {
            wrong.push(format!("{}: {languages:?}, tokei {:?}", kind.name, tokei(&root)));
        }
        let entrypoints = strings(&summary["entrypoints"]);
        let all = kind.entrypoints.iter().all(|e| entrypoints.iter().any(|f| f == e));
        if !all || (kind.entrypoints.is_empty() && !entrypoints.is_empty()) {
            wrong.push(format!(
                "{}: entrypoints {entrypoints:?}, not {:?}",
                kind.name, kind.entrypoints
            ));
        }
        if let Some(entry) = entrypoints.iter().find(|e| !root.join(e).exists()) {
            wrong.push(format!("{}: {entry} does not exist", kind.name));
        }
        if let Err(error) = check_commands(kind, &summary["details"]["commands"]) {
            wrong.push(error);
        }
        if summary["repoName"].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("{}: no name", kind.name));
        }
        if summary["details"]["git"].is_object() != git {
            wrong.push(format!("{} (git {git}): {}", kind.name, summary["details"]["git"]));
        }
        raw.ok("index.removeRoot", serde_json::json!({"root": root.canonicalize().unwrap()})).await;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
