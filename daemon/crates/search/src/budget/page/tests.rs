//! Packing of passages into tokens: order, folding, limits.

use proptest::prelude::*;

use super::*;

/// Lines of one passage: number, text and score.
type Lines = Vec<(u32, String, f32)>;

/// Passages by position; each has the file and the lines.
struct Fixed(Vec<(usize, Lines)>);

impl Source for Fixed {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn file(&self, at: usize) -> usize {
        self.0[at].0
    }

    fn location(&self, at: usize, lines: Option<(u32, u32)>) -> String {
        let (from, to) = lines.unwrap_or((at as u32, at as u32));
        format!("src/file{}.rs:{from}-{to} result {at}", self.0[at].0)
    }

    fn passage(&mut self, at: usize) -> Result<Passage, Failure> {
        let line = |(number, text, score): &(u32, String, f32)| Line {
            number: *number,
            text: text.clone(),
            score: *score,
        };
        Ok(Passage { lines: self.0[at].1.iter().map(line).collect() })
    }
}

fn numbered(from: u32, to: u32, text: &str) -> Lines {
    (from..=to).map(|n| (n, format!("{text} {n}"), 0.0)).collect()
}

fn pack(passages: Vec<(usize, Lines)>, tokens: u32) -> Page {
    Page::pack(&mut Fixed(passages), tokens).unwrap()
}

#[test]
fn short_passages_are_complete() {
    let page = pack(vec![(0, numbered(3, 5, "let a =")), (1, numbered(1, 1, "fn"))], 1_000);
    let text = "src/file0.rs:3-5 result 0\nlet a = 3\nlet a = 4\nlet a = 5\nsrc/file1.rs:1-1 result 1\nfn 1\n";
    assert_eq!(page.text, text);
    assert_eq!(page.ranges, [(0, (3, 5)), (1, (1, 1))]);
    assert_eq!((page.named, page.folded_lines), (2, 0));
    assert_eq!(page.tokens, to_tokens(cost(text)), "the estimate of lines is that of the text");
}

#[test]
fn folded_passage_has_its_head_and_its_best_lines() {
    let mut lines = numbered(10, 300, "    some_statement(with, several, arguments);");
    lines[0].2 = HEAD;
    lines[200].2 = 4.0;
    let page = pack(vec![(0, lines)], 300);
    let starts = "src/file0.rs:10-300 result 0\n    some_statement(with, several, arguments); 10\n";
    assert!(page.text.starts_with(starts), "{}", page.text);
    assert!(page.text.contains("arguments); 210\n") && page.text.contains("… "), "{}", page.text);
    let printed: u32 = page.ranges.iter().map(|(_, (from, to))| to - from + 1).sum();
    assert_eq!(printed + page.folded_lines, 291);
    assert_eq!(page.ranges[0].1.0, 10);
}

#[test]
fn better_results_have_more_lines() {
    let passages = (0..6).map(|file| (file, numbered(1, 200, "statement of some length;")));
    let page = pack(passages.collect(), 2_000);
    let printed = |item: usize| -> u32 {
        let of = page.ranges.iter().filter(|(at, _)| *at == item);
        of.map(|(_, (from, to))| to - from + 1).sum()
    };
    let all: Vec<u32> = (0..6).map(printed).collect();
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]) && all[0] > 2 * all[2], "{all:?}");
}

#[test]
fn lines_of_a_file_are_printed_once() {
    let page = pack(vec![(0, numbered(1, 20, "a")), (0, numbered(10, 30, "a"))], 2_000);
    assert_eq!(page.ranges, [(0, (1, 20)), (1, (21, 30))]);
}

#[test]
fn very_long_line_is_cut_and_control_characters_are_removed() {
    let long = "x\u{1b}[31m".repeat(200_000);
    let page = pack(vec![(0, vec![(1, long, 1.0)])], 800);
    assert!(page.text.len() < 1_000 && !page.text.contains('\u{1b}'), "{}", page.text);
    assert_eq!(page.ranges, [(0, (1, 1))]);
}

#[test]
fn least_budget_without_results_is_empty() {
    assert_eq!(pack(Vec::new(), 200), Page::default());
    assert_eq!(pack(vec![(0, numbered(1, 9, "a"))], 0).named, 0);
}

fn passages() -> impl Strategy<Value = Vec<(usize, Lines)>> {
    let line = (prop_oneof!["[ -~\té日]{0,90}", "[{}]?"], 0u8..5);
    let lines = (1u32..500, prop::collection::vec(line, 0..120), prop::bool::ANY);
    let passage = (0usize..4, lines).prop_map(|(file, (from, lines, has_gap))| {
        let number = |at: usize| from + at as u32 + if has_gap && at > 2 { 40 } else { 0 };
        let numbered = lines.into_iter().enumerate();
        (file, numbered.map(|(at, (text, score))| (number(at), text, f32::from(score))).collect())
    });
    prop::collection::vec(passage, 0..12)
}

proptest! {
    #[test]
    fn page_never_exceeds_its_budget(passages in passages(), tokens in 200u32..6_000) {
        let page = pack(passages.clone(), tokens);
        prop_assert!(page.tokens <= tokens - NOTE, "{} of {tokens}", page.tokens);
        prop_assert!(to_tokens(cost(&page.text)) <= page.tokens, "{}", page.text);
        prop_assert_eq!(&page, &pack(passages.clone(), tokens), "packing is deterministic");
        // Results are named in their order, and no line of a file is printed twice.
        let heads = page.text.lines().filter(|l| l.starts_with("src/file"));
        let named: Vec<String> = heads.filter_map(|l| Some(l.split_once(" result ")?.1.into())).collect();
        let expected: Vec<String> = (0..page.named).map(|at| at.to_string()).collect();
        prop_assert_eq!(named, expected);
        let mut printed = BTreeSet::new();
        for (item, (from, to)) in &page.ranges {
            for number in *from..=*to {
                prop_assert!(printed.insert((passages[*item].0, number)), "{number} twice");
            }
        }
    }
}
