//! The committed schema files and the protocol reference match the types.
//!
//! `CAIRN_UPDATE=1 cargo test --workspace --test generated` regenerates them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn check(path: &str, content: &str) {
    let path = root().join(path);
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == content,
        "{} is stale: run CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated",
        path.display()
    );
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

#[test]
fn openrpc_document_is_current() {
    check("protocol/schema/openrpc.json", &pretty(&cairn_api::openrpc()));
}

#[test]
fn schema_files_are_current() {
    let document = cairn_api::openrpc();
    let types = document["components"]["schemas"].as_object().unwrap();
    let folder = root().join("protocol/schema/types");
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        let _fresh = std::fs::remove_dir_all(&folder);
    }
    for (name, schema) in types {
        let text = serde_json::to_string(schema).unwrap().replace("#/components/schemas/", "");
        let mut schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        let references = serde_json::to_string(&schema).unwrap();
        assert!(!references.contains("#/components"), "{name}");
        point_at_files(&mut schema);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        check(&format!("protocol/schema/types/{name}.json"), &pretty(&schema));
    }
    let committed = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(committed, types.len(), "a schema file is left over in {}", folder.display());
}

/// Rewrites `"$ref": "Name"` to `"$ref": "Name.json"`.
fn point_at_files(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, inner) in map.iter_mut() {
                if key == "$ref"
                    && let Some(name) = inner.as_str()
                {
                    *inner = format!("{name}.json").into();
                } else {
                    point_at_files(inner);
                }
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(point_at_files),
        _ => {}
    }
}

#[test]
fn protocol_reference_is_current() {
    check("docs/protocol.md", &cairn_api::reference::markdown());
}

#[test]
fn sdk_files_are_current() {
    for (path, content) in cairn_api::sdk::files() {
        check(path, &content);
    }
}

#[test]
fn every_method_has_a_summary_and_unique_name() {
    let table = cairn_api::methods::table();
    let mut names: Vec<&str> = table.iter().map(|m| m.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(table.iter().all(|m| m.summary.ends_with('.') || m.summary.contains('`')));
}
