//! `edit_notebook`: cells of a Jupyter notebook (nbformat 4), whose JSON stays valid.

use std::{collections::BTreeSet, ops::Range};

use cairn_harness::MustAsk;
use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{LineEnd, TextFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize as _};
use serde_json::{Map, Value, json, value::RawValue};
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

    /// Returns the change of one cell of the notebook.
    fn plan_cell(&self, notebook: &Value) -> Result<CellChange, Failure> {
        if notebook["nbformat"] != 4 {
            return Err(bad("it is not a notebook of nbformat 4".into()));
        }
        let has_ids = notebook["nbformat_minor"].as_u64().unwrap_or(0) >= 5;
        let no_cells = || bad("it is not a notebook: it has no list of cells".into());
        let cells = notebook.get("cells").and_then(Value::as_array).ok_or_else(no_cells)?;
        let found = self.find(cells)?;
        let named = || found.ok_or_else(|| bad("name the cell by cell_id or index".into()));
        let source = || self.source.as_deref().ok_or_else(|| bad("source is missing".into()));
        match self.action {
            CellAction::Delete => Ok(CellChange::Delete(named()?)),
            CellAction::Replace => {
                let source = source()?;
                let at = named()?;
                let cell = cells.get(at).and_then(Value::as_object).cloned();
                let mut cell = cell.ok_or_else(|| bad("the cell is not an object".into()))?;
                set(&mut cell, self.cell_type, source);
                Ok(CellChange::Replace(at, cell.into()))
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
                Ok(CellChange::Insert(at, cell.into()))
            }
        }
    }
}

/// Change of the list of cells.
enum CellChange {
    Replace(usize, Value),
    /// Before the cell of this number, or after the last one.
    Insert(usize, Value),
    Delete(usize),
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

/// The list of cells in the text of a notebook, whose other bytes an edit does not touch.
#[derive(Deserialize)]
struct RawNotebook<'t> {
    #[serde(borrow)]
    cells: &'t RawValue,
}

/// Positions of the cells in the text of a notebook.
struct CellSpans<'t> {
    file: &'t TextFile,
    list: Range<usize>,
    cells: Vec<Range<usize>>,
}

impl<'t> CellSpans<'t> {
    fn new(file: &'t TextFile) -> Result<Self, serde_json::Error> {
        let text = file.text();
        // A raw value borrows from the text.
        let span = |raw: &RawValue| {
            let start = raw.get().as_ptr().addr() - text.as_ptr().addr();
            start..start + raw.get().len()
        };
        let list: RawNotebook<'_> = serde_json::from_str(text)?;
        let cells: Vec<&RawValue> = serde_json::from_str(list.cells.get())?;
        let cells = cells.into_iter().map(span).collect();
        Ok(Self { file, list: span(list.cells), cells })
    }

    /// Returns the text with a change of its cells.
    fn changed(&self, change: &CellChange) -> Result<String, Failure> {
        let text = self.file.text();
        let count = self.cells.len();
        let (range, new) = match change {
            CellChange::Replace(at, cell) => {
                let range = self.cells[*at].clone();
                (range.clone(), self.rendered(cell, range.start)?)
            }
            CellChange::Delete(_) if count < 2 => (self.list.clone(), "[]".to_owned()),
            CellChange::Delete(at) if at + 1 < count => {
                (self.cells[*at].start..self.cells[at + 1].start, String::new())
            }
            CellChange::Delete(at) => (self.cells[at - 1].end..self.cells[*at].end, String::new()),
            CellChange::Insert(_, cell) if count == 0 => {
                (self.list.clone(), self.first_cell(cell)?)
            }
            CellChange::Insert(at, cell) if *at < count => {
                let start = self.cells[*at].start;
                (start..start, self.rendered(cell, start)? + "," + self.blanks_before(start))
            }
            CellChange::Insert(_, cell) => {
                let last = &self.cells[count - 1];
                let blanks = self.blanks_before(last.start);
                (last.end..last.end, format!(",{blanks}{}", self.rendered(cell, last.start)?))
            }
        };
        Ok([&text[..range.start], new.as_str(), &text[range.end..]].concat())
    }

