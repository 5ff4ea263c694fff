//! Sequences of keys, on a clock of their own.

use cairn_protocol::{
    approval::{ApprovalDecision, Form, FormField, FormFieldKind, Preview},
    id::SessionId,
    time::Timestamp,
};
use cairn_test_support::{Rng, random};

use super::*;

fn approval(grants: &str, pattern: Option<&str>) -> Approval {
    Approval {
        approval_id: ApprovalId::new(),
        session_id: SessionId::new(),
        run_id: None,
        tool: "run_shell".into(),
        arguments: serde_json::Value::Null,
        preview: Preview::default(),
        rule: "default".into(),
        project: Some("/work/site".into()),
        grants: Some(grants).filter(|g| !g.is_empty()).map(str::to_owned).into_iter().collect(),
        patterns: pattern.into_iter().map(|rule| vec![rule.to_owned()]).collect(),
        form: None,
        created_at: Timestamp::now(),
        expires_at: Timestamp::now(),
        resolution: None,
        shortened: false,
    }
}

fn form() -> Approval {
    let field = FormField {
        name: "name".into(),
        title: None,
        description: None,
        kind: FormFieldKind::Text,
        options: vec![],
        required: true,
        default: None,
        min: None,
        max: None,
    };
    let form = Form { server: "hotel".into(), message: "Who?".into(), fields: vec![field] };
    Approval { form: Some(form), ..approval("", None) }
}

/// Plays a script on a clock of its own. Keys are 10 ms apart; the other signs are:
///
/// * `?` a question with rules and a pattern arrives and is drawn, `!` one that can be allowed only
///   once, `@` a form; `%` a question arrives and is not drawn before the next `.` or `_`;
/// * `.` 100 ms pass, `_` 500 ms pass, and what is open is drawn;
/// * `↵` Enter, `⎋` Escape, `⌫` Backspace, `⌧` Ctrl+U, `«text»` a paste, `✗` the first question is
///   answered by another client.
struct Player {
    questions: Questions,
    now: Instant,
    events: Vec<String>,
    ids: Vec<ApprovalId>,
}

impl Player {
    fn new() -> Self {
        let questions = Questions::default();
        Self { questions, now: Instant::now(), events: vec![], ids: vec![] }
    }

    fn arrive(&mut self, approval: Approval) {
        self.ids.push(approval.approval_id.clone());
        self.questions.add(&approval);
    }

    fn pass(&mut self, millis: u64) {
        // The screen is redrawn at least every 100 ms.
        self.questions.mark_drawn(self.now);
        self.now += Duration::from_millis(millis);
        self.questions.mark_drawn(self.now);
    }

    fn press(&mut self, key: Key) {
        self.now += Duration::from_millis(10);
        let effect = self.questions.key(KeyPress { key, at: self.now });
        let event = match effect {
            KeyEffect::None => return,
            KeyEffect::Answer(params) => {
                self.ids.retain(|id| *id != params.approval_id);
                let pattern = if params.pattern.is_some() { "*" } else { "" };
                let reason = params.reason.map(|r| format!(":{r}")).unwrap_or_default();
                let values = if params.values.is_empty() { "" } else { "+values" };
                format!("{}{pattern}{reason}{values}", params.decision.as_str())
            }
            KeyEffect::Submit(line) => format!("send:{line}"),
            KeyEffect::TooLong => "too long".into(),
            KeyEffect::Stop => "stop".into(),
            KeyEffect::Other(key) => format!("{key:?}"),
        };
        self.events.push(event);
    }

    fn play(&mut self, script: &str) {
        let mut signs = script.chars();
        while let Some(sign) = signs.next() {
            match sign {
                '?' | '%' => self.arrive(approval("run_shell(= ls)", Some("run_shell(ls *)"))),
                '!' => self.arrive(approval("", None)),
                '@' => self.arrive(form()),
                '✗' => drop(self.questions.remove(&self.ids.remove(0))),
                '.' => self.pass(100),
                '_' => self.pass(500),
                '↵' => self.press(Key::Enter),
                '⎋' => self.press(Key::Escape),
                '⌫' => self.press(Key::Backspace),
                '⌧' => self.press(Key::Clear),
                '«' => self.press(Key::Paste(signs.by_ref().take_while(|c| *c != '»').collect())),
                c => self.press(Key::Char(c)),
            }
            if matches!(sign, '?' | '!' | '@') {
                self.questions.mark_drawn(self.now);
            }
        }
    }
}

