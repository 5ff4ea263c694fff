//! Policies on small repositories, and what they count.

use super::*;

fn effort(tokens: u32, calls: u32, is_solved: bool) -> Effort {
    Effort { tokens, calls, is_solved }
}

#[test]
fn summary_counts_unsolved_questions_as_endless() {
    let all = [
        effort(1_000, 1, true),
        effort(2_000, 2, true),
        effort(5_000, 9, true),
        effort(100, 1, false),
    ];
    let summary = report::summary(&all);
    assert_eq!((summary.within, summary.solved), ([0.5, 0.5, 0.75], 0.75));
    assert_eq!((summary.tokens, summary.calls), (Some(2_000), Some(2)));
    let unsolved = report::summary(&[effort(1, 1, true), effort(1, 1, false), effort(1, 1, false)]);
    assert_eq!((unsolved.tokens, unsolved.calls), (None, None));
    assert_eq!(report::summary(&[]).solved, 0.0);
}

#[test]
fn transcript_is_solved_by_half_of_the_lines() {
    let expected = [Expected { path: "a".into(), lines: Some((1, 4)) }];
    let mut transcript = Transcript::new(&expected);
    let span = |from, to| ResultSpan { path: "a".into(), lines: (from, to) };
    assert!(!transcript.add("one", [span(4, 9)]));
    assert!(transcript.add("two words", [span(1, 1)]));
    let tokens = model_tokens::tokens("one") + model_tokens::tokens("two words");
    assert_eq!(transcript.effort, effort(tokens, 2, true));
}

/// Writes a repository whose answer is the function `settle_invoice`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let filler = |n: usize| format!("fn helper_{n}() {{\n    compute({n});\n}}\n\n");
    let code: String = (0..50).map(filler).collect();
    let answer =
        "/// Pays an invoice.\nfn settle_invoice(total: u64) {\n    ledger.pay(total);\n}\n";
    write("src/billing.rs", &format!("{code}{answer}"));
    write("src/other.rs", &code);
    folder
}

#[test]
fn every_policy_finds_a_definition_by_its_words() {
    if std::process::Command::new("rg").arg("--version").output().is_err() {
        return meter_notice();
    }
    let folder = repository();
    let query = Query {
        line: 1,
        id: "q".into(),
        query: "where do we settle an invoice".into(),
        repo: "all".into(),
        names_repo: false,
        kind: "question".into(),
        expected: vec![Expected { path: "src/billing.rs".into(), lines: Some((202, 204)) }],
    };
    let measured = measure(folder.path(), std::slice::from_ref(&query)).unwrap();
    assert!(measured[0].efforts.iter().all(|e| e.is_solved), "{:?}", measured[0].efforts);
    let [skilled, naive, one, follow_up] = measured[0].efforts;
    assert!(naive.tokens > skilled.tokens, "a complete file is longer than a region of it");
    assert_eq!(one.calls, 1);
    assert_eq!(follow_up.calls, 1);
    // Words that occur nowhere end every policy without an answer.
    let absent = Query { query: "zzqx unheardof".into(), ..query };
    let measured = measure(folder.path(), &[absent]).unwrap();
    assert!(!measured[0].efforts[0].is_solved && !measured[0].efforts[1].is_solved);
    assert_eq!(measured[0].efforts[0].calls, 1, "{:?}", measured[0].efforts);
}

fn meter_notice() {
    crate::meter::report("rg is missing: the policies of grep are not tested");
}

#[test]
fn sample_names_lines_that_exist() {
    let text = std::fs::read_to_string(SAMPLE).unwrap();
    let queries = parse(&text).unwrap().all;
    assert!((10..=30).contains(&queries.len()));
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let moved = anchored(&text, top, queries).unwrap();
    for query in &moved {
        for answer in &query.expected {
            let lines = std::fs::read_to_string(top.join(&answer.path)).unwrap().lines().count();
            assert!(answer.lines.unwrap().1 as usize <= lines, "{}", query.query);
        }
    }
}

#[test]
fn invalid_arguments_are_refused() {
    assert!(run(&["x".into()]).unwrap_err().starts_with("usage"));
    let missing = ["/nowhere.jsonl".to_owned(), "--repos".to_owned(), "/".to_owned()];
    assert!(run(&missing).unwrap_err().contains("/nowhere.jsonl"));
}