    fn blanks_before(&self, at: usize) -> &'t str {
        let before = &self.file.text()[..at];
        &before[before.trim_end().len()..]
    }

    /// Returns the indentation of the line that contains a position.
    fn indent_at(&self, at: usize) -> &'t str {
        let text = self.file.text();
        let line = &text[text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// Returns one step of indentation: that of the second line.
    fn step(&self) -> &'t str {
        let lines = self.file.lines();
        let second = lines.get(1).map_or(" ", |line| line.text);
        let step = &second[..second.len() - second.trim_start().len()];
        if step.is_empty() { " " } else { step }
    }

    fn line_end(&self) -> &'static str {
        self.file.line_end().unwrap_or(LineEnd::Lf).text()
    }

    /// Returns the list with its first cell.
    fn first_cell(&self, cell: &Value) -> Result<String, Failure> {
        if self.file.line_end().is_none() {
            return Ok(format!("[{}]", self.rendered(cell, self.list.start)?));
        }
        let outer = self.indent_at(self.list.start);
        let inner = format!("{outer}{}", self.step());
        let cell = self.pretty(cell, &inner)?;
        let end = self.line_end();
        Ok(format!("[{end}{inner}{cell}{end}{outer}]"))
    }

    /// Serialises a cell that begins at a position, on several lines as the file is.
    fn rendered(&self, cell: &Value, at: usize) -> Result<String, Failure> {
        if self.file.line_end().is_none() {
            return serde_json::to_string(cell).map_err(internal);
        }
        self.pretty(cell, self.indent_at(at))
    }

    fn pretty(&self, cell: &Value, outer: &str) -> Result<String, Failure> {
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.step().as_bytes());
        let mut out = Vec::new();
        cell.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))
            .map_err(internal)?;
        // Strings of JSON have no line feeds.
        let lines = String::from_utf8(out).map_err(|e| bad(e.to_string()))?;
        Ok(lines.replace('\n', &format!("{}{outer}", self.line_end())))
    }
}

fn internal(error: serde_json::Error) -> Failure {
    Failure::new(Reason::Internal, format!("the notebook: {error}"))
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
        let no_text = || invalid("it is neither UTF-8 nor UTF-16 text".to_owned());
        let file = TextFile::parse(&before).ok_or_else(no_text)?;
        let notebook: Value =
            serde_json::from_str(file.text()).map_err(|e| invalid(e.to_string()))?;
        let change = self.plan_cell(&notebook).map_err(|e| invalid(e.message))?;
        let spans = CellSpans::new(&file).map_err(|e| invalid(e.to_string()))?;
        let after = file.bytes_of(&spans.changed(&change)?);
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
        let value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap();
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
    fn bytes_outside_of_the_cell_are_not_touched() {
        let text = concat!(
            "\u{feff}{\r\n\t\"nbformat\": 4, \"z\": [1.0, 1e3, \"\\u00e9\"],\r\n\t\"cells\": [\r\n\t\t{\"cell_type\": ",
            "\"raw\", \"source\": []},\r\n\t\t{\"cell_type\": \"code\", \"source\": []}\r\n\t]\r\n}",
        );
        let (head, rest) = text.split_once("{\"cell_type\": \"raw\"").unwrap();
        let (_, tail) = rest.split_once("},\r\n\t\t").unwrap();
        for (arguments, middle) in [
            (json!({"action": "delete", "index": 0}), ""),
            (
                json!({"action": "replace", "index": 0, "source": "x"}),
                "{\r\n\t\t\t\"cell_type\": \"raw\",\r\n\t\t\t\"source\": [\r\n\t\t\t\t\"x\"\r\n\t\t\t]\r\n\t\t},\r\n\t\t",
            ),
        ] {
            let (after, _) = edited(text, arguments.clone()).unwrap();
            assert_eq!(after, format!("{head}{middle}{tail}"), "{arguments}");
        }
        let insert = json!({"action": "insert", "index": 1, "source": "x", "cell_type": "raw"});
        let (after, value) = edited(text, insert.clone()).unwrap();
        assert!(after.starts_with(text.strip_suffix("\r\n\t]\r\n}").unwrap()), "{after}");
        assert!(!after.replace("\r\n", "").contains('\n'), "{after:?}");
        assert_eq!(value["cells"][2]["source"], json!(["x"]));
        let delete = json!({"action": "delete", "index": 1});
        let (after, _) = edited(text, delete).unwrap();
        assert!(after.ends_with("\"source\": []}\r\n\t]\r\n}"), "{after}");
        let empty = r#"{"nbformat":4,"cells":[]}"#;
        let insert = json!({"action": "insert", "source": "x", "cell_type": "raw"});
        let expected =
            r#"{"nbformat":4,"cells":[{"cell_type":"raw","metadata":{},"source":["x"]}]}"#;
        assert_eq!(edited(empty, insert).unwrap().0, expected);
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
