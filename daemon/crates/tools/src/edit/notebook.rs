//! `edit_notebook`: cells of a Jupyter notebook (nbformat 4), whose JSON stays valid.

use std::collections::BTreeSet;

use cairn_harness::MustAsk;
use cairn_protocol::error::{Failure, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize as _};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Change, EditFile, Plan};

/// Change of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellAction {
    Replace,
    Insert,
    Delete,
}

/// Kind of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CellType {
    Code,
    Markdown,
    Raw,
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// Arguments of the tool `edit_notebook`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditNotebook {
    /// Path of the notebook, relative to the workspace.
    path: String,
    /// `replace` the source of a cell, `insert` a cell after the named one, or `delete` a cell.
    action: CellAction,
    /// Id of the cell.
    #[serde(default)]
    cell_id: Option<String>,
    /// Number of the cell from 0, instead of its id. A cell is inserted first without either.
    #[serde(default)]
    index: Option<usize>,
    /// Kind of the cell; `code` for a new one when omitted.
    #[serde(default)]
    cell_type: Option<CellType>,
    /// The complete source of the cell.
    #[serde(default)]
    source: Option<String>,
}

fn bad(text: String) -> Failure {
    Failure::new(Reason::InvalidParams, text)
}

impl EditNotebook {
    /// Returns the number of the named cell.
    fn find(&self, cells: &[Value]) -> Result<Option<usize>, Failure> {
        match (&self.cell_id, self.index) {
            (Some(_), Some(_)) => Err(bad("give either cell_id or index".into())),
            (Some(id), None) => {
                let has_id = |cell: &Value| cell["id"].as_str() == Some(id);
                let mut found = cells.iter().enumerate().filter(|(_, cell)| has_id(cell));
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => Ok(Some(at)),
                    (None, _) => Err(bad(format!("no cell has the id '{}'", id.escape_default()))),
                    _ => Err(bad(format!("several cells have the id '{}'", id.escape_default()))),
                }
            }
            (None, Some(at)) if at >= cells.len() => {
                Err(bad(format!("there is no cell {at}: the notebook has {}", cells.len())))
            }
            (None, at) => Ok(at),
        }
    }

    fn apply(&self, notebook: &mut Value) -> Result<(), Failure> {
        if notebook["nbformat"] != 4 {
            return Err(bad("it is not a notebook of nbformat 4".into()));
        }
        let has_ids = notebook["nbformat_minor"].as_u64().unwrap_or(0) >= 5;
        let no_cells = || bad("it is not a notebook: it has no list of cells".into());
        let cells = notebook.get_mut("cells").and_then(Value::as_array_mut).ok_or_else(no_cells)?;
        let found = self.find(cells)?;
        let named = || found.ok_or_else(|| bad("name the cell by cell_id or index".into()));
        let source = || self.source.as_deref().ok_or_else(|| bad("source is missing".into()));
        match self.action {
            CellAction::Delete => drop(cells.remove(named()?)),
            CellAction::Replace => {
                let source = source()?;
                let cell = cells.get_mut(named()?).and_then(Value::as_object_mut);
                let cell = cell.ok_or_else(|| bad("the cell is not an object".into()))?;
                set(cell, self.cell_type, source);
            }
            CellAction::Insert => {
                let source = source()?;
                let at = found.map_or(0, |at| at + 1);
                let mut cell = Map::new();
                let kind = self.cell_type.unwrap_or(CellType::Code);
                cell.insert("cell_type".into(), kind.name().into());
                if has_ids {
                    cell.insert("id".into(), new_id(cells, at, source).into());
                }
                cell.insert("metadata".into(), json!({}));
                set(&mut cell, Some(kind), source);
                cells.insert(at, cell.into());
            }
        }
        Ok(())
    }
}

/// Sets kind and source of a cell. Outputs belong to the former source; only cells with code may
/// have any.
fn set(cell: &mut Map<String, Value>, kind: Option<CellType>, source: &str) {
    if let Some(kind) = kind {
        cell.insert("cell_type".into(), kind.name().into());
    }
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    cell.insert("source".into(), json!(lines));
    if cell.get("cell_type").and_then(Value::as_str) == Some("code") {
        cell.remove("attachments");
        cell.insert("execution_count".into(), Value::Null);
        cell.insert("outputs".into(), json!([]));
    } else {
        cell.remove("execution_count");
        cell.remove("outputs");
    }
}

/// Returns an id that no cell has. The approved call and the one that runs have the same.
fn new_id(cells: &[Value], at: usize, source: &str) -> String {
    let known: BTreeSet<&str> = cells.iter().filter_map(|cell| cell["id"].as_str()).collect();
    let digest = |n: usize| Sha256::digest(format!("{n} {at} {source}").as_bytes());
    let id = |n| digest(n).iter().take(4).map(|b| format!("{b:02x}")).collect::<String>();
    (0..=cells.len()).map(id).find(|id| !known.contains(id.as_str())).unwrap_or_default()
}

