//! Public classes of attacks on coding agents: a scripted model makes the calls that it was talked
//! into, and nothing happens that the rules did not allow. Each class has a control, in which the
//! same calls have their effect because a protection is off or the user allowed them.
//!
//! `docs/guide/safety.md` has a row for each test.

mod arguments;
mod git;
mod links;
mod network;
mod parsing;
mod projects;
mod questions;
mod sockets;
mod table;
mod trust;
mod writes;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    hooks::{Scene, of},
};

/// Calls of one turn: fewer than after which a turn ends by itself.
const CALLS_PER_TURN: usize = 12;

/// One form of an attack: a call of the model. Its effect is the file `hit-NAME` in the project,
/// unless the test looks at something else.
#[derive(Clone)]
pub struct Form {
    pub name: String,
    tool: &'static str,
    arguments: Value,
}

impl Form {
    /// A call of a tool; `{M}` in its arguments stands for the file that shows the effect.
    pub fn new(name: &str, tool: &'static str, arguments: &Value) -> Self {
        let text = arguments.to_string().replace("{M}", &format!("hit-{name}"));
        Self { name: name.to_owned(), tool, arguments: serde_json::from_str(&text).unwrap() }
    }

    /// A command line in the shell.
    pub fn shell(name: &str, command: &str) -> Self {
        Self::new(name, "run_shell", &json!({"command": command}))
    }

    /// A file that is written completely.
    pub fn write(name: &str, path: &str, content: &str) -> Self {
        Self::new(name, "write_file", &json!({"path": path, "content": content}))
    }

    /// True if the file of its effect exists.
    pub fn has_hit(&self, scene: &Scene) -> bool {
        scene.path("repo").join(format!("hit-{}", self.name)).symlink_metadata().is_ok()
    }
}

/// Returns forms of command lines.
pub fn shells(forms: &[(&str, &str)]) -> Vec<Form> {
    forms.iter().map(|(name, command)| Form::shell(name, command)).collect()
}

/// Returns the answers of a model that makes these calls, in turns that end with `done`.
pub fn answers(forms: &[Form]) -> Value {
    let turns = forms.chunks(CALLS_PER_TURN).flat_map(|forms| {
        let all = forms.iter().map(|form| calls(form.tool, &form.arguments));
        all.chain([text_answer("done")]).collect::<Vec<_>>()
    });
    turns.collect::<Vec<_>>().into()
}

/// Makes the calls of such a model, and returns their results in order. A person is connected who
/// gives this answer to every question.
pub fn play_answering(scene: &Scene, forms: &[Form], flags: &[&str], answer: &str) -> Vec<Value> {
    let turns = forms.chunks(CALLS_PER_TURN);
    answering(scene, answer, || turns.flat_map(|forms| turn(scene, forms, flags)).collect())
}

/// Does something while a person is connected who gives this answer to every question.
pub fn answering<T>(scene: &Scene, answer: &str, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let is_connected = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| resolve_all(scene, answer, &is_connected, &stop));
        // The person goes also when the work fails.
        let _stop = StopOnDrop(&stop);
        while !is_connected.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        work()
    })
}

/// Makes the calls with a person who answers every question with no.
pub fn play(scene: &Scene, forms: &[Form], flags: &[&str]) -> Vec<Value> {
    play_answering(scene, forms, flags, "deny")
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers every question until it is told to stop.
fn resolve_all(scene: &Scene, answer: &str, is_connected: &AtomicBool, stop: &AtomicBool) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut raw = scene.daemon.approver().await;
        is_connected.store(true, Ordering::Relaxed);
        while !stop.load(Ordering::Relaxed) {
            let waiting = raw.ok("approval.list", json!({})).await["data"].clone();
            for approval in waiting.as_array().into_iter().flatten() {
                let params = json!({"approvalId": approval["approvalId"], "decision": answer});
                // The request may have ended meanwhile.
                raw.call("approval.resolve", params).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

fn turn(scene: &Scene, forms: &[Form], flags: &[&str]) -> Vec<Value> {
    let chat = [&["chat", "--json", "--allow-bash"], flags, &["-p", "go on"]].concat();
    let (_, out, err) = scene.cairn(&chat);
    let events: Vec<Value> =
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let end = events.last().unwrap_or_else(|| panic!("no events: {out}{err}"));
    assert_eq!(end["finalOutput"], "done", "{end}{err}");
    let found = of(&events, "tool_result");
    // A call that was not made at all proves nothing.
    assert_eq!(found.len(), forms.len(), "{found:#?}");
    found.into_iter().cloned().collect()
}

/// Fails if a call had its effect.
pub fn assert_no_hit(scene: &Scene, forms: &[Form], results: &[Value]) {
    let hits: Vec<String> = forms
        .iter()
        .zip(results)
        .filter(|(form, _)| form.has_hit(scene))
        .map(|(form, result)| format!("{}: {} gave {result}", form.name, form.arguments))
        .collect();
    assert!(hits.is_empty(), "{hits:#?}");
}

/// Fails if a call of the control had no effect: then the form is no attack.
pub fn assert_all_hit(scene: &Scene, forms: &[Form], results: &[Value]) {
    let misses: Vec<String> = forms
        .iter()
        .zip(results)
        .filter(|(form, _)| !form.has_hit(scene))
        .map(|(form, result)| format!("{}: {} gave {result}", form.name, form.arguments))
        .collect();
    assert!(misses.is_empty(), "{misses:#?}");
}

/// Plays the forms twice: by rules, where none may have an effect, and in a control, where all must.
pub fn with_control(
    forms: &[Form],
    files: &[(&str, &str)],
    prepare: impl Fn(&Scene),
    rules: &Value,
    control: &Value,
) {
    for (config, is_control) in [(rules, false), (control, true)] {
        let scene = Scene::new(&answers(forms), config, files);
        prepare(&scene);
        let results = play(&scene, forms, &[]);
        match is_control {
            true => assert_all_hit(&scene, forms, &results),
            false => assert_no_hit(&scene, forms, &results),
        }
    }
}

/// Returns true if these programs exist; otherwise the test fails where everything is required.
pub fn has_programs(names: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing =
        |name: &&&str| !std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    let missing: Vec<&&str> = names.iter().filter(is_missing).collect();
    if !missing.is_empty() {
        crate::sealed::missing(&format!("{missing:?}"));
    }
    missing.is_empty()
}
