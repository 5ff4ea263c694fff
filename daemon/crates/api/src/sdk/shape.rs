//! JSON Schemas reduced to the few shapes that types of a language have.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Any,
    Null,
    Bool,
    Int,
    Float,
    Text,
    /// A string with exactly this value.
    Word(String),
    List(Box<Shape>),
    /// A list of exactly this length.
    Tuple(Box<Shape>, usize),
    Map(Box<Shape>),
    Reference(String),
    Union(Vec<Variant>),
    Object(Vec<Field>),
}

/// One alternative of a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    pub doc: String,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub doc: String,
    pub required: bool,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedShape {
    pub name: String,
    pub doc: String,
    pub shape: Shape,
}

type Schemas = Map<String, Value>;

/// Returns the name of the type that a schema refers to.
pub fn target(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn doc(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}

impl NamedShape {
    pub fn read(name: &str, schema: &Value, all: &Schemas) -> Self {
        Self { name: name.to_owned(), doc: doc(schema), shape: Shape::read(schema, all) }
    }
}

impl Shape {
    pub fn read(schema: &Value, all: &Schemas) -> Self {
        let own = fields(schema, all);
        if let Some(name) = target(schema) {
            let Some(Self::Object(inherited)) =
                all.get(name).filter(|_| !own.is_empty()).map(|s| Self::read(s, all))
            else {
                return Self::Reference(name.to_owned());
            };
            return object([own, inherited].concat());
        }
        if let Some(word) = schema["const"].as_str() {
            return Self::Word(word.to_owned());
        }
        let choices = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array());
        if let Some(choices) = choices {
            let variant = |choice: &Value| {
                let shape = match Self::read(choice, all) {
                    Self::Object(fields) => object([own.clone(), fields].concat()),
                    other => other,
                };
                Variant { doc: doc(choice), shape }
            };
            return Self::Union(choices.iter().map(variant).collect());
        }
        match &schema["type"] {
            Value::String(kind) => Self::of_kind(kind, schema, own, all),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let shapes = kinds.map(|kind| Self::of_kind(kind, schema, own.clone(), all));
                Self::Union(shapes.map(|shape| Variant { doc: String::new(), shape }).collect())
            }
            _ => Self::Any,
        }
    }

    fn of_kind(kind: &str, schema: &Value, own: Vec<Field>, all: &Schemas) -> Self {
        match kind {
            "null" => Self::Null,
            "boolean" => Self::Bool,
            "integer" => Self::Int,
            "number" => Self::Float,
            "string" => Self::Text,
            "array" => {
                let item = Box::new(Self::read(&schema["items"], all));
                match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                    (Some(min), Some(max)) if min == max => {
                        Self::Tuple(item, usize::try_from(max).unwrap_or_default())
                    }
                    _ => Self::List(item),
                }
            }
            "object" if own.is_empty() && open(schema) => {
                Self::Map(Box::new(Self::read(&schema["additionalProperties"], all)))
            }
            "object" => object(own),
            _ => Self::Any,
        }
    }

    /// Returns the constant that distinguishes the object within its union.
    pub fn tag(&self) -> Option<&str> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find_map(|field| match &field.shape {
            Self::Word(word) => Some(word.as_str()),
            _ => None,
        })
    }
}

/// Builds an object whose tag comes first, then required fields, then the others.
fn object(mut fields: Vec<Field>) -> Shape {
    fields.sort_by_key(|f| (!matches!(f.shape, Shape::Word(_)), !f.required));
    Shape::Object(fields)
}

/// Returns true if an object accepts further fields.
fn open(schema: &Value) -> bool {
    !matches!(schema["additionalProperties"], Value::Null | Value::Bool(false))
}

fn fields(schema: &Value, all: &Schemas) -> Vec<Field> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let read = |(name, schema): (&String, &Value)| Field {
        name: name.clone(),
        doc: doc(schema),
        required: required.iter().any(|r| r == name),
        shape: Shape::read(schema, all),
    };
    properties.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_converted_to_shapes() {
        let all = json!({"Base": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}});
        let read = |schema: Value| Shape::read(&schema, all.as_object().unwrap());
        let plain = |shape| Variant { doc: String::new(), shape };
        let field = |name: &str, required, shape| Field {
            name: name.into(),
            doc: String::new(),
            required,
            shape,
        };
        for (schema, expected) in [
            (json!(true), Shape::Any),
            (json!({"type": "integer", "format": "uint64"}), Shape::Int),
            (
                json!({"type": ["string", "null"]}),
                Shape::Union(vec![plain(Shape::Text), plain(Shape::Null)]),
            ),
            (
                json!({"$ref": "#/components/schemas/Base", "description": "x"}),
                Shape::Reference("Base".into()),
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
                Shape::Tuple(Box::new(Shape::Int), 2),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                Shape::Map(Box::new(Shape::Text)),
            ),
            (json!({"type": "object", "additionalProperties": false}), Shape::Object(vec![])),
            (
                json!({"$ref": "#/components/schemas/Base", "type": "object",
                    "properties": {"type": {"const": "base"}}, "required": ["type"]}),
                Shape::Object(vec![
                    field("type", true, Shape::Word("base".into())),
                    field("b", true, Shape::Text),
                ]),
            ),
            (
                json!({"properties": {"seq": {"type": "integer"}}, "oneOf": [
                    {"type": "object", "properties": {"k": {"const": "A"}}, "required": ["k"]}]}),
                Shape::Union(vec![plain(Shape::Object(vec![
                    field("k", true, Shape::Word("A".into())),
                    field("seq", false, Shape::Int),
                ]))]),
            ),
        ] {
            assert_eq!(read(schema.clone()), expected, "{schema}");
        }
    }
}
