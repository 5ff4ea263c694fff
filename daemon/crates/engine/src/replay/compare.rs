//! Comparing what was with what is.

use cairn_protocol::trace::ReplayDifference;
use serde_json::Value;

/// Fields that tell when and how long, not what.
const PASSING: &[&str] = &[
    "tookUs",
    "took_us",
    "millis",
    "clock",
    "indexedAt",
    "updatedAt",
    "ts",
    "utc",
    "chunksPerSecond",
    "score",
    "explain",
];
/// Characters of a value that a difference shows.
const SHOWN: usize = 300;

/// The first place in which two values differ, with both, passing facts left out.
pub fn first(recorded: &Value, now: &Value) -> Option<(String, String, String)> {
    walk(recorded, now, &mut String::new())
}

fn walk(a: &Value, b: &Value, path: &mut String) -> Option<(String, String, String)> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().filter(|k| !PASSING.contains(&k.as_str())).find_map(|key| {
                let at = path.len();
                path.push('/');
                path.push_str(key);
                let none = Value::Null;
                let found = walk(x.get(key).unwrap_or(&none), y.get(key).unwrap_or(&none), path);
                path.truncate(at);
                found
            })
        }
        (Value::Array(x), Value::Array(y)) => {
            let shared = x.iter().zip(y).enumerate().find_map(|(i, (l, r))| {
                let at = path.len();
                path.push_str(&format!("/{i}"));
                let found = walk(l, r, path);
                path.truncate(at);
                found
            });
            shared.or_else(|| {
                let told = |n: usize| format!("{n} items");
                (x.len() != y.len()).then(|| (path.clone(), told(x.len()), told(y.len())))
            })
        }
        _ if a == b => None,
        _ => Some((path.clone(), shown(a), shown(b))),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// A difference in a step of that kind.
pub fn difference(seq: u64, what: String, recorded: &Value, now: &Value) -> Option<ReplayDifference> {
    let (path, recorded, now) = first(recorded, now)?;
    Some(ReplayDifference { seq, what, path, recorded, now })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_place_is_named_and_times_do_not_count() {
        let a = json!({"a": [1, {"b": "x"}], "tookUs": 5});
        assert_eq!(first(&a, &json!({"a": [1, {"b": "x"}], "tookUs": 9})), None);
        let (path, was, is) = first(&a, &json!({"a": [1, {"b": "y"}]})).unwrap();
        assert_eq!((path.as_str(), was.as_str(), is.as_str()), ("/a/1/b", "\"x\"", "\"y\""));
        assert_eq!(first(&a, &json!({"a": [1]})).unwrap().0, "/a");
        assert_eq!(first(&json!({}), &json!({"n": 1})).unwrap(), ("/n".into(), "null".into(), "1".into()));
    }
}
