//! TypeScript: `types.ts` and `methods.ts`.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    Table, pascal_case,
    shape::{Field, NamedShape, Shape},
};

const HEAD: &str = "// Generated from the method table: CAIRN_UPDATE=1 cargo test -p cairn-methods --test generated.\n";

pub fn types(table: &Table) -> String {
    let reasons: Vec<String> = table.reasons().iter().map(|r| format!("\n  | \"{r}\"")).collect();
    let mut out = format!(
        "{HEAD}\n/** Versions of the protocol that this client supports, best first. */\n\
         export const PROTOCOL_VERSIONS = [\"{}\"];\n\n\
         /** Why a call failed: `error.data.reason`. */\nexport type Reason ={};\n",
        table.version(),
        reasons.concat()
    );
    for named in table.types() {
        named_type(&mut out, &named);
    }
    out.push_str(
        "\n/** Notifications of the daemon, with their params. */\nexport interface Notifications {\n",
    );
    for (name, params) in table.notifications() {
        let _ok = writeln!(out, "  \"{name}\": {params};");
    }
    out.push_str("}\n");
    out
}

fn named_type(out: &mut String, named: &NamedShape) {
    out.push('\n');
    comment(out, "", &named.doc);
    match &named.shape {
        Shape::Object(fields) => {
            let _ok = writeln!(out, "export interface {} {}", named.name, object("", fields));
        }
        Shape::Union(variants) => {
            let _ok = write!(out, "export type {} =", named.name);
            for variant in variants {
                out.push('\n');
                comment(out, "  ", &variant.doc);
                let _ok = write!(out, "  | {}", of("  ", &variant.shape));
            }
            out.push_str(";\n");
        }
        other => {
            let _ok = writeln!(out, "export type {} = {};", named.name, of("", other));
        }
    }
}

fn comment(out: &mut String, indent: &str, doc: &str) {
    if !doc.is_empty() {
        let text = doc.replace("*/", "* /").replace('\n', &format!("\n{indent} * "));
        let _ok = writeln!(out, "{indent}/** {text} */");
    }
}

fn object(indent: &str, fields: &[Field]) -> String {
    if fields.is_empty() {
        return "{}".into();
    }
    let inner = format!("{indent}  ");
    let mut out = String::from("{\n");
    for field in fields {
        comment(&mut out, &inner, &field.doc);
        let mark = if field.required { "" } else { "?" };
        let _ok = writeln!(out, "{inner}{}{mark}: {};", field.name, of(&inner, &field.shape));
    }
    out + indent + "}"
}

/// Renders a type expression.
fn of(indent: &str, shape: &Shape) -> String {
    match shape {
        Shape::Any => "unknown".into(),
        Shape::Null => "null".into(),
        Shape::Bool => "boolean".into(),
        Shape::Int | Shape::Float => "number".into(),
        Shape::Text => "string".into(),
        Shape::Word(word) => format!("\"{word}\""),
        Shape::List(item) => format!("Array<{}>", of(indent, item)),
        Shape::Tuple(item, size) => format!("[{}]", vec![of(indent, item); *size].join(", ")),
        Shape::Map(item) => format!("Record<string, {}>", of(indent, item)),
        Shape::Reference(name) => name.clone(),
        Shape::Union(variants) => {
            let parts: Vec<String> = variants.iter().map(|v| of(indent, &v.shape)).collect();
            parts.join(" | ")
        }
        Shape::Object(fields) => object(indent, fields),
    }
}

pub fn methods(table: &Table) -> String {
    let calls = table.calls();
    let mut named: BTreeSet<&str> = calls.iter().map(|c| c.params.as_str()).collect();
    named.extend(calls.iter().filter_map(|c| match &c.result {
        Shape::Reference(name) => Some(name.as_str()),
        _ => None,
    }));
    let imports: Vec<String> = named.iter().map(|n| format!("  {n},\n")).collect();
    let mut out =
        format!("{HEAD}\nimport type {{\n{}}} from \"./types.js\";\n\n", imports.concat());
    out.push_str(
        "/** Every method of the daemon, typed. Each returns the result documented in the protocol \
        reference, or rejects with `RpcError`. */\n\
         export abstract class Methods {\n  /** Calls a method by its name on the wire. */\n  \
         abstract call<R = unknown>(method: string, params?: object): Promise<R>;\n",
    );
    for call in &calls {
        let words = call.words();
        let name = words[0].clone() + &pascal_case(&words[1..].join("_"));
        let absent = if call.params_optional { " = {}" } else { "" };
        let params = &call.params;
        let result = of("", &call.result);
        out.push('\n');
        comment(&mut out, "  ", &format!("`{}`: {}", call.name, call.summary));
        let _ok = writeln!(
            out,
            "  {name}(params: {params}{absent}): Promise<{result}> {{\n    return this.call(\"{}\", params);\n  }}",
            call.name
        );
    }
    out + "}\n"
}
