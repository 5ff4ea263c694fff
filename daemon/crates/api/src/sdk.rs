//! Types and methods of the clients in other languages, generated from the method table.

mod python;
mod shape;
mod typescript;

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Path from the root of the repository, and content.
pub type GeneratedFile = (&'static str, String);

/// Methods that a client calls on its own.
const BUILT_IN_METHODS: [&str; 3] =
    ["initialize", "orchestrate.subscribe", "orchestrate.unsubscribe"];

/// Generates every file of the other languages' clients.
pub fn files() -> Vec<GeneratedFile> {
    let table = Table::new(crate::openrpc());
    vec![
        ("client-sdk/python/src/cairn_client/types.py", python::types(&table)),
        (
            "client-sdk/python/src/cairn_client/methods.py",
            python::methods(&table, python::Calling::Async),
        ),
        (
            "client-sdk/python/src/cairn_client/blocking_methods.py",
            python::methods(&table, python::Calling::Blocking),
        ),
        ("client-sdk/typescript/src/types.ts", typescript::types(&table)),
        ("client-sdk/typescript/src/methods.ts", typescript::methods(&table)),
    ]
}

/// The source of the generated files.
struct Table(Value);

/// A method as a client in another language offers it.
struct Call<'a> {
    /// Name on the wire.
    name: &'a str,
    summary: &'a str,
    /// Name of the params type.
    params: String,
    /// True if the method can be called without params.
    params_optional: bool,
    result: shape::Shape,
}

impl Table {
    fn new(document: Value) -> Self {
        Self(document)
    }

    fn schemas(&self) -> &Map<String, Value> {
        static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.0["components"]["schemas"].as_object().unwrap_or(&NONE)
    }

    fn types(&self) -> Vec<shape::NamedShape> {
        let all = self.schemas();
        all.iter().map(|(name, schema)| shape::NamedShape::read(name, schema, all)).collect()
    }

    /// Lists the methods that a client offers.
    fn calls(&self) -> Vec<Call<'_>> {
        let methods = list(&self.0, "methods").iter();
        let offered = methods.filter(|m| !BUILT_IN_METHODS.contains(&text(m, "name")));
        offered
            .map(|method| Call {
                name: text(method, "name"),
                summary: text(method, "summary"),
                params: shape::target(&method["x-params"]).unwrap_or("Empty").to_owned(),
                params_optional: list(method, "params").iter().all(|p| p["required"] != true),
                result: shape::Shape::read(&method["result"]["schema"], self.schemas()),
            })
            .collect()
    }

    /// Lists the notifications with their params types.
    fn notifications(&self) -> Vec<(&str, &str)> {
        let notifications = list(&self.0, "x-notifications").iter();
        notifications
            .map(|n| (text(n, "name"), shape::target(&n["schema"]).unwrap_or("Empty")))
            .collect()
    }

    /// Lists the error reasons.
    fn reasons(&self) -> Vec<&str> {
        list(&self.0, "x-errors").iter().map(|e| text(e, "reason")).collect()
    }

    fn version(&self) -> &str {
        text(&self.0["info"], "version")
    }
}

impl Call<'_> {
    /// Splits the method's name into words, without the prefix of the namespace.
    fn words(&self) -> Vec<String> {
        let name = self.name;
        let name =
            name.strip_prefix("orchestrate.").or_else(|| name.strip_prefix("rpc.")).unwrap_or(name);
        let mut words = vec![String::new()];
        for letter in name.chars() {
            if letter == '.' || letter.is_ascii_uppercase() {
                words.push(String::new());
            }
            if let Some(last) = words.last_mut()
                && letter != '.'
            {
                last.push(letter.to_ascii_lowercase());
            }
        }
        words
    }
}

/// Converts `snake_case` and dotted words to `PascalCase`.
fn pascal_case(words: &str) -> String {
    let parts = words.split(['_', '.', '-']);
    parts.fold(String::new(), |mut out, part| {
        let mut letters = part.chars();
        if let Some(first) = letters.next() {
            let _ok = write!(out, "{}{}", first.to_ascii_uppercase(), letters.as_str());
        }
        out
    })
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}
