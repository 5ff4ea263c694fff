//! Schemas of answers in the subset of JSON Schema that Anthropic's structured outputs take.

use serde_json::{Map, Value, json};

/// Keywords that are passed as they are.
const PLAIN: &[&str] = &["type", "enum", "const", "$ref", "description", "title", "required"];
/// Keywords with a list of schemas, and the name under which they are passed.
const LISTS: &[(&str, &str)] = &[("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")];
/// Formats of strings that are passed.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Returns the schema with closed objects and without the keywords that the API refuses, such as
/// limits of numbers: the answer may violate these.
pub(super) fn strict(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut strict = Map::new();
    for (key, value) in object {
        if PLAIN.contains(&key.as_str()) {
            strict.insert(key.clone(), value.clone());
        }
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                let schemas = schemas.iter().map(|(name, one)| (name.clone(), self::strict(one)));
                strict.insert(key.clone(), schemas.collect::<Map<_, _>>().into());
            }
            ("items", items) => drop(strict.insert(key.clone(), self::strict(items))),
            ("minItems", least) if least.as_u64().is_some_and(|least| least <= 1) => {
                strict.insert(key.clone(), least.clone());
            }
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                strict.insert(key.clone(), value.clone());
            }
            (_, Value::Array(schemas)) => {
                if let Some((_, name)) = LISTS.iter().find(|(list, _)| *list == key.as_str()) {
                    let schemas: Value = schemas.iter().map(self::strict).collect();
                    strict.insert((*name).to_owned(), schemas);
                }
            }
            _ => {}
        }
    }
    if object.get("type") == Some(&json!("object")) || object.contains_key("properties") {
        strict.insert("type".into(), "object".into());
        strict.insert("additionalProperties".into(), false.into());
    }
    Value::Object(strict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_closed_and_limits_removed() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["n"],
            "properties": {
                "n": { "type": "integer", "minimum": 1, "description": "d" },
                "list": { "type": "array", "minItems": 2, "items": { "properties": { "a": {} } } },
                "one": { "oneOf": [{ "type": "string", "format": "uri" }, { "type": "null" }] },
                "odd": { "type": "string", "format": "odd", "pattern": "^a" }
            }
        });
        let expected = json!({
            "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {
                "n": { "type": "integer", "description": "d" },
                "list": { "type": "array", "items": {
                    "type": "object", "properties": { "a": {} }, "additionalProperties": false
                } },
                "one": { "anyOf": [{ "type": "string", "format": "uri" }, { "type": "null" }] },
                "odd": { "type": "string" }
            }
        });
        assert_eq!(strict(&schema), expected);
        assert_eq!(strict(&json!(true)), json!(true));
    }
}
