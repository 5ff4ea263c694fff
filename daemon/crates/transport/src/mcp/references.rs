//! The default tool for the graph of the code: uses, callers, callees, and dependent files.

use cairn_protocol::{
    calls::{CallsAnswer, CallsParams},
    error::{Failure, Reason},
    search::{ImpactAnswer, ImpactParams, ReferencesAnswer, ReferencesParams},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    client::Client,
    format::{self, Budget},
};

/// Results: default and maximum.
const LIMITS: (u32, u32) = (50, 500);
/// Steps of calls, and of imports: default and maximum.
const CALL_STEPS: (u32, u32) = (1, 5);
const IMPORT_STEPS: (u32, u32) = (3, 20);

/// Arguments of the tool `references`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct References {
    /// A name, or `Type.name` for a member.
    symbol: Option<String>,
    /// Its file, if several have the name.
    path: Option<String>,
    /// Instead of `symbol`: a line of it in `path`.
    line: Option<u32>,
    /// `uses` by default; `dependents`: files that import `path`.
    #[serde(default)]
    kind: RelationKind,
    /// Steps of calls or imports.
    depth: Option<u32>,
    k: Option<u32>,
    max_tokens: Option<u32>,
    root: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum RelationKind {
    #[default]
    Uses,
    Callers,
    Callees,
    Dependents,
}

/// Calls the tool `references`.
///
/// # Errors
/// The errors of the underlying call.
pub async fn references(client: &Client, args: References) -> Result<String, Failure> {
    let budget = Budget::tokens(args.max_tokens);
    let root = client.root(args.root.as_deref()).await?.map(|root| root.root.to_string());
    let k = args.k.unwrap_or(LIMITS.0).clamp(1, LIMITS.1);
    let method = match args.kind {
        RelationKind::Uses => {
            let params = ReferencesParams {
                root,
                symbol: args.symbol,
                path: args.path,
                line: args.line,
                kinds: vec![],
                k,
            };
            let answer: ReferencesAnswer = client.api.request("search.references", &params).await?;
            return Ok(format::references(&answer, budget));
        }
        RelationKind::Dependents => return dependents(client, args).await,
        RelationKind::Callers => "search.callers",
        RelationKind::Callees => "search.callees",
    };
    let params = CallsParams {
        root,
        symbol: args.symbol,
        path: args.path,
        line: args.line,
        depth: args.depth.unwrap_or(CALL_STEPS.0).clamp(1, CALL_STEPS.1),
        k,
    };
    let answer: CallsAnswer = client.api.request(method, &params).await?;
    Ok(format::calls(&answer, budget))
}

/// Lists the files that depend on a file.
async fn dependents(client: &Client, args: References) -> Result<String, Failure> {
    let Some(path) = args.path else {
        let text = "references: the kind 'dependents' needs 'path', the file that would change";
        return Err(Failure::new(Reason::InvalidParams, text));
    };
    let root = client.root(args.root.as_deref()).await?.map(|root| root.root.to_string());
    let params = ImpactParams {
        root,
        path,
        depth: args.depth.unwrap_or(IMPORT_STEPS.0).clamp(1, IMPORT_STEPS.1),
        k: args.k.unwrap_or(LIMITS.0).clamp(1, LIMITS.1),
    };
    let answer: ImpactAnswer = client.api.request("search.impact", &params).await?;
    Ok(format::impact(&answer, Budget::tokens(args.max_tokens)))
}
