//! The protocol reference as Markdown, generated from the method table.

use std::fmt::Write;

use serde_json::Value;

use crate::rights::{self, Effect, Right};

/// Text before the generated tables.
const INTRODUCTION: &str = include_str!("reference.md");

/// Renders the complete reference.
pub fn markdown() -> String {
    let document = crate::openrpc();
    let mut out = INTRODUCTION.to_owned();
    out.push_str("\n## Methods\n");
    for method in list(&document, "methods") {
        let params = &method["x-params"];
        let result = &method["result"]["schema"];
        let _ok = writeln!(
            out,
            "\n### `{}`\n{} Right: {}. Scope: {}. On disconnect: {}. Audit: {}.\n\n* params: {}\n* result: {}",
            text(method, "name"),
            text(method, "summary"),
            text(method, "x-right"),
            text(method, "x-scope"),
            text(method, "x-disconnect"),
            text(method, "x-audit"),
            shape(params),
            shape(result)
        );
    }
    rights_section(&mut out);
    out.push_str("\n## Notifications of the daemon\n\n| method | params |\n|---|---|\n");
    for notification in list(&document, "x-notifications") {
        let _ok = writeln!(
            out,
            "| `{}` | {} |",
            text(notification, "name"),
            shape(&notification["schema"])
        );
    }
    out.push_str("\n## Errors\n\n| code | reason | retryable | hint |\n|---|---|---|---|\n");
    for error in list(&document, "x-errors") {
        let reason = text(error, "reason");
        let hint = text(error, "hint");
        let _ok =
            writeln!(out, "| {} | `{reason}` | {} | {hint} |", error["code"], error["retryable"]);
    }
    out.push_str("\n## Types\n\nFields marked * are required.\n");
    if let Some(types) = document["components"]["schemas"].as_object() {
        for (name, schema) in types {
            type_section(&mut out, name, schema);
        }
    }
    out
}

fn rights_section(out: &mut String) {
    out.push_str(
        "\n## Rights\n\nA call needs each right that is marked in its row, and is refused with \
        `right_missing` otherwise. A row with an effect applies to calls that have this effect because \
        of their arguments or their target. A test calls every method with every set of rights and \
        compares the results.\n\n",
    );
    let names = Right::ALL.map(Right::as_str).join(" | ");
    let _ok = writeln!(
        out,
        "| method | effect | {names} |\n|---|---|{}",
        "---|".repeat(Right::ALL.len())
    );
    for row in rights::table() {
        let required_rights: Vec<Right> = row.required_rights().collect();
        let mark = |right| if required_rights.contains(&right) { "x" } else { "" };
        let effect = row.effect.map_or("", Effect::text);
        let marks = Right::ALL.map(mark).join(" | ");
        let _ok = writeln!(out, "| `{}` | {effect} | {marks} |", row.method);
    }
    out.push_str(
        "\nThese are refused to every caller, regardless of its rights. The gate decides what a tool \
        call may do.\n\n\
         | method | refused | reason |\n|---|---|---|\n",
    );
    for bound in rights::BOUNDS {
        let _ok =
            writeln!(out, "| `{}` | {} | `{}` |", bound.method, bound.text, bound.reason.as_str());
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

fn type_section(out: &mut String, name: &str, schema: &Value) {
    let _ok = writeln!(out, "\n### {name}\n{}", one_line(text(schema, "description")));
    let variants = [list(schema, "oneOf"), list(schema, "anyOf")].concat();
    fields(out, schema);
    for variant in &variants {
        if let Some(word) = variant["const"].as_str() {
            let _ok = writeln!(out, "* `\"{word}\"`: {}", one_line(text(variant, "description")));
            continue;
        }
        let tag = ["type", "kind"].iter().find_map(|key| {
            variant["properties"][*key]["const"].as_str().map(|tag| format!("`{key}: \"{tag}\"`"))
        });
        let inner = variant["$ref"].as_str().map(|_| shape(variant));
        let title = tag.or(inner.clone()).unwrap_or_else(|| shape(variant));
        let _ok = writeln!(out, "* {title} {}", one_line(text(variant, "description")));
        if tag_and_reference(variant) {
            let _ok = writeln!(
                out,
                "  with the fields of {}",
                shape(&serde_json::json!({"$ref": variant["$ref"]}))
            );
        }
        fields(out, variant);
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
        let _ok = writeln!(out, "* one of {}", words.join(", "));
    }
}

fn tag_and_reference(variant: &Value) -> bool {
    variant["$ref"].is_string() && variant["properties"].is_object()
}

fn fields(out: &mut String, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
    for (name, field) in properties {
        if field["const"].is_string() {
            continue;
        }
        let star = if required.contains(&name.as_str()) { "*" } else { "" };
        let default = match &field["default"] {
            Value::Null => String::new(),
            value => format!(" Default `{value}`."),
        };
        let about = one_line(text(field, "description"));
        let _ok = writeln!(out, "  * `{name}`{star} {}: {about}{default}", shape(field));
    }
}

/// Describes a schema in a few words.
fn shape(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or("");
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(parts) = schema["anyOf"].as_array() {
        let shapes: Vec<String> = parts.iter().filter(|p| p["type"] != "null").map(shape).collect();
        return shapes.join(" or ");
    }
    if let Some(value) = schema["const"].as_str() {
        return format!("`\"{value}\"`");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", shape(&schema["items"])),
        Value::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("map to {}", shape(&schema["additionalProperties"]))
        }
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> =
                kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect();
            if kinds == ["array"] {
                format!("list of {}", shape(&schema["items"]))
            } else {
                kinds.join(" or ")
            }
        }
        _ => "any value".to_owned(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
