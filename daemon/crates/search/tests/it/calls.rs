//! Callers and callees of definitions, and the flow from an entrypoint.

use cairn_protocol::calls::{CallItem, CallsAnswer, CallsParams};
use cairn_protocol::error::Reason;
use cairn_protocol::search::ReferenceConfidence;
use cairn_search::{CancelFlag, FlowStart};

use crate::fixture::TestRoot;

const FILES: &[(&str, &str)] = &[
    (
        "app.py",
        "from web.server import serve as start\nfrom web import log\n\n\ndef main():\n    log.info()\n    \
         print(1)\n    return start(8080)\n\n\nif __name__ == \"__main__\":\n    main()\n",
    ),
    ("web/__init__.py", ""),
    ("web/log.py", "def info():\n    pass\n"),
    (
        "web/server.py",
        "from jobs.queue import Queue\n\n\ndef serve(port):\n    handle_request(port)\n    \
         x.unknown()\n\n\ndef handle_request(port):\n    queue = Queue()\n    queue.process_job(port)\n    \
         return port\n",
    ),
    ("jobs/__init__.py", ""),
    (
        "jobs/queue.py",
        "class Queue:\n    def process_job(self, job):\n        self.run_step(job)\n        \
         self.run_step(job)\n\n    def run_step(self, job):\n        if job > 1:\n            \
         self.run_step(job - 1)\n        return job\n",
    ),
    ("other.py", "def serve():\n    pass\n\n\nserve()\n"),
];

fn params(symbol: &str, path: &str, depth: u32) -> CallsParams {
    let (symbol, path) = (Some(symbol.into()), Some(path.into()));
    CallsParams { symbol, path, depth, k: 100, ..CallsParams::default() }
}

fn names(answer: &CallsAnswer) -> Vec<(u32, &str, u32)> {
    let name = |item: &'_ CallItem| (item.steps, item.line);
    answer.items.iter().map(|item| (name(item).0, item.name.as_str(), name(item).1)).collect()
}

#[test]
fn callees_follow_aliases_types_and_depth() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    let one = root.indexes.callees(&params("main", "app.py", 1), &flag).unwrap();
    assert_eq!(names(&one), [(1, "info", 1), (1, "serve", 4)]);
    assert_eq!(one.items[1].path, "web/server.py");
    assert_eq!(one.items[1].lines, [8]);
    assert_eq!(one.items[1].confidence, ReferenceConfidence::Exact);
    assert_eq!((one.unresolved, one.truncated, one.complete), (1, false, true));
    let deep = root.indexes.callees(&params("main", "app.py", 5), &flag).unwrap();
    let expected = [
        (1, "info", 1),
        (1, "serve", 4),
        (2, "handle_request", 9),
        (3, "Queue", 1),
        (3, "process_job", 2),
        (4, "run_step", 6),
    ];
    assert_eq!(names(&deep), expected);
    assert_eq!(deep.items[2].via, Some(1));
    assert_eq!(deep.items[5].lines, [3, 4]);
    let few = CallsParams { k: 2, ..params("main", "app.py", 5) };
    let few = root.indexes.callees(&few, &flag).unwrap();
    assert!(few.truncated && few.items.len() == 2);
}

#[test]
fn callers_are_the_definitions_around_calls() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    let callers = root.indexes.callers(&params("run_step", "jobs/queue.py", 5), &flag).unwrap();
    let expected = [
        (1, "process_job", 2),
        (1, "run_step", 6),
        (2, "handle_request", 9),
        (3, "serve", 4),
        (4, "main", 5),
        (5, "app.py", 1),
    ];
    assert_eq!(names(&callers), expected);
    assert_eq!(callers.items[5].kind, "module");
    assert_eq!(callers.items[0].lines, [3, 4]);
    // A definition of the same name elsewhere has callers of its own.
    let other = root.indexes.callers(&params("serve", "other.py", 1), &flag).unwrap();
    assert_eq!(names(&other), [(1, "other.py", 1)]);
    assert_eq!(other.others.len(), 1);
}

#[test]
fn invalid_requests_for_calls_are_refused() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    for wrong in [
        params("main", "app.py", 0),
        params("main", "app.py", 6),
        params("nothing", "app.py", 1),
        CallsParams { k: 0, ..params("main", "app.py", 1) },
        CallsParams { depth: 1, k: 1, ..CallsParams::default() },
    ] {
        for answer in [root.indexes.callers(&wrong, &flag), root.indexes.callees(&wrong, &flag)] {
            assert_eq!(answer.unwrap_err().reason, Reason::InvalidParams, "{wrong:?}");
        }
    }
}

#[test]
fn flow_follows_calls_into_components_and_skips_logging() {
    let root = TestRoot::new(FILES);
    root.build();
    let flag = CancelFlag::default();
    let groups = ["web", "jobs"].map(str::to_owned);
    let flow = |path: &str, line, shows: &dyn Fn(&str) -> bool| {
        let start = FlowStart { path, line, names: &[] };
        root.indexes.flow(&root.id, &start, &groups, shows, &flag).unwrap()
    };
    let steps = flow("app.py", Some(11), &|_| true);
    let got: Vec<(&str, Option<&str>)> =
        steps.iter().map(|step| (step.name.as_str(), step.component.as_deref())).collect();
    let expected = [
        ("main", None),
        ("serve", Some("web")),
        ("handle_request", Some("web")),
        ("Queue.process_job", Some("jobs")),
        ("Queue.run_step", Some("jobs")),
    ];
    assert_eq!(got, expected);
    assert_eq!((steps[1].path.as_str(), steps[1].line), ("web/server.py", 4));
    // Too few steps, hidden files and files that do not exist are no flow.
    assert!(flow("app.py", Some(11), &|path| path == "app.py").is_empty());
    assert!(flow("other.py", None, &|_| true).is_empty());
    assert!(flow("none.py", Some(1), &|_| true).is_empty());
    assert!(flow("app.py", Some(11), &|path| path != "app.py").is_empty());
}
