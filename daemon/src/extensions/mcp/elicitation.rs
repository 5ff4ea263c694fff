//! Questions of a server for the user: its flat schema becomes a form, and the answer a result.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use cairn_harness::{FormAnswer, MAX_FIELDS, UserInput};
use cairn_protocol::approval::{Form, FormField, FormFieldKind, FormOption};
use cairn_tools::plain_line;
use rmcp::{
    ErrorData,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction},
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// Maximum characters of a server's message, and of a title or an explanation.
const MAX_TEXT: (usize, usize) = (1000, 200);
/// Maximum characters of a name, and of a value to choose.
const MAX_NAME: usize = 200;
/// Maximum number of values to choose from.
const MAX_OPTIONS: usize = 100;

/// The calls that a server works on. A question belongs to the only one of them: a server does not
/// report the call on whose behalf it asks.
#[derive(Default)]
pub struct ActiveCalls {
    calls: Mutex<Vec<(u64, Arc<UserInput>)>>,
    next: AtomicU64,
}

/// A call that is counted until this is dropped.
pub struct ActiveCall<'a> {
    calls: &'a ActiveCalls,
    id: u64,
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        let mut calls = self.calls.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|(id, _)| *id != self.id);
    }
}

impl ActiveCalls {
    /// Counts a call, whose questions go to `input`.
    pub fn start(&self, input: &Arc<UserInput>) -> ActiveCall<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((id, Arc::clone(input)));
        ActiveCall { calls: self, id }
    }

    /// Returns the user's input for the only call.
    fn only(&self) -> Option<Arc<UserInput>> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        match calls.as_slice() {
            [(_, input)] => Some(Arc::clone(input)),
            _ => None,
        }
    }

    /// Shows a question to the user of the only call and returns the answer.
    pub async fn answer(
        &self,
        server: &str,
        question: ElicitRequestParams,
        cancelled: CancellationToken,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || Ok(ElicitResult::new(ElicitationAction::Decline));
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = question
        else {
            tracing::warn!("mcp server {server}: a question with an address is declined");
            return declined();
        };
        let invalid = |text: String| ErrorData::invalid_params(text, None);
        let schema = serde_json::to_value(&requested_schema).map_err(|e| invalid(e.to_string()))?;
        let mut form = form(server, &message, &schema).map_err(invalid)?;
        if let Some(order) = &requested_schema.property_order {
            form.fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
        }
        let Some(input) = self.only() else {
            tracing::warn!("mcp server {server}: its question belongs to no single call");
            return declined();
        };
        let answer = tokio::select! {
            answer = input.request(form) => answer,
            () = cancelled.cancelled() => return Ok(ElicitResult::new(ElicitationAction::Cancel)),
        };
        match answer {
            Ok(FormAnswer::Accepted(values)) => {
                let values: Map<String, Value> = values.into_iter().collect();
                let result = ElicitResult::new(ElicitationAction::Accept);
                Ok(result.with_content(Value::Object(values)))
            }
            Ok(FormAnswer::Declined) => declined(),
            Ok(FormAnswer::Cancelled) => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            Err(failure) => Err(invalid(failure.message)),
        }
    }
}

