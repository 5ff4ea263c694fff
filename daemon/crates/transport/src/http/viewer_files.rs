//! The files of the viewer, which are a part of the binary, and their headers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::{
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};

/// No content from elsewhere, no inline script or style, no framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const MANIFEST: &str = "application/manifest+json";
const SVG: &str = "image/svg+xml";
const PNG: &str = "image/png";

/// One file of the page.
pub struct File {
    pub path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

/// Lists files of the folder `viewer` with their type.
macro_rules! files {
    ($($kind:ident: $($name:literal)*;)*) => {
        [
            File { path: "/viewer", kind: HTML, content: include_bytes!("viewer/index.html") },
            $($(File {
                path: concat!("/viewer/", $name),
                kind: $kind,
                content: include_bytes!(concat!("viewer/", $name)),
            },)*)*
        ]
    };
}

pub static FILES: &[File] = &files! {
    CSS: "style.css" "report.css";
    JS: "answer_keys.js" "app.js" "approval.js" "calls.js" "code.js" "composer.js" "conversation.js"
        "diagram.js" "dom.js" "explore.js" "fleet.js" "format.js" "home.js" "inbox.js" "markdown.js"
        "poll.js" "report.js" "rows.js" "rpc.js" "schedules.js" "search.js" "session.js"
        "sessions.js" "start.js" "trace.js";
    JS: "vendor/marked.js" "vendor/highlight.js";
    JS: "vendor/languages/bash.js" "vendor/languages/c.js" "vendor/languages/cpp.js"
        "vendor/languages/csharp.js" "vendor/languages/css.js" "vendor/languages/go.js"
        "vendor/languages/ini.js" "vendor/languages/java.js" "vendor/languages/javascript.js"
        "vendor/languages/json.js" "vendor/languages/kotlin.js" "vendor/languages/python.js"
        "vendor/languages/ruby.js" "vendor/languages/rust.js" "vendor/languages/sql.js"
        "vendor/languages/typescript.js" "vendor/languages/xml.js" "vendor/languages/yaml.js";
    MANIFEST: "manifest.webmanifest";
    SVG: "icon.svg";
    PNG: "icon-180.png" "icon-192.png" "icon-512.png";
};

impl File {
    /// Answers a request for the file; a browser that has it already receives its headers alone.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        let is_current = request
            .get(header::IF_NONE_MATCH)
            .and_then(|tags| tags.to_str().ok())
            .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
        let headers: [(HeaderName, &str); 8] = [
            (header::CONTENT_TYPE, self.kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::ETAG, &tag),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ];
        match is_current {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, self.content).into_response(),
        }
    }
}
