//! Formats of answers as providers send them, and the chunks decoded from each.

use cairn_llm::{Chunk, ModelRequest};
use cairn_protocol::model::{FinishReason, TokenUsage};
use serde_json::json;

use crate::{
    ask, connected,
    peer::{Peer, Reply},
    question,
};

/// Provider, fixture, and the chunks as one line each.
pub const SHAPES: &[(&str, &str, &[&str])] = &[
    (
        "openai",
        "openai/text.sse",
        &["text Grüße", "text , 世界", "text  🌍!\n", "usage 19 9 0", "Stop"],
    ),
    (
        "openai",
        "openai/tool.sse",
        &[
            "call 0 call_DdmO9pD3xa9XTPNJ32zg2hcA fs_read",
            r#"args 0 {""#,
            "args 0 path",
            r#"args 0 ":"src/"#,
            r#"args 0 lib.rs"}"#,
            "usage 82 17 64",
            "ToolCalls",
        ],
    ),
    (
        "openai",
        "openai/tools.sse",
        &[
            "text Both.",
            "call 0 call_a1 fs_read",
            r#"args 0 {"path":"a"}"#,
            "call 1 call_b2 search_grep",
            r#"args 1 {"pattern":"#,
            r#"args 1 "x"}"#,
            "usage 90 31 0",
            "ToolCalls",
        ],
    ),
    ("openai", "openai/refusal.sse", &["text I'm sorry", "text , no.", "usage 12 6 0", "Filtered"]),
    ("openai", "openai/length.sse", &["text cut sh", "usage 8 2 0", "Length"]),
    (
        "openai",
        "openai/responses_text.sse",
        &["text Grüße", "text , 世界", "text  🌍!\n", "usage 19 9 0", "Stop"],
    ),
    (
        "openai",
        "openai/responses_tools.sse",
        &[
            "text Both.",
            "call 0 call_a1 fs_read",
            r#"args 0 {"pa"#,
            r#"args 0 th":"a"}"#,
            "call 1 call_b2 search_grep",
            r#"args 1 {"pattern":"x"}"#,
            "usage 90 31 64",
            "ToolCalls",
        ],
    ),
    ("openai", "openai/responses_length.sse", &["text cut sh", "usage 8 16 0", "Length"]),
    (
        "openai",
        "openai/responses_error.sse",
        &[
            "text So ",
            "error: reported an error: The server had an error while processing your request.",
        ],
    ),
    (
        "openai",
        "openai/error_in_stream.sse",
        &[
            "text So ",
            "error: reported an error: The server had an error while processing your request. Sorry about that!",
        ],
    ),
    (
        "openai-compatible",
        "llamacpp/reasoning.sse",
        &[
            "progress 32/2080",
            "progress 2080/2080",
            "thought Hm",
            "thought , 4.",
            "text 4",
            "usage 2080 7 32",
            "Stop",
        ],
    ),
    (
        "openai-compatible",
        "llamacpp/error_in_stream.sse",
        &["text So", "error: reported an error: Compute error."],
    ),
    (
        "anthropic",
        "anthropic/text.sse",
        &["usage 25 1 0", "text Grüße", "text , 世界 🌍!", "usage 25 15 0", "Stop"],
    ),
    (
        "anthropic",
        "anthropic/tool.sse",
        &[
            "usage 1752 2 1024",
            "text I look.",
            "call 0 toolu_01T1x1fJ34qAmk2tNTrN7Up6 fs_read",
            r#"args 0 {"path":"#,
            r#"args 0  "src/lib.rs"}"#,
            "usage 1752 89 1024",
            "ToolCalls",
        ],
    ),
    (
        "anthropic",
        "anthropic/tools.sse",
        &[
            "usage 500 1 0",
            "call 0 toolu_A fs_read",
            r#"args 0 {"path":"a"}"#,
            "call 1 toolu_B git_status",
            "usage 500 61 0",
            "ToolCalls",
        ],
    ),
    (
        "anthropic",
        "anthropic/reasoning.sse",
        &[
            "usage 40 1 0",
            "thought 27 × 453",
            "thought  = 12231",
            r#"item 0 {"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk","thinking":"27 × 453 = 12231","type":"thinking"}"#,
            "text 12231",
            "usage 40 33 0",
            "Stop",
        ],
    ),
    (
        "anthropic",
        "anthropic/error_in_stream.sse",
        &["usage 25 1 0", "text So", "error: reported an error: Overloaded"],
    ),
    (
        "gemini",
        "gemini/text.sse",
        &[
            "usage 19 1 0",
            "text Grüße",
            "usage 19 4 0",
            "text , 世界",
            "usage 19 9 0",
            "text  🌍!\n",
            "Stop",
        ],
    ),
    (
        "gemini",
        "gemini/tools.sse",
        &[
            "usage 90 12 0",
            "thought **Look**\n",
            "usage 90 14 0",
            "text Both.",
            "usage 90 31 64",
            r#"item 0 {"isText":false,"thoughtSignature":"CiQBVKhc7kp1"}"#,
            "call 0 c7 fs_read",
            r#"args 0 {"path":"a"}"#,
            "call 1 c8 search_grep",
            r#"args 1 {"pattern":"x"}"#,
            r#"item 2 {"isText":true,"thoughtSignature":"EjQKMgG+"}"#,
            "ToolCalls",
        ],
    ),
    (
        "gemini",
        "gemini/no_args.sse",
        &["usage 40 5 0", "call 0 made git_status", "args 0 {}", "ToolCalls"],
    ),
    ("gemini", "gemini/length.sse", &["usage 8 2 0", "text cut sh", "Length"]),
    ("gemini", "gemini/safety.sse", &["usage 8 2 0", "text So ", "Filtered"]),
    ("gemini", "gemini/blocked.sse", &["usage 8 0 0", "Filtered"]),
    (
        "gemini",
        "gemini/error_in_stream.sse",
        &[
            "usage 8 2 0",
            "text So ",
            "error: reported an error: The model is overloaded. Please try again later.",
        ],
    ),
    (
        "ollama",
        "ollama/text.ndjson",
        &["text Grüße", "text , 世界", "text  🌍!", "usage 26 12 0", "Stop"],
    ),
    (
        "ollama",
        "ollama/tool.ndjson",
        &[
            "call 0 call_x8p1w2 fs_read",
            r#"args 0 {"path":"src/lib.rs"}"#,
            "usage 169 15 0",
            "ToolCalls",
        ],
    ),
    (
        "ollama",
        "ollama/tools.ndjson",
        &[
            "text Both.",
            "call 0 made fs_read",
            r#"args 0 {"path":"a"}"#,
            "call 1 made git_status",
            "args 1 {}",
            "usage 180 30 0",
            "ToolCalls",
        ],
    ),
    (
        "ollama",
        "ollama/reasoning.ndjson",
        &["thought Hm", "thought , 4.", "text 4", "usage 20 9 0", "Stop"],
    ),
    (
        "ollama",
        "ollama/error_in_stream.ndjson",
        &[
            "text So",
            "error: reported an error: an error was encountered while running the model: unexpected EOF",
        ],
    ),
];

