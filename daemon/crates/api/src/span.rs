//! The tracing span of a request: its method and outcome, but none of its params.

use cairn_engine::span::SPANS;
use tracing::{Span, field::Empty};

use crate::Method;

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
