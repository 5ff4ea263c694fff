//! The method table as an OpenRPC document and as one JSON Schema.

use cairn_protocol::{
    approval::ApprovalNotice,
    error::{ErrorData, Reason},
    git::GitProgress,
    index::IndexProgress,
    lines::LinesPartial,
    rpc,
    search::{GrepPartial, SearchPartial},
    session::{EventNotification, LaggedNotification, SyncedNotification},
};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{methods, rights::Effect};

/// Version of the OpenRPC specification.
const OPENRPC: &str = "1.3.2";

fn schema_generator() -> SchemaGenerator {
    let path = "/components/schemas";
    SchemaSettings::draft2020_12().with(|s| s.definitions_path = path.into()).into_generator()
}

/// Lists the daemon's notifications with the schemas of their params.
fn notifications(schemas: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
    vec![
        (rpc::EVENT, schemas.subschema_for::<EventNotification>()),
        (rpc::SYNCED, schemas.subschema_for::<SyncedNotification>()),
        (rpc::LAGGED, schemas.subschema_for::<LaggedNotification>()),
        (rpc::GONE, schemas.subschema_for::<GoneNotification>()),
        (rpc::INDEX_PROGRESS, schemas.subschema_for::<IndexProgress>()),
        (rpc::GIT_PROGRESS, schemas.subschema_for::<GitProgress>()),
        (rpc::SEARCH_PARTIAL, schemas.subschema_for::<AnyPartial>()),
        (rpc::APPROVAL_UPDATED, schemas.subschema_for::<ApprovalNotice>()),
    ]
}

/// Parameters of the notification `search.partial`.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AnyPartial {
    /// Results of a search for passages.
    Search(SearchPartial),
    /// Results of a search for lines.
    Grep(GrepPartial),
    /// Lines of a streaming search.
    Lines(LinesPartial),
}

/// Parameters of the notification `orchestrate.gone`.
#[derive(schemars::JsonSchema, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct GoneNotification {
    /// The subscription that ended.
    subscription_id: cairn_protocol::id::SubscriptionId,
    /// The constant value `gone`.
    reason: String,
    /// Explanation of the end for a person.
    message: String,
}

/// Lists the params of a method by name, as OpenRPC requires.
fn named_params(params: &Value, schemas: &Value) -> Vec<Value> {
    let name = params["$ref"].as_str().and_then(|r| r.rsplit('/').next()).unwrap_or_default();
    let single_page = &schemas[name];
    let required = |name: &str| {
        single_page["required"].as_array().is_some_and(|r| r.iter().any(|n| n == name))
    };
    let one = |(name, schema): (&String, &Value)| {
        let mut one = json!({"name": name, "required": required(name), "schema": schema});
        if let Some(text) = schema.get("description") {
            one["description"] = text.clone();
        }
        one
    };
    single_page["properties"].as_object().map(|p| p.iter().map(one).collect()).unwrap_or_default()
}

/// Lists the effects of a method's calls with the additional right that each needs.
fn effects(all: &[Effect]) -> Vec<Value> {
    all.iter()
        .map(|effect| json!({"effect": effect.text(), "right": effect.right().as_str()}))
        .collect()
}

/// Builds the OpenRPC document. `x-params` names the type of a method's params; `x-notifications`
/// and `x-errors` extend the standard.
pub fn openrpc() -> Value {
    let mut schemas = schema_generator();
    let table = methods::table();
    let mut rows: Vec<Value> = table
        .iter()
        .map(|m| {
            let params = (m.params)(&mut schemas);
            let result = (m.result)(&mut schemas);
            json!({
                "name": m.name,
                "summary": m.summary,
                "paramStructure": "by-name",
                "x-params": params,
                "result": {"name": "result", "schema": result},
                "x-right": m.right.as_str(),
                "x-effects": effects(m.effects),
                "x-scope": m.scope.as_str(),
                "x-audit": m.audit.as_str(),
                "x-disconnect": format!("{:?}", m.disconnect).to_lowercase(),
            })
        })
        .collect();
    let notifications: Vec<Value> = notifications(&mut schemas)
        .into_iter()
        .map(|(name, schema)| json!({"name": name, "schema": schema}))
        .collect();
    let error = schemas.subschema_for::<ErrorData>();
    let errors: Vec<Value> = Reason::ALL
        .iter()
        .map(
            |r| json!({"code": r.code(), "reason": r.as_str(), "retryable": r.retryable(), "hint": r.hint()}),
        )
        .collect();
    let types = Value::Object(schemas.take_definitions(true));
    for row in &mut rows {
        row["params"] = named_params(&row["x-params"], &types).into();
    }
    json!({
        "openrpc": OPENRPC,
        "info": {"title": "Cairn", "version": cairn_protocol::PROTOCOL_VERSIONS[0]},
        "methods": rows,
        "components": {"schemas": types},
        "x-notifications": notifications,
        "x-errors": errors,
        "x-errorData": error,
    })
}