/// Returns the events of a script, and after `|` the line that is typed at its end.
fn outcome(script: &str) -> String {
    let mut player = Player::new();
    player.play(script);
    match player.questions.typed() {
        "" => player.events.join(" "),
        typed => format!("{}|{typed}", player.events.join(" ")),
    }
}

/// Keys of the columns of [`SITUATIONS`].
const COLUMNS: [&str; 9] = ["y", "Y", "n", "a", "A", "p", "P", "x", "«y»"];

/// Outcomes of a key in situations; `$` is the key.
const SITUATIONS: &[(&str, [&str; 9])] = &[
    // Without a question, keys are text.
    ("$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    (
        "$↵",
        ["send:y", "send:Y", "send:n", "send:a", "send:A", "send:p", "send:P", "send:x", "send:y"],
    ),
    // Just drawn.
    ("?$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    ("?...$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    ("%$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    // Drawn long ago, but text is typed, also after a pause.
    ("see_?$", ["|seey", "|seeY", "|seen", "|seea", "|seeA", "|seep", "|seeP", "|seex", "|seey"]),
    ("s_?_$", ["|sy", "|sY", "|sn", "|sa", "|sA", "|sp", "|sP", "|sx", "|sy"]),
    (
        "?i__$_↵",
        [
            "send:iy", "send:iY", "send:in", "send:ia", "send:iA", "send:ip", "send:iP", "send:ix",
            "send:iy",
        ],
    ),
    // Right after a key that had another use.
    ("s_?_⌫..$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    ("s_?_⎋..$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
    (
        "s_?_↵$",
        [
            "send:s|y", "send:s|Y", "send:s|n", "send:s|a", "send:s|A", "send:s|p", "send:s|P",
            "send:s|x", "send:s|y",
        ],
    ),
    // Armed: one key for this call, a selection for more.
    ("?_$", ["once", "once", "", "", "", "", "", "|x", "|y"]),
    ("s?_⎋_$", ["once", "once", "", "", "", "", "", "|x", "|y"]),
    (
        "?_$_↵",
        ["once", "once", "deny", "session", "always", "session*", "always*", "send:x", "send:y"],
    ),
    // Enter in the same burst confirms nothing; a refusal has no second step.
    ("?_$↵", ["once", "once", "deny", "", "", "", "", "send:x", "send:y"]),
    (
        "?_$↵_↵",
        ["once", "once", "deny", "session", "always", "session*", "always*", "send:x", "send:y"],
    ),
    ("?_$_⎋_↵", ["once stop", "once stop", "", "", "", "", "", "", ""]),
    ("?_$⎋_↵", ["once stop", "once stop", "", "", "", "", "", "", ""]),
    // A word whose first letter is a key: the letter selects, the rest is text.
    (
        "?_$lease",
        [
            "once|lease",
            "once|lease",
            "",
            "|lease",
            "|lease",
            "|lease",
            "|lease",
            "|xlease",
            "|ylease",
        ],
    ),
    (
        "?_$lease_↵",
        [
            "once send:lease",
            "once send:lease",
            "deny:lease",
            "send:lease",
            "send:lease",
            "send:lease",
            "send:lease",
            "send:xlease",
            "send:ylease",
        ],
    ),
    // A call that can be allowed only once.
    ("!_$", ["once", "once", "", "|a", "|A", "|p", "|P", "|x", "|y"]),
    ("!_$_↵", ["once", "once", "deny", "send:a", "send:A", "send:p", "send:P", "send:x", "send:y"]),
    // The next question is drawn and armed afresh.
    (
        "??_y$",
        ["once|y", "once|Y", "once|n", "once|a", "once|A", "once|p", "once|P", "once|x", "once|y"],
    ),
    (
        "??_y_$",
        ["once once", "once once", "once", "once", "once", "once", "once", "once|x", "once|y"],
    ),
    ("??_✗$", ["|y", "|Y", "|n", "|a", "|A", "|p", "|P", "|x", "|y"]),
];

/// Further sequences.
const SEQUENCES: &[(&str, &str)] = &[
    ("please?do", "|pleasedo"),
    ("Al?so_a", "|Alsoa"),
    ("please_?_⎋_y", "once"),
    ("?_n_no_no↵", "deny:nono"),
    ("?_nnot nox⌫w↵", "deny:not now"),
    ("?_nwhy⌧↵", "deny"),
    ("?_nwhy⎋⎋_y", "once"),
    ("?_n⎋⎋", "stop"),
    ("?_n«y»↵", "deny:y"),
    ("?_a⌫_↵", ""),
    ("?_a_⌧_↵", ""),
    ("?⎋", "stop"),
    ("?_⎋", "stop"),
    ("?_↵_↵_↵", ""),
    ("?_a_A_↵", "always"),
    ("?_E", ""),
    ("?_E↵", ""),
    ("?_E_↵", "everywhere"),
    ("!_E", "|E"),
    ("?E", "|E"),
    ("?_Every", "|very"),
    ("?_A_a_↵", "session"),
    ("?_a_y", "once"),
    ("?_a_n_↵", "deny"),
    ("?_a_x", "|x"),
    ("?_a_x⎋_↵", ""),
    ("?_a_«↵»", "|↵"),
    ("?_a_p_↵", "session*"),
    ("?_aA_↵", "send:A"),
    ("?_a....↵", "session"),
    ("?_a...↵", ""),
    ("?...._y", "once"),
    ("?....y", "once"),
    ("a_?_a_↵", "send:aa"),
    ("%_y", "once"),
    ("?_a_%_↵", "session"),
    ("?_a_✗_↵", ""),
    ("@name↵", "send:name"),
    ("@_Ann↵", "once+values"),
    ("@_«Ann»_↵", "once+values"),
    ("@_↵Ann↵", "once+values"),
    ("@_⎋", "deny"),
    ("@⎋", "stop"),
    ("s@_⎋_Ann↵", "once+values"),
    ("   ?_y", "|   y"),
    ("   ?_↵_y", "once"),
];

#[test]
fn key_sequences_have_their_outcomes() {
    let mut wrong = Vec::new();
    let mut check = |script: String, expected: &str| {
        let got = outcome(&script);
        if got != expected {
            wrong.push(format!("{script}: expected '{expected}', got '{got}'"));
        }
    };
    for (situation, expected) in SITUATIONS {
        for (key, expected) in COLUMNS.iter().zip(expected) {
            check(situation.replace('$', key), expected);
        }
    }
    for (script, expected) in SEQUENCES {
        check((*script).to_owned(), expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Drawings and keys of a sequence, recorded without the state of [`Questions`].
#[derive(Default)]
struct Observed {
    drawn: Vec<(ApprovalId, Instant)>,
    keys: Vec<(Key, Instant)>,
}

impl Observed {
    /// Asserts the rules of an answer that the last key gave.
    fn check(&self, answer: &ApprovalResolveParams, typed_before: &str) {
        let (last, at) = self.keys.last().unwrap();
        let drawn = self.drawn.iter().find(|(id, _)| *id == answer.approval_id).unwrap().1;
        assert!(*at >= drawn + ARMING_TIME, "answered {:?} after its drawing", *at - drawn);
        assert_eq!(typed_before, "", "answered while a text was typed");
        assert!(!matches!(last, Key::Paste(_)), "answered by a paste");
        let stores = !matches!(answer.decision, ApprovalDecision::Once | ApprovalDecision::Deny);
        if !stores {
            return;
        }
        assert_eq!(*last, Key::Enter);
        // Enter, and before it a selection, each apart from the key before it.
        let selected = self
            .keys
            .iter()
            .rposition(|(k, _)| matches!(k, Key::Char('a' | 'A' | 'p' | 'P' | 'E')));
        let selected = selected.unwrap();
        let gap = |at: usize| at == 0 || self.keys[at].1 - self.keys[at - 1].1 >= ARMING_TIME;
        assert!(gap(selected) && gap(self.keys.len() - 1), "{:?}", self.keys);
        assert!(self.keys[selected].1 >= drawn + ARMING_TIME);
        let between = &self.keys[selected + 1..self.keys.len() - 1];
        assert!(between.iter().all(|(key, _)| *key == Key::Enter), "{between:?}");
    }
}

fn random_key(random: &mut Rng) -> Key {
    match random.u8(0..16) {
        0..=7 => Key::Char(*random.choice(&['y', 'Y', 'n', 'a', 'A', 'p', 'P', 'E']).unwrap()),
        8 => Key::Char(random.char('a'..='z')),
        9 => Key::Escape,
        10 => Key::Backspace,
        11 => Key::Paste("ay".into()),
        12 => Key::Clear,
        _ => Key::Enter,
    }
}

fn play_random(random: &mut Rng) -> usize {
    let mut questions = Questions::default();
    let mut observed = Observed::default();
    let mut open: Vec<ApprovalId> = Vec::new();
    let mut now = Instant::now();
    let mut answers = 0;
    for _ in 0..60 {
        now += Duration::from_millis(*random.choice(&[1, 20, 150, 390, 400, 450, 900]).unwrap());
        match random.u8(0..10) {
            0 => {
                let approval =
                    approval("run_shell(= ls)", random.bool().then_some("run_shell(ls *)"));
                open.push(approval.approval_id.clone());
                questions.add(&approval);
            }
            1 if !open.is_empty() && random.u8(0..4) == 0 => {
                drop(questions.remove(&open.remove(random.usize(0..open.len()))));
            }
            2 | 3 => {
                if let Some(approval) = questions.undrawn() {
                    observed.drawn.retain(|(id, _)| *id != approval.approval_id);
                    observed.drawn.push((approval.approval_id.clone(), now));
                }
                questions.mark_drawn(now);
            }
            _ => {
                let typed = questions.typed().to_owned();
                let key = random_key(random);
                observed.keys.push((key.clone(), now));
                if let KeyEffect::Answer(answer) = questions.key(KeyPress { key, at: now }) {
                    observed.check(&answer, &typed);
                    open.retain(|id| *id != answer.approval_id);
                    answers += 1;
                }
            }
        }
    }
    answers
}

#[test]
fn random_keys_never_answer_what_was_not_read() {
    let mut random = random("keys of questions");
    let answers: usize = (0..2000).map(|_| play_random(&mut random)).sum();
    // A test without answers would show nothing.
    assert!(answers > 1000, "{answers}");
}

#[test]
fn row_names_the_keys_that_work() {
    let mut player = Player::new();
    let mut row = |script: &str| {
        player.play(script);
        let row = player.questions.row(player.now).unwrap();
        console::strip_ansi_codes(&row).into_owned()
    };
    assert_eq!(row("?"), "allow? (one moment)");
    let keys = "allow? y once · a this session · A always here · p pattern this session · \
                P pattern always here · E everywhere · n no";
    assert_eq!(row("_"), keys);
    assert_eq!(row("xy"), "allow? Enter or Esc the text first: its keys are no answer");
    assert_eq!(row("⎋"), "allow? (one moment)");
    assert_eq!(row("_A"), "allow always here? (one moment): run_shell(= ls)");
    let confirm = "allow pattern always here? Enter confirms · Esc goes back: run_shell(ls *)";
    assert_eq!(row("_P_"), confirm);
    assert_eq!(row("⎋_%"), format!("{keys}  (+1 more)"));
    assert_eq!(row("ns"), "why not? (Enter to skip) s  (+1 more)");
}
