//! Python: `types.py` and `methods.py`.

use std::fmt::Write as _;

use super::{
    Call, Table, pascal_case,
    shape::{Field, NamedShape, Shape, Variant},
};

const HEAD: &str = "# Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.\n";

pub fn types(table: &Table) -> String {
    let mut out = format!(
        "\"\"\"Types of the wire, as plain dictionaries.\"\"\"\n{HEAD}\nfrom __future__ import \
        annotations\n\n\
         from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n\n\
         PROTOCOL_VERSIONS = [\"{}\"]\n\"\"\"Versions of the protocol that this client supports, best \
        first.\"\"\"\n",
        table.version()
    );
    let reasons: Vec<String> = table.reasons().iter().map(|r| format!("    \"{r}\",\n")).collect();
    let _ok = write!(
        out,
        "\nReason: TypeAlias = Literal[\n{}]\n\"\"\"Why a call failed: `error.data.reason`.\"\"\"\n",
        reasons.concat()
    );
    for named in table.types() {
        named_type(&mut out, &named);
    }
    out
}

fn named_type(out: &mut String, named: &NamedShape) {
    let doc = &named.doc;
    match &named.shape {
        Shape::Object(fields) => class(out, &named.name, doc, fields),
        Shape::Union(variants) => {
            let parts: Vec<String> =
                variants.iter().map(|v| variant(out, &named.name, v)).collect();
            let words = variants.iter().all(|v| matches!(v.shape, Shape::Word(_)));
            if words {
                let list: Vec<String> = variants
                    .iter()
                    .map(|v| format!("    {},{}\n", word(&v.shape), comment(&v.doc)))
                    .collect();
                let _ok =
                    write!(out, "\n{}: TypeAlias = Literal[\n{}]\n", named.name, list.concat());
            } else {
                let _ok = write!(
                    out,
                    "\n{}: TypeAlias = (\n    \"{}\"\n)\n",
                    named.name,
                    parts.join(" | \"\n    \"")
                );
            }
            docstring(out, "", doc);
        }
        other => {
            let _ok = write!(out, "\n{}: TypeAlias = \"{}\"\n", named.name, of(other));
            docstring(out, "", doc);
        }
    }
}

fn word(shape: &Shape) -> String {
    match shape {
        Shape::Word(word) => format!("\"{word}\""),
        other => of(other),
    }
}

fn comment(doc: &str) -> String {
    if doc.is_empty() { String::new() } else { format!("  # {}", doc.replace('\n', " ")) }
}

/// Renders one variant of a union; an object gets its own class first.
fn variant(out: &mut String, parent: &str, variant: &Variant) -> String {
    let Shape::Object(fields) = &variant.shape else { return of(&variant.shape) };
    let name = format!("{parent}{}", pascal_case(variant.shape.tag().unwrap_or("Variant")));
    class(out, &name, &variant.doc, fields);
    name
}

fn class(out: &mut String, name: &str, doc: &str, fields: &[Field]) {
    let mut body = String::new();
    for field in fields {
        let inner = of(&field.shape);
        let shape = if field.required { inner } else { format!("NotRequired[{inner}]") };
        let _ok = writeln!(body, "    {}: {shape}", field.name);
        docstring(&mut body, "    ", &field.doc);
    }
    if doc.is_empty() && body.is_empty() {
        body.push_str("    pass\n");
    }
    let _ok = write!(out, "\n\nclass {name}(TypedDict):\n");
    docstring(out, "    ", doc);
    if !doc.is_empty() && !body.is_empty() {
        out.push('\n');
    }
    out.push_str(&body);
}

fn docstring(out: &mut String, indent: &str, doc: &str) {
    if !doc.is_empty() {
        let text =
            doc.replace('\\', "\\\\").replace('"', "'").replace('\n', &format!("\n{indent}"));
        let _ok = writeln!(out, "{indent}\"\"\"{text}\"\"\"");
    }
}

/// Renders a type expression.
fn of(shape: &Shape) -> String {
    match shape {
        Shape::Any => "Any".into(),
        Shape::Null => "None".into(),
        Shape::Bool => "bool".into(),
        Shape::Int => "int".into(),
        Shape::Float => "float".into(),
        Shape::Text => "str".into(),
        Shape::Word(word) => format!("Literal[\"{word}\"]"),
        Shape::List(item) => format!("list[{}]", of(item)),
        // JSON has no tuples; the description contains the length.
        Shape::Tuple(item, _) => format!("list[{}]", of(item)),
        Shape::Map(item) => format!("dict[str, {}]", of(item)),
        Shape::Reference(name) => name.clone(),
        Shape::Union(variants) => {
            let parts: Vec<String> = variants.iter().map(|v| of(&v.shape)).collect();
            parts.join(" | ")
        }
        Shape::Object(_) => "dict[str, Any]".into(),
    }
}

/// The kinds of a client's methods.
#[derive(Clone, Copy)]
pub enum Calling {
    /// The methods are coroutines.
    Async,
    /// The methods return when the daemon has answered.
    Blocking,
}

impl Calling {
    fn class(self) -> &'static str {
        match self {
            Self::Async => "Methods",
            Self::Blocking => "BlockingMethods",
        }
    }

    fn define(self) -> &'static str {
        match self {
            Self::Async => "async def",
            Self::Blocking => "def",
        }
    }

    fn call(self) -> &'static str {
        match self {
            Self::Async => "await self.call",
            Self::Blocking => "self.call",
        }
    }
}

pub fn methods(table: &Table, calling: Calling) -> String {
    let mut out = format!(
        "\"\"\"Every method of the daemon, typed.\"\"\"\n{HEAD}\nfrom __future__ import annotations\n\n\
         from typing import Any, Mapping, Unpack\n\nfrom . import types as t\n\n\n\
         class {}:\n    \"\"\"Each returns the result documented in the protocol reference, or \
        raises `RpcError`.\"\"\"\n\n    \
         {} call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:\n        \
         \"\"\"Calls a method by its name on the wire.\"\"\"\n        raise NotImplementedError\n",
        calling.class(),
        calling.define()
    );
    for call in table.calls() {
        method(&mut out, &call, calling);
    }
    out
}

fn method(out: &mut String, call: &Call<'_>, calling: Calling) {
    let result = match &call.result {
        Shape::Reference(name) => format!("t.{name}"),
        other => of(other),
    };
    let _ok = write!(
        out,
        "\n    {} {}(self, **params: Unpack[t.{}]) -> {result}:\n",
        calling.define(),
        call.words().join("_"),
        call.params
    );
    docstring(out, "        ", &format!("`{}`: {}", call.name, call.summary));
    let _ok = writeln!(
        out,
        "        answer: {result} = {}(\"{}\", params)\n        return answer",
        calling.call(),
        call.name
    );
}
