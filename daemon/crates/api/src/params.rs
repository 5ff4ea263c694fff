//! Parameters of a call, and explanations of invalid ones in the words of the parameter's own
//! schema: name, expected kind, documented range.

use cairn_protocol::error::{Failure, Reason};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};
use serde_path_to_error::Segment;

/// Maximum characters of a value or name in a message.
const MAX_EXCERPT: usize = 60;
/// Least similarity of a name that is suggested instead of an unknown one.
const SIMILAR: f64 = 0.8;

/// Parses the params of a method by name; missing params are an empty object. The message does not
/// repeat the method, which clients name themselves.
///
/// # Errors
/// `invalid_params`, naming the parameter.
pub(crate) fn read_raw<P: DeserializeOwned + JsonSchema>(
    params: Option<&RawValue>,
) -> Result<P, Failure> {
    let text = params.map_or("{}", RawValue::get);
    if !text.trim_start().starts_with('{') {
        return Err(Failure::new(Reason::InvalidParams, "params must be an object, by name"));
    }
    // A null field counts as missing, whatever its type makes of null.
    let without_nulls = text.contains("null").then(|| without_nulls(text)).flatten();
    let text = without_nulls.as_deref().unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let value = serde_json::from_str(text).unwrap_or_default();
        invalid::<P>("", &value, &error)
    })
}

/// Parses the arguments of the tool `name` from a value.
///
/// # Errors
/// `invalid_params`, naming the argument.
pub fn read_value<P: DeserializeOwned + JsonSchema>(
    name: &str,
    value: &Value,
) -> Result<P, Failure> {
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| !field.is_null());
    }
    serde_path_to_error::deserialize(&value)
        .map_err(|error| invalid::<P>(&format!("{name}: "), &value, &error))
}

/// Removes null fields; `None` if there are none.
fn without_nulls(text: &str) -> Option<String> {
    let mut fields: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(text).ok()?;
    let all = fields.len();
    fields.retain(|_, value| value.get() != "null");
    if fields.len() == all { None } else { serde_json::to_string(&fields).ok() }
}

fn invalid<P: JsonSchema>(
    prefix: &str,
    value: &Value,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> Failure {
    let schemas = SchemaGenerator::default().into_root_schema_for::<P>().to_value();
    let text = Explanation { schemas: &schemas }.of(value, error.path());
    let path = error.path().to_string();
    let at = if path == "." { String::new() } else { format!("{path}: ") };
    // A combination that no single schema describes is reported by the parser itself.
    let text = text.unwrap_or_else(|| format!("{at}{}", error.inner()));
    Failure::new(Reason::InvalidParams, format!("{prefix}{text}"))
        .with_details(serde_json::json!({"path": path}))
}

/// The schemas that explain why a value is invalid.
struct Explanation<'s> {
    schemas: &'s Value,
}

impl<'s> Explanation<'s> {
    /// Explains why `value` does not fit at `path`; `None` if the schema does not tell.
    fn of(&self, value: &Value, path: &serde_path_to_error::Path) -> Option<String> {
        let mut schema = self.resolve(self.schemas);
        let mut value = value;
        let mut name = String::new();
        for segment in path {
            let (next, at) = match segment {
                Segment::Map { key } => {
                    if self.property(schema, key).is_none() {
                        return self.unknown(schema, value, &name);
                    }
                    let Some(next) = value.get(key) else {
                        return self.missing(schema, value, &name);
                    };
                    (self.property(schema, key)?, (next, format!("{name}.{key}")))
                }
                Segment::Seq { index } => {
                    (schema.get("items")?, (value.get(index)?, format!("{name}[{index}]")))
                }
                // The variants of a choice have no common schema.
                Segment::Enum { .. } | Segment::Unknown => break,
            };
            schema = self.resolve(next);
            value = at.0;
            name = at.1.trim_start_matches('.').to_owned();
        }
        if !value.is_object() || schema.get("properties").is_none() {
            return mismatch(schema, value, &name);
        }
        self.unknown(schema, value, &name).or_else(|| self.missing(schema, value, &name))
    }

    /// Follows references, and takes the only alternative that is not null.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        // References of generated schemas have no cycles without a property between them.
        for _ in 0..8 {
            if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
                let Some(target) = self.schemas.pointer(target.trim_start_matches('#')) else {
                    break;
                };
                schema = target;
                continue;
            }
            let alternatives = schema.get("anyOf").and_then(Value::as_array);
            let mut used = alternatives
                .into_iter()
                .flatten()
                .filter(|s| s.get("type").and_then(Value::as_str) != Some("null"));
            match (used.next(), used.next()) {
                (Some(only), None) => schema = only,
                _ => break,
            }
        }
        schema
    }

    fn property(&self, schema: &'s Value, name: &str) -> Option<&'s Value> {
        schema.get("properties")?.get(name)
    }

    fn unknown(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        let known = schema.get("properties")?.as_object()?;
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return None;
        }
        let name = value.as_object()?.keys().find(|key| !known.contains_key(*key))?;
        let scored = known.keys().map(|known| (strsim::jaro_winkler(known, name), known));
        let nearest = scored.filter(|(s, _)| *s > SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = match nearest {
            Some((_, nearest)) => format!("did you mean '{nearest}'?"),
            None => format!("it has {}", names(known)),
        };
        let at = if at.is_empty() { String::new() } else { format!("{at} ") };
        Some(format!("{at}has no parameter '{}'; {hint}", excerpt(name)))
    }

    fn missing(&self, schema: &'s Value, value: &Value, at: &str) -> Option<String> {
        let fields = value.as_object()?;
        let required = schema.get("required")?.as_array()?;
        let name =
            required.iter().filter_map(Value::as_str).find(|name| !fields.contains_key(*name))?;
        let about = self.property(schema, name).map_or_else(String::new, description);
        let full = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        Some(format!("the parameter '{full}' is missing{about}"))
    }
}

