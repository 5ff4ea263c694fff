//! The callees of a definition.

use std::sync::atomic::AtomicBool;

use cairn_code_graph::calls_in;

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
