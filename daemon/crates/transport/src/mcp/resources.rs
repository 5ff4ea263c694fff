//! Resources: the roots, their maps, files, sessions.

use cairn_explore_report::markdown;
use cairn_protocol::{
    content::{MAX_SPAN_LINES, Span, SpanParams},
    error::{Failure, Reason},
    explore::{ExploreStatus, SessionRef},
    id::SessionId,
    index::IndexState,
    map::{MapAnswer, MapParams},
    session::{Page, PageParams, Session},
};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::{client::Client, format};

/// Maximum number of listed sessions, newest first.
const MAX_SESSIONS_LISTED: u32 = 20;
/// Size of a map in tokens.
const MAP_TOKENS: u32 = 2048;
/// Characters that are escaped in a path.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'#').add(b'%').add(b'?').add(b'"').add(b'<').add(b'>');

/// A parsed resource URI.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Roots,
    Map(String),
    File { root: String, path: String, lines: Option<(u32, u32)> },
    Session(String),
}

fn parse(uri: &str) -> Option<Address> {
    let rest = uri.strip_prefix("cairn://")?;
    let (location, query) =
        rest.split_once('?').map_or((rest, None), |(location, query)| (location, Some(query)));
    let (kind, name) = location.split_once('/').unwrap_or((location, ""));
    let simplify = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|t| t.into_owned());
    let name = Some(name.trim_end_matches('/')).filter(|n| !n.is_empty());
    match (kind, name) {
        ("roots", None) => Some(Address::Roots),
        ("map", Some(root)) => Some(Address::Map(simplify(root)?)),
        ("session", Some(id)) => Some(Address::Session(id.to_owned())),
        ("file", Some(name)) => {
            let (root, path) = name.split_once('/')?;
            let of = |key: &str| {
                let mut pairs =
                    query.unwrap_or_default().split('&').filter_map(|p| p.split_once('='));
                pairs.find(|(k, _)| *k == key).map(|(_, v)| v.parse::<u32>())
            };
            let lines = match (of("start"), of("end")) {
                (None, None) => None,
                (Some(Ok(start)), Some(Ok(end))) => Some((start, end)),
                (Some(Ok(start)), None) => Some((start, start.saturating_add(MAX_SPAN_LINES - 1))),
                _ => return None,
            };
            Some(Address::File { root: simplify(root)?, path: simplify(path)?, lines })
        }
        _ => None,
    }
}

/// Builds the URI of a file.
fn file_uri(root: &str, path: &str) -> String {
    format!("cairn://file/{root}/{}", utf8_percent_encode(path, ESCAPED))
}

/// Lists the available resources.
///
/// # Errors
/// The errors of the underlying calls.
pub async fn list(client: &Client) -> Result<Vec<Resource>, Failure> {
    let mut all = vec![
        Resource::new("cairn://roots", "roots")
            .with_title("Declared folders")
            .with_description(
                "The folders that can be searched, and the progress of their indexes.",
            )
            .with_mime_type("text/plain"),
    ];
    for root in client.roots().await? {
        let name = root.path.rsplit('/').next().unwrap_or(&root.path).to_owned();
        let map = Resource::new(format!("cairn://map/{}", root.root), format!("map of {name}"))
            .with_description(format!(
                "The most informative files and definitions of {}.",
                root.path
            ))
            .with_mime_type("text/plain");
        all.push(map);
    }
    let page = PageParams { limit: Some(MAX_SESSIONS_LISTED), ..PageParams::default() };
    for session in client.api.request::<Page<Session>>("session.list", &page).await?.data {
        let title =
            if session.title.is_empty() { session.session_id.to_string() } else { session.title };
        let about = format!("Session of {}, {}.", session.created_at, session.state.as_str());
        let resource = Resource::new(format!("cairn://session/{}", session.session_id), title)
            .with_description(about)
            .with_mime_type("text/plain");
        all.push(resource);
    }
    Ok(all)
}

/// Lists the URI templates.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("cairn://file/{root}/{+path}{?start,end}", "file")
            .with_title("Lines of a file")
            .with_description(
                "A file of a root, by the root's id and the path in it; all of it, or some lines.",
            )
            .with_mime_type("text/plain"),
        ResourceTemplate::new("cairn://map/{root}", "map")
            .with_title("Map of a root")
            .with_description("The most informative files and definitions of a root.")
            .with_mime_type("text/plain"),
        ResourceTemplate::new("cairn://session/{id}", "session")
            .with_title("A session")
            .with_description("A description of a session; for an explore, its summary.")
            .with_mime_type("text/plain"),
    ]
}

