//! Faults of network and server during an answer: each has one typed outcome and a bounded number
//! of requests.

use std::time::{Duration, Instant, SystemTime};

use cairn_llm::{Chunk, Limits, LlmError, ModelRequest, Settings, connect};
use cairn_protocol::model::FinishReason;
use futures_util::StreamExt;

use crate::{
    all, ask, connected, fixture,
    peer::{End, Peer, Reply},
    question, settings,
};

const STREAMS: &[(&str, &str, &str)] = &[
    ("openai", "openai/tools.sse", "openai/error_server.json"),
    ("anthropic", "anthropic/tool.sse", "anthropic/error_server.json"),
    ("ollama", "ollama/tools.ndjson", "ollama/error_server.json"),
];

/// Counts the chunks visible to a user.
fn visible(chunks: &[Chunk]) -> usize {
    chunks.iter().filter(|chunk| !matches!(chunk, Chunk::Usage(_))).count()
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_neither_lost_nor_duplicated() {
    for (provider, name, _) in STREAMS {
        let bytes = fixture(name).len();
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let (complete, error) = ask(&*connected(provider, &peer.url), question()).await;
        assert_eq!(error, None);
        for cut in 0..bytes {
            for end in [End::Closed, End::Broken] {
                // A broken connection differs from a closed one only in the encoding of its end.
                if end == End::Broken && cut % 7 != 0 {
                    continue;
                }
                let replies = vec![Reply::fixture(name).cut(cut, end), Reply::fixture(name)];
                let peer = Peer::start(provider, replies).await;
                let at_once = Settings { backoff: Duration::ZERO, ..settings(provider, &peer.url) };
                let (chunks, error) = ask(&*connect(&at_once).unwrap(), question()).await;
                let (request_count, what) =
                    (peer.chats().len(), format!("{name} cut at {cut}, {end:?}"));
                match error {
                    // After the first chunk there is no second attempt, and the chunks so far are
                    // returned.
                    Some(error) => {
                        assert!(matches!(error, LlmError::Cut(_)), "{what}: {error:?}");
                        assert!(
                            complete.starts_with(&chunks) && visible(&chunks) > 0,
                            "{what}: {chunks:?}"
                        );
                        assert_eq!(request_count, 1, "{what}");
                    }
                    // Either the second attempt returned everything, or only bytes after the end
                    // were cut.
                    None if request_count == 2 => assert_eq!(chunks, complete, "{what}"),
                    None => {
                        assert_eq!(
                            (request_count, visible(&chunks)),
                            (1, visible(&complete)),
                            "{what}"
                        );
                        assert_eq!(chunks.last(), complete.last(), "{what}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn transient_failures_are_retried() {
    for (provider, name, server_error) in STREAMS {
        let good = Reply::fixture(name);
        let fail = |status| Reply::error(status, server_error);
        let limited = || fail(429);
        let past = httpdate::fmt_http_date(SystemTime::now() - Duration::from_secs(5));
        for (what, bad) in [
            ("429", limited()),
            ("429 with seconds", limited().with("retry-after", "0")),
            ("429 with milliseconds", limited().with("retry-after-ms", "1")),
            ("429 with a date", limited().with("retry-after", &past)),
            ("500", fail(500)),
            ("502 as a page", Reply::new(502, "text/html", "<html>Bad gateway</html>")),
            ("503", fail(503).with("retry-after", "0")),
            ("529", fail(529)),
            ("408", fail(408)),
            ("hang up", Reply::hang_up()),
            ("head alone, then closed", Reply::fixture(name).cut(0, End::Closed)),
        ] {
            let peer = Peer::start(provider, vec![bad.clone(), bad.clone(), good.clone()]).await;
            let (chunks, error) = ask(&*connected(provider, &peer.url), question()).await;
            assert_eq!((error, peer.chats().len()), (None, 3), "{provider}: {what}");
            assert!(
                matches!(chunks.last(), Some(Chunk::Finish(FinishReason::ToolCalls))),
                "{what}"
            );

            let peer = Peer::start(provider, vec![bad]).await;
            let (chunks, error) = ask(&*connected(provider, &peer.url), question()).await;
            let error = error.unwrap();
            assert_eq!((chunks.len(), peer.chats().len()), (0, 3), "{provider}: {what}");
            assert!(error.retryable(), "{provider}: {what}: {error:?}");
            assert_eq!(
                matches!(error, LlmError::RateLimited { .. }),
                what.starts_with("429"),
                "{what}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for (provider, _, server_error) in STREAMS {
        let fail = |status| Reply::error(status, server_error);
        let limited = || fail(429);
        for (what, bad, expected) in [
            ("400", fail(400), "rejected"),
            ("401", fail(401), "unauthorized"),
            ("403", fail(403), "unauthorized"),
            ("redirect", fail(307).with("location", "https://elsewhere/v1"), "malformed"),
            ("404 of a web server", Reply::new(404, "text/html", "<html>"), "malformed"),
            (
                "a page",
                Reply::new(200, "text/html; charset=utf-8", "<html>Log in</html>"),
                "malformed",
            ),
            ("no stream", Reply::new(200, "text/plain", "hello\nworld\n"), "malformed"),
            (
                "broken JSON",
                Reply::new(200, "text/event-stream", "data: {\"a\":\n\n{\"b\n"),
                "malformed",
            ),
            ("wait of an hour", limited().with("retry-after", "3600"), "limited"),
            ("wait of an hour at 503", fail(503).with("retry-after", "3600"), "limited"),
        ] {
            let peer = Peer::start(provider, vec![bad]).await;
            let started = Instant::now();
            let (chunks, error) = ask(&*connected(provider, &peer.url), question()).await;
            let error = error.unwrap();
            let got = match &error {
                LlmError::Rejected(_) => "rejected",
                LlmError::Unauthorized(_) => "unauthorized",
                LlmError::Malformed(text) => {
                    assert!(text.contains(&peer.url), "{what}: {text}");
                    "malformed"
                }
                LlmError::RateLimited { retry_after, text } => {
                    assert_eq!(*retry_after, Some(Duration::from_secs(3600)));
                    assert!(text.contains("a wait of 3600 s, and at most 60 s"), "{text}");
                    "limited"
                }
                _ => "other",
            };
            assert_eq!(
                (got, chunks.len(), peer.chats().len()),
                (expected, 0, 1),
                "{provider}: {what}: {error:?}"
            );
            assert!(started.elapsed() < Duration::from_secs(20));
        }
    }
}

#[tokio::test]
async fn requested_wait_is_honoured() {
    let limited = Reply::error(429, "openai/error_rate.json").with("retry-after-ms", "300");
    let peer = Peer::start("openai", vec![limited, Reply::fixture("openai/text.sse")]).await;
    let started = Instant::now();
    let (_, error) = ask(&*connected("openai", &peer.url), question()).await;
    assert_eq!((error, peer.chats().len()), (None, 2));
    assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
}

#[tokio::test]
async fn error_event_before_first_chunk_is_retried() {
    let replies =
        vec![Reply::fixture("anthropic/error_at_once.sse"), Reply::fixture("anthropic/text.sse")];
    let peer = Peer::start("anthropic", replies).await;
    let (chunks, error) = ask(&*connected("anthropic", &peer.url), question()).await;
    assert_eq!((error, peer.chats().len()), (None, 2));
    assert_eq!(visible(&chunks), 3);
}

#[tokio::test]
async fn refused_connection_is_unavailable_and_names_endpoint() {
    // Bound, so that no other test uses the port, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    for provider in ["openai", "anthropic", "ollama", "openai-compatible"] {
        let (_, error) = ask(&*connected(provider, &url), question()).await;
        let Some(LlmError::Unavailable(text)) = error else { panic!("{error:?}") };
        assert!(text.contains(&url) && text.contains("refused"), "{text}");
        assert!(connected(provider, &url).models().await.is_err());
    }
}

#[tokio::test]
async fn silent_and_slow_answers_time_out() {
    let quick = |provider: &str, url: &str, idle: u64, total: u64| Settings {
        idle_timeout: Duration::from_millis(idle),
        total_timeout: Duration::from_millis(total),
        ..settings(provider, url)
    };
    for (provider, name, _) in STREAMS {
        // No bytes at all, none after the head, none after the first word.
        let half = fixture(name).len() * 2 / 3;
        for (cut, shows) in [(0, false), (half, true)] {
            let peer =
                Peer::start(provider, vec![Reply::fixture(name).cut(cut, End::Silent)]).await;
            let (chunks, error) =
                ask(&*connect(&quick(provider, &peer.url, 100, 10_000)).unwrap(), question()).await;
            assert!(
                matches!(&error, Some(LlmError::TimedOut(text)) if text.contains("nothing for 100ms")),
                "{error:?}"
            );
            assert_eq!((visible(&chunks) > 0, peer.chats().len()), (shows, 1), "{name} at {cut}");
        }
        let slow = Reply::fixture(name).with("content-type", "text/event-stream");
        let late = Reply { pieces: vec![(Duration::from_secs(30), vec![])], ..slow.clone() };
        let peer = Peer::start(provider, vec![late]).await;
        let (_, error) =
            ask(&*connect(&quick(provider, &peer.url, 100, 10_000)).unwrap(), question()).await;
        assert!(matches!(error, Some(LlmError::TimedOut(_))), "{error:?}");

        // A byte now and then is never silence, but the answer has a total limit.
        let peer = Peer::start(provider, vec![slow.trickle(1, Duration::from_millis(20))]).await;
        let started = Instant::now();
        let (_, error) =
            ask(&*connect(&quick(provider, &peer.url, 5_000, 400)).unwrap(), question()).await;
        assert!(
            matches!(&error, Some(LlmError::TimedOut(text)) if text.contains("within 400ms")),
            "{error:?}"
        );
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        assert_eq!(peer.chats().len(), 1);

        // Control: a slow but active answer succeeds.
        let peer = Peer::start(
            provider,
            vec![Reply::fixture(name).trickle(100, Duration::from_millis(10))],
        )
        .await;
        let (chunks, error) =
            ask(&*connect(&quick(provider, &peer.url, 5_000, 10_000)).unwrap(), question()).await;
        assert_eq!(error, None);
        assert!(matches!(chunks.last(), Some(Chunk::Finish(_))));
    }
}

#[tokio::test]
async fn sizes_are_bounded() {
    let limits = Limits { line: 64 * 1024, answer: 1024 * 1024 };
    let word =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n".to_vec();
    let piece = |bytes: Vec<u8>| Reply::new(200, "text/event-stream", bytes);
    for (what, reply, shows) in [
        ("a line without an end", piece(vec![b'x'; 100 * 1024]), false),
        (
            "data without an end",
            piece([b"data: ".to_vec(), vec![b'x'; 100 * 1024]].concat()),
            false,
        ),
        ("an event of many lines", piece(b"data: 0123456789\n".repeat(10_000)), false),
        ("many words", piece(word.repeat(20_000)), true),
        ("comments for ever", piece(b": ping\n\n".repeat(200_000)), false),
    ] {
        let peer = Peer::start("openai", vec![reply.trickle(32 * 1024, Duration::ZERO)]).await;
        let provider = connect(&Settings { limits, ..settings("openai", &peer.url) }).unwrap();
        let (chunks, error) = ask(&*provider, question()).await;
        assert!(matches!(error, Some(LlmError::TooLarge(_))), "{what}: {error:?}");
        assert_eq!((visible(&chunks) > 0, peer.chats().len()), (shows, 1), "{what}");
    }
    // Control: 10 MB succeed under the usual limits.
    let mut body = word.repeat(10_000_000 / word.len());
    body.extend(b"data: [DONE]\n\n");
    let peer = Peer::start("openai", vec![piece(body).trickle(64 * 1024, Duration::ZERO)]).await;
    let (chunks, error) = ask(&*connected("openai", &peer.url), question()).await;
    assert_eq!(error, None);
    assert_eq!(chunks.len(), 10_000_000 / word.len() + 1);
    // The body of an error is not read to its end.
    let peer =
        Peer::start("openai", vec![Reply::new(400, "text/plain", vec![b'x'; 5_000_000])]).await;
    let (_, error) = ask(&*connected("openai", &peer.url), question()).await;
    assert!(error.unwrap().to_string().len() < 1000);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for (provider, name, _) in STREAMS {
        let half = fixture(name).len() * 2 / 3;
        let peer = Peer::start(provider, vec![Reply::fixture(name).cut(half, End::Silent)]).await;
        let connected = connected(provider, &peer.url);
        let before = peer.requests().len();
        let mut stream = connected.chat(question()).await.unwrap();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        peer.wait_closed(1).await;
        assert!(peer.requests().len() > before);
        drop(connected);
    }
}

#[tokio::test]
async fn connection_is_reused_after_an_answer() {
    let peer = Peer::start("anthropic", vec![Reply::fixture("anthropic/text.sse")]).await;
    let provider = connected("anthropic", &peer.url);
    for _ in 0..3 {
        let (_, error) = all(provider.chat(question()).await.unwrap()).await;
        assert_eq!(error, None);
    }
    drop(provider);
    // All three used one connection, which is closed now.
    peer.wait_closed(1).await;
    assert_eq!((peer.chats().len(), peer.connections()), (3, 1));
}

#[tokio::test]
async fn each_retry_is_reported_before_its_wait() {
    let limited = Reply::error(429, "openai/error_rate.json").with("retry-after-ms", "300");
    let cut = Reply::fixture("openai/text.sse").cut(0, End::Closed);
    let peer = Peer::start("openai", vec![limited, cut, Reply::fixture("openai/text.sse")]).await;
    let (sender, mut notices) = tokio::sync::mpsc::channel(8);
    let request = ModelRequest { notices: Some(sender), ..question() };
    let provider = connected("openai", &peer.url);
    let started = Instant::now();
    let answer = tokio::spawn(async move { ask(&*provider, request).await });
    let first = notices.recv().await.unwrap();
    assert!(started.elapsed() < Duration::from_millis(300), "{:?}", started.elapsed());
    let text = first.to_string();
    assert!(text.starts_with("retrying in 0.3 s (1 of 2): openai at http"), "{text}");
    assert!(text.contains("(429): Rate limit"), "{text}");
    let second = notices.recv().await.unwrap().to_string();
    assert!(second.contains("(2 of 2)") && second.contains("before it was complete"), "{second}");
    assert_eq!(answer.await.unwrap().1, None);
    assert_eq!(notices.recv().await, None);
}

#[tokio::test]
async fn attempts_are_limited_as_configured() {
    for attempts in [1, 2, 6] {
        let peer = Peer::start("ollama", vec![Reply::error(503, "ollama/error_rate.json")]).await;
        let settings = Settings { attempts, ..settings("ollama", &peer.url) };
        let (_, error) = ask(&*connect(&settings).unwrap(), question()).await;
        assert!(matches!(error, Some(LlmError::Unavailable(_))), "{error:?}");
        assert_eq!(peer.chats().len(), attempts as usize);
    }
}