/// Explains a value of another kind or outside of the schema's range.
fn mismatch(schema: &Value, value: &Value, name: &str) -> Option<String> {
    let expected = expected(schema)?;
    let name = if name.is_empty() { "the params" } else { name };
    let about = description(schema);
    Some(format!("'{name}' must be {expected}, not {}{about}", excerpt(&value.to_string())))
}

/// Describes the values that a schema accepts.
fn expected(schema: &Value) -> Option<String> {
    if let Some(choices) = choices(schema) {
        return Some(format!("one of {}", choices.join(", ")));
    }
    let kind = match schema.get("type")? {
        Value::String(kind) => kind.as_str(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null")?,
        _ => return None,
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    Some(match (kind, bound("minimum"), bound("maximum")) {
        ("integer", Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
        ("integer", Some(least), None) => format!("a whole number of at least {least}"),
        ("integer", ..) => "a whole number".into(),
        ("number", ..) => "a number".into(),
        ("string", ..) => "a text".into(),
        ("boolean", ..) => "true or false".into(),
        ("array", ..) => "a list".into(),
        ("object", ..) => "an object".into(),
        _ => return None,
    })
}

/// Returns the texts among which a schema lets choose.
fn choices(schema: &Value) -> Option<Vec<String>> {
    let all = match schema.get("enum") {
        Some(all) => all.as_array()?.iter().collect::<Vec<_>>(),
        None => {
            let variants = schema.get("oneOf")?.as_array()?;
            let of = |v: &'_ Value| v.get("const").is_some() || v.get("enum").is_some();
            if !variants.iter().all(of) {
                return None;
            }
            let constants = |v: &'_ Value| match v.get("enum").and_then(Value::as_array) {
                Some(all) => all.clone(),
                None => v.get("const").cloned().into_iter().collect(),
            };
            let texts = variants.iter().flat_map(constants);
            return Some(texts.map(|t| t.to_string()).collect());
        }
    };
    Some(all.into_iter().filter(|v| !v.is_null()).map(ToString::to_string).collect())
}

/// Returns the documentation of a parameter as an addition in brackets.
fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { text } else { format!(" ({})", text.trim_end_matches('.')) }
}

fn names(known: &Map<String, Value>) -> String {
    if known.is_empty() {
        return "no parameters".into();
    }
    known.keys().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        approval::ApprovalResolveParams, explore::ExploreStartParams, search::SearchParams,
    };

    use super::*;

    fn read<P: DeserializeOwned + JsonSchema>(text: &str) -> Result<P, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read_raw::<P>(Some(&raw)).map_err(|f| f.message)
    }

    fn search(text: &str) -> String {
        read::<SearchParams>(text).unwrap_err()
    }

    #[test]
    fn null_params_count_as_missing() {
        assert_eq!(
            read::<SearchParams>(r#"{"query": "a null b", "k": null}"#),
            read::<SearchParams>(r#"{"query": "a null b"}"#)
        );
        assert!(read::<SearchParams>(r#"{"query": null}"#).is_err(), "a required one is required");
        let some = r#"{"root": "/a", "goals": null, "policy": null}"#;
        assert!(read::<ExploreStartParams>(some).unwrap().goals.is_empty());
    }

    #[test]
    fn invalid_params_are_explained_by_name_and_range() {
        assert_eq!(
            search(r#"{"query": "a", "k": -5}"#),
            "'k' must be a whole number of at least 0, not -5 (Maximum number of results, 1 to 200)"
        );
        assert_eq!(
            search(r#"{"query": 7}"#),
            "'query' must be a text, not 7 (Words, an identifier, a path, a question or the text of \
             an issue; at most 64 KiB)"
        );
        assert!(search("{}").starts_with("the parameter 'query' is missing (Words"));
        assert_eq!(
            search(r#"{"query": "a", "qery": 1}"#),
            "has no parameter 'qery'; did you mean 'query'?"
        );
        assert!(search(r#"{"query": "a", "zzz": 1}"#).contains("has no parameter 'zzz'; it has '"));
        let nested = search(r#"{"query": "a", "filters": {"languages": "rust"}}"#);
        assert!(nested.starts_with("'filters.languages' must be a list, not \"rust\""), "{nested}");
        let nested = search(r#"{"query": "a", "filters": {"languages": [1]}}"#);
        assert!(nested.starts_with("'filters.languages[0]' must be a text, not 1"), "{nested}");
        let nested = search(r#"{"query": "a", "filters": {"root": []}}"#);
        assert!(nested.starts_with("filters has no parameter 'root'"), "{nested}");
        let approval = cairn_protocol::id::ApprovalId::new();
        let text = format!(r#"{{"approvalId": "{approval}", "decision": "yes"}}"#);
        let choice = read::<ApprovalResolveParams>(&text).unwrap_err();
        assert!(choice.contains(r#"'decision' must be one of "once", "session""#), "{choice}");
    }

    #[test]
    fn explanations_are_bounded_and_without_control_characters() {
        let long = format!(r#"{{"query": ["{}\u001b[2J"]}}"#, "a".repeat(10_000));
        let text = search(&long);
        assert!(text.len() < 300 && !text.chars().any(char::is_control), "{text}");
        let value = serde_json::json!({"query": 1, "k": null});
        let failure = read_value::<SearchParams>("search", &value).unwrap_err();
        assert!(failure.message.starts_with("search: 'query' must be a text"), "{failure}");
        assert_eq!(failure.reason, Reason::InvalidParams);
    }
}
