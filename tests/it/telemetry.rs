//! Traces and metrics as a collector receives them: their content, the content that they must not
//! have, and an unavailable collector.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{KeyValue, any_value::Value as AttributeValue},
    metrics::v1::{metric::Data, number_data_point::Value as Number},
    trace::v1::Span,
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{
    chat::{calls, text_answer},
    http::send,
    sealed::{Daemon, PATIENCE, logged, tree, wait_for},
};

/// Secret in the prompt, the file, the arguments, the answer, the model's key and the collector's
/// header.
const CANARY: &str = "canary-7f3a91c2";

/// Behaviour of a collector.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Takes,
    Refuses,
    NeverAnswers,
}

/// Path, head and body of each posted request.
type Got = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

/// A collector with the bodies posted to it by path, and their headers.
#[derive(Clone)]
struct Collector {
    address: String,
    got: Got,
}

impl Collector {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let this = Self { address, got: Arc::default() };
        let got = Arc::clone(&this.got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, manner, Arc::clone(&got)));
            }
        });
        this
    }

    fn bodies(&self, path: &str) -> Vec<Vec<u8>> {
        self.got
            .lock()
            .unwrap()
            .iter()
            .filter(|(p, ..)| p == path)
            .map(|(.., body)| body.clone())
            .collect()
    }

    fn spans(&self) -> Vec<Span> {
        let read = |body: &Vec<u8>| ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        let all = self.bodies("/v1/traces");
        let resources = all.iter().flat_map(|body| read(body).resource_spans);
        resources.flat_map(|r| r.scope_spans).flat_map(|s| s.spans).collect()
    }

    /// Returns the latest metrics by name.
    fn figures(&self) -> Vec<(String, u64)> {
        let Some(body) = self.bodies("/v1/metrics").pop() else { return vec![] };
        let read = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
        let metrics =
            read.resource_metrics.into_iter().flat_map(|r| r.scope_metrics).flat_map(|s| s.metrics);
        let points = |data: Data| match data {
            Data::Gauge(gauge) => gauge.data_points,
            Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                sum.data_points
            }
            other => panic!("{other:?}"),
        };
        let mut all: Vec<(String, u64)> = metrics
            .map(|metric| match points(metric.data.unwrap())[0].value {
                Some(Number::AsInt(value)) => (metric.name, value as u64),
                other => panic!("{other:?}"),
            })
            .collect();
        all.sort();
        all
    }
}

