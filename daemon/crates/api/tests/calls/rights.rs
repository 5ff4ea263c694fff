//! The rights that methods and effects need, through whichever method an effect occurs.

use cairn_api::{
    Right, Rights, methods,
    rights::{self, Effect},
};
use cairn_protocol::id::{RunId, SessionId};
use cairn_trace::Append;
use serde_json::{Value, json};

use crate::{Client, TestDaemon, reason, test_daemon, until};

#[tokio::test]
async fn method_requires_its_right() {
    let test_daemon = test_daemon().await;
    for right in [Right::Observe, Right::Prompt, Right::Approve, Right::Admin] {
        let mut client = Client::open(&test_daemon, Rights::of(&[right])).await;
        for method in methods::table().iter().filter(|m| m.name != "initialize") {
            // No method accepts positional params: an admitted call is refused because of them and
            // does nothing.
            let answer = client.call(method.name, json!(["by position"])).await;
            let may = method.right == right;
            let message = client.methods.as_array().unwrap().contains(&json!(method.name));
            assert_eq!(message, may, "{} with {right:?}", method.name);
            let expected = if may { "invalid_params" } else { "right_missing" };
            assert_eq!(reason(&answer), expected, "{} with {right:?}", method.name);
        }
    }
}

#[tokio::test]
async fn background_methods_know_only_commands_of_the_session() {
    let test_daemon = test_daemon().await;
    let mut client = Client::open(&test_daemon, Rights::ALL).await;
    let session = client.session().await;
    let list = client.call("background.list", json!({"sessionId": session})).await;
    assert_eq!(list["result"]["data"], json!([]), "{list}");
    let absent = SessionId::new();
    for (method, id) in [("background.output", Some("bg_1")), ("background.stop", Some("bg_1"))] {
        let answer = client.call(method, json!({"sessionId": session, "id": id})).await;
        assert_eq!(reason(&answer), "invalid_params", "{method}");
        let answer = client.call(method, json!({"sessionId": absent, "id": id})).await;
        assert_eq!(reason(&answer), "session_not_found", "{method}");
    }
    let answer = client.call("background.list", json!({"sessionId": absent})).await;
    assert_eq!(reason(&answer), "session_not_found");
}

#[tokio::test]
async fn logins_of_mcp_servers_need_admin_and_a_host_that_has_servers() {
    let test_daemon = test_daemon().await;
    let mut host = Client::open(&test_daemon, Rights::ALL).await;
    assert_eq!(host.call("mcp.list", json!({})).await["result"]["data"], json!([]));
    let mut guest =
        Client::open(&test_daemon, Rights::of(&[Right::Observe, Right::Prompt, Right::Approve]))
            .await;
    assert!(guest.call("mcp.list", json!({})).await["result"].is_object());
    let login = "lgn_019b0000000070008000000000000000";
    for (method, params) in [
        ("mcp.login", json!({"name": "x"})),
        ("mcp.finishLogin", json!({"loginId": login})),
        ("mcp.logout", json!({"name": "x"})),
    ] {
        assert_eq!(reason(&guest.call(method, params.clone()).await), "right_missing", "{method}");
        assert_eq!(reason(&host.call(method, params).await), "not_supported", "{method}");
    }
}

/// Lists every set of rights.
fn all_sets_of_rights() -> impl Iterator<Item = Vec<Right>> {
    (0_u8..16).map(|bits| {
        Right::ALL.into_iter().filter(|right| bits & (1 << *right as u8) != 0).collect()
    })
}

/// A declared root, an undeclared folder, and sessions.
struct Scene {
    root: String,
    other: String,
    session: Value,
    unconfined: Value,
    raised: Value,
    _dir: tempfile::TempDir,
}

