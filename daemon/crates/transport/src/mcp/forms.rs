//! Forms of other MCP servers, passed on to the user of this client by its own elicitation.

use cairn_protocol::approval::{Form, FormField, FormFieldKind};
use rmcp::model::ElicitationSchema;
use serde_json::{Map, Value, json};

/// Returns the text above the fields.
pub fn message(form: &Form) -> String {
    format!(
        "The MCP server '{}', which Cairn calls, requests values: {}",
        form.server, form.message
    )
}

/// Returns the fields as a schema.
pub fn schema(form: &Form) -> ElicitationSchema {
    let properties: Map<String, Value> =
        form.fields.iter().map(|field| (field.name.clone(), property(field))).collect();
    let required: Vec<&str> =
        form.fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let empty = || ElicitationSchema::new(Default::default());
    let Value::Object(schema) = schema else { return empty() };
    let mut schema = ElicitationSchema::from_json_schema(schema).unwrap_or_else(|_| empty());
    schema.property_order = Some(form.fields.iter().map(|field| field.name.clone()).collect());
    schema
}

fn property(field: &FormField) -> Value {
    let values: Vec<&str> = field.options.iter().map(|option| &*option.value).collect();
    let titles = field.options.iter().map(|o| o.title.as_deref().unwrap_or(&o.value));
    let titles: Vec<&str> = titles.collect();
    let (mut property, bounds) = match field.kind {
        FormFieldKind::Text => (json!({"type": "string"}), ["minLength", "maxLength"]),
        FormFieldKind::Number => (json!({"type": "number"}), ["minimum", "maximum"]),
        FormFieldKind::Integer => (json!({"type": "integer"}), ["minimum", "maximum"]),
        FormFieldKind::Boolean => return described(json!({"type": "boolean"}), field),
        FormFieldKind::Choice => {
            let choice = json!({"type": "string", "enum": values, "enumNames": titles});
            return described(choice, field);
        }
        FormFieldKind::Choices => (
            json!({"type": "array", "items": {"type": "string", "enum": values}}),
            ["minItems", "maxItems"],
        ),
    };
    for (key, bound) in bounds.into_iter().zip([field.min, field.max]) {
        let Some(bound) = bound else { continue };
        // Lengths and bounds of integers are integers in the schema.
        let is_integer = field.kind != FormFieldKind::Number && bound.fract() == 0.0;
        property[key] = if is_integer { json!(bound as i64) } else { json!(bound) };
    }
    described(property, field)
}

fn described(mut property: Value, field: &FormField) -> Value {
    if let Some(title) = &field.title {
        property["title"] = json!(title);
    }
    if let Some(description) = &field.description {
        property["description"] = json!(description);
    }
    if let Some(default) = &field.default {
        property["default"] = default.clone();
    }
    property
}

#[cfg(test)]
mod tests {
    use cairn_protocol::approval::FormOption;

    use super::*;

    #[test]
    fn fields_are_passed_on_with_their_bounds() {
        let field = |name: &str, kind| FormField {
            name: name.into(),
            title: Some("T".into()),
            description: None,
            kind,
            options: vec![FormOption { value: "a".into(), title: None }],
            required: name == "text",
            default: None,
            min: Some(1.0),
            max: Some(3.0),
        };
        let form = Form {
            server: "s".into(),
            message: "m".into(),
            fields: vec![
                field("text", FormFieldKind::Text),
                field("number", FormFieldKind::Number),
                field("integer", FormFieldKind::Integer),
                field("boolean", FormFieldKind::Boolean),
                field("choice", FormFieldKind::Choice),
                field("choices", FormFieldKind::Choices),
            ],
        };
        let schema = serde_json::to_value(schema(&form)).unwrap();
        let types: Vec<&Value> =
            form.fields.iter().map(|f| &schema["properties"][&f.name]["type"]).collect();
        assert_eq!(
            types,
            ["string", "number", "integer", "boolean", "string", "array"],
            "{schema:#}"
        );
        assert_eq!(schema["properties"]["text"]["maxLength"], 3);
        assert_eq!(schema["required"], json!(["text"]));
    }
}