/// Formats a chunk as one line. Generated ids are shown as `is_generated`.
pub fn line(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Text(text) => format!("text {text}"),
        Chunk::Reasoning(text) => format!("thought {text}"),
        Chunk::CallStart { index, id, name } => {
            let is_generated = id
                .strip_prefix("call_")
                .is_some_and(|rest| rest.len() == 18 && rest.ends_with(&format!("_{index}")));
            format!("call {index} {} {name}", if is_generated { "made" } else { id })
        }
        Chunk::CallArguments { index, delta } => format!("args {index} {delta}"),
        Chunk::PromptProgress { processed, total } => format!("progress {processed}/{total}"),
        Chunk::ReasoningItem(item) => format!("item {} {}", item.before_call, item.item),
        Chunk::Usage(TokenUsage { input_tokens, output_tokens, cached_tokens, .. }) => {
            format!("usage {input_tokens} {output_tokens} {cached_tokens}")
        }
        Chunk::Finish(reason) => format!("{reason:?}"),
    }
}

#[tokio::test]
async fn every_format_decodes_to_its_chunks() {
    for (provider, name, expected) in SHAPES {
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let request = ModelRequest { prompt_progress: true, ..question() };
        let (chunks, error) = ask(&*connected(provider, &peer.url), request).await;
        let mut lines: Vec<String> = chunks.iter().map(line).collect();
        lines.extend(error.map(|error| {
            assert!(error.retryable(), "{error:?}");
            format!(
                "error: {}",
                error
                    .to_string()
                    .split_once(" reported")
                    .map(|(_, rest)| format!("reported{rest}"))
                    .unwrap()
            )
        }));
        assert_eq!(lines, *expected, "{name}");
        assert_eq!(peer.chats().len(), 1, "{name}: sent again after the first chunk");
    }
}