impl Scene {
    async fn new(test_daemon: &TestDaemon) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [root, other] = ["known", "other"].map(|name| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("a.rs"), "fn a() {}\n").unwrap();
            folder.canonicalize().unwrap().to_string_lossy().into_owned()
        });
        let mut host = Client::open(test_daemon, Rights::ALL).await;
        assert!(host.call("index.addRoot", json!({"path": root})).await["result"].is_object());
        let created = host.call("session.create", json!({"root": root})).await;
        let session = created["result"]["sessionId"].clone();
        let mut sessions = Vec::new();
        for policy in [json!({"sandbox": "off"}), json!({"mode": "auto"})] {
            let session = host.session().await;
            let id: SessionId = serde_json::from_value(session.clone()).unwrap();
            let params = json!({"sessionId": id, "turnId": "t", "input": "hi", "policy": policy});
            let run = Append::new(&id, vec![]).run(&RunId::new(), "turn", params.to_string());
            test_daemon.engine.trace().append(run).await.unwrap();
            sessions.push(session);
        }
        let [unconfined, raised] = sessions.try_into().unwrap();
        Self { root, other, session, unconfined, raised, _dir: dir }
    }

    /// Values of required params with which calls reach their work.
    fn value(&self, name: &str, schema: &Value, types: &Value) -> Value {
        match name {
            "sessionId" | "traceId" => return self.session.clone(),
            "root" => return json!(self.root),
            "path" => return json!(self.root),
            "approvalId" => return json!("apr_019b0000000070008000000000000000"),
            "subscriptionId" => return json!("sub_019b0000000070008000000000000000"),
            "loginId" => return json!("lgn_019b0000000070008000000000000000"),
            "scheduleId" => return json!("sch_019b0000000070008000000000000000"),
            "id" => return json!("dev_019b0000000070008000000000000000"),
            _ => {}
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let of = reference.rsplit('/').next().unwrap();
            return self.value("", &types[of], types);
        }
        let variants =
            [&schema["oneOf"], &schema["anyOf"]].into_iter().find_map(|v| v.as_array()?.first());
        if let Some(first) = variants {
            return self.value("", first, types);
        }
        if let Some(known) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return known.clone();
        }
        match schema["type"].as_str() {
            Some("object") => self.params(schema, types),
            Some("array") => json!([]),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(false),
            _ => json!("x"),
        }
    }

    /// Builds the required params of a type.
    fn params(&self, schema: &Value, types: &Value) -> Value {
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        required.map(|name| (name, self.value(name, &schema["properties"][name], types))).collect()
    }

    /// Params of a start or a schedule with this policy and check.
    fn unattended(&self, method: &str, own: &Value) -> Value {
        let (policy, until) = (&own["policy"], &own["until"]);
        let mut params = match method {
            "schedule.add" => {
                json!({"when": "every day 7:00", "job": {"request": "hi", "root": self.root, "policy": policy, "until": until}})
            }
            _ => {
                json!({"turn": {"sessionId": self.session, "turnId": "t", "input": "hi", "policy": policy}, "until": until})
            }
        };
        // Absent is not the same as null.
        for part in ["turn", "job"] {
            if let Some(part) = params.get_mut(part).and_then(Value::as_object_mut) {
                part.retain(|_, value| !value.is_null());
            }
        }
        if let Some(all) = params.as_object_mut() {
            all.retain(|_, value| !value.is_null());
        }
        params
    }

    /// Params of an explore with the network and without it.
    fn explores(&self, effect: Effect) -> [Value; 2] {
        [true, false].map(|on| match effect {
            Effect::CloneToExplore => {
                json!({"remoteURL": "https://git.example/a/b.git", "policy": {"network": on}})
            }
            _ => json!({"root": self.root, "policy": {"network": on}}),
        })
    }

    /// Params of a call with an effect, and of the same call without it.
    fn with_effect(&self, method: &str, effect: Effect) -> [Value; 2] {
        let own = |with: Value, without: Value| match method {
            "unattended.start" | "schedule.add" => {
                [self.unattended(method, &with), self.unattended(method, &without)]
            }
            "fleet.run" => [with, without].map(|turn| {
                let work = json!({"type": "turn", "input": "hi", "policy": turn["policy"]});
                json!({"pool": "p", "root": self.root, "work": work})
            }),
            _ => [with, without],
        };
        match (method, effect) {
            ("session.create", _) => {
                return [
                    json!({"root": self.root, "worktree": "new"}),
                    json!({"root": self.root, "worktree": "existing"}),
                ];
            }
            ("unattended.start" | "schedule.add", Effect::RunCheck) => {
                return own(json!({"until": "true"}), json!({}));
            }
            ("unattended.start" | "schedule.add" | "fleet.run", Effect::RaiseMode) => {
                return own(
                    json!({"policy": {"mode": "auto"}}),
                    json!({"policy": {"mode": "ask"}}),
                );
            }
            ("unattended.start" | "schedule.add" | "fleet.run", Effect::OpenNetwork) => {
                return own(
                    json!({"policy": {"network": true}}),
                    json!({"policy": {"network": false}}),
                );
            }
            ("orchestrate.explore.start", Effect::CloneToExplore | Effect::OpenNetwork) => {
                return self.explores(effect);
            }
            ("unattended.start" | "schedule.add" | "fleet.run", Effect::LeaveSandbox) => {
                return own(
                    json!({"policy": {"sandbox": "off"}}),
                    json!({"policy": {"sandbox": "on"}}),
                );
            }
            _ => {}
        }
        let turn = |policy: Value| json!({"sessionId": self.session, "turnId": "t", "input": "hi", "policy": policy});
        let steer = |session: &Value| json!({"sessionId": session, "text": "more"});
        let answer = |decision: &str| json!({"approvalId": "apr_019b0000000070008000000000000000", "decision": decision});
        match effect {
            Effect::DeclareRoot => [json!({"root": self.other}), json!({"root": self.root})],
            Effect::LeaveSandbox => {
                [turn(json!({"sandbox": "off"})), turn(json!({"sandbox": "on"}))]
            }
            Effect::RaiseMode => {
                [turn(json!({"mode": "accept-edits"})), turn(json!({"mode": "plan"}))]
            }
            Effect::OpenNetwork => {
                [turn(json!({"network": true})), turn(json!({"network": false}))]
            }
            Effect::SteerRaised => [steer(&self.raised), steer(&self.session)],
            Effect::SteerOutsideSandbox => [steer(&self.unconfined), steer(&self.session)],
            Effect::RunCheck | Effect::CreateWorktree | Effect::CloneToExplore => {
                unreachable!("it depends on the method")
            }
            Effect::GrantRule => [answer("always"), answer("session")],
            Effect::MoveModel => [
                json!({"sessionId": self.session, "endpoint": "http://127.0.0.1:9/v1"}),
                json!({"sessionId": self.session, "model": "m"}),
            ],
            Effect::GiveRight(right) => [json!({"rights": [right]}), json!({"rights": []})],
        }
    }
}