/// Serialises a notebook with the indentation of its text.
fn render(notebook: &Value, text: &str) -> Result<Vec<u8>, Failure> {
    let second = text.lines().nth(1).unwrap_or(" ");
    let indent = &second[..second.len() - second.trim_start().len()];
    let indent = if indent.is_empty() { " " } else { indent };
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut out = Vec::new();
    notebook
        .serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))
        .map_err(|e| Failure::new(Reason::Internal, format!("the notebook: {e}")))?;
    if text.ends_with('\n') {
        out.push(b'\n');
    }
    Ok(out)
}

impl Plan for EditNotebook {
    const NAME: &'static str = "edit_notebook";
    const DESCRIPTION: &'static str = "Replaces, inserts or deletes one cell of a Jupyter notebook. \
        The outputs of a changed cell are removed.";
    const RULES_OF: Option<&'static str> = Some(EditFile::NAME);

    fn path(&self) -> &str {
        &self.path
    }

    fn plan(self, rel: &str, before: Option<Vec<u8>>) -> Result<Change, Failure> {
        let missing = || Failure::new(Reason::PathNotFound, format!("'{rel}' does not exist"));
        let before = before.ok_or_else(missing)?;
        let invalid = |why: String| bad(format!("'{rel}': {why}"));
        let text = std::str::from_utf8(&before).map_err(|e| invalid(e.to_string()))?;
        let mut notebook: Value = serde_json::from_str(text).map_err(|e| invalid(e.to_string()))?;
        self.apply(&mut notebook).map_err(|e| invalid(e.message))?;
        let after = render(&notebook, text)?;
        Ok(Change::replace(rel, Some(before), after))
    }

    fn must_ask(seen: bool, before: Option<&[u8]>) -> Option<MustAsk> {
        EditFile::must_ask(seen, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTEBOOK: &str = concat!(
        "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n",
        "   \"id\": \"aa\",\n   \"metadata\": {},\n   \"outputs\": [\n    {}\n   ],\n",
        "   \"source\": [\n    \"x = 1\"\n   ]\n  }\n ],\n \"metadata\": {},\n",
        " \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n",
    );

    fn edited(text: &str, arguments: Value) -> Result<(String, Value), String> {
        let mut all = json!({"path": "n.ipynb"});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let edit: EditNotebook = serde_json::from_value(all).unwrap();
        let change = edit.plan("n.ipynb", Some(text.into())).map_err(|e| e.message)?;
        let text = String::from_utf8(change.after.unwrap()).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        Ok((text, value))
    }

    #[test]
    fn replaced_source_has_no_outputs_and_the_rest_is_unchanged() {
        let arguments = json!({"action": "replace", "cell_id": "aa", "source": "y = 2\nz = 3"});
        let (text, value) = edited(NOTEBOOK, arguments).unwrap();
        assert_eq!(value["cells"][0]["source"], json!(["y = 2\n", "z = 3"]));
        assert_eq!(value["cells"][0]["outputs"], json!([]));
        assert_eq!(value["cells"][0]["execution_count"], Value::Null);
        let (_, end) = NOTEBOOK.split_once(" \"metadata\": {},\n \"nbformat\"").unwrap();
        assert!(text.ends_with(end) && text.starts_with("{\n \"cells\": [\n  {\n"), "{text}");
        let markdown = json!({"action": "replace", "index": 0, "cell_type": "markdown",
            "source": "# a"});
        let (_, value) = edited(NOTEBOOK, markdown).unwrap();
        let cell = value["cells"][0].as_object().unwrap();
        assert!(!cell.contains_key("outputs") && !cell.contains_key("execution_count"));
    }

    #[test]
    fn inserted_cell_has_an_id_of_its_own_where_the_format_has_ids() {
        let insert = json!({"action": "insert", "cell_id": "aa", "source": "1"});
        let (first, value) = edited(NOTEBOOK, insert.clone()).unwrap();
        let id = value["cells"][1]["id"].as_str().unwrap();
        assert!(id.len() == 8 && value["cells"][0]["id"] == "aa");
        assert_eq!(edited(NOTEBOOK, insert.clone()).unwrap().0, first);
        let old = NOTEBOOK.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
        assert!(edited(&old, insert).unwrap().1["cells"][1].get("id").is_none());
        let (_, value) = edited(NOTEBOOK, json!({"action": "insert", "source": "0"})).unwrap();
        assert_eq!(
            (&value["cells"][0]["source"], &value["cells"][1]["id"]),
            (&json!(["0"]), &json!("aa"))
        );
        let (_, value) = edited(NOTEBOOK, json!({"action": "delete", "index": 0})).unwrap();
        assert_eq!(value["cells"], json!([]));
    }

    #[test]
    fn invalid_notebooks_and_cells_are_refused() {
        for (text, arguments, expected) in [
            (NOTEBOOK, json!({"action": "delete"}), "name the cell"),
            (NOTEBOOK, json!({"action": "delete", "index": 1}), "there is no cell 1"),
            (NOTEBOOK, json!({"action": "delete", "cell_id": "b"}), "no cell has the id"),
            (NOTEBOOK, json!({"action": "replace", "index": 0}), "source is missing"),
            ("{}", json!({"action": "delete", "index": 0}), "nbformat 4"),
            ("[", json!({"action": "delete", "index": 0}), "EOF"),
            (r#"{"nbformat": 4}"#, json!({"action": "delete", "index": 0}), "no list of cells"),
        ] {
            let error = edited(text, arguments).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
