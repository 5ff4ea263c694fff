//! Tools in the form that every provider accepts.

use cairn_protocol::tool::is_tool_name;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Keywords that OpenAI and Anthropic refuse at the top of a schema, or that have no meaning beside
/// the merged properties.
const REFUSED: &[&str] =
    &["oneOf", "anyOf", "allOf", "enum", "not", "const", "if", "then", "else", "$ref"];
/// Keywords for validators that say nothing to a model.
const UNUSED: &[&str] = &["$schema", "$id", "title"];
/// Maximum number of nested unions and references that are followed.
const MAX_DEPTH: u32 = 8;

/// A tool as models are offered it: its name matches `^[a-zA-Z0-9_-]{1,64}$`, and its schema is an
/// object with `properties` and without a union at the top.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOffer {
    name: String,
    description: String,
    input_schema: Value,
}

impl ToolOffer {
    /// Creates an offer from any JSON Schema of arguments: the alternatives of a union become one
    /// object, and the description lists the properties of each. Returns `None` if providers
    /// refuse the name.
    pub fn new(name: &str, description: &str, schema: &Value) -> Option<Self> {
        is_tool_name(name).then(|| {
            let fields = collect(schema, schema, 0);
            let mut description = description.to_owned();
            // A description of the schema would not reach the model from Ollama, which drops it.
            if !fields.alternatives.is_empty() {
                let all = fields.alternatives.join("; ");
                description = format!("{description} Arguments are one of: {all}.");
            }
            let input_schema = object_schema(schema, fields);
            Self { name: name.to_owned(), description, input_schema }
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the arguments.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }
}

/// Properties of an object, with the names of those that it requires.
#[derive(Default)]
struct Fields {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Line of each alternative: the properties that go together.
    alternatives: Vec<String>,
}

fn object_schema(schema: &Value, fields: Fields) -> Value {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.retain(|key, _| !REFUSED.contains(&key.as_str()) && !UNUSED.contains(&key.as_str()));
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), fields.properties.into());
    object.remove("required");
    if !fields.required.is_empty() {
        object.insert("required".into(), fields.required.into());
    }
    Value::Object(object)
}

/// Collects the properties of a schema and of all its alternatives.
fn collect(schema: &Value, root: &Value, depth: u32) -> Fields {
    let mut fields = Fields::default();
    let Some(object) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return fields };
    if let Some(Value::Object(properties)) = object.get("properties") {
        fields.properties = properties.clone();
    }
    let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
    fields.required = required.filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let referred = object.get("$ref").and_then(Value::as_str);
    if let Some(target) = referred.and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        fields.add_all(collect(target, root, depth + 1));
    }
    for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        fields.add_all(collect(part, root, depth + 1));
    }
    for key in ["oneOf", "anyOf"] {
        let parts = object.get(key).and_then(Value::as_array).into_iter().flatten();
        fields.add_one_of(parts.map(|part| collect(part, root, depth + 1)).collect());
    }
    fields
}

impl Fields {
    /// Adds properties that apply together with these.
    fn add_all(&mut self, other: Self) {
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        self.alternatives.extend(other.alternatives);
        self.add_properties(other.properties);
    }

    /// Adds alternatives, of which one applies: only what all of them require is required.
    fn add_one_of(&mut self, parts: Vec<Self>) {
        let Some(first) = parts.first() else { return };
        for name in first.required.clone() {
            let everywhere = parts.iter().all(|part| part.required.contains(&name));
            if everywhere && !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        for part in parts {
            self.alternatives.push(part.line());
            self.add_properties(part.properties);
        }
    }

    fn add_properties(&mut self, properties: Map<String, Value>) {
        for (name, schema) in properties {
            let merged = match self.properties.get(&name) {
                Some(known) => either(known, schema),
                None => constant_as_enum(schema),
            };
            self.properties.insert(name, merged);
        }
    }

    /// Lists the properties of an alternative: constants with their value, optional ones with `?`.
    fn line(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for (name, schema) in &self.properties {
            let values = values_of(schema);
            match values.as_deref() {
                Some([value]) => words.insert(0, format!("{name} = {value}")),
                _ if self.required.contains(name) => words.push(name.clone()),
                _ => words.push(format!("{name}?")),
            }
        }
        if words.is_empty() { "no property".into() } else { words.join(", ") }
    }
}

/// Returns the values of a schema that lists them.
fn values_of(schema: &Value) -> Option<Vec<Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value.clone()]),
        None => schema.get("enum")?.as_array().cloned(),
    }
}