/// Each row of the table, called with each set of rights.
#[tokio::test(flavor = "multi_thread")]
async fn every_rights_row_is_enforced_for_every_set_of_rights() {
    let document = cairn_api::openrpc();
    let types = &document["components"]["schemas"];
    let of = |method: &str| {
        let listed =
            document["methods"].as_array().unwrap().iter().find(|m| m["name"] == method).unwrap();
        let name = listed["x-params"]["$ref"].as_str().unwrap_or_default();
        types[name.rsplit('/').next().unwrap()].clone()
    };
    let mut rows = rights::table();
    let named: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.method).collect();
    let methods = methods::table();
    assert!(methods.iter().all(|m| named.contains(m.name)) && named.len() == methods.len());
    // The handshake happened when the client was opened. Destructive methods come last.
    rows.retain(|row| row.method != "initialize");
    let last = ["index.removeRoot", "session.delete", "daemon.stop"];
    rows.sort_by_key(|row| last.iter().position(|method| *method == row.method));
    let mut calls = 0;
    for granted in all_sets_of_rights() {
        let test_daemon = test_daemon().await;
        let scene = Scene::new(&test_daemon).await;
        let mut client = Client::open(&test_daemon, Rights::of(&granted)).await;
        for row in &rows {
            let pair = row.effect.map(|effect| scene.with_effect(row.method, effect));
            let params = match &pair {
                Some([with, _]) => with.clone(),
                None => scene.params(&of(row.method), types),
            };
            let denied = row.required_rights().any(|right| !granted.contains(&right));
            let got = client.call(row.method, params.clone()).await;
            let what = format!("{} {:?} {params} with {granted:?}: {got}", row.method, row.effect);
            assert_eq!(reason(&got) == "right_missing", denied, "{what}");
            // A params error with a path would mean that the call did not reach its effects.
            assert!(got["error"]["data"]["details"]["path"].is_null(), "{what}");
            calls += 1;
            // Control: the same call without the effect needs only the method's right.
            if let Some([_, without]) = pair {
                let right = methods.iter().find(|m| m.name == row.method).unwrap().right;
                let got = client.call(row.method, without.clone()).await;
                let denied = !granted.contains(&right);
                assert_eq!(
                    reason(&got) == "right_missing",
                    denied,
                    "{what}: without it {without}: {got}"
                );
                calls += 1;
            }
        }
    }
    let effects = rows.iter().filter(|row| row.effect.is_some()).count();
    assert_eq!(calls, 16 * (rows.len() + effects));
}

