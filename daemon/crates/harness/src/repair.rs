//! Arguments that a model wrote almost correctly: text that is nearly JSON, values of nearly the
//! right type.

use serde_json::{Map, Value};

/// Longest text that is examined, in bytes.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// Returns arguments as an object, if they can be read as one: JSON; else without a code fence, as
/// the looser JSON5 (single quotes, bare keys, trailing commas, comments), with open strings and
/// brackets closed.
pub fn object(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => from_text(&text).unwrap_or(Value::String(text)),
        other => other,
    }
}

fn from_text(text: &str) -> Option<Value> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let text = unfenced(text.trim());
    if text.is_empty() {
        return Some(Value::Object(Map::new()));
    }
    let strict = |text: &str| serde_json::from_str::<Value>(text).ok();
    let parsed = strict(text).or_else(|| loose(text)).or_else(|| loose(&closed(text)));
    match parsed? {
        // Some models encode the object as a string once more.
        Value::String(inner) => strict(&inner).filter(Value::is_object),
        value => value.is_object().then_some(value),
    }
}

/// Returns the object that the beginning of a JSON text defines for certain: strings as far as they
/// go, without a number or word that may continue. A longer beginning yields the same fields and
/// more. `None` if nothing is certain yet.
pub fn parse_partial_json(text: &str) -> Option<Value> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let text = text.trim_start();
    let text = match text.strip_prefix("```") {
        Some(rest) => rest.split_once('\n')?.1.trim_end().trim_end_matches('`'),
        None => text,
    };
    let inside = outside(text, |_, _| {}).is_some();
    let may_continue = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let certain = if inside { text } else { text.trim_end_matches(may_continue) };
    serde_json::from_str::<Value>(&closed(certain)).ok().filter(Value::is_object)
}

fn loose(text: &str) -> Option<Value> {
    json5::from_str::<Value>(&python_words(text)).ok()
}

/// Returns the text inside a Markdown code fence.
pub fn unfenced(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("```") else { return text };
    let rest = rest.split_once('\n').map_or(rest, |(_, body)| body);
    rest.trim_end().strip_suffix("```").unwrap_or(rest).trim()
}

/// Iterates over the text outside of strings.
fn outside(text: &str, mut each: impl FnMut(usize, char)) -> Option<char> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None => each(at, c),
        }
    }
    quote
}

/// Closes the string and the brackets that are open at the end.
fn closed(text: &str) -> String {
    let mut open = Vec::new();
    let quote = outside(text, |_, c| match c {
        '{' => open.push('}'),
        '[' => open.push(']'),
        '}' | ']' => drop(open.pop()),
        _ => {}
    });
    let mut complete = text.trim_end().trim_end_matches(['\\', ':', ',']).to_owned();
    complete.extend(quote);
    complete.extend(open.iter().rev());
    complete
}

/// Replaces `True`, `False` and `None` by their JSON forms.
fn python_words(text: &str) -> String {
    let mut spots = vec![false; text.len()];
    outside(text, |at, _| spots[at] = true);
    let mut output = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        let word = [("True", "true"), ("False", "false"), ("None", "null")]
            .into_iter()
            .find(|(from, _)| spots[at] && rest.starts_with(from));
        match word {
            Some((from, to)) => {
                output.push_str(to);
                at += from.len();
            }
            None => {
                let c = rest.chars().next().unwrap_or_default();
                output.push(c);
                at += c.len_utf8().max(1);
            }
        }
    }
    output
}

/// Converts values to the type of their schema where nothing is lost: `"5"` into 5, `"true"` into
/// true, one value into a list of one, JSON text into the object it encodes. All else stays
/// unchanged, for the check to report.
pub fn coerce(arguments: &mut Value, schema: &Value) {
    let (Some(object), Some(properties)) =
        (arguments.as_object_mut(), schema.get("properties").and_then(Value::as_object))
    else {
        return;
    };
    for (name, value) in object.iter_mut() {
        if let Some(property) = properties.get(name) {
            coerce_one(value, property);
        }
    }
    // A null for an optional value has no meaning.
    let optional = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        !required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)))
    };
    object.retain(|name, value| {
        !(value.is_null() && optional(name) && properties.contains_key(name))
    });
}

