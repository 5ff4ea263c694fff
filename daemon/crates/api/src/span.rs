//! The span of a request, for traces: its method and how it ended, nothing of its params.

use cairn_engine::span::SPANS;
use tracing::{Span, field::Empty};

use crate::Method;

/// The span of a request for `method`.
pub(crate) fn request(method: &Method) -> Span {
    tracing::info_span!(
        target: SPANS,
        parent: None,
        "request",
        otel.name = method.name,
        otel.kind = "server",
        rpc.system = "jsonrpc",
        rpc.method = method.name,
        error.type = Empty,
        otel.status_code = Empty,
    )
}