/// Reads the resource of a URI.
///
/// # Errors
/// `path_not_found` for an invalid URI, and the errors of the underlying call.
pub async fn read(client: &Client, uri: &str) -> Result<ReadResourceResult, Failure> {
    let none = || {
        let excerpt: String = uri.chars().take(200).collect();
        Failure::new(
            Reason::PathNotFound,
            format!("there is no resource '{}'", excerpt.escape_default()),
        )
    };
    let text = match parse(uri).ok_or_else(none)? {
        Address::Roots => roots(client).await?,
        Address::Map(root) => {
            let root = client.root(Some(&root)).await?.ok_or_else(none)?;
            let params = MapParams {
                roots: vec![root.root.to_string()],
                budget: MAP_TOKENS,
                ..MapParams::default()
            };
            format::map(&client.api.request::<MapAnswer>("search.map", &params).await?)
        }
        Address::File { root, path, lines } => {
            let (start, end) = lines.unwrap_or((1, MAX_SPAN_LINES));
            let params = SpanParams {
                path,
                root: Some(root),
                start,
                end,
                context: None,
                content_hash: None,
            };
            let span: Span = client.api.request("content.getSpan", &params).await?;
            let cut = span.truncated
                || lines.is_none() && span.total_lines.is_some_and(|n| n > span.end_line);
            let more = format!(
                "[cut: continue at {}?start={}]",
                file_uri(params.root.as_deref().unwrap_or_default(), &span.path),
                span.end_line + 1
            );
            if cut { format!("{}{more}\n", span.text) } else { span.text }
        }
        Address::Session(id) => session(client, &id.parse().map_err(|_| none())?).await?,
    };
    Ok(ReadResourceResult::new(vec![
        ResourceContents::text(text, uri).with_mime_type("text/plain"),
    ]))
}

async fn roots(client: &Client) -> Result<String, Failure> {
    let all = client.roots().await?;
    if all.is_empty() {
        return Ok("no folder is declared: 'cairn index DIR' declares one\n".into());
    }
    let line = |r: &cairn_protocol::index::RootStatus| {
        let state = match r.state {
            IndexState::Indexing => "indexing",
            IndexState::Enriching => "being enriched",
            IndexState::Ready => "ready",
            IndexState::Failed => "failed",
        };
        format!("{}  {}  {state}, {} files\n", r.root, r.path, r.files)
    };
    Ok(all.iter().map(line).collect())
}

async fn session(client: &Client, id: &SessionId) -> Result<String, Failure> {
    let params = SessionRef { session_id: id.clone() };
    let about: Session = client.api.request("session.get", &params).await?;
    let root = about.root.as_deref().unwrap_or("no root");
    let mut text = format!(
        "{}\n{id}, {root}, {}, {} records\n",
        about.title,
        about.state.as_str(),
        about.head_seq
    );
    let status: ExploreStatus = client.api.request("orchestrate.explore.status", &params).await?;
    if let Some(summary) = status.summary {
        text.push('\n');
        text.push_str(&markdown::page(&summary));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_parsed() {
        let file = |path: &str, lines| {
            Some(Address::File { root: "root_1".into(), path: path.into(), lines })
        };
        for (uri, expected) in [
            ("cairn://roots", Some(Address::Roots)),
            ("cairn://map/root_1", Some(Address::Map("root_1".into()))),
            ("cairn://session/ses_1", Some(Address::Session("ses_1".into()))),
            ("cairn://file/root_1/a/b%20c.rs", file("a/b c.rs", None)),
            ("cairn://file/root_1/a.rs?start=2&end=3", file("a.rs", Some((2, 3)))),
            ("cairn://file/root_1/a.rs?start=2", file("a.rs", Some((2, 2001)))),
            ("cairn://file/root_1/a.rs?start=x", None),
            ("cairn://file/root_1", None),
            ("cairn://map", None),
            ("cairn://other/x", None),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(parse(uri), expected, "{uri}");
        }
        let uri = file_uri("root_1", "a b#c?.rs");
        assert_eq!(parse(&uri), file("a b#c?.rs", None), "{uri}");
    }
}
