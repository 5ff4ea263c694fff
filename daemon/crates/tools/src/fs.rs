//! `fs`: the file tools under one name, and many of their operations in one call.

mod batch;
mod lines;

use std::{sync::Arc, time::Duration};

use cairn_harness::{Caller, Intent, Output, Permit, Rule, Tool, ToolSpec};
use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
};
use cairn_search::CancelFlag;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Deps, edit,
    look::{self, ListFiles, ReadFile, SearchFiles},
    reading,
};
use batch::{Batch, Files, MAX_FILES, MAX_OPS};
use lines::FsEdit;

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Read,
    Write,
    Edit,
    Delete,
    List,
    Search,
}

impl Action {
    const ALL: [(&str, Self); 6] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("edit", Self::Edit),
        ("delete", Self::Delete),
        ("list", Self::List),
        ("search", Self::Search),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, action)| *action == self).map_or("", |(word, _)| word)
    }

    /// Returns the tool for this operation; its rules apply to the operation too.
    fn tool(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
            Self::Delete => "delete_file",
            Self::List => "list_files",
            Self::Search => "search_files",
        }
    }

    fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Edit | Self::Delete)
    }

    /// Returns true if its path is that of one file.
    fn names_file(self) -> bool {
        !matches!(self, Self::List | Self::Search)
    }
}

/// One operation: its action and the arguments of the corresponding tool.
#[derive(Debug, Clone)]
struct Op {
    action: Action,
    arguments: Value,
}

impl Op {
    fn path(&self) -> &str {
        self.arguments.get("path").and_then(Value::as_str).unwrap_or_default()
    }

    fn read(value: &Value) -> Result<Self, Failure> {
        let bad = |text: &str| Failure::new(Reason::InvalidParams, text.to_owned());
        let mut arguments =
            value.as_object().cloned().ok_or_else(|| bad("an operation must be an object"))?;
        let word = arguments.remove("action").unwrap_or_default();
        let words = Action::ALL.map(|(word, _)| word).join(", ");
        let action = serde_json::from_value(word)
            .map_err(|_| bad(&format!("an operation needs an action: one of {words}")))?;
        Ok(Self { action, arguments: arguments.into() })
    }
}

/// Parsed arguments of a call.
enum FsRequest {
    One(Op),
    Many { ops: Vec<Op>, continue_on_error: bool },
}

impl FsRequest {
    fn read(value: &Value) -> Result<Self, Failure> {
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        let Some(ops) = value.get("ops") else {
            let mut one = value.clone();
            one.as_object_mut().map(|o| o.remove("continue_on_error"));
            return Op::read(&one).map(Self::One);
        };
        let known = |key: &String| ["action", "ops", "continue_on_error"].contains(&key.as_str());
        if let Some(key) = value.as_object().and_then(|o| o.keys().find(|key| !known(key))) {
            return Err(bad(format!("'{key}' belongs to an operation: put it into one of ops")));
        }
        if value.get("action").is_some_and(|a| a != "ops") {
            return Err(bad("with ops, the action must be 'ops' or omitted".into()));
        }
        let ops = ops.as_array().map(Vec::as_slice).unwrap_or_default();
        if ops.is_empty() || ops.len() > MAX_OPS {
            return Err(bad(format!(
                "ops has {} operations; 1 to {MAX_OPS} are allowed",
                ops.len()
            )));
        }
        let numbered = |(at, op): (usize, &Value)| {
            Op::read(op)
                .map_err(|e| Failure::new(e.reason, format!("op {}: {}", at + 1, e.message)))
        };
        let ops = ops.iter().enumerate().map(numbered).collect::<Result<Vec<_>, _>>()?;
        let files: std::collections::BTreeSet<&str> =
            ops.iter().filter(|op| op.action.names_file()).map(Op::path).collect();
        if files.len() > MAX_FILES {
            return Err(bad(format!("ops name {} files; the limit is {MAX_FILES}", files.len())));
        }
        let continue_on_error =
            value.get("continue_on_error").and_then(Value::as_bool).unwrap_or(false);
        Ok(Self::Many { ops, continue_on_error })
    }

    fn ops(&self) -> &[Op] {
        match self {
            Self::One(op) => std::slice::from_ref(op),
            Self::Many { ops, .. } => ops,
        }
    }

    fn continues_on_error(&self) -> bool {
        matches!(self, Self::Many { continue_on_error: true, .. })
    }
}

struct Fs {
    deps: Deps,
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Fs { deps: deps.clone() })]
}

const DESCRIPTION: &str = "Reads, writes, edits, deletes, lists and searches files: `action` selects \
    the operation. Read a file before you edit it. An edit replaces `old_text`, which must be unique, \
    or the lines `start_line` to `end_line` (with `end_line` one below `start_line` it inserts before \
    that line). With `ops` a call has up to 50 operations on up to 20 files: line numbers of edits \
    refer to the file before the call, edits of one file are made from the bottom up, later reads show \
    them and are truncated at 2 KiB, listing and searching see the files as they were before the call. \
    It stops at the first failure unless `continue_on_error` is set; earlier operations are not undone. \
    The user may be asked first, once for the whole call.";

