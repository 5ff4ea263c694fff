//! A model check of [`super::step`]: breadth first over all interleavings of requests, a run's own
//! steps, failing writes and crashes, in one session. The world around the rules models the actor,
//! the log and the gate's approvals.
//!
//! `cargo test -p cairn-engine model` takes a few seconds;
//! `cargo test --release -p cairn-engine long_model -- --ignored --nocapture` some minutes
//! (`CAIRN_MODEL_DEPTH` steps deep).

mod search;
mod world;

use super::step::{Active, Commit, Effect, Input, State, Then, step};
use search::{Limits, SearchResult, check};
use world::Budget;

pub(super) type Rules = fn(State<u8>, Input<u8>) -> (State<u8>, Vec<Effect<u8>>);

/// Requests and faults of each kind in the short form.
const SHORT: Budget = Budget {
    starts: 2,
    explores: 1,
    cancels: 1,
    resumes: 1,
    steers: 1,
    answers: 2,
    expiries: 1,
    crashes: 1,
    unprepared: 1,
    unwritten: 1,
    shutdowns: 1,
    edits: 1,
    deletes: 1,
};
const LONG: Budget = Budget { starts: 3, cancels: 2, resumes: 2, crashes: 2, ..SHORT };

fn report(name: &str, result: &SearchResult) {
    println!(
        "model {name}: {} states, {} transitions, depth {}{}, {:.1} s",
        result.states,
        result.transitions,
        result.depth,
        if result.complete { " (all of them)" } else { "" },
        result.seconds
    );
}

#[test]
fn all_interleavings_satisfy_invariants() {
    let result = check(step, SHORT, Limits { depth: 14, states: 400_000 });
    report("short", &result);
    assert!(result.violation.is_none(), "{}", result.violation.unwrap_or_default());
    assert!(result.states > 10_000, "{} states are no search", result.states);
}

#[test]
#[ignore = "takes minutes: run it by name, in a release build"]
fn long_model_check() {
    let depth = std::env::var("CAIRN_MODEL_DEPTH").ok().and_then(|d| d.parse().ok()).unwrap_or(24);
    let result = check(step, LONG, Limits { depth, states: 40_000_000 });
    report("long", &result);
    assert!(result.violation.is_none(), "{}", result.violation.unwrap_or_default());
}

/// Rules with one defect each, from earlier versions or as a slip would introduce.
const BROKEN: &[(&str, Rules)] = &[
    // S3
    ("a turn's end leaves the session idle though turns are pending", |state, input| {
        replaced(state, input, |commit| match commit {
            Commit::End { run, then: Then::Next } => Commit::End { run, then: Then::Idle },
            other => other,
        })
    }),
    // S1
    ("a turn that cannot start is dropped without a record", |mut state, input| {
        if let (Input::Unprepared(_), Some(Active::Starting { .. })) = (&input, &state.active) {
            state.active = None;
            return (state, vec![]);
        }
        step(state, input)
    }),
    // S2
    ("a turn whose acceptance was not written runs", |state, input| match input {
        Input::NotCommitted if matches!(state.commit, Some(Commit::Accept { .. })) => {
            step(state, Input::Committed)
        }
        input => step(state, input),
    }),
    ("an explore starts beside a turn", |mut state, input| match input {
        Input::StartExplore { .. } if matches!(state.active, Some(Active::Turn { .. })) => {
            let active = state.active.take();
            let (mut next, effects) = step(state, input);
            next.active = active;
            (next, effects)
        }
        input => step(state, input),
    }),
    ("the last pending turn starts first", |mut state, input| {
        if matches!(input, Input::Resume { .. }) {
            state.queue.make_contiguous().reverse();
        }
        step(state, input)
    }),
    ("a shutdown starts the next turn", |mut state, input| {
        if matches!(input, Input::RunFinished { .. } | Input::Committed) && state.stopping {
            state.stopping = false;
            let (mut next, effects) = step(state, input);
            next.stopping = true;
            return (next, effects);
        }
        step(state, input)
    }),
    ("a cancelled turn stays in the queue", |state, input| {
        let cancelled = match (&input, &state.commit) {
            (Input::Committed, Some(Commit::CancelQueued { .. })) => Some(state.queue.clone()),
            _ => None,
        };
        let (mut next, effects) = step(state, input);
        next.queue = cancelled.unwrap_or(next.queue);
        (next, effects)
    }),
    ("an interrupted turn is forgotten", |state, input| {
        let lost =
            matches!((&input, &state.commit), (Input::Committed, Some(Commit::Interrupt { .. })));
        let (mut next, effects) = step(state, input);
        if lost {
            next.queue.clear();
        }
        (next, effects)
    }),
    ("a resumed turn starts as if it were new", |state, input| {
        replaced(state, input, |commit| match commit {
            Commit::Begin { run, resumed: true } => Commit::Begin { run, resumed: false },
            other => other,
        })
    }),
    ("a run starts before its record", |state, input| match &input {
        Input::Prepared(run) => {
            let run = *run;
            let (next, mut effects) = step(state, input);
            effects.insert(0, Effect::Run(run));
            (next, effects)
        }
        _ => step(state, input),
    }),
];

fn replaced(
    state: State<u8>,
    input: Input<u8>,
    change: fn(Commit<u8>) -> Commit<u8>,
) -> (State<u8>, Vec<Effect<u8>>) {
    let (mut next, effects) = step(state, input);
    next.commit = next.commit.map(change);
    let effects = effects.into_iter().map(|effect| match effect {
        Effect::Commit(commit) => Effect::Commit(change(commit)),
        other => other,
    });
    (next, effects.collect())
}

#[test]
fn defects_in_rules_are_detected() {
    for (what, rules) in BROKEN {
        let result = check(*rules, SHORT, Limits { depth: 16, states: 2_000_000 });
        let violation = result.violation.unwrap_or_else(|| panic!("not found: {what}"));
        println!(
            "model: \"{what}\" found after {} states, depth {}: {}",
            result.states,
            result.depth,
            violation.lines().next().unwrap_or_default()
        );
    }
}