/// Bounded calls are refused to a caller with all rights and to one with only the method's right.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_apply_to_all_rights() {
    let test_daemon = test_daemon().await;
    let scene = Scene::new(&test_daemon).await;
    let root = &scene.root;
    let other = &scene.other;
    let session = &scene.session;
    // Explores of the controls end at once.
    test_daemon.tool.gate.add_permits(100);
    for bound in rights::BOUNDS {
        let in_other = |method: &str| match method {
            "content.getSpan" => json!({"path": format!("{other}/a.rs"), "start": 1, "end": 1}),
            "fs.listDir" | "git.status" => json!({"path": other}),
            "search.grep" => json!({"pattern": "fn", "filters": {"roots": [other]}}),
            "search.hybrid" => json!({"query": "fn", "filters": {"roots": [other]}}),
            "search.symbols" => json!({"query": "a", "filters": {"roots": [other]}}),
            "search.references" | "search.callers" | "search.callees" => {
                json!({"root": other, "symbol": "a"})
            }
            "search.impact" => json!({"root": other, "path": "a.rs"}),
            "search.map" => json!({"roots": [other]}),
            "index.status" | "session.create" => json!({"root": other}),
            "trace.replay" => json!({"traceId": session, "root": other}),
            "git.clone" => json!({"remoteURL": format!("file://{other}")}),
            method => panic!("{method} has no case here"),
        };
        let away = json!({"paths": ["../other"]});
        let params = match (bound.method, bound.reason) {
            ("orchestrate.explore.start", _) if bound.text.contains("cloning") => {
                json!({"remoteURL": format!("file://{other}"), "policy": {"network": true}})
            }
            ("orchestrate.explore.start", _) => json!({"root": root, "policy": away}),
            ("orchestrate.run.start", _) => {
                json!({"sessionId": session, "turnId": "TURN", "input": "hi", "policy": away})
            }
            (method, _) => in_other(method),
        };
        let right = methods::table().iter().find(|m| m.name == bound.method).unwrap().right;
        let network = params["policy"]["network"] == true;
        let one = if network { Rights::of(&[right, Right::Approve]) } else { Rights::of(&[right]) };
        for (turn, rights) in [("all", Rights::ALL), ("one", one)] {
            let params: Value =
                serde_json::from_str(&params.to_string().replace("TURN", turn)).unwrap();
            until(|| test_daemon.engine.running() == 0).await;
            let mut client = Client::open(&test_daemon, rights).await;
            let got = client.call(bound.method, params.clone()).await;
            assert_eq!(reason(&got), bound.reason.as_str(), "{} {params}: {got}", bound.method);
            // Control: the same call inside the root is not refused.
            let text = params.to_string().replace(other.as_str(), root).replace("../other", "a.rs");
            let text = text.replace(&format!("\"{turn}\""), &format!("\"{turn} inside\""));
            let inside: Value = serde_json::from_str(&text).unwrap();
            let got = client.call(bound.method, inside.clone()).await;
            assert_ne!(reason(&got), bound.reason.as_str(), "{} {inside}: {got}", bound.method);
        }
    }
}

#[tokio::test]
async fn explore_outside_roots_requires_admin_for_any_spelling() {
    let test_daemon = test_daemon().await;
    let scene = Scene::new(&test_daemon).await;
    let mut guest =
        Client::open(&test_daemon, Rights::of(&[Right::Observe, Right::Prompt, Right::Approve]))
            .await;
    std::os::unix::fs::symlink(&scene.other, format!("{}/link", scene.root)).unwrap();
    for spelling in [
        "/etc".to_owned(),
        scene.other.clone(),
        format!("{}/../other", scene.root),
        format!("{}/link", scene.root),
        format!("{}/a.rs/../../other", scene.root),
    ] {
        let got = guest.call("orchestrate.explore.start", json!({"root": spelling})).await;
        assert_eq!(reason(&got), "right_missing", "{spelling}: {got}");
    }
    assert_eq!(test_daemon.engine.roots().len(), 1);
}

#[tokio::test]
async fn observer_cannot_change_anything() {
    let test_daemon = test_daemon().await;
    let mut guest = Client::open(&test_daemon, Rights::of(&[Right::Observe])).await;
    let mut host = Client::open(&test_daemon, Rights::ALL).await;
    assert_eq!(reason(&guest.call("session.create", json!({})).await), "right_missing");
    let created = host.session().await;
    let listed = guest.call("session.list", json!({})).await;
    assert_eq!(listed["result"]["data"].as_array().unwrap().len(), 1, "{listed}");
    let named = json!({"sessionId": created});
    assert_eq!(reason(&guest.call("session.delete", named.clone()).await), "right_missing");
    assert_eq!(reason(&guest.call("daemon.stop", json!({})).await), "right_missing");
    assert!(guest.call("session.get", named.clone()).await["result"].is_object());
    assert!(host.call("session.delete", named).await["result"].is_object());
}
