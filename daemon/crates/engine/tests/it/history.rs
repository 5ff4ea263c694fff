//! Search in past sessions by meaning, with the built-in embedding.

use cairn_protocol::history::{HistoryKind, HistoryParams};

use crate::stage::{Setup, Stage, World};

const QUESTIONS: [&str; 7] = [
    "note why does the retry loop wait too long before it connects again",
    "note rename the field of the user's e-mail address in the database",
    "note add a dark theme to the settings page",
    "note the parser crashes on an empty file",
    "note speed up the tests of the login form",
    "note translate the error messages to German",
    "note delete old log files after thirty days",
];

#[tokio::test]
async fn past_questions_are_found_by_other_words_of_the_same_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    for (n, question) in QUESTIONS.iter().enumerate() {
        let session = stage.session(None).await;
        stage.start(&session, &format!("t{n}"), question).await.unwrap();
        stage.wait_for_end(&session, &format!("t{n}")).await;
    }
    let search = async |query: &str| {
        let kinds = Some(vec![HistoryKind::Question]);
        let params = HistoryParams { query: query.into(), kinds, ..HistoryParams::default() };
        let answer = stage.engine.search_history(params).await.unwrap();
        answer.data.into_iter().map(|entry| entry.text).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("connection retries with long delays", 0),
        ("renaming the column for mail addresses of users in SQL", 1),
        ("dark mode in the preferences", 2),
        ("crash while parsing files without content", 3),
        ("removing logs that are older than a month", 6),
    ] {
        let found = search(query).await;
        let is_near_the_top = found.iter().take(2).any(|text| text.ends_with(QUESTIONS[expected]));
        assert!(is_near_the_top, "{query}: {found:?}");
    }
    // Entries with some of the words are found although others have a similar meaning.
    let some_words = search("zebra Madrid thirty").await;
    assert!(some_words.iter().any(|text| text.ends_with(QUESTIONS[6])), "{some_words:?}");
    // Words come first, and few entries follow them.
    assert!(search("parser").await[0].ends_with(QUESTIONS[3]));
    assert!(search("zebra crossing in Madrid").await.len() <= 5);
}
