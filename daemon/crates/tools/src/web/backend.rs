//! Search engines: their requests, and the parsing of their answers.

use cairn_protocol::error::{Failure, Reason};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::WebOptions;

/// Most characters of a title or snippet.
const MAX_TEXT: usize = 500;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SearchBackend {
    /// DuckDuckGo's page without scripts; needs no key.
    #[default]
    DuckDuckGo,
    /// A SearXNG server, whose address must be set and which must allow the format `json`.
    Searxng,
    /// Brave's API, which needs a key.
    Brave,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchResult {
    title: String,
    url: String,
    snippet: String,
}

type HttpRequest = (String, Vec<(String, String)>);

impl SearchBackend {
    /// Returns the address to fetch and the headers to send.
    pub fn request(
        self,
        options: &WebOptions,
        query: &str,
        most: usize,
    ) -> Result<HttpRequest, Failure> {
        let bad = |text: String| Failure::new(Reason::InvalidParams, text);
        let usual = match self {
            Self::DuckDuckGo => Some("https://html.duckduckgo.com/html/"),
            Self::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Self::Searxng => None,
        };
        let set = options.endpoint.as_deref().or(usual);
        let base =
            set.ok_or_else(|| bad("web_search with searxng needs tools.web.endpoint".into()))?;
        let mut url =
            Url::parse(base).map_err(|e| bad(format!("tools.web.endpoint is not a URL: {e}")))?;
        let mut headers = vec![];
        match self {
            Self::Searxng => {
                let path = url.path().trim_end_matches('/').to_owned();
                if !path.ends_with("/search") {
                    url.set_path(&format!("{path}/search"));
                }
                url.query_pairs_mut().append_pair("format", "json");
            }
            Self::Brave => {
                let none = || {
                    bad("web_search with brave needs a key: name its variable in tools.web.apiKeyEnv"
                        .into())
                };
                headers.push((
                    "X-Subscription-Token".to_owned(),
                    options.key.clone().ok_or_else(none)?,
                ));
                url.query_pairs_mut().append_pair("count", &most.to_string());
            }
            Self::DuckDuckGo => {}
        }
        url.query_pairs_mut().append_pair("q", query);
        Ok((url.into(), headers))
    }

    /// Parses the results in an answer.
    pub fn results(self, answer: &str, most: usize) -> Result<Vec<SearchResult>, Failure> {
        let mut results = match self {
            Self::DuckDuckGo => from_page(answer)?,
            Self::Searxng => from_json(answer, "/results", "content")?,
            Self::Brave => from_json(answer, "/web/results", "description")?,
        };
        results.truncate(most);
        Ok(results)
    }
}

fn from_json(answer: &str, list: &str, snippet: &str) -> Result<Vec<SearchResult>, Failure> {
    let wrong = |what: &str| {
        Failure::new(Reason::ToolFailed, format!("the search engine answered with {what}"))
    };
    let value: Value =
        serde_json::from_str(answer).map_err(|_| wrong("no JSON: check tools.web"))?;
    let Some(items) = value.pointer(list) else {
        // Brave omits the list when nothing is found.
        return if value.is_object() { Ok(vec![]) } else { Err(wrong("no list of results")) };
    };
    let items = items.as_array().ok_or_else(|| wrong("no list of results"))?;
    let text =
        |item: &Value, key: &str| plain(item.get(key).and_then(Value::as_str).unwrap_or_default());
    let one = |item: &Value| {
        let url = item.get("url")?.as_str()?.to_owned();
        Some(SearchResult { title: text(item, "title"), url, snippet: text(item, snippet) })
    };
    Ok(items.iter().filter_map(one).collect())
}

/// Parses a page of DuckDuckGo: each result is a link of one class, followed by a snippet of
/// another.
fn from_page(page: &str) -> Result<Vec<SearchResult>, Failure> {
    let mut results = Vec::new();
    let mut parts = page.split("class=\"result__a\"");
    let before = parts.next().unwrap_or_default();
    for part in parts {
        let Some((tag, rest)) = part.split_once('>') else { continue };
        let href = tag.split_once("href=\"").and_then(|(_, h)| h.split_once('"')).map(|(h, _)| h);
        let Some(url) = href.and_then(target) else { continue };
        let title = plain(rest.split_once("</a>").map_or("", |(title, _)| title));
        let after =
            rest.split_once("class=\"result__snippet\"").and_then(|(_, s)| s.split_once('>'));
        let snippet = plain(after.map_or("", |(_, s)| s.split_once("</a>").map_or("", |(s, _)| s)));
        results.push(SearchResult { title, url, snippet });
    }
    let nothing = page.contains("no-results") || page.contains("No results");
    if results.is_empty() && !nothing {
        let what = if before.contains("anomaly") {
            "requires a CAPTCHA"
        } else {
            "returned an unexpected page"
        };
        let text = format!("duckduckgo {what}: set another backend in tools.web");
        return Err(Failure::new(Reason::ToolFailed, text));
    }
    Ok(results)
}

/// Returns the target of a link, which goes through the engine's own address. Advertisements have
/// none.
fn target(href: &str) -> Option<String> {
    let base = Url::parse("https://duckduckgo.com/").ok()?;
    let url = base.join(&href.replace("&amp;", "&")).ok()?;
    if url.host_str() != Some("duckduckgo.com") {
        return Some(url.into());
    }
    url.query_pairs().find(|(key, _)| key == "uddg").map(|(_, to)| to.into_owned())
}

/// Returns text without tags, in one line.
fn plain(html: &str) -> String {
    let text = html2text::config::plain_no_decorate()
        .string_from_read(html.as_bytes(), 10_000)
        .unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(title: &str, url: &str, snippet: &str) -> SearchResult {
        SearchResult { title: title.into(), url: url.into(), snippet: snippet.into() }
    }

    #[test]
    fn parses_response_of_each_engine() {
        let page = r#"<div><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.org%2Fx&amp;rut=1">A &amp; <b>b</b></a>
            <a class="result__snippet" href="x">Some <b>text</b></a></div>
            <div><a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Ad</a></div>"#;
        let want = [result("A & b", "https://a.org/x", "Some text")];
        assert_eq!(SearchBackend::DuckDuckGo.results(page, 5).unwrap(), want);
        assert!(
            SearchBackend::DuckDuckGo
                .results("<html>", 5)
                .unwrap_err()
                .message
                .contains("unexpected page")
        );
        assert_eq!(SearchBackend::DuckDuckGo.results("<p class=\"no-results\">", 5).unwrap(), []);
        let answer = r#"{"results": [{"title": "T", "url": "u", "content": "<b>c</b>"}, {"title": "x"}, {"url": "v"}]}"#;
        assert_eq!(
            SearchBackend::Searxng.results(answer, 5).unwrap(),
            [result("T", "u", "c"), result("", "v", "")]
        );
        assert_eq!(SearchBackend::Searxng.results(answer, 1).unwrap().len(), 1);
        let answer = r#"{"web": {"results": [{"title": "T", "url": "u", "description": "d"}]}}"#;
        assert_eq!(SearchBackend::Brave.results(answer, 5).unwrap(), [result("T", "u", "d")]);
        for wrong in ["<html>", "[]", r#"{"web": {"results": 5}}"#] {
            assert!(SearchBackend::Brave.results(wrong, 5).is_err(), "{wrong}");
        }
    }

    #[test]
    fn requests_match_each_engine() {
        let set = |endpoint: Option<&str>, key: Option<&str>| WebOptions {
            endpoint: endpoint.map(str::to_owned),
            key: key.map(str::to_owned),
            ..WebOptions::default()
        };
        let url =
            |backend: SearchBackend, options: &WebOptions| backend.request(options, "a&b c", 7);
        let own = url(SearchBackend::Searxng, &set(Some("http://localhost:8888/"), None)).unwrap();
        assert_eq!(own, ("http://localhost:8888/search?format=json&q=a%26b+c".into(), vec![]));
        assert!(
            url(SearchBackend::Searxng, &set(None, None))
                .unwrap_err()
                .message
                .contains("tools.web.endpoint")
        );
        let (address, headers) = url(SearchBackend::Brave, &set(None, Some("k"))).unwrap();
        assert_eq!(address, "https://api.search.brave.com/res/v1/web/search?count=7&q=a%26b+c");
        assert_eq!(headers, [("X-Subscription-Token".to_owned(), "k".to_owned())]);
        assert!(
            url(SearchBackend::Brave, &set(None, None)).unwrap_err().message.contains("apiKeyEnv")
        );
        assert!(
            url(SearchBackend::DuckDuckGo, &set(None, None))
                .unwrap()
                .0
                .ends_with("/html/?q=a%26b+c")
        );
    }
}
