//! `fs_list_dir` and `content_get_span`.

use std::sync::Arc;

use cairn_harness::Tool;
use cairn_protocol::content::{ListDirParams, SpanParams};

use crate::{Deps, reading::reading};

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let list = reading(
        deps,
        "fs_list_dir",
        "Lists a folder to a depth, without ignored files.",
        "dir_listing",
        |_, permit, params: ListDirParams, _| {
            let (target, parts) =
                permit.resolve_with_parts(&params.path, params.root.as_deref())?;
            let (root, rel) = (target.root(), target.real());
            let listing = match parts {
                None => cairn_workspace::list_dir(root, rel, params.depth)?,
                Some(parts) => cairn_workspace::list_parts(root, rel, params.depth, &parts)?,
            };
            let cut = listing.truncated;
            Ok((listing, cut))
        },
    );
    let span = reading(
        deps,
        "content_get_span",
        "Reads a range of lines of a file; large ranges are truncated and marked as such.",
        "span",
        |_, permit, params: SpanParams, _| {
            let target = permit.resolve(&params.path, params.root.as_deref())?;
            let span = cairn_workspace::read_span(target.root(), target.real(), &params)?;
            let cut = span.truncated;
            Ok((span, cut))
        },
    );
    vec![Arc::new(list.narrowing()), Arc::new(span)]
}
