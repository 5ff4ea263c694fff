//! The callees of a definition.

use std::sync::atomic::AtomicBool;

use cairn_code_graph::{Confidence, TargetUse, View, calls_in, target_uses_in};

use crate::target;

fn calls(lang: &str, text: &str, first: u32, last: u32) -> String {
    let found = calls_in(lang, "x", text.as_bytes(), first..=last, &AtomicBool::new(false));
    let one = |c: &cairn_code_graph::Callee| {
        let receiver = c.receiver.as_ref().map(|r| format!("{r}.")).unwrap_or_default();
        format!("{}:{} {receiver}{}", c.line, c.column, c.name)
    };
    found.expect("the text is parsed").iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn calls_are_listed_with_their_receivers() {
    let python = "def f():\n    g(h(1))\n    self.a.b()\ndef i():\n    j()\n";
    assert_eq!(calls("python", python, 1, 3), "2:4 g, 2:6 h, 3:11 self.a.b");
    let script = "function f() { g(); new H(); a.b.c(); `${d()}` }\n";
    assert_eq!(calls("typescript", script, 1, 1), "1:15 g, 1:24 H, 1:33 a.b.c, 1:41 d");
    assert_eq!(calls("go", "package p\nfunc f() { g(); a.B() }\n", 2, 2), "2:11 g, 2:18 a.B");
    assert_eq!(
        calls("java", "class A { void f() { g(); a.b(); new C(); } }", 1, 1),
        "1:21 g, 1:28 a.b, 1:37 C"
    );
    assert_eq!(calls("c", "int f() { return g(h()); }", 1, 1), "1:17 g, 1:19 h");
    assert_eq!(
        calls("rust", "fn f() { g(); a::b(); c.d(); m!(); }", 1, 1),
        "1:9 g, 1:17 a.b, 1:24 c.d, 1:29 m"
    );
}

#[test]
fn uses_of_several_targets_are_found_in_one_pass() {
    let text = "from m import a as b, c\ndef f():\n    b()\n    use(c)\n    c = 1\ndef g(): a()\ndef a(): pass\n";
    let named = |name: &str| View {
        names: vec![name.to_owned()],
        import_lines: vec![1],
        ..View::default()
    };
    let targets = vec![
        (target("function", "", "a", 1), named("b")),
        (target("function", "", "a", 7), View::of_home()),
        (target("function", "", "f", 2), View::of_home()),
    ];
    let find = |lines| {
        let stop = AtomicBool::new(false);
        target_uses_in("python", "x", text.as_bytes(), lines, targets.clone(), &stop)
    };
    let (calls, uses) = find(1..=7).expect("the text is parsed");
    let found = |line, column, target| TargetUse {
        line,
        column,
        target,
        confidence: Confidence::Exact,
        is_call: true,
    };
    assert_eq!(calls.len(), 3);
    assert_eq!(uses, [found(3, 4, 0), found(6, 9, 1)]);
    let (calls, uses) = find(4..=5).expect("the text is parsed");
    assert_eq!((calls.len(), uses.len()), (1, 0));
    let stop = AtomicBool::new(false);
    let none = target_uses_in("cobol", "x", b"a()", 1..=1, targets.clone(), &stop);
    assert!(none.is_none());
}