/// Converts the flat schema of a question.
///
/// # Errors
/// The field that is not flat, or too much of something.
fn form(server: &str, message: &str, schema: &Value) -> Result<Form, String> {
    let properties = schema["properties"].as_object().ok_or("the schema has no properties")?;
    if properties.len() > MAX_FIELDS {
        return Err(format!("a question may have {MAX_FIELDS} fields"));
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let one = |(name, schema): (&String, &Value)| {
        field(name, schema, required.contains(&name.as_str()))
            .map_err(|why| format!("field '{}': {why}", plain_line(name, MAX_NAME)))
    };
    Ok(Form {
        server: plain_line(server, MAX_NAME),
        message: plain_line(message, MAX_TEXT.0),
        fields: properties.iter().map(one).collect::<Result<_, _>>()?,
    })
}

fn field(name: &str, schema: &Value, required: bool) -> Result<FormField, String> {
    if plain_line(name, MAX_NAME) != name || name.is_empty() {
        return Err("its name is not a plain line".to_owned());
    }
    let text = |key: &str| {
        let text = schema[key].as_str().map(|text| plain_line(text, MAX_TEXT.1));
        text.filter(|text| !text.is_empty())
    };
    let (kind, options) = match schema["type"].as_str() {
        Some("number") => (FormFieldKind::Number, vec![]),
        Some("integer") => (FormFieldKind::Integer, vec![]),
        Some("boolean") => (FormFieldKind::Boolean, vec![]),
        Some("array") => (FormFieldKind::Choices, options(&schema["items"])?),
        Some("string") => {
            let options = options(schema)?;
            let kind = if options.is_empty() { FormFieldKind::Text } else { FormFieldKind::Choice };
            (kind, options)
        }
        _ => return Err("it is no text, number, boolean or choice".to_owned()),
    };
    let bound = |keys: [&str; 3]| keys.iter().find_map(|key| schema[*key].as_f64());
    Ok(FormField {
        name: name.to_owned(),
        title: text("title"),
        description: text("description"),
        kind,
        options,
        required,
        default: schema.get("default").filter(|value| !value.is_null()).cloned(),
        min: bound(["minimum", "minLength", "minItems"]),
        max: bound(["maximum", "maxLength", "maxItems"]),
    })
}

/// Returns the values to choose from: of `enum`, with their titles, or of `oneOf` and `anyOf`.
fn options(schema: &Value) -> Result<Vec<FormOption>, String> {
    let list = |key: &str| schema[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let titles = list("enumNames");
    let plain = list("enum").iter().enumerate().map(|(at, value)| (value, titles.get(at)));
    let titled = list("oneOf").iter().chain(list("anyOf"));
    let titled = titled.map(|option| (&option["const"], option.get("title")));
    let all: Vec<(&Value, Option<&Value>)> = plain.chain(titled).collect();
    if all.len() > MAX_OPTIONS {
        return Err(format!("it has more than {MAX_OPTIONS} values to choose from"));
    }
    let one = |(value, title): (&Value, Option<&Value>)| {
        let value = value.as_str().ok_or("a value to choose is no text")?;
        if plain_line(value, MAX_NAME) != value {
            return Err("a value to choose is not a plain line".to_owned());
        }
        let title = title.and_then(Value::as_str).map(|title| plain_line(title, MAX_TEXT.1));
        Ok(FormOption { value: value.to_owned(), title })
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flat_schema_becomes_a_form() {
        let schema = json!({
            "type": "object", "required": ["day"],
            "properties": {
                "day": {"type": "string", "title": "Day\u{1b}[2J", "maxLength": 10},
                "guests": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
                "vegan": {"type": "boolean"},
                "room": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
                "extras": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}},
            },
        });
        let form = form("s\u{202e}", "Which\nday?", &schema).unwrap();
        assert_eq!((form.server.as_str(), form.message.as_str()), ("s", "Which day?"));
        let by_name = |name: &str| form.fields.iter().find(|f| f.name == name).unwrap();
        let day = by_name("day");
        assert_eq!((day.kind, day.required, day.max), (FormFieldKind::Text, true, Some(10.0)));
        assert_eq!(day.title.as_deref(), Some("Day"));
        let guests = by_name("guests");
        assert_eq!((guests.kind, guests.min), (FormFieldKind::Integer, Some(1.0)));
        assert_eq!(guests.default, Some(json!(2)));
        assert_eq!(by_name("vegan").kind, FormFieldKind::Boolean);
        let room = by_name("room");
        assert_eq!(room.kind, FormFieldKind::Choice);
        assert_eq!(room.options[1].title.as_deref(), Some("Second"));
        let extras = by_name("extras");
        assert_eq!((extras.kind, extras.options.len()), (FormFieldKind::Choices, 1));
    }

    #[test]
    fn nested_and_hostile_schemas_are_refused() {
        for properties in [
            json!({"a": {"type": "object", "properties": {}}}),
            json!({"a": {}}),
            json!({"": {"type": "string"}}),
            json!({"a\u{1b}[2J": {"type": "string"}}),
            json!({"a": {"type": "string", "enum": [1]}}),
            json!({"a": {"type": "string", "enum": ["x\ny"]}}),
            (0..50).map(|n| (n.to_string(), json!({"type": "string"}))).collect(),
        ] {
            let schema = json!({"type": "object", "properties": properties});
            assert!(form("s", "m", &schema).is_err(), "{schema}");
        }
        assert!(form("s", "m", &json!({})).is_err());
    }
}
