//! The lifetime of a code, by examples and by property tests.

use proptest::prelude::*;

use super::*;

fn terms() -> Terms {
    Terms { rights: vec![Right::Observe], name: None }
}

fn new_codes(machine: &str) -> NewCodes {
    NewCodes { machine: machine.into(), page: PAGE.into() }
}

/// Code of the page in these tests.
const PAGE: &str = "0123456789abcdef0123456789abcdef";

fn codes_with_one(now: Instant) -> Codes {
    let mut codes = Codes::default();
    codes.begin(now, new_codes("12345678"), terms()).unwrap();
    codes
}

#[test]
fn code_admits_one_device() {
    let now = Instant::now();
    let mut codes = codes_with_one(now);
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
fn page_code_pairs_one_browser_and_excludes_the_machine_code() {
    let now = Instant::now();
    let mut codes = codes_with_one(now);
    let (running, _) = codes.attempt(now).unwrap();
    for wrong in ["", "12345678", &PAGE[1..]] {
        assert_eq!(codes.accept_page(now, wrong), Err(Refusal::WrongPage));
    }
    assert_eq!(codes.accept_page(now, PAGE), Ok(terms()));
    assert_eq!(codes.accept_page(now, PAGE), Err(Refusal::WrongPage));
    assert_eq!(codes.accept(now, running), Err(Refusal::NoCode));
    assert_eq!(codes.state(now), (PairState::Paired, 0));
    // The machine's code excludes the page's in the same way, and both expire together.
    let mut codes = codes_with_one(now);
    let (machine, _) = codes.attempt(now).unwrap();
    codes.accept(now, machine).unwrap();
    assert_eq!(codes.accept_page(now, PAGE), Err(Refusal::WrongPage));
    assert_eq!(codes_with_one(now).accept_page(now + CODE_LIFETIME, PAGE), Err(Refusal::WrongPage));
}

#[test]
fn fourth_attempt_is_refused_and_voids_code() {
    let now = Instant::now();
    let mut codes = codes_with_one(now);
    for remaining_attempts in [2, 1, 0] {
        let (tried, _) = codes.attempt(now).unwrap();
        if remaining_attempts > 0 {
            codes.end(tried);
            assert_eq!(codes.state(now), (PairState::Waiting, remaining_attempts));
        } else {
            // While the last attempt is in progress it may still succeed.
            assert_eq!(codes.attempt(now), Err(Refusal::Void));
            codes.end(tried);
        }
    }
    assert_eq!(codes.attempt(now), Err(Refusal::Void));
    assert_eq!(codes.state(now), (PairState::Void, 0));
}

#[test]
fn code_expires_during_attempt() {
    let now = Instant::now();
    let late = now + CODE_LIFETIME;
    let mut codes = codes_with_one(now);
    let (tried, _) = codes.attempt(late - Duration::from_millis(1)).unwrap();
    assert_eq!(codes.accept(late, tried), Err(Refusal::Expired));
    assert_eq!(codes.attempt(late), Err(Refusal::Expired));
    assert_eq!(codes.state(late), (PairState::Expired, 0));
}

#[test]
fn new_code_ends_attempts_of_old_one() {
    let now = Instant::now();
    let mut codes = codes_with_one(now);
    let (old, _) = codes.attempt(now).unwrap();
    codes.begin(now, new_codes("87654321"), terms()).unwrap();
    assert_eq!(codes.accept(now, old), Err(Refusal::NoCode));
    codes.end(old);
    assert_eq!(codes.state(now), (PairState::Waiting, MAX_ATTEMPTS));
    codes.cancel(now);
    assert_eq!(codes.attempt(now), Err(Refusal::NoCode));
    assert_eq!(codes.state(now), (PairState::Cancelled, 0));
}

#[test]
fn codes_are_limited_per_hour() {
    let now = Instant::now();
    let mut codes = Codes::default();
    for _ in 0..MAX_CODES {
        codes.begin(now, new_codes(""), terms()).unwrap();
    }
    assert_eq!(codes.begin(now + HOUR / 2, new_codes(""), terms()), Err(Refusal::TooMany));
    codes.begin(now + HOUR, new_codes(""), terms()).unwrap();
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
    /// In any order of events, a code has at most three attempts and admits at most one device,
    /// never after its expiry or cancellation, and the number of codes per hour is bounded.
    #[test]
    fn code_limits_hold_for_any_sequence(steps in prop::collection::vec(step(), 1..200)) {
        let mut now = Instant::now();
        let mut codes = Codes::default();
        let mut tries: Vec<(Attempt, usize)> = Vec::new();
        let mut created = vec![now];
        let mut tried = 0;
        let mut let_in = 0;
        let mut off = true;
        created.clear();
        for step in steps {
            match step {
                Step::Begin => {
                    let within = created.iter().filter(|at| now.saturating_duration_since(**at) < HOUR).count();
                    let codes_with_one = codes.begin(now, new_codes("1"), terms()).is_ok();
                    prop_assert_eq!(codes_with_one, within < MAX_CODES);
                    if codes_with_one {
                        created.push(now);
                        tried = 0;
                        let_in = 0;
                        off = false;
                    }
                }
                Step::Attempt => if let Ok((one, _)) = codes.attempt(now) {
                    tried += 1;
                    prop_assert!(tried <= MAX_ATTEMPTS && let_in == 0 && !off);
                    prop_assert!(created.last().is_some_and(|at| now < *at + CODE_LIFETIME));
                    tries.push((one, created.len()));
                },
                Step::End(at) => if at < tries.len() {
                    codes.end(tries.swap_remove(at).0);
                },
                Step::Accept(at) => if at < tries.len() {
                    let (one, of) = tries.swap_remove(at);
                    if codes.accept(now, one).is_ok() {
                        let_in += 1;
                        prop_assert!(let_in == 1 && !off && of == created.len());
                        prop_assert!(created.last().is_some_and(|at| now < *at + CODE_LIFETIME));
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
