//! Bounds: many definitions of a name, damaged texts, languages without a grammar.

use std::sync::atomic::AtomicBool;

use cairn_code_graph::{View, calls_in, references_in};
use proptest::prelude::*;

use crate::{at_home, target};

#[test]
fn a_name_with_many_definitions_is_bounded() {
    let text = "def f():\n    run = 1\n    return run\n".repeat(5_000);
    assert_eq!(at_home("python", &text, &target("function", "", "run", 20_000)), "");
    let text = "class A:\n    def run(self):\n        self.run()\n".repeat(5_000);
    let found = at_home("python", &text, &target("method", "A", "run", 2));
    assert_eq!(found, "2:8 def, 3:13 call");
}

#[test]
fn texts_without_a_grammar_have_no_answer() {
    let stop = AtomicBool::new(false);
    let target = target("function", "", "a", 1);
    assert!(references_in("cobol", "x", b"a", &target, &View::default(), &stop).is_none());
    assert!(calls_in("cobol", "x", b"a()", 1..=1, &stop).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_searched(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        let stop = AtomicBool::new(false);
        let target = target("function", "", "a", 1);
        for lang in ["python", "typescript", "go", "java", "c", "cpp", "rust"] {
            let _ = references_in(lang, "x", &text, &target, &View::of_home(), &stop);
            let _ = calls_in(lang, "x", &text, 1..=9, &stop);
        }
    }
}
