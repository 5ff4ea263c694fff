//! Comparison of recorded values with current ones.

use cairn_protocol::trace::{ChangedFile, ReplayDifference};
use serde_json::Value;

/// Fields with times and durations, which a comparison ignores.
const VOLATILE_FIELDS: &[&str] = &[
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
/// Prefix of the id of a root; 16 hex digits follow.
const ROOT_ID: &str = "root_";
/// Characters of a value that a difference shows.
const MAX_VALUE_CHARS: usize = 300;

/// Returns the first position in which two values differ, with both values, ignoring times and
/// durations.
pub fn first(
    recorded: &Value,
    now: &Value,
    mapping: &RootMapping,
) -> Option<(String, String, String)> {
    walk(recorded, now, mapping, &mut String::new())
}

/// The former and the current root path, if a trace is replayed in another folder: its path, and
/// the id that is derived from it, differ.
#[derive(Debug, Clone, Default)]
pub struct RootMapping(Option<(String, String)>);

impl RootMapping {
    /// Creates the mapping from the former path to the current one.
    pub fn new(was: Option<&str>, is: Option<&str>) -> Self {
        Self(
            was.zip(is)
                .filter(|(was, is)| was != is)
                .map(|(was, is)| (was.to_owned(), is.to_owned())),
        )
    }

    fn same(&self, a: &Value, b: &Value) -> bool {
        let (Some((was, is)), Value::String(a), Value::String(b)) = (&self.0, a, b) else {
            return false;
        };
        let ids =
            [a, b].iter().all(|id| id.strip_prefix(ROOT_ID).is_some_and(|rest| rest.len() == 16));
        ids || a.replace(was.as_str(), is) == *b
    }
}

fn walk(
    a: &Value,
    b: &Value,
    mapping: &RootMapping,
    path: &mut String,
) -> Option<(String, String, String)> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut keys: Vec<&String> = x.keys().chain(y.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().filter(|k| !VOLATILE_FIELDS.contains(&k.as_str())).find_map(|key| {
                let at = path.len();
                path.push('/');
                path.push_str(key);
                let none = Value::Null;
                let result =
                    walk(x.get(key).unwrap_or(&none), y.get(key).unwrap_or(&none), mapping, path);
                path.truncate(at);
                result
            })
        }
        (Value::Array(x), Value::Array(y)) => {
            let shared = x.iter().zip(y).enumerate().find_map(|(i, (l, r))| {
                let at = path.len();
                path.push_str(&format!("/{i}"));
                let result = walk(l, r, mapping, path);
                path.truncate(at);
                result
            });
            shared.or_else(|| {
                let count = |n: usize| format!("{n} items");
                (x.len() != y.len()).then(|| (path.clone(), count(x.len()), count(y.len())))
            })
        }
        _ if a == b || mapping.same(a, b) => None,
        _ => Some((path.clone(), shorten(a), shorten(b))),
    }
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Creates a difference in a step of that kind.
pub fn difference(
    seq: u64,
    what: String,
    recorded: &Value,
    now: &Value,
    mapping: &RootMapping,
) -> Option<ReplayDifference> {
    let (path, was, is) = first(recorded, now, mapping)?;
    let file = file_at(recorded, &path).or_else(|| file_at(now, &path));
    Some(ReplayDifference { seq, what, path, file, recorded: was, now: is })
}

/// The path of the nearest object around a position that has one.
fn file_at(value: &Value, pointer: &str) -> Option<String> {
    let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
    let around = ends.filter_map(|end| value.pointer(&pointer[..end])).collect::<Vec<_>>();
    around.iter().rev().find_map(|value| Some(value.get("path")?.as_str()?.to_owned()))
}

/// The files whose contents differ between two maps from paths to hashes.
pub fn changed_files(recorded: &Value, now: &Value) -> Vec<ChangedFile> {
    let empty = serde_json::Map::new();
    let files = |value: &'_ Value| value.get("files").and_then(Value::as_object).cloned();
    let (was, is) = (files(recorded), files(now));
    let (was, is) = (was.as_ref().unwrap_or(&empty), is.as_ref().unwrap_or(&empty));
    let mut paths: Vec<&String> = was.keys().chain(is.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths.into_iter().filter_map(|path| {
        let status = match (was.get(path), is.get(path)) {
            (None, _) => "added",
            (_, None) => "deleted",
            (was, is) if was != is => "modified",
            _ => return None,
        };
        Some(ChangedFile { path: path.clone(), status: status.to_owned() })
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_difference_is_reported_and_times_are_ignored() {
        let first = |a: &Value, b: &Value| first(a, b, &RootMapping::default());
        let a = json!({"a": [1, {"b": "x"}], "tookUs": 5});
        assert_eq!(first(&a, &json!({"a": [1, {"b": "x"}], "tookUs": 9})), None);
        let (path, was, is) = first(&a, &json!({"a": [1, {"b": "y"}]})).unwrap();
        assert_eq!((path.as_str(), was.as_str(), is.as_str()), ("/a/1/b", "\"x\"", "\"y\""));
        assert_eq!(first(&a, &json!({"a": [1]})).unwrap().0, "/a");
        assert_eq!(
            first(&json!({}), &json!({"n": 1})).unwrap(),
            ("/n".into(), "null".into(), "1".into())
        );
    }
    #[test]
    fn difference_names_the_file() {
        let a = json!({"files": [{"path": "a.rs", "symbols": ["x"]}, {"path": "b.rs", "n": 1}]});
        let b = json!({"files": [{"path": "a.rs", "symbols": ["x"]}, {"path": "b.rs", "n": 2}]});
        let named = |a: &Value, b: &Value| {
            difference(1, "call x".into(), a, b, &RootMapping::default()).unwrap().file
        };
        assert_eq!(named(&a, &b).as_deref(), Some("b.rs"));
        assert_eq!(named(&json!({"path": "c", "text": "x"}), &Value::Null).as_deref(), Some("c"));
        assert_eq!(named(&json!([1]), &json!([2])), None);
    }

    #[test]
    fn changed_files_are_named() {
        let a = json!({"files": {"a": "1", "b": "2", "c": "3"}});
        let b = json!({"files": {"a": "1", "b": "9", "d": "4"}});
        let changed = changed_files(&a, &b);
        let all: Vec<(&str, &str)> =
            changed.iter().map(|file| (&*file.path, &*file.status)).collect();
        assert_eq!(all, [("b", "modified"), ("c", "deleted"), ("d", "added")]);
        assert!(changed_files(&a, &a).is_empty());
        assert_eq!(changed_files(&Value::Null, &json!({"files": 3})), []);
    }

    #[test]
    fn moved_root_is_no_difference_but_its_contents_are() {
        let a = json!({"root": "root_0011223344556677", "path": "/old/src/a", "text": "x"});
        let b = json!({"root": "root_9988776655443322", "path": "/new/src/a", "text": "x"});
        let mapping = RootMapping::new(Some("/old"), Some("/new"));
        assert_eq!(first(&a, &b, &mapping), None);
        assert!(
            first(&a, &b, &RootMapping::new(Some("/old"), Some("/old"))).is_some(),
            "the control"
        );
        let other = json!({"root": "root_9988776655443322", "path": "/new/src/b", "text": "x"});
        assert_eq!(first(&a, &other, &mapping).unwrap().0, "/path");
    }
}
