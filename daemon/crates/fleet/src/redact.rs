//! Records as they leave the machine: apparent secrets are removed from every text in them.

use serde_json::Value;

/// Returns the record with `[secret]` in place of apparent secrets. `None` if it is not JSON.
pub fn record(line: &str) -> Option<String> {
    // Escapes other than those of quotes and control characters could hide a word.
    if !cairn_harness::may_have_secrets(line) && !line.contains("\\u") {
        return line.starts_with('{').then(|| line.to_owned());
    }
    let mut value: Value = serde_json::from_str(line).ok()?;
    if redact(&mut value) { serde_json::to_string(&value).ok() } else { Some(line.to_owned()) }
}

/// Redacts the texts of a value; true if one was changed.
fn redact(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let clean = cairn_harness::redact_secrets(text);
            let changed = clean != *text;
            *text = clean;
            changed
        }
        Value::Array(all) => {
            let mut any = false;
            // Each value, whatever the others are.
            all.iter_mut().for_each(|value| any |= redact(value));
            any
        }
        // The value of a field with the name of a secret is one, whatever it looks like.
        Value::Object(fields) => fields.iter_mut().fold(false, |any, (name, value)| {
            if is_secret_name(name) && value.is_string() {
                *value = "[secret]".into();
                return true;
            }
            redact(value) || any
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "secret", "apikey", "api_key", "authorization", "credential"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_records_are_removed() {
        let line =
            r#"{"seq":1,"evt":{"text":"run GITHUB_TOKEN=\"ab c\" make","n":3,"apiKey":"x1"}}"#;
        let clean = record(line).unwrap();
        assert!(!clean.contains("ab c") && !clean.contains("x1"), "{clean}");
        let value: Value = serde_json::from_str(&clean).unwrap();
        assert_eq!((&value["seq"], &value["evt"]["n"]), (&1.into(), &3.into()));
        let plain = r#"{"seq":2,"evt":{"text":"cargo test --lib"}}"#;
        assert_eq!(record(plain).unwrap(), plain);
        assert_eq!(record("token {"), None);
        assert_eq!(record("text"), None);
        let escaped = record(r#"{"text":"\u0074oken=abc"}"#).unwrap();
        assert_eq!(escaped, r#"{"text":"token=[secret]"}"#);
    }
}