fn coerce_one(value: &mut Value, schema: &Value) {
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let wants = |kind: &str| types.contains(&kind);
    if let Value::String(text) = &*value
        && !wants("string")
    {
        let read = serde_json::from_str::<Value>(text.trim()).ok().or_else(|| match text.trim() {
            "True" | "yes" => Some(Value::Bool(true)),
            "False" | "no" => Some(Value::Bool(false)),
            _ => None,
        });
        let fits = |v: &Value| match v {
            Value::Bool(_) => wants("boolean"),
            Value::Number(n) => wants("number") || (wants("integer") && (n.is_i64() || n.is_u64())),
            Value::Array(_) => wants("array"),
            Value::Object(_) => wants("object"),
            _ => false,
        };
        if let Some(read) = read.filter(fits) {
            *value = read;
        }
    }
    if let Some(number) = value.as_f64()
        && wants("integer")
        && !wants("number")
        && value.is_f64()
        && number.fract() == 0.0
        && number.abs() < 9e15
    {
        *value = Value::from(number as i64);
    }
    if wants("array") && types.len() == 1 && !value.is_array() && !value.is_null() {
        *value = Value::Array(vec![value.take()]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn almost_json_is_parsed() {
        let want = json!({"path": "a b", "n": 1});
        for text in [
            r#"{"path": "a b", "n": 1}"#,
            "```json\n{\"path\": \"a b\", \"n\": 1}\n```",
            "{'path': 'a b', n: 1,}",
            r#"{"path": "a b", "n": 1"#,
            r#"{"path": "a b", "n": 1,"#,
            r#""{\"path\": \"a b\", \"n\": 1}""#,
            "{\"path\": \"a b\", /* one */ \"n\": 1}",
        ] {
            assert_eq!(object(json!(text)), want, "{text}");
        }
        assert_eq!(
            object(json!("{'deep': True, 'x': None, 's': 'True'}")),
            json!({"deep": true, "x": null, "s": "True"})
        );
        assert_eq!(object(json!(r#"{"path": "unfini"#)), json!({"path": "unfini"}));
        assert_eq!(object(json!("  ")), json!({}));
        for hopeless in ["rm -rf", "[1]", "{{{{", "null"] {
            assert_eq!(object(json!(hopeless)), json!(hopeless), "{hopeless}");
        }
    }

    #[test]
    fn values_are_coerced_to_schema_type_when_lossless() {
        let schema = json!({
            "properties": {
                "n": {"type": "integer"}, "f": {"type": ["number", "null"]}, "b": {"type": "boolean"},
                "l": {"type": "array"}, "s": {"type": "string"}, "o": {"type": "object"}
            },
            "required": ["s"]
        });
        let mut got =
            json!({"n": "5", "f": "1.5", "b": "True", "l": "x", "s": "5", "o": "{\"a\":1}"});
        coerce(&mut got, &schema);
        assert_eq!(got, json!({"n": 5, "f": 1.5, "b": true, "l": ["x"], "s": "5", "o": {"a": 1}}));
        let mut got = json!({"n": 3.0, "b": null, "s": null, "l": "[1,2]", "z": null});
        coerce(&mut got, &schema);
        assert_eq!(got, json!({"n": 3, "s": null, "l": [1, 2], "z": null}));
        let mut unchanged = json!({"n": "five", "b": "maybe", "s": 5});
        coerce(&mut unchanged, &schema);
        assert_eq!(unchanged, json!({"n": "five", "b": "maybe", "s": 5}));
    }

    #[test]
    fn partial_json_contains_only_certain_values() {
        for (text, want) in [
            ("{", Some(json!({}))),
            (r#"{"a"#, None),
            (r#"{"a": "x y"#, Some(json!({"a": "x y"}))),
            (r#"{"a": 12"#, None),
            (r#"{"a": 12, "b": [1, 2"#, Some(json!({"a": 12, "b": [1]}))),
            (r#"{"a": tru"#, None),
            ("```json\n{\"a\": [\"x\", \"", Some(json!({"a": ["x", ""]}))),
            ("```json\n{\"a\": \"x\"}\n```", Some(json!({"a": "x"}))),
            ("Here it is: {", None),
            ("[1, 2]", None),
        ] {
            assert_eq!(parse_partial_json(text), want, "{text}");
        }
    }

    /// Returns true if `more` contains all that `less` contains.
    fn includes(more: &Value, less: &Value) -> bool {
        match (more, less) {
            (Value::Object(more), Value::Object(less)) => less
                .iter()
                .all(|(name, value)| more.get(name).is_some_and(|more| includes(more, value))),
            (Value::Array(more), Value::Array(less)) => {
                less.len() <= more.len()
                    && less.iter().zip(more).all(|(less, more)| includes(more, less))
            }
            (Value::String(more), Value::String(less)) => more.starts_with(less.as_str()),
            _ => more == less,
        }
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            (-1e9_f64..1e9).prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
            "[\\\\\"\n:,}\\]é\u{1F30D} ]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z:\"]{1,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn longer_prefixes_contain_more(value in json_value(), pretty in any::<bool>()) {
            let complete = json!({"value": value});
            let text = if pretty { format!("{complete:#}") } else { complete.to_string() };
            let mut last = json!({});
            for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
                if let Some(now) = parse_partial_json(&text[..end]) {
                    prop_assert!(includes(&now, &last), "{last} then {now} at {}", &text[..end]);
                    last = now;
                }
            }
            prop_assert_eq!(last, complete);
        }

        #[test]
        fn any_text_is_parsed_without_panic(text in ".{0,200}") {
            let _read = object(Value::String(text));
        }

        #[test]
        fn truncated_json_gives_object_or_text(cut in 1_usize..60) {
            let complete = r#"{"path": "src/a.rs", "list": [1, {"x": "y\n"}], "flag": true}"#;
            let text = complete.get(..cut).unwrap_or(complete);
            let got = object(json!(text));
            prop_assert!(got.is_object() || got == json!(text));
        }
    }
}
