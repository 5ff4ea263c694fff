//! The configuration keys, derived from the schema.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// Matches any name in a dotted key.
pub(crate) const WILDCARD: &str = "*";

/// Lists every key with a value, dotted, in alphabetical order; `*` stands for names that the user
/// chooses.
pub(crate) fn leaves() -> &'static [String] {
    static LEAVES: OnceLock<Vec<String>> = OnceLock::new();
    LEAVES.get_or_init(|| {
        let mut all = Vec::new();
        collect(root(), &mut vec![], &mut all);
        all.sort();
        all
    })
}

fn root() -> &'static Value {
    static ROOT: OnceLock<Value> = OnceLock::new();
    ROOT.get_or_init(crate::schema)
}

/// Follows the schema's `$ref`, if it has one.
fn resolve(schema: &Value) -> &Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
    target.and_then(|path| root().pointer(path)).unwrap_or(schema)
}

fn collect(schema: &Value, path: &mut Vec<String>, all: &mut Vec<String>) {
    let schema = resolve(schema);
    let mut inner = |name: &str, schema: &Value, path: &mut Vec<String>| {
        path.push(name.to_owned());
        collect(schema, path, all);
        path.pop();
    };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        properties.iter().for_each(|(name, schema)| inner(name, schema, path));
    } else if let Some(any) = schema.get("additionalProperties").filter(|a| a.is_object()) {
        inner(WILDCARD, any, path);
    } else {
        all.push(path.join("."));
    }
}

/// Lists the keys of `value` that do not exist, dotted, each with the closest existing key.
pub(crate) fn unknown(value: &Map<String, Value>) -> Vec<(String, Option<String>)> {
    let mut unknown_keys = Vec::new();
    walk(root(), value, "", &mut unknown_keys);
    unknown_keys
}

fn walk(
    schema: &Value,
    value: &Map<String, Value>,
    prefix: &str,
    unknown_keys: &mut Vec<(String, Option<String>)>,
) {
    let schema = resolve(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let any = schema.get("additionalProperties").filter(|a| a.is_object());
    for (name, value) in value {
        // Editors read the address of the schema from this key.
        if prefix.is_empty() && name == "$schema" {
            continue;
        }
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let Some(inner) = properties.and_then(|p| p.get(name)).or(any) else {
            let nearest = nearest(name, &key, properties);
            unknown_keys.push((key, nearest));
            continue;
        };
        match value {
            Value::Object(map) => walk(inner, map, &key, unknown_keys),
            Value::Array(items) => {
                let Some(item) = resolve(inner).get("items") else { continue };
                for (n, map) in
                    items.iter().enumerate().filter_map(|(n, v)| v.as_object().map(|m| (n, m)))
                {
                    walk(item, map, &format!("{key}[{n}]"), unknown_keys);
                }
            }
            _ => {}
        }
    }
}

/// Renames the keys that are spelled in the other case style, as in `max_tokens` for `maxTokens`,
/// and returns each as it was with its name. A key that is there in both spellings stays.
pub(crate) fn respell(value: &mut Map<String, Value>) -> Vec<(String, String)> {
    let mut renamed = Vec::new();
    respell_section(root(), value, "", &mut renamed);
    renamed
}

fn respell_section(
    schema: &Value,
    value: &mut Map<String, Value>,
    prefix: &str,
    renamed: &mut Vec<(String, String)>,
) {
    let schema = resolve(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let full = |name: &str| {
        if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
    };
    if let Some(properties) = properties {
        let other_spelling = |name: &String| {
            let mut all = properties.keys().filter(|known| is_same(known, name));
            all.next().filter(|known| *known != name && !properties.contains_key(name)).cloned()
        };
        let names: Vec<(String, String)> =
            value.keys().filter_map(|name| Some((name.clone(), other_spelling(name)?))).collect();
        for (name, known) in names {
            if value.contains_key(&known) {
                continue;
            }
            if let Some(inner) = value.remove(&name) {
                value.insert(known.clone(), inner);
                renamed.push((full(&name), full(&known)));
            }
        }
    }
    let any = schema.get("additionalProperties").filter(|a| a.is_object());
    for (name, inner) in value.iter_mut() {
        let Some(schema) = properties.and_then(|p| p.get(name)).or(any) else { continue };
        match inner {
            Value::Object(map) => respell_section(schema, map, &full(name), renamed),
            Value::Array(items) => {
                let Some(schema) = resolve(schema).get("items") else { continue };
                for (n, item) in items.iter_mut().enumerate() {
                    let Value::Object(map) = item else { continue };
                    respell_section(schema, map, &format!("{}[{n}]", full(name)), renamed);
                }
            }
            _ => {}
        }
    }
}

/// True if the keys differ in nothing but their case style.
pub fn is_same(a: &str, b: &str) -> bool {
    letters(a) == letters(b)
}

fn letters(key: &str) -> String {
    key.replace('_', "").to_lowercase()
}

/// Finds the existing key that was probably intended, preferring keys of the same section and
/// ignoring case style.
fn nearest(name: &str, key: &str, section: Option<&Map<String, Value>>) -> Option<String> {
    let plain = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    };
    let alike = |candidate: &str| strsim::jaro_winkler(&plain(name), &plain(candidate));
    let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
    let in_section = section.into_iter().flatten().map(|(candidate, _)| {
        let full =
            if parent.is_empty() { candidate.clone() } else { format!("{parent}.{candidate}") };
        (alike(candidate), full)
    });
    let anywhere = leaves()
        .iter()
        .map(|leaf| (alike(leaf.rsplit('.').next().unwrap_or(leaf)) - 0.05, leaf.clone()));
    let best = in_section.chain(anywhere).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.82).then_some(best.1)
}

/// Lists the values by dotted key, descending into objects but not into lists.
pub(crate) fn flatten(value: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut out = Vec::new();
    let mut pending: Vec<(String, &Map<String, Value>)> = vec![(String::new(), value)];
    while let Some((prefix, map)) = pending.pop() {
        for (name, value) in map {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                Value::Object(map) if !map.is_empty() => pending.push((key, map)),
                // An empty section sets nothing.
                Value::Object(_) => {}
                value => out.push((key, value)),
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Looks up a dotted key.
pub(crate) fn get<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let mut parts = key.split('.');
    let first = map.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Sets a dotted key, creating the sections above it.
pub(crate) fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            map.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = map.entry(section).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Matches a dotted key against a pattern: `*` matches one name and a trailing `**` the rest.
pub(crate) fn matches(pattern: &str, key: &str) -> bool {
    let mut pattern = pattern.split('.');
    let mut key = key.split('.');
    loop {
        match (pattern.next(), key.next()) {
            (None, None) | (Some("**"), Some(_)) => return true,
            (Some(p), Some(k)) if p == WILDCARD || p == k => {}
            _ => return false,
        }
    }
}
