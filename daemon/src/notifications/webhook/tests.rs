//! Signatures, repetitions and refusals of webhooks, against servers on this machine.

use std::sync::Arc;

use cairn_protocol::{
    id::SessionId,
    time::Timestamp,
    unattended::{UnattendedRun, UnattendedStatus},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn event() -> RunEvent {
    let run = UnattendedRun {
        session_id: SessionId::new(),
        request: "update the dependencies".into(),
        status: UnattendedStatus::Waiting,
        reason: None,
        turns: 1,
        max_turns: 1,
        until: None,
        check_exit_code: None,
        max_usd: None,
        schedule: None,
        started_at: Timestamp(0),
        finished_at: None,
    };
    RunEvent {
        run,
        question: Some("run_shell cargo update".into()),
        at: Timestamp(1_700_000_000_000),
    }
}

/// A server that gives these answers in order, and returns the requests it received.
async fn server(answers: Vec<&'static str>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook/token-in-path", listener.local_addr().unwrap());
    let requests = tokio::spawn(async move {
        let mut all = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let mut buffer = [0; 4096];
            loop {
                let count = stream.read(&mut buffer).await.unwrap();
                text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = header(head, "content-length").parse::<usize>().unwrap();
                if body.len() >= length {
                    break;
                }
            }
            let location = "location: http://127.0.0.1:1/elsewhere\r\n";
            let reply = format!(
                "HTTP/1.1 {answer}\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(reply.as_bytes()).await.unwrap();
            all.push(text);
        }
        all
    });
    (url, requests)
}

fn header(head: &str, name: &str) -> String {
    let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_default().to_owned()
}

fn webhook(url: &str, is_private: bool) -> Webhook {
    let secret = Secret::Key(Key::new(SECRET).unwrap());
    let webhook = Webhook::new(url, is_private, secret).unwrap();
    Webhook { retry_after: &[Duration::ZERO, Duration::ZERO], ..webhook }
}

#[test]
fn signature_is_that_of_the_specification() {
    // The example of the specification's reference implementations.
    let key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature =
        sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    for wrong in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_????", "whsec_c2hvcnQ="]
    {
        let why = read_secret(wrong).unwrap_err();
        assert!(!why.contains("MfKQ"), "{why}");
    }
}

#[tokio::test]
async fn event_is_posted_and_signed_and_repeated_after_a_failure_that_may_pass() {
    let (url, requests) = server(vec!["503 Busy", "204 No Content"]).await;
    let event = event();
    webhook(&url, true).deliver(&event).await;
    let requests = requests.await.unwrap();
    let ids: Vec<String> = requests.iter().map(|text| header(text, "webhook-id")).collect();
    assert_eq!(ids[0], ids[1]);
    let (head, body) = requests[1].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook/token-in-path HTTP/1.1"), "{head}");
    let time: i64 = header(head, "webhook-timestamp").parse().unwrap();
    let expected = sign(&read_secret(SECRET).unwrap(), &ids[0], time, body);
    assert_eq!(header(head, "webhook-signature"), expected);
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["type"], "run.waiting");
    assert_eq!(body["data"]["session"], event.run.session_id.as_str());
    assert_eq!(body["data"]["status"], "waiting");
    assert_eq!(body["data"]["page"], format!("/viewer#/session/{}", event.run.session_id.as_str()));
    assert_eq!(body["data"]["question"], "run_shell cargo update");
}

#[tokio::test]
async fn refusals_and_redirects_end_the_delivery_and_attempts_are_bounded() {
    for answer in ["404 Not Found", "410 Gone", "302 Found"] {
        let (url, requests) = server(vec![answer]).await;
        let refused = webhook(&url, true).attempt("msg_1", "{}").await.unwrap_err();
        assert!(refused.is_final && !refused.why.contains("token-in-path"), "{}", refused.why);
        assert_eq!(requests.await.unwrap().len(), 1);
    }
    // One attempt and two repetitions.
    let (url, requests) = server(vec!["500 A", "500 B", "500 C"]).await;
    webhook(&url, true).deliver(&event()).await;
    assert_eq!(requests.await.unwrap().len(), 3);
}

#[tokio::test]
async fn private_addresses_need_the_setting_and_messages_have_no_address() {
    for url in ["https://127.0.0.1:1/t0ken", "https://[::1]:1/t0ken", "https://10.0.0.1:1/t0ken"] {
        let refused = webhook(url, false).attempt("msg_1", "{}").await.unwrap_err();
        assert!(refused.is_final && refused.why.contains("webhookPrivate"), "{}", refused.why);
    }
    // Control: with the setting the same address is contacted, where nothing listens.
    let refused =
        webhook("http://127.0.0.1:1/t0ken", true).attempt("msg_1", "{}").await.unwrap_err();
    assert!(!refused.is_final, "{}", refused.why);
    assert!(!refused.why.contains("t0ken"), "{}", refused.why);
}

/// The judge is another implementation: the package `standardwebhooks` of PyPI, if the Python of
/// the tests has it.
#[tokio::test]
async fn another_implementation_accepts_the_signature() {
    let Some(python) = std::env::var_os("CAIRN_TEST_PYTHON") else {
        return eprintln!("skipped: CAIRN_TEST_PYTHON is not set");
    };
    let judge = |script: &'static str, arguments: Vec<String>| {
        let python = python.clone();
        tokio::task::spawn_blocking(move || {
            let mut command = std::process::Command::new(python);
            command.arg("-c").arg(script).args(arguments).output().unwrap()
        })
    };
    if !judge("import standardwebhooks", vec![]).await.unwrap().status.success() {
        return eprintln!("skipped: the package standardwebhooks is missing");
    }
    let (url, requests) = server(vec!["200 OK"]).await;
    webhook(&url, true).deliver(&event()).await;
    let request = Arc::new(requests.await.unwrap().remove(0));
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let script = "import sys, standardwebhooks as s\n\
        h = dict(zip(['webhook-id', 'webhook-timestamp', 'webhook-signature'], sys.argv[3:6]))\n\
        s.Webhook(sys.argv[1]).verify(sys.argv[2], h)";
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let with = |body: &str| {
        let headers = names.iter().map(|name| header(head, name));
        [SECRET.to_owned(), body.to_owned()].into_iter().chain(headers).collect::<Vec<_>>()
    };
    let accepted = judge(script, with(body)).await.unwrap();
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    // Control: a changed body is refused.
    assert!(!judge(script, with("{}")).await.unwrap().status.success());
}
