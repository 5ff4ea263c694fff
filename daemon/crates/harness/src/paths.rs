//! Paths of a call, resolved once: the same values are matched by rules, displayed in approvals,
//! stored in the audit and opened by the tool.

use std::sync::Arc;

use cairn_protocol::error::{Failure, Reason};
use cairn_workspace::{ResolvedPath, Root, Roots};
use serde_json::Value;

use crate::ToolSpec;

/// The resolved paths of a call. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct CallPaths(Arc<Vec<CallPath>>);

/// One argument that contains a path.
#[derive(Debug, Clone)]
pub(crate) struct CallPath {
    /// The path as the caller wrote it.
    pub text: String,
    pub base: Option<String>,
    /// Target of the path; `None` when no tool may access it: the tool then fails with the reason.
    pub resolved: Option<ResolvedPath>,
}

impl CallPaths {
    pub(crate) fn new(paths: Vec<CallPath>) -> Self {
        Self(Arc::new(paths))
    }

    /// Returns the path that the gate judged for this argument.
    pub(crate) fn find(&self, text: &str, base: Option<&str>) -> Option<&ResolvedPath> {
        let same = |path: &&CallPath| path.text == text && path.base.as_deref() == base;
        self.0.iter().find(same)?.resolved.as_ref()
    }

    /// Returns the paths as the caller wrote them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|path| path.text.as_str())
    }

    /// Returns the paths that could be resolved.
    pub fn iter(&self) -> impl Iterator<Item = &ResolvedPath> {
        self.0.iter().filter_map(|path| path.resolved.as_ref())
    }
}

/// Returns the path arguments of a call of a tool.
pub(crate) fn named(spec: &ToolSpec, arguments: &Value, resolver: &Resolver<'_>) -> Vec<CallPath> {
    let takes_root = spec.input_schema.pointer("/properties/root").is_some();
    let base = arguments.get("root").and_then(Value::as_str).filter(|_| takes_root);
    let texts = |key: &&'static str| match arguments.get(*key) {
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let path = |text: &str| CallPath {
        text: text.to_owned(),
        base: base.map(str::to_owned),
        resolved: resolver.locate(text, base).ok(),
    };
    spec.paths.iter().flat_map(texts).map(path).collect()
}

/// Resolver of paths for one caller: relative paths belong to its own root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'a> {
    /// Every declared root; without them only the own root is known.
    pub roots: Option<&'a Arc<Roots>>,
    pub own: Option<&'a Root>,
}

impl Resolver<'_> {
    pub fn locate(&self, path: &str, base: Option<&str>) -> Result<ResolvedPath, Failure> {
        let own = self.own.map(|root| root.id.to_string());
        match (self.roots, self.own) {
            (Some(roots), _) => Ok(roots.locate(path, base.or(own.as_deref()))?),
            (None, Some(own)) => Ok(own.locate(path)?),
            (None, None) => {
                Err(Failure::new(Reason::NoRoots, "the session has no root to work in"))
            }
        }
    }

    /// Resolves the paths of a run: none leads out of the root, none passes through a symlink.
    ///
    /// # Errors
    /// `path_outside_roots`, `path_blocked`, `invalid_params`.
    pub fn run_paths(&self, paths: &[String]) -> Result<Vec<String>, Failure> {
        let Some(own) = self.own else {
            return Err(Failure::new(
                Reason::NoRoots,
                "policy.paths: the session has no root to work in",
            ));
        };
        let real = |path: &String| match own.locate(path) {
            Ok(target) => Ok(target.real().to_owned()),
            Err(error) => Err(Failure::new(error.reason(), format!("policy.paths: {error}"))),
        };
        paths.iter().map(real).collect()
    }
}

/// Rejects paths that a run cannot be limited to.
///
/// # Errors
/// `no_roots`, `path_outside_roots` for a path that leads out of the root, `path_blocked`,
/// `invalid_params`.
pub fn check_run_paths(root: Option<&Root>, paths: Option<&[String]>) -> Result<(), Failure> {
    let Some(paths) = paths else { return Ok(()) };
    Resolver { roots: None, own: root }.run_paths(paths).map(drop)
}