/// `const` is unknown to some servers that turn schemas into grammars; `enum` is known to all.
fn constant_as_enum(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut()
        && let Some(value) = object.remove("const")
    {
        object.insert("enum".into(), json!([value]));
    }
    schema
}

/// Merges two schemas of one property, of which either may apply.
fn either(known: &Value, other: Value) -> Value {
    let other = constant_as_enum(other);
    if *known == other {
        return other;
    }
    if let (Some(mut values), Some(more)) = (values_of(known), values_of(&other)) {
        for value in more {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut merged = known.as_object().cloned().unwrap_or_default();
        merged.insert("enum".into(), values.into());
        // A description of one value would describe all of them.
        merged.remove("description");
        return Value::Object(merged);
    }
    let without_text = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().map(|object| object.remove("description"));
        schema
    };
    if without_text(known) == without_text(&other) {
        return known.clone();
    }
    match known.get("anyOf").and_then(Value::as_array) {
        Some(all) if all.contains(&other) => known.clone(),
        Some(all) => {
            let all = [all.as_slice(), &[other]].concat();
            json!({ "anyOf": all })
        }
        None => json!({ "anyOf": [known, other] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema_of(schema: Value) -> Value {
        ToolOffer::new("t", "d", &schema).unwrap().input_schema().clone()
    }

    #[test]
    fn schema_is_always_an_object_with_properties() {
        let empty = json!({ "type": "object", "properties": {} });
        for schema in [
            json!({}),
            json!(true),
            json!(null),
            json!({ "type": "object" }),
            json!({ "type": ["object", "null"], "title": "T" }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#", "not": {} }),
            json!({ "$ref": "#/$defs/none" }),
        ] {
            assert_eq!(schema_of(schema.clone()), empty, "{schema}");
        }
        let usual = json!({
            "type": "object", "properties": { "a": { "oneOf": [{ "type": "string" }] } },
            "required": ["a"], "additionalProperties": false, "description": "about"
        });
        assert_eq!(schema_of(usual.clone()), usual);
    }

    #[test]
    fn union_becomes_one_object() {
        let text = json!({ "type": "string" });
        let action = |name: &str| json!({ "type": "string", "const": name });
        let union = json!({
            "oneOf": [
                { "type": "object", "required": ["action", "query"],
                  "properties": { "action": action("search"), "query": text, "k": { "type": "integer" } } },
                { "type": "object", "required": ["action", "name"],
                  "properties": { "action": action("load"), "name": text } },
            ]
        });
        let offer = ToolOffer::new("t", "Remembers.", &union).unwrap();
        assert_eq!(
            offer.description(),
            "Remembers. Arguments are one of: action = \"search\", k?, query; action = \"load\", name."
        );
        assert_eq!(
            *offer.input_schema(),
            json!({
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": ["search", "load"] },
                    "query": text, "k": { "type": "integer" }, "name": text
                },
                "required": ["action"],
            })
        );
    }

    #[test]
    fn references_and_combinations_are_merged() {
        let flat = schema_of(json!({
            "description": "Moves.",
            "allOf": [{ "$ref": "#/$defs/base" }],
            "anyOf": [
                { "properties": { "to": { "type": "string" } }, "required": ["to"] },
                { "properties": { "to": { "type": "integer" } }, "required": ["to"] },
            ],
            "$defs": { "base": { "properties": { "from": {} }, "required": ["from"] } }
        }));
        assert_eq!(flat["required"], json!(["from", "to"]));
        let to = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
        assert_eq!(flat["properties"], json!({ "from": {}, "to": to }));
        assert_eq!(flat["description"], "Moves.");
        assert!(flat.get("allOf").is_none() && flat.get("anyOf").is_none());
        // A schema that refers to itself ends.
        assert_eq!(schema_of(json!({ "$ref": "#" }))["type"], "object");
    }

    #[test]
    fn names_that_providers_refuse_are_not_offered() {
        for name in ["", "a.b", "a b", "é", &"x".repeat(65)] {
            assert_eq!(ToolOffer::new(name, "d", &json!({})), None, "{name}");
        }
        assert!(ToolOffer::new(&"x".repeat(64), "d", &json!({})).is_some());
    }
}
