//! Rights: what a method needs, and what an effect needs by whatever method it comes about.

use cairn_api::{Right, Rights, methods};
use serde_json::json;

use crate::{Client, house, reason};

#[tokio::test]
async fn a_call_without_its_right_is_refused_and_with_it_is_not() {
    let house = house().await;
    for right in [Right::Observe, Right::Prompt, Right::Approve, Right::Admin] {
        let mut client = Client::open(&house, Rights::of(&[right])).await;
        for method in methods::table().iter().filter(|m| m.name != "initialize") {
            // Params that no method takes: a call that was let in is refused for them, and does nothing.
            let answer = client.call(method.name, json!(["by position"])).await;
            let may = method.right == right;
            let told = client.methods.as_array().unwrap().contains(&json!(method.name));
            assert_eq!(told, may, "{} with {right:?}", method.name);
            let want = if may { "invalid_params" } else { "right_missing" };
            assert_eq!(reason(&answer), want, "{} with {right:?}", method.name);
        }
    }
}

/// R1, A2: what takes the right admin takes it by whatever method it comes about.
#[tokio::test]
async fn effects_that_need_admin_need_it_by_every_method() {
    let house = house().await;
    let dir = tempfile::tempdir().unwrap();
    let (known, other) = (dir.path().join("known"), dir.path().join("other"));
    std::fs::create_dir(&known).unwrap();
    std::fs::create_dir(&other).unwrap();
    let mut host = Client::open(&house, Rights::ALL).await;
    let mut guest = Client::open(&house, Rights::of(&[Right::Observe, Right::Prompt, Right::Approve])).await;
    assert!(host.call("index.addRoot", json!({"path": known})).await["result"].is_object());
    let session = host.session().await;
    let turn = |sandbox: &str| {
        let policy = json!({"sandbox": sandbox});
        json!({"sessionId": session, "turnId": "t", "input": "hi", "policy": policy})
    };
    let answer =
        |decision: &str| json!({"approvalId": "apr_019b0000000070008000000000000000", "decision": decision});
    for (method, params, needs) in [
        ("orchestrate.explore.start", json!({"root": "/etc"}), true),
        ("orchestrate.explore.start", json!({"root": format!("{}/../other", known.display())}), true),
        ("orchestrate.explore.start", json!({"root": other}), true),
        ("orchestrate.explore.start", json!({"root": known}), false),
        ("index.addRoot", json!({"path": dir.path()}), true),
        ("orchestrate.run.start", turn("off"), true),
        ("orchestrate.run.start", turn("on"), false),
        ("approval.resolve", answer("always"), true),
        ("approval.resolve", answer("session"), false),
        ("provider.set", json!({"sessionId": session, "endpoint": "http://127.0.0.1:9/v1"}), true),
        ("provider.set", json!({"sessionId": session, "model": "m"}), false),
        ("permission.revoke", json!({"rule": "x"}), true),
        ("config.reload", json!({}), true),
    ] {
        let got = guest.call(method, params.clone()).await;
        assert_eq!(reason(&got) == "right_missing", needs, "{method} {params}: {got}");
        // Control: the same call of a client with every right is not refused for that. It declares the folder.
        if params["root"] == "/etc" || params["root"].as_str().is_some_and(|root| root.contains("..")) {
            continue;
        }
        let got = host.call(method, params.clone()).await;
        assert_ne!(reason(&got), "right_missing", "{method} {params}: {got}");
    }
}

#[tokio::test]
async fn an_observer_sees_and_changes_nothing_while_the_token_of_the_house_does() {
    let house = house().await;
    let mut guest = Client::open(&house, Rights::of(&[Right::Observe])).await;
    let mut host = Client::open(&house, Rights::ALL).await;
    assert_eq!(reason(&guest.call("session.create", json!({})).await), "right_missing");
    let made = host.session().await;
    let listed = guest.call("session.list", json!({})).await;
    assert_eq!(listed["result"]["data"].as_array().unwrap().len(), 1, "{listed}");
    let named = json!({"sessionId": made});
    assert_eq!(reason(&guest.call("session.delete", named.clone()).await), "right_missing");
    assert_eq!(reason(&guest.call("daemon.stop", json!({})).await), "right_missing");
    assert!(guest.call("session.get", named.clone()).await["result"].is_object());
    assert!(host.call("session.delete", named).await["result"].is_object());
}
