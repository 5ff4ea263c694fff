//! The life of a code, by cases and by chance.

use proptest::prelude::*;

use super::*;

fn terms() -> Terms {
    Terms { rights: vec![Right::Observe], name: None }
}

fn begun(now: Instant) -> Codes {
    let mut codes = Codes::default();
    codes.begin(now, "12345678".into(), terms()).unwrap();
    codes
}

#[test]
fn a_code_lets_one_device_in() {
    let now = Instant::now();
    let mut codes = begun(now);
    let (first, code) = codes.attempt(now).unwrap();
    let (second, _) = codes.attempt(now).unwrap();
    assert_eq!(code, "12345678");
    assert_eq!(codes.accept(now, first), Ok(terms()));
    assert_eq!(codes.accept(now, second), Err(Refusal::NoCode));
    assert_eq!(codes.attempt(now), Err(Refusal::NoCode));
    codes.end(second);
    assert_eq!(codes.state(now), (PairState::Paired, 0));
}

#[test]
fn the_fourth_try_is_refused_and_the_code_void() {
    let now = Instant::now();
    let mut codes = begun(now);
    for left in [2, 1, 0] {
        let (tried, _) = codes.attempt(now).unwrap();
        if left > 0 {
            codes.end(tried);
            assert_eq!(codes.state(now), (PairState::Waiting, left));
        } else {
            // While the last one is at work it may still be the right one.
            assert_eq!(codes.attempt(now), Err(Refusal::Void));
            codes.end(tried);
        }
    }
    assert_eq!(codes.attempt(now), Err(Refusal::Void));
    assert_eq!(codes.state(now), (PairState::Void, 0));
}

#[test]
fn a_code_expires_also_under_a_try() {
    let now = Instant::now();
    let late = now + LIFE;
    let mut codes = begun(now);
    let (tried, _) = codes.attempt(late - Duration::from_millis(1)).unwrap();
    assert_eq!(codes.accept(late, tried), Err(Refusal::Expired));
    assert_eq!(codes.attempt(late), Err(Refusal::Expired));
    assert_eq!(codes.state(late), (PairState::Expired, 0));
}

#[test]
fn a_new_code_ends_the_tries_of_the_old_one() {
    let now = Instant::now();
    let mut codes = begun(now);
    let (old, _) = codes.attempt(now).unwrap();
    codes.begin(now, "87654321".into(), terms()).unwrap();
    assert_eq!(codes.accept(now, old), Err(Refusal::NoCode));
    codes.end(old);
    assert_eq!(codes.state(now), (PairState::Waiting, TRIES));
    codes.cancel(now);
    assert_eq!(codes.attempt(now), Err(Refusal::NoCode));
    assert_eq!(codes.state(now), (PairState::Cancelled, 0));
}

#[test]
fn codes_are_counted_by_the_hour() {
    let now = Instant::now();
    let mut codes = Codes::default();
    for _ in 0..CODES {
        codes.begin(now, String::new(), terms()).unwrap();
    }
    assert_eq!(codes.begin(now + HOUR / 2, String::new(), terms()), Err(Refusal::TooMany));
    codes.begin(now + HOUR, String::new(), terms()).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Begin,
    Attempt,
    End(usize),
    Accept(usize),
    Cancel,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Begin),
        6 => Just(Step::Attempt),
        4 => (0..8_usize).prop_map(Step::End),
        2 => (0..8_usize).prop_map(Step::Accept),
        1 => Just(Step::Cancel),
        2 => (0..150_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever comes in whatever order: a code has three tries at most and lets one in at most, never after its time,
    /// never after it was called off, and there are no more codes in an hour than there may be.
    #[test]
    fn whatever_happens_a_code_keeps_its_bounds(steps in prop::collection::vec(step(), 1..200)) {
        let mut now = Instant::now();
        let mut codes = Codes::default();
        let mut tries: Vec<(Try, usize)> = Vec::new();
        let (mut made, mut tried, mut let_in, mut off) = (vec![now], 0, 0, true);
        made.clear();
        for step in steps {
            match step {
                Step::Begin => {
                    let within = made.iter().filter(|at| now.saturating_duration_since(**at) < HOUR).count();
                    let begun = codes.begin(now, "1".into(), terms()).is_ok();
                    prop_assert_eq!(begun, within < CODES);
                    if begun {
                        made.push(now);
                        (tried, let_in, off) = (0, 0, false);
                    }
                }
                Step::Attempt => if let Ok((one, _)) = codes.attempt(now) {
                    tried += 1;
                    prop_assert!(tried <= TRIES && let_in == 0 && !off);
                    prop_assert!(made.last().is_some_and(|at| now < *at + LIFE));
                    tries.push((one, made.len()));
                },
                Step::End(at) => if at < tries.len() {
                    codes.end(tries.swap_remove(at).0);
                },
                Step::Accept(at) => if at < tries.len() {
                    let (one, of) = tries.swap_remove(at);
                    if codes.accept(now, one).is_ok() {
                        let_in += 1;
                        prop_assert!(let_in == 1 && !off && of == made.len());
                        prop_assert!(made.last().is_some_and(|at| now < *at + LIFE));
                    }
                },
                Step::Cancel => {
                    codes.cancel(now);
                    off = true;
                }
                Step::Wait(seconds) => now += Duration::from_secs(seconds),
            }
        }
    }
}
