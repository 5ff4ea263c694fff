//! Built-in tools for the graph of the code: uses, callers, callees, and dependent files.

use cairn_protocol::{
    calls::{CallsAnswer, CallsParams},
    error::Failure,
    search::{ImpactAnswer, ImpactParams, ReferencesAnswer, ReferencesParams},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{client::Client, format};

/// Results of either tool: default and maximum.
const LIMITS: (u32, u32) = (50, 500);

/// Arguments of the tool `references`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// Name of the definition, as `name` or `Type.name`.
    symbol: Option<String>,
    /// File with the definition, if several have the name or with `line`.
    path: Option<String>,
    /// A line inside of the definition, from 1.
    line: Option<u32>,
    /// The relation: `uses`, `callers` or `callees`; `uses` by default.
    #[serde(default)]
    kind: RelationKind,
    /// Steps of calls that `callers` and `callees` follow, 1 to 5; 1 by default.
    depth: Option<u32>,
    /// Number of results, 1 to 500; 50 by default.
    k: Option<u32>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RelationKind {
    #[default]
    Uses,
    Callers,
    Callees,
}

/// Arguments of the tool `impact`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Impact {
    /// The file that would change.
    path: String,
    /// Steps of imports, 1 to 20; 3 by default.
    depth: Option<u32>,
    /// Number of files, 1 to 500; 50 by default.
    k: Option<u32>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

/// Calls the tool `references`.
///
/// # Errors
/// The errors of the underlying call.
pub async fn references(client: &Client, args: References) -> Result<String, Failure> {
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
            return Ok(format::references(&answer));
        }
        RelationKind::Callers => "search.callers",
        RelationKind::Callees => "search.callees",
    };
    let params = CallsParams {
        root,
        symbol: args.symbol,
        path: args.path,
        line: args.line,
        depth: args.depth.unwrap_or(1).clamp(1, 5),
        k,
    };
    let answer: CallsAnswer = client.api.request(method, &params).await?;
    Ok(format::calls(&answer))
}

/// Calls the tool `impact`.
///
/// # Errors
/// The errors of the underlying call.
pub async fn impact(client: &Client, args: Impact) -> Result<String, Failure> {
    let root = client.root(args.root.as_deref()).await?.map(|root| root.root.to_string());
    let params = ImpactParams {
        root,
        path: args.path,
        depth: args.depth.unwrap_or(3).clamp(1, 20),
        k: args.k.unwrap_or(LIMITS.0).clamp(1, LIMITS.1),
    };
    let answer: ImpactAnswer = client.api.request("search.impact", &params).await?;
    Ok(format::impact(&answer))
}