#[tokio::test]
async fn forced_anthropic_answer_is_text() {
    let peer = Peer::start("anthropic", vec![Reply::fixture("anthropic/schema.sse")]).await;
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let request = ModelRequest { schema: Some(schema), ..question() };
    let (chunks, error) = ask(&*connected("anthropic", &peer.url), request).await;
    assert_eq!(error, None);
    let lines: Vec<String> = chunks.iter().map(line).collect();
    assert_eq!(lines, ["usage 60 1 0", "text {\"title\":", "text \"x\"}", "usage 60 12 0", "Stop"]);
    assert_eq!(chunks.last(), Some(&Chunk::Finish(FinishReason::Stop)));
}

#[tokio::test]
async fn wrongly_numbered_calls_are_decoded() {
    let event = |delta: &str, reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n"
        )
    };
    let call = |index: &str, id: &str, name: &str, text: &str| {
        format!(
            "{{\"tool_calls\":[{{{index}\"id\":\"{id}\",\"function\":{{\"name\":\"{name}\",\"arguments\":\"{text}\"}}}}]}}"
        )
    };
    let both = ["call 0 a x", "args 0 {}", "call 1 b y", "args 1 {}", "ToolCalls"];
    let zero = "\"index\":0,";
    for (what, deltas, expected) in [
        ("all are 0", vec![call(zero, "a", "x", "{}"), call(zero, "b", "y", "{}")], &both[..]),
        ("no number", vec![call("", "a", "x", "{}"), call("", "b", "y", "{}")], &both),
        (
            "id and name each time",
            vec![call(zero, "a", "x", "{"), call(zero, "a", "x", "}")],
            &["call 0 a x", "args 0 {", "args 0 }", "ToolCalls"],
        ),
        ("no id", vec![call(zero, "", "x", "{}")], &["call 0 made x", "args 0 {}", "ToolCalls"]),
        (
            "the same id for all",
            vec![call("\"index\":0,", "a", "x", "{}"), call("\"index\":1,", "a", "y", "{}")],
            &["call 0 a x", "args 0 {}", "call 1 made y", "args 1 {}", "ToolCalls"],
        ),
        (
            "name after arguments",
            vec![call(zero, "a", "", "{"), call(zero, "", "x", "}")],
            &["call 0 a x", "args 0 {", "args 0 }", "ToolCalls"],
        ),
    ] {
        let mut body: String = deltas.iter().map(|delta| event(delta, "null")).collect();
        body.push_str(&event("{}", "\"stop\""));
        let peer =
            Peer::start("openai-compatible", vec![Reply::new(200, "text/event-stream", body)])
                .await;
        let (chunks, error) = ask(&*connected("openai-compatible", &peer.url), question()).await;
        assert_eq!(error, None, "{what}");
        assert_eq!(chunks.iter().map(line).collect::<Vec<_>>(), expected, "{what}");
    }
    // Control: a call without a name is refused.
    let body = event(&call(zero, "a", "", "{}"), "\"tool_calls\"");
    let peer =
        Peer::start("openai-compatible", vec![Reply::new(200, "text/event-stream", body)]).await;
    let (_, error) = ask(&*connected("openai-compatible", &peer.url), question()).await;
    assert!(matches!(error, Some(cairn_llm::LlmError::Malformed(_))), "{error:?}");
}
