//! Answers within a number of tokens, counted by real tokenizers.

use std::path::Path;

use cairn_protocol::error::Reason;
use cairn_protocol::search::{Corpus, SearchAnswer, SearchFilters, SearchParams};
use cairn_search::CancelFlag;

use crate::fixture::{TestRoot, add_root, build, hybrid, lexical, write_file, write_files};

fn packed(root: &TestRoot, query: &str, tokens: u32) -> SearchAnswer {
    let filters = SearchFilters { roots: vec![root.id.to_string()], ..SearchFilters::default() };
    let max_tokens = Some(tokens);
    let params = SearchParams { max_tokens, filters: Some(filters), ..SearchParams::new(query) };
    hybrid(&root.indexes, &params)
}

/// The text of a packed answer.
fn text(answer: &SearchAnswer) -> &str {
    &answer.packed.as_ref().unwrap().text
}

/// Files of a folder below this crate, with another root.
fn copy(from: &str, top: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        if entry.path().is_file() {
            let name = entry.file_name();
            write_file(top, name.to_str().unwrap(), std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn packed_answer_of_real_sources_stays_within_the_tokens_of_real_tokenizers() {
    let root = TestRoot::from_tree(|top| {
        copy("src", top);
        copy("src/rank", &top.join("rank"));
        copy("../../../docs/guide", &top.join("docs"));
    });
    root.build();
    let tokenizers = [tiktoken_rs::cl100k_base().unwrap(), tiktoken_rs::o200k_base().unwrap()];
    let queries = [
        "where are result items built",
        "lines_are_cut_by_number",
        "how do I configure a model provider",
        "stop the thread of an index and delete its folder",
        "unable to open the database",
        "table of keys",
        "Candidate",
        "ratio of vectors to chunks when degraded",
    ];
    for tokens in [200, 500, 1000, 2000, 4000, 20_000] {
        for query in queries {
            let answer = packed(&root, query, tokens);
            let text = text(&answer);
            let real = tokenizers.iter().map(|t| t.encode_ordinary(text).len()).max().unwrap();
            let estimate = answer.packed.as_ref().unwrap().tokens;
            assert!(real <= estimate as usize && estimate <= tokens, "{tokens} {query}: {real}");
            assert!(!answer.items.is_empty() && answer.items.iter().all(|i| i.text.is_none()));
            assert_eq!(text, self::text(&packed(&root, query, tokens)), "it is deterministic");
        }
    }
}

#[test]
fn answer_to_a_name_is_its_definition_and_continues_with_its_uses() {
    let uses: String =
        (0..60).map(|n| format!("fn use_{n}() {{\n    open_ledger({n});\n}}\n\n")).collect();
    let root = TestRoot::new(&[
        ("ledger.rs", "/// Opens it.\npub fn open_ledger(n: u32) -> u32 {\n    n + 1\n}\n"),
        ("uses.rs", &uses),
    ]);
    root.build();
    let answer = packed(&root, "open_ledger", 4000);
    let scores: Vec<f64> = answer.items.iter().map(|i| i.score).collect();
    assert!(text(&answer).contains("pub fn open_ledger"), "{}", text(&answer));
    assert!(!text(&answer).contains("use_1()"), "{scores:?} {}", text(&answer));
    assert!(answer.packed.as_ref().unwrap().tokens < 200, "{}", text(&answer));
    let next = answer.omitted.unwrap().next_offset.unwrap();
    let max_tokens = Some(4000);
    let params = SearchParams { max_tokens, offset: next, ..SearchParams::new("open_ledger") };
    assert!(text(&hybrid(&root.indexes, &params)).contains("open_ledger(5)"));
    // A description of the same fills the tokens.
    let described = packed(&root, "where is the ledger opened", 4000);
    assert!(text(&described).contains("use_1()"), "{}", text(&described));
}

/// Checks that the printed ranges are what the text has.
#[test]
fn folded_definition_has_its_head_and_the_lines_that_match() {
    let filler = |n: usize| format!("    let step_{n} = compute_something({n}, {n}, {n});\n");
    let body: String = (0..100).map(filler).collect();
    let code = format!(
        "/// Moves funds between accounts.\n/// Second line.\npub fn transfer(amount: u64) {{\n{body}    \
         ledger.record_overdraft_penalty();\n{body}}}\n"
    );
    let root = TestRoot::new(&[("src/bank.rs", &code), ("src/other.rs", "fn noop() {}\n")]);
    root.build();
    let answer = packed(&root, "record overdraft penalty", 300);
    let text = text(&answer);
    assert!(text.starts_with("src/bank.rs:1-205 function transfer\n"), "{text}");
    assert!(text.contains("/// Moves funds between accounts.\n"), "{text}");
    assert!(text.contains("pub fn transfer(amount: u64) {\n"), "{text}");
    assert!(text.contains("    ledger.record_overdraft_penalty();\n"), "{text}");
    assert!(text.contains("… ") && text.contains(" lines ("), "{text}");
    let lines: Vec<&str> = code.lines().collect();
    for range in &answer.packed.as_ref().unwrap().lines {
        let of = (range.start_line as usize - 1)..range.end_line as usize;
        if answer.items[range.item as usize].path == "src/bank.rs" {
            assert!(text.contains(&lines[of].join("\n")), "{range:?}");
        }
    }
    let omitted = answer.omitted.unwrap();
    assert!(omitted.lines > 100 && omitted.hint.contains("maxTokens"), "{omitted:?}");
}

#[test]
fn omitted_results_continue_at_the_offset() {
    let files: Vec<(String, String)> = (0..30)
        .map(|n| {
            (format!("src/m{n:02}.rs"), format!("fn parse_ledger_{n}() {{\n    ledger({n})\n}}\n"))
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    let root = TestRoot::new(&files);
    root.build();
    let all: Vec<String> = hybrid(&root.indexes, &SearchParams::new("parse ledger"))
        .items
        .into_iter()
        .map(|i| i.path)
        .collect();
    let first = packed(&root, "parse ledger", 200);
    let omitted = first.omitted.clone().unwrap();
    assert_eq!(first.items.len() + omitted.items as usize, all.len());
    let next = omitted.next_offset.unwrap();
    assert_eq!(next as usize, first.items.len());
    let rest = SearchParams { offset: next, ..SearchParams::new("parse ledger") };
    let rest: Vec<String> =
        hybrid(&root.indexes, &rest).items.into_iter().map(|i| i.path).collect();
    let named: Vec<String> = first.items.iter().map(|i| i.path.clone()).collect();
    assert_eq!(named, all[..named.len()]);
    assert_eq!(rest[..all.len() - named.len()], all[named.len()..]);
}

#[test]
fn invalid_limits_are_refused() {
    let root = TestRoot::new(&[("a.rs", "fn a() {}\n")]);
    root.build();
    let refused = |params: SearchParams| {
        root.indexes.lexical(&params, &CancelFlag::new(), &|_| {}).unwrap_err().reason
    };
    for tokens in [0, 199, 100_001, 1_000_000_000, u32::MAX] {
        let params = SearchParams { max_tokens: Some(tokens), ..SearchParams::new("a") };
        assert_eq!(refused(params), Reason::InvalidParams, "{tokens}");
    }
    for offset in [181, 200, u32::MAX] {
        let params = SearchParams { offset, ..SearchParams::new("a") };
        assert_eq!(refused(params), Reason::InvalidParams, "{offset}");
    }
    for tokens in [200, 100_000] {
        assert!(text(&packed(&root, "fn a", tokens)).starts_with("a.rs:1-1"));
    }
}

#[test]
fn file_of_one_very_long_line_fits() {
    let line = format!("var needle = \"{}\";", "abc ".repeat(240_000));
    let root = TestRoot::new(&[("min.js", &line), ("b.js", "let needle = 1;\n")]);
    root.build();
    for tokens in [200, 1000] {
        let answer = packed(&root, "needle", tokens);
        assert!(answer.packed.as_ref().unwrap().tokens <= tokens, "{answer:?}");
        assert!(text(&answer).len() < 2_000, "{}", text(&answer).len());
    }
    assert_eq!(lexical(&root.indexes, &SearchParams::new("zzz-nothing")).packed, None);
}

#[test]
fn partial_lists_name_their_root_and_are_never_empty() {
    let root = TestRoot::new(&[("a.rs", "fn open_ledger() {}\n")]);
    root.build();
    let second = root.dir.path().join("second");
    write_files(&second, &[("b.rs", "fn open_ledger_too() {}\n")]);
    let third = root.dir.path().join("third");
    write_files(&third, &[("c.txt", "\n")]);
    for top in [&second, &third] {
        let id = add_root(&root.indexes, top);
        build(&root.indexes, &id);
    }
    let seen = std::sync::Mutex::new(Vec::new());
    let params = SearchParams { request_id: Some("r".into()), ..SearchParams::new("open ledger") };
    let answer = root
        .indexes
        .hybrid(&params, &CancelFlag::new(), &|p| seen.lock().unwrap().push(p))
        .unwrap();
    let mut seen = seen.into_inner().unwrap();
    let last = seen.pop().unwrap();
    assert!(last.done && last.root.is_none() && last.corpus == Corpus::Fused);
    assert_eq!(last.items, answer.items);
    assert_eq!(last.items.len(), 2);
    let mut lists = Vec::new();
    for partial in &seen {
        assert!(!partial.done && !partial.items.is_empty(), "{partial:?}");
        let root = partial.root.clone().unwrap();
        assert!(partial.items.iter().all(|item| item.root == root), "{partial:?}");
        lists.push((root.to_string(), format!("{:?}", partial.corpus)));
    }
    let lists_once: std::collections::BTreeSet<_> = lists.iter().collect();
    assert_eq!((lists.len(), lists_once.len()), (4, 4), "{lists:?}");
}