/// Reads requests and answers them in order.
async fn answer(stream: TcpStream, manner: Manner, got: Got) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while stream.read_line(&mut line).await.is_ok_and(|n| n > 2) {
            head.push_str(&line);
            line.clear();
        }
        if head.is_empty() {
            return;
        }
        let header = |name: &str| {
            let value = head
                .lines()
                .find_map(|l| l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)));
            value.map(|(_, value)| value.trim().to_owned())
        };
        let mut body = vec![0; header("content-length").unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        got.lock().unwrap().push((path, head, body));
        let status = match manner {
            Manner::Takes => "200 OK",
            Manner::Refuses => "400 Bad Request",
            Manner::NeverAnswers => return std::future::pending().await,
        };
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Starts a daemon that exports to `endpoint`, with a scripted model.
fn daemon(dir: &Path, telemetry: Value, answers: &Value) -> Daemon {
    let text = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    tree(
        dir,
        &[("script.json", &text.to_string()), ("repo/notes.txt", CANARY), ("repo/.git/HEAD", "x")],
    );
    let config = json!({
        "llm": {"provider": "scripted", "endpoint": dir.join("script.json"), "apiKey": CANARY},
        "telemetry": telemetry,
    });
    tree(&dir.join("home"), &[("config/config.json", &config.to_string())]);
    Daemon::start_in(&dir.join("home"), &[])
}

/// Runs a turn until it finishes.
async fn turn(daemon: &Daemon, root: &Path) -> Value {
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": root})).await;
    let session =
        raw.ok("session.create", json!({"title": CANARY, "root": root})).await["sessionId"].clone();
    raw.ok("orchestrate.subscribe", json!({"sessionId": session, "after": 0})).await;
    let input = format!("what does {CANARY} mean?");
    raw.ok("orchestrate.run.start", json!({"sessionId": session, "turnId": "t", "input": input}))
        .await;
    loop {
        let record = raw.notification("orchestrate.event").await;
        if record["evt"]["type"] == "run_completed" {
            return session;
        }
    }
}

fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let value = attributes.iter().find(|a| a.key == name)?.value.clone()?.value?;
    Some(match value {
        AttributeValue::StringValue(text) => text,
        AttributeValue::IntValue(number) => number.to_string(),
        AttributeValue::BoolValue(truth) => truth.to_string(),
        other => panic!("{other:?}"),
    })
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|s| s.name == name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_is_traced_without_its_content() {
    let collector = Collector::start(Manner::Takes).await;
    let dir = tempfile::tempdir().unwrap();
    let answers = json!([
        calls("read_file", &json!({"path": "notes.txt"})),
        calls("read_file", &json!({"path": CANARY})),
        calls(CANARY, &json!({"path": CANARY})),
        text_answer(&format!("it means {CANARY}")),
    ]);
    let telemetry = json!({"enabled": true, "endpoint": collector.address, "headers": {"x-key": CANARY}, "intervalSeconds": 1});
    let mut daemon = daemon(dir.path(), telemetry, &answers);
    let session = turn(&daemon, &dir.path().join("repo")).await;
    assert!(daemon.stop().success());

    let spans = collector.spans();
    let [run] = named(&spans, "turn")[..] else { panic!("{spans:#?}") };
    assert_eq!(attribute(&run.attributes, "gen_ai.conversation.id").as_deref(), session.as_str());
    assert_eq!(attribute(&run.attributes, "cairn.run.outcome").as_deref(), Some("completed"));
    assert_eq!(attribute(&run.attributes, "gen_ai.usage.output_tokens").as_deref(), Some("26"));
    // The run outlives the request that starts it: it has its own trace with a link to the request.
    let [start] = named(&spans, "orchestrate.run.start")[..] else { panic!("{spans:#?}") };
    assert!(run.parent_span_id.is_empty() && run.trace_id != start.trace_id);
    assert_eq!(run.links.iter().map(|l| &l.span_id).collect::<Vec<_>>(), [&start.span_id]);
    assert_eq!(start.kind, 2, "{start:?}");
    let inside = |span: &Span| span.parent_span_id == run.span_id && span.trace_id == run.trace_id;
    let model_requests = named(&spans, "chat script");
    assert!(
        model_requests.len() == 4 && model_requests.iter().all(|s| inside(s)),
        "{model_requests:#?}"
    );
    assert_eq!(
        attribute(&model_requests[0].attributes, "gen_ai.usage.input_tokens").as_deref(),
        Some("10")
    );
    assert_eq!(
        attribute(&model_requests[0].attributes, "gen_ai.provider.name").as_deref(),
        Some("scripted")
    );
    let tools = named(&spans, "execute_tool read_file");
    assert!(tools.len() == 2 && tools.iter().all(|s| inside(s)), "{tools:#?}");
    let failed: Vec<_> =
        tools.iter().filter_map(|s| attribute(&s.attributes, "error.type")).collect();
    assert_eq!(failed, ["path_not_found"]);
    assert!(
        spans.iter().all(|s| s.end_time_unix_nano >= s.start_time_unix_nano && s.events.is_empty())
    );

    // The secret may occur only in the header, which belongs to the collector; exported names and
    // values must not contain it.
    let got = collector.got.lock().unwrap();
    assert!(got.iter().all(|(_, head, _)| head.contains(CANARY)));
    let contains =
        |bytes: &[u8], what: &str| bytes.windows(what.len()).any(|w| w == what.as_bytes());
    assert!(
        got.iter().any(|(.., body)| contains(body, "execute_tool read_file")),
        "the search itself finds what is there"
    );
    let root = dir.path().to_str().unwrap();
    for (path, _, body) in got.iter() {
        assert!(
            !contains(body, CANARY) && !contains(body, "notes.txt") && !contains(body, root),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explore_is_traced_with_its_operations() {
    let collector = Collector::start(Manner::Takes).await;
    let dir = tempfile::tempdir().unwrap();
    let telemetry = json!({"enabled": true, "endpoint": collector.address, "metrics": false});
    let mut daemon = daemon(dir.path(), telemetry, &json!([text_answer("x")]));
    let mut raw = daemon.client().await;
    raw.explore(&dir.path().join("repo"), &[CANARY]).await;
    assert!(daemon.stop().success());
    let spans = collector.spans();
    let [run] = named(&spans, "explore")[..] else { panic!("{spans:#?}") };
    assert_eq!(attribute(&run.attributes, "cairn.run.outcome").as_deref(), Some("completed"));
    let operations = named(&spans, "operation");
    assert!(
        operations.len() > 2 && operations.iter().all(|s| s.parent_span_id == run.span_id),
        "{spans:#?}"
    );
    for span in operations {
        let name = attribute(&span.attributes, "cairn.operation").unwrap();
        let tool = spans.iter().find(|s| s.parent_span_id == span.span_id).unwrap();
        assert_eq!(tool.name, format!("execute_tool {name}"));
    }
    assert!(collector.bodies("/v1/metrics").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_exported() {
    let collector = Collector::start(Manner::Takes).await;
    let dir = tempfile::tempdir().unwrap();
    let telemetry = json!({"enabled": true, "endpoint": collector.address, "traces": false, "intervalSeconds": 1});
    let daemon = daemon(dir.path(), telemetry, &json!([text_answer("x")]));
    daemon.client().await.ok("session.create", json!({"title": "one"})).await;
    let until = Instant::now() + PATIENCE;
    while !collector.figures().contains(&("cairn_sessions".into(), 1)) {
        assert!(Instant::now() < until, "{:?}", collector.figures());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let names: Vec<String> = collector.figures().into_iter().map(|(name, _)| name).collect();
    let text = send(&daemon, "GET /metrics", &[], b"").await.text().await;
    let mut listed: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split(' ').next().unwrap())
        .collect();
    listed.sort_unstable();
    assert_eq!(names, listed);
    assert!(collector.spans().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_collector_is_logged_once() {
    let closed = {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", free.local_addr().unwrap())
    };
    let (refuses, slow) =
        (Collector::start(Manner::Refuses).await, Collector::start(Manner::NeverAnswers).await);
    let cases = [
        (&closed, "cannot be sent"),
        (&refuses.address, "it answered 400"),
        (&slow.address, "was not accepted within 3 s"),
    ];
    for (endpoint, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let telemetry = json!({"enabled": true, "endpoint": endpoint, "intervalSeconds": 1});
        let mut daemon =
            daemon(dir.path(), telemetry, &json!([text_answer("one"), text_answer("two")]));
        let home = daemon.home.clone();
        turn(&daemon, &dir.path().join("repo")).await;
        if *endpoint == slow.address {
            let until = Instant::now() + PATIENCE;
            while slow.got.lock().unwrap().is_empty() {
                assert!(Instant::now() < until, "nothing was sent");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        } else {
            wait_for("a word of it", || {
                logged(&home).contains("telemetry cannot be sent").then_some(())
            });
        }
        turn(&daemon, &dir.path().join("repo")).await;
        let began = Instant::now();
        assert!(daemon.stop().success());
        assert!(began.elapsed() < Duration::from_secs(20), "{endpoint}: {:?}", began.elapsed());
        let log = logged(&home);
        assert!(log.contains(expected), "{endpoint}: {log}");
        assert!(log.matches("telemetry cannot be sent").count() <= 1, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn telemetry_is_off_by_default_and_remote_endpoints_must_be_named() {
    let collector = Collector::start(Manner::Takes).await;
    let start = |telemetry: Value, variable: &str| {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        tree(&home, &[("config/config.json", &json!({"telemetry": telemetry}).to_string())]);
        (Daemon::start_with(&home, &[("OTEL_EXPORTER_OTLP_ENDPOINT", variable)]), dir)
    };
    let (mut off, _guard) = start(json!({}), &collector.address);
    off.client().await.ok("daemon.stats", json!({})).await;
    assert!(off.stop().success());
    assert!(collector.got.lock().unwrap().is_empty());
    // Positive control: the same variable, with telemetry enabled in the user's configuration.
    let (mut on, _guard) =
        start(json!({"enabled": true, "intervalSeconds": 3600}), &collector.address);
    on.client().await.ok("daemon.stats", json!({})).await;
    assert!(on.stop().success());
    assert!(!named(&collector.spans(), "daemon.stats").is_empty());
    // A variable set for other programs does not make this one connect to another machine.
    let (mut away, _guard) = start(json!({"enabled": true}), "http://collector.example:4318");
    let log = logged(&away.home.clone());
    assert!(log.contains("collector.example:4318 is not on this machine"), "{log}");
    assert!(log.contains("http://127.0.0.1:4318"), "{log}");
    away.kill9();
}
