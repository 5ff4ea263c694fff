//! JSON Schemas of tool arguments.

use boon::{Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

/// Address of a schema within its own compiler.
const ADDRESS: &str = "cairn:/arguments.json";

pub(crate) struct ArgumentSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

/// Refuses all other documents: a foreign schema must not make the daemon read or fetch anything.
struct NoDocuments;

impl UrlLoader for NoDocuments {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("it refers to another document, {}", url.escape_default()).into())
    }
}

impl ArgumentSchema {
    /// Compiles a schema of draft 4, 6, 7, 2019-09 or 2020-12; the last is the default.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(NoDocuments));
        compiler.add_resource(ADDRESS, schema.clone()).map_err(|e| e.to_string())?;
        let index = compiler.compile(ADDRESS, &mut schemas).map_err(|e| format!("{e:#}"))?;
        Ok(Self { schemas, index })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// The location and the cause of the first error.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), String> {
        self.schemas.validate(arguments, self.index).map_err(|error| {
            let error = innermost(&error);
            format!("arguments{}: {}", error.instance_location, error.kind)
        })
    }
}

/// The outer errors say only that an inner one exists.
fn innermost<'e, 's, 'v>(error: &'e ValidationError<'s, 'v>) -> &'e ValidationError<'s, 'v> {
    error.causes.first().map_or(error, innermost)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_error_has_location_and_cause() {
        let schema = json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "k": {"type": "integer", "minimum": 1}}
        });
        let schema = ArgumentSchema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({"path": "a", "k": 3})), Ok(()));
        let error = |arguments: Value| schema.check(&arguments).unwrap_err();
        assert_eq!(
            error(json!({"path": "a", "k": "x"})),
            "arguments/k: want integer, but got string"
        );
        assert_eq!(error(json!({})), "arguments: missing properties 'path'");
        let unknown = error(json!({"path": "a", "z": 1}));
        assert_eq!(unknown, "arguments: additionalProperties 'z' not allowed");
    }

    #[test]
    fn invalid_schemas_and_other_documents_are_refused() {
        assert!(ArgumentSchema::compile(&json!({"type": "nonsense"})).is_err());
        for url in ["file:///etc/passwd", "https://schemas.test/a.json", "other.json"] {
            let refused = ArgumentSchema::compile(&json!({"$ref": url})).err().unwrap();
            assert!(refused.contains("another document"), "{url}: {refused}");
        }
        // Control: a reference within the schema is resolved.
        let own = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}});
        let own = ArgumentSchema::compile(&own).unwrap();
        assert!(own.check(&json!(1)).is_ok() && own.check(&json!("x")).is_err());
    }
}
