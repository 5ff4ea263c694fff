//! Schemas of arguments in the subset that every client and model takes: an object of named
//! properties, without references, unions with `null`, formats, and what models do not need.

use serde_json::{Map, Value, json};

/// Maximum depth to which references are replaced; deeper ones accept any object.
const MAX_DEPTH: usize = 8;
/// Prefix of a reference to a definition of the same schema.
const DEFINITIONS: &str = "#/$defs/";

/// Reduces a schema of arguments.
pub fn simplified(schema: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = schema else { return Map::new() };
    let definitions = match fields.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    // A field named `title` or `format` is a property, not a keyword.
    for keyword in ["$schema", "title", "format"] {
        fields.remove(keyword);
    }
    // Clients may reject a schema without a type.
    fields.entry("type").or_insert_with(|| "object".into());
    fields.entry("properties").or_insert_with(|| json!({}));
    simplify_children(&mut fields, &definitions, 0);
    fields
}

fn simplify_children(
    schema: &mut Map<String, Value>,
    definitions: &Map<String, Value>,
    depth: usize,
) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|child| simplify(child, definitions, depth + 1));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child @ Value::Object(_)) = schema.get_mut(keyword) {
            simplify(child, definitions, depth + 1);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        if let Some(Value::Array(all)) = schema.get_mut(keyword) {
            all.iter_mut().for_each(|child| simplify(child, definitions, depth + 1));
        }
    }
}

fn simplify(child: &mut Value, definitions: &Map<String, Value>, depth: usize) {
    let Value::Object(schema) = child else { return };
    replace_reference(schema, definitions, depth);
    take_only_alternative(schema);
    replace_reference(schema, definitions, depth);
    let types = schema.get("type").and_then(Value::as_array);
    let mut named = types.into_iter().flatten().filter(|t| *t != "null");
    if let (Some(only), None) = (named.next().cloned(), named.next()) {
        schema.insert("type".into(), only);
    }
    if schema.get("default").is_some_and(is_empty) {
        schema.remove("default");
    }
    if schema.get("minimum").and_then(Value::as_f64) == Some(0.0) {
        schema.remove("minimum");
    }
    let is_width = |f: &str| f.starts_with("uint") || f.starts_with("int");
    if schema.get("format").and_then(Value::as_str).is_some_and(is_width) {
        schema.remove("format");
    }
    simplify_children(schema, definitions, depth);
}

/// Replaces a reference by its definition; its own description is the better one.
fn replace_reference(
    schema: &mut Map<String, Value>,
    definitions: &Map<String, Value>,
    depth: usize,
) {
    let Some(Value::String(target)) = schema.remove("$ref") else { return };
    let definition = target.strip_prefix(DEFINITIONS).and_then(|name| definitions.get(name));
    match definition {
        Some(Value::Object(definition)) if depth < MAX_DEPTH => {
            for (key, value) in definition {
                schema.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        _ => drop(schema.entry("type").or_insert_with(|| "object".into())),
    }
}

/// Replaces alternatives of which all but one are null.
fn take_only_alternative(schema: &mut Map<String, Value>) {
    let Some(Value::Array(all)) = schema.get("anyOf") else { return };
    let is_null = |alternative: &&Value| alternative.get("type") != Some(&json!("null"));
    let mut used = all.iter().filter(is_null);
    let (Some(Value::Object(only)), None) = (used.next().cloned(), used.next()) else { return };
    schema.remove("anyOf");
    for (key, value) in only {
        schema.entry(key).or_insert(value);
    }
}

/// Returns true for a default that the absence of a value suggests anyway.
fn is_empty(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_that_clients_refuse_are_removed() {
        let input = json!({"$schema": "x", "title": "T", "properties": {
            "k": {"type": ["integer", "null"], "format": "uint32", "default": null, "minimum": 0},
            "either": {"type": ["integer", "string"]},
            "on": {"type": "boolean", "default": false},
            "type": {"type": "string", "format": "uri", "default": "x"},
        }});
        let expected = json!({"type": "object", "properties": {
            "k": {"type": "integer"},
            "either": {"type": ["integer", "string"]},
            "on": {"type": "boolean"},
            "type": {"type": "string", "format": "uri", "default": "x"},
        }});
        assert_eq!(Value::Object(simplified(input)), expected);
        let none = json!({"type": "object", "properties": {}});
        assert_eq!(Value::Object(simplified(json!({}))), none);
        assert!(simplified(json!([1])).is_empty());
    }

    #[test]
    fn references_are_replaced_and_end() {
        let piece = json!({"type": "object", "properties": {
            "old": {"type": "string"}, "more": {"$ref": "#/$defs/Piece"}}});
        let input = json!({"type": "object", "$defs": {"Piece": piece}, "properties": {
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Piece"}},
            "one": {"description": "d", "anyOf": [{"$ref": "#/$defs/Piece"}, {"type": "null"}]},
            "lost": {"$ref": "#/$defs/Absent"},
        }});
        let output = Value::Object(simplified(input));
        assert_eq!(output["properties"]["edits"]["items"]["properties"]["old"]["type"], "string");
        assert_eq!(output["properties"]["one"]["description"], "d");
        assert_eq!(output["properties"]["one"]["type"], "object");
        assert_eq!(output["properties"]["lost"], json!({"type": "object"}));
        let text = output.to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs") && text.len() < 10_000, "{text}");
    }
}
