//! The table of attacks, run in each sandbox and without one.

use std::collections::BTreeMap;

use cairn_sandbox::{Sandbox, Tier};

use crate::scene::{Scene, run};

const TABLE: &str = include_str!("../data/attacks.txt");

struct Attack {
    name: String,
    /// True if the weaker sandbox is known not to stop it.
    gap: bool,
    control: String,
    program: String,
}

fn table() -> Vec<Attack> {
    let mut all: Vec<Attack> = Vec::new();
    for line in TABLE.lines().filter(|l| !l.starts_with('#')) {
        match (line.strip_prefix("== "), all.last_mut()) {
            (Some(head), _) => {
                let (name, control) = head.split_once(" | ").unwrap();
                let gap = name.starts_with("~ ");
                let (name, control) =
                    (name.trim_start_matches("~ ").to_owned(), control.to_owned());
                all.push(Attack { name, gap, control, program: String::new() });
            }
            (None, Some(attack)) => attack.program.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    all
}

fn escapes(scene: &Scene, sandbox: &Sandbox, attack: &Attack) -> (bool, String) {
    let mut confined = match attack.program.strip_prefix("py\n") {
        Some(program) => {
            let mut confined = scene.script("true");
            confined.argv = vec!["/usr/bin/python3".into(), "-c".into(), scene.filled(program)];
            confined
        }
        None => scene.script(&attack.program),
    };
    // A separate workspace for files that must not be created.
    if attack.program.contains("{E}") {
        confined.root = Some(scene.empty.clone());
        confined.folder = scene.empty.clone();
    }
    let output = run(sandbox, &confined);
    assert!(!output.timed_out, "{}: {output:?}", attack.name);
    (
        output.stdout.text.contains("ESCAPED"),
        format!("{} {}", output.stdout.text, output.stderr.text),
    )
}

fn has_control(scene: &Scene, attack: &Attack) -> bool {
    attack.control == "any" || attack.control == "root" && scene.role == "root"
}

/// Returns attacks that do not succeed without a sandbox although the table says so.
fn controls(scene: &Scene, attacks: &[Attack]) -> Vec<String> {
    let sandbox = scene.none();
    let fails = |a: &&Attack| has_control(scene, a) && !escapes(scene, &sandbox, a).0;
    attacks
        .iter()
        .filter(fails)
        .map(|a| format!("{}: {}", a.name, escapes(scene, &sandbox, a).1))
        .collect()
}

pub fn no_attack_escapes(scene: &Scene) {
    let attacks = table();
    assert!(attacks.len() >= 50);
    let sandbox = scene.sandbox();
    assert_eq!(sandbox.probe().tier, Tier::Full, "{:?}", sandbox.probe());
    let mut escaped = BTreeMap::new();
    for attack in &attacks {
        let (out, value) = escapes(scene, &sandbox, attack);
        if out {
            escaped.insert(attack.name.clone(), value);
        }
    }
    let weak = controls(scene, &attacks);
    let with = attacks.iter().filter(|a| has_control(scene, a)).count();
    println!(
        "{} attacks, {} escaped; {with} controls, {} without effect",
        attacks.len(),
        escaped.len(),
        weak.len()
    );
    assert!(escaped.is_empty(), "{escaped:#?}");
    assert!(weak.is_empty(), "{weak:#?}");
}

pub fn weaker_sandbox_stops_documented_attacks(scene: &Scene) {
    let attacks = table();
    let sandbox = scene.weaker();
    assert_eq!(sandbox.probe().tier, Tier::Weaker, "{:?}", sandbox.probe());
    let mut wrong = Vec::new();
    for attack in attacks.iter().filter(|a| !a.gap) {
        let (out, value) = escapes(scene, &sandbox, attack);
        if out {
            wrong.push(format!("{}: {value}", attack.name));
        }
    }
    println!("{} attacks, {} escaped", attacks.iter().filter(|a| !a.gap).count(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
