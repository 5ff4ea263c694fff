//! A server's entry in a client's configuration, merged into JSON with comments or TOML without
//! other changes.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;

use crate::exit::Failure;

/// The content of `section.name`.
pub struct Entry {
    /// The object that contains all servers.
    pub section: &'static str,
    /// The server's name in it.
    pub name: &'static str,
    /// Its fields: strings and lists of strings.
    pub fields: Vec<(&'static str, Value)>,
}

/// The result of merging.
#[derive(Debug, PartialEq, Eq)]
pub enum Merged {
    /// The entry exists already.
    Same,
    /// The complete new text.
    Text(String),
}

/// Renders a file with only this entry.
///
/// # Errors
/// Never for entries of strings and lists.
pub fn alone(entry: &Entry, is_toml: bool) -> Result<String, Failure> {
    match merge("", entry, is_toml).map_err(Failure::failed)? {
        Merged::Text(text) => Ok(text),
        Merged::Same => Ok(String::new()),
    }
}

/// Merges the entry into a file's text, replacing one of the same name.
///
/// # Errors
/// The reason why the text cannot be parsed.
pub fn merge(text: &str, entry: &Entry, is_toml: bool) -> Result<Merged, String> {
    if is_toml { merge_toml(text, entry) } else { merge_json(text, entry) }
}

fn merge_json(text: &str, entry: &Entry) -> Result<Merged, String> {
    let expected_entry =
        Value::Object(entry.fields.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect());
    let base = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(base, &ParseOptions::default())
        .map_err(|e| format!("it is not JSON: {e}"))?;
    let top = root.object_value_or_create().ok_or("it is not an object")?;
    let existing = root.to_serde_value();
    if existing.as_ref().and_then(|v| v.get(entry.section)?.get(entry.name))
        == Some(&expected_entry)
    {
        return Ok(Merged::Same);
    }
    let section: CstObject = top
        .object_value_or_create(entry.section)
        .ok_or_else(|| format!("its '{}' is not an object", entry.section))?;
    let fields =
        entry.fields.iter().map(|(name, value)| ((*name).to_owned(), input(value))).collect();
    let value = CstInputValue::Object(fields);
    match section.get(entry.name) {
        Some(before) => before.set_value(value),
        None => drop(section.append(entry.name, value)),
    }
    let mut out = root.to_string();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(Merged::Text(out))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::String(text) => CstInputValue::String(text.clone()),
        other => CstInputValue::String(other.to_string()),
    }
}

fn merge_toml(text: &str, entry: &Entry) -> Result<Merged, String> {
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|e| format!("it is not TOML: {e}"))?;
    let fresh = || {
        let mut table = toml_edit::Table::new();
        table.set_implicit(true);
        toml_edit::Item::Table(table)
    };
    let section = document.entry(entry.section).or_insert_with(fresh);
    let section = section
        .as_table_like_mut()
        .ok_or_else(|| format!("its '{}' is not a table", entry.section))?;
    let mut table = toml_edit::Table::new();
    for (name, value) in &entry.fields {
        let value = match value {
            Value::Array(all) => {
                let texts = all.iter().map(|v| v.as_str().unwrap_or_default());
                toml_edit::Value::Array(texts.collect())
            }
            other => toml_edit::Value::from(other.as_str().unwrap_or_default()),
        };
        table.insert(name, toml_edit::Item::Value(value));
    }
    let same = section.get(entry.name).is_some_and(|before| {
        before.as_table_like().is_some_and(|before| {
            let text =
                |item: Option<&toml_edit::Item>| item.map(|i| i.to_string().trim().to_owned());
            before.len() == table.len()
                && table.iter().all(|(k, v)| text(before.get(k)) == text(Some(v)))
        })
    });
    if same {
        return Ok(Merged::Same);
    }
    section.insert(entry.name, toml_edit::Item::Table(table));
    Ok(Merged::Text(document.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Entry {
        Entry {
            section: "mcpServers",
            name: "cairn",
            fields: vec![("command", json!("/bin/cairn")), ("args", json!(["mcp"]))],
        }
    }

    fn text(merged: Result<Merged, String>) -> String {
        match merged.unwrap() {
            Merged::Text(text) => text,
            Merged::Same => panic!("nothing was changed"),
        }
    }

    #[test]
    fn json_merge_preserves_content_and_comments() {
        let before = "// mine\n{\n  \"theme\": \"dark\", // why\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" },\n  },\n}\n";
        let after = text(merge(before, &entry(), false));
        for expected in
            ["// mine", "\"dark\", // why", "\"other\": { \"command\": \"x\" }", "\"/bin/cairn\""]
        {
            assert!(after.contains(expected), "{expected} is not in:\n{after}");
        }
        assert_eq!(merge(&after, &entry(), false), Ok(Merged::Same));
        // An existing entry of the same name is replaced.
        let older = after.replace("/bin/cairn", "/old/cairn");
        let second_merge = text(merge(&older, &entry(), false));
        assert!(
            !second_merge.contains("/old/cairn") && second_merge.matches("\"cairn\"").count() == 1,
            "{second_merge}"
        );
        let value: Value = serde_json::from_str(&text(merge("", &entry(), false))).unwrap();
        assert_eq!(value["mcpServers"]["cairn"]["args"], json!(["mcp"]));
    }

    #[test]
    fn toml_merge_preserves_content_and_comments() {
        let before = "# mine\nmodel = \"m\" # why\n\n[mcpServers.other]\ncommand = \"x\"\n";
        let after = text(merge(before, &entry(), true));
        assert!(after.starts_with(before), "{after}");
        assert!(
            after.contains("[mcpServers.cairn]\ncommand = \"/bin/cairn\"\nargs = [\"mcp\"]\n"),
            "{after}"
        );
        assert_eq!(merge(&after, &entry(), true), Ok(Merged::Same));
        let second_merge = text(merge(&after.replace("/bin/cairn", "/old/cairn"), &entry(), true));
        assert!(
            !second_merge.contains("/old/cairn") && second_merge.contains("[mcpServers.other]"),
            "{second_merge}"
        );
    }

    #[test]
    fn unreadable_file_is_not_changed() {
        for (before, is_toml) in [
            ("{", false),
            ("[]", false),
            ("{\"mcpServers\": 1}", false),
            ("a = ", true),
            ("mcpServers = 1", true),
        ] {
            assert!(merge(before, &entry(), is_toml).is_err(), "{before}");
        }
    }
}