/// Returns the schema: an operation has the arguments of the corresponding tool.
fn schema() -> Value {
    let mut fields = Map::new();
    let words = Action::ALL.map(|(word, _)| word);
    let all = [
        schemars::schema_for!(ReadFile),
        schemars::schema_for!(edit::WriteFile),
        schemars::schema_for!(FsEdit),
        schemars::schema_for!(ListFiles),
        schemars::schema_for!(SearchFiles),
    ];
    for schema in all.map(schemars::Schema::to_value) {
        let properties =
            schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, mut field) in properties {
            // A default applies to one action and not to others.
            field.as_object_mut().map(|f| f.remove("default"));
            fields.entry(name).or_insert(field);
        }
    }
    fields.insert(
        "path".into(),
        json!({"type": "string", "description": "File or folder, relative to the workspace."}),
    );
    let operation = |words: &[&str]| {
        let mut fields = fields.clone();
        fields.insert(
            "action".into(),
            json!({"type": "string", "enum": words, "description": "The operation."}),
        );
        fields
    };
    let inner = json!({
        "type": "object", "properties": operation(&words), "required": ["action"], "additionalProperties": false,
    });
    let mut outer = operation(&[words.as_slice(), &["ops"]].concat());
    outer.insert(
        "ops".into(),
        json!({"type": "array", "items": inner, "minItems": 1, "maxItems": MAX_OPS, "description": "Many operations in one call."}),
    );
    outer.insert(
        "continue_on_error".into(),
        json!({"type": "boolean", "description": "Continues with the other operations after a failure."}),
    );
    json!({"type": "object", "properties": outer, "additionalProperties": false})
}

/// Reads, lists or searches.
fn look_at(
    deps: &Deps,
    permit: &Permit,
    op: &Op,
    flag: &CancelFlag,
) -> Result<(Value, bool), Failure> {
    let arguments = op.arguments.clone();
    match op.action {
        Action::List => look::list_files(deps, permit, cairn_harness::arguments(arguments)?, flag),
        Action::Search => {
            look::search_files(deps, permit, cairn_harness::arguments(arguments)?, flag)
        }
        _ => look::read_file(deps, permit, cairn_harness::arguments(arguments)?, flag),
    }
}

#[async_trait::async_trait]
impl Tool for Fs {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::writing::<edit::WriteFile>("fs", DESCRIPTION);
        ToolSpec {
            input_schema: schema(),
            paths: &[],
            delegates: true,
            timeout: Duration::from_secs(30) + self.deps.after_edit.call_timeout(),
            ..spec
        }
    }

    fn delegated_calls(&self, value: &Value) -> Vec<(&'static str, Value)> {
        // A call that cannot be parsed is not executed either.
        let Ok(request) = FsRequest::read(value) else { return vec![] };
        request.ops().iter().map(|op| (op.action.tool(), op.arguments.clone())).collect()
    }

    async fn intent(&self, caller: &Caller<'_>, value: &Value) -> Result<Intent, Failure> {
        let request = FsRequest::read(value)?;
        let mut kinds: Vec<&str> =
            request.ops().iter().filter(|o| o.action.changes()).map(|o| o.action.tool()).collect();
        if kinds.is_empty() {
            let preview = Preview { summary: "fs reads files".into(), ..Preview::default() };
            return Ok(Intent { preview, ..Intent::default() });
        }
        kinds.sort_unstable();
        kinds.dedup();
        let mut files = Files::default();
        let batch = Batch::plan(&self.deps, caller, &request, &mut files, None);
        if batch.changes().is_empty()
            && let Some(failure) = batch.first_failure()
        {
            return Err(failure);
        }
        let changes = batch.changes();
        let must_ask = batch.must_ask();
        let edits_read_content = must_ask.is_none() && kinds == [Action::Edit.tool()];
        let intent = edit::intent_of(&changes, "fs", must_ask);
        let patterns = edit::folder_pattern(&changes, &kinds).into_iter().collect();
        let grants = kinds.iter().map(|tool| Rule::of_tool(tool)).collect();
        Ok(Intent { grants, patterns, edits_read_content, ..intent })
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let request = FsRequest::read(&value)?;
        let flag = CancelFlag::new();
        let _end = flag.cancel_on_drop();
        let deps = self.deps.clone();
        let (permit, request, changes) = reading::off_thread(move || {
            let changes = batch::planned(&deps, &permit, &request);
            Ok((permit, request, changes))
        })
        .await?;
        let checked = self.deps.after_edit.before(&permit, &changes).await;
        let deps = self.deps.clone();
        let (permit, targets, output) = reading::off_thread(move || match &request {
            FsRequest::One(op) if !op.action.changes() => {
                let (value, cut) = look_at(&deps, &permit, op, &flag)?;
                Ok((permit, vec![], Output::of("file", &value, cut)?))
            }
            _ => {
                let output = batch::run(&deps, &permit, &request, &flag)?;
                let edited = request.ops().iter().filter(|op| op.action.changes());
                let targets = edited.filter_map(|op| permit.resolve_own(op.path()).ok()).collect();
                Ok((permit, targets, output))
            }
        })
        .await?;
        Ok(self.deps.after_edit.run(&permit, &targets, &self.deps.seen, checked, output).await)
    }
}
