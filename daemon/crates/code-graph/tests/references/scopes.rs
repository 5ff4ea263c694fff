//! References in the file of the definition.

use crate::{at_home, target};

#[test]
fn python_names_are_found_by_scope() {
    let text = "\
def run(x):
    return x
run(1)  # run
'run'
def other(run):
    return run()
def third():
    run = 2
    return run
class A:
    run = run
    def run(self):
        self.run()
        return run()
[run for run in xs]
x.run()
f(run=run)
";
    assert_eq!(
        at_home("python", text, &target("function", "", "run", 1)),
        "1:4 def, 3:0 call, 14:15 call, 17:6 read"
    );
    assert_eq!(
        at_home("python", text, &target("method", "A", "run", 12)),
        "11:4 write, 11:10 read, 12:8 def, 13:13 call, 16:2 call?"
    );
}

#[test]
fn python_members_are_found_by_receiver() {
    let text = "\
class Base:
    def go(self): pass
class Sub(Base):
    def more(self):
        self.go()
        super().go()
class Other:
    def go(self):
        self.go()
def f(a: Base, b, c: Other):
    a.go(); b.go(); c.go()
    d = Sub()
    d.go()
    Base().go()
    Base.go(d)
class Holder:
    def __init__(self, base: Base):
        self.base = base
        self.made = Base()
    def use(self):
        self.base.go(); self.made.go()
";
    assert_eq!(
        at_home("python", text, &target("method", "Base", "go", 2)),
        "2:8 def, 5:13 call, 6:16 call, 11:6 call~, 11:14 call?, 11:22 call?, 13:6 call~, \
         14:11 call~, 15:9 call, 21:18 call~, 21:34 call~"
    );
}

#[test]
fn script_names_are_found_by_scope() {
    let text = "\
export function run() {}
run();
const o = { run: 1, run };
{ const run = 1; run; }
function f(run) { return run; }
(run) => run;
for (const run of xs) run();
const { a: run2, run: b } = o;
x.run; <run />;
class C { run() { this.run(); run(); } }
if (1) { run(); var late = run; }
";
    assert_eq!(
        at_home("javascript", text, &target("function", "", "run", 1)),
        "1:16 def, 2:0 call, 3:20 read, 9:8 call, 10:30 call, 11:9 call, 11:27 read"
    );
    assert_eq!(
        at_home("javascript", text, &target("method", "C", "run", 10)),
        "9:2 read?, 10:10 def, 10:23 call"
    );
}

#[test]
fn script_members_are_found_by_type() {
    let text = "\
interface Item { id(): string }
class Store { private item: Item = null; constructor(private other: Item) {}
  use(a: Item | null, b: Foo) {
    a.id(); b.id(); this.item.id(); this.other?.id();
    const c = new Store(x); c.use(); (a as any).id;
  } }
let t: Item[];
";
    assert_eq!(
        at_home("typescript", text, &target("method", "Item", "id", 1)),
        "1:17 def, 4:6 call~, 4:14 call?, 4:30 call~, 4:48 call~, 5:48 read?"
    );
    assert_eq!(
        at_home("typescript", text, &target("interface", "", "Item", 1)),
        "1:10 def, 2:28 type, 2:68 type, 3:9 type, 7:7 type"
    );
    assert_eq!(
        at_home("typescript", text, &target("method", "Store", "constructor", 2)),
        "2:41 def, 5:18 call"
    );
}

#[test]
fn names_of_other_languages_are_found_by_scope() {
    let go = "package p\nfunc Run(a int) {}\nfunc f() {\n\tRun(1)\n\tRun := 2\n\t_ = Run\n}\n";
    assert_eq!(at_home("go", go, &target("function", "", "Run", 2)), "2:5 def, 4:1 call");
    let java = "class A { int n; void go() { go(); this.go(); n = 1; int n = 2; n++; } }";
    assert_eq!(
        at_home("java", java, &target("method", "A", "go", 1)),
        "1:22 def, 1:29 call, 1:40 call"
    );
    let c = "static int run(int n) { return n; }\nint f(int run) { return run; }\nint g(void) { return run(1); } /* run */\n";
    assert_eq!(at_home("c", c, &target("function", "", "run", 1)), "1:11 def, 3:21 call");
    let rust = "fn run() {}\nfn f(run: u8) -> u8 { run }\nfn g() { run(); let run = 1; }\nmod m { fn h() { super::run() } }\n";
    assert_eq!(
        at_home("rust", rust, &target("function", "", "run", 1)),
        "1:3 def, 3:9 call, 4:24 call~"
    );
    let rust = "struct S;\nimpl S { fn a(&self) { self.b(); Self::b(self); } fn b(&self) {} }\nfn f(s: &S, t: T) { s.b(); t.b(); S::b(s); let u = S::new(); u.b() }\n";
    assert_eq!(
        at_home("rust", rust, &target("method", "S", "b", 2)),
        "2:28 call, 2:39 call, 2:53 def, 3:22 call~, 3:29 call?, 3:37 call, 3:63 call~"
    );
}

#[test]
fn calls_in_arguments_of_macros_are_references() {
    let rust = "struct S;\nimpl S {\n    fn a(&self) { select! { x = self.b(1) => m::b(2), y = t.b (3) } }\n    fn b(&self, n: u8) {}\n}\nfn f() { m!(g(1), other::g(), g) }\nfn g() {}\n";
    assert_eq!(
        at_home("rust", rust, &target("method", "S", "b", 4)),
        // A module cannot be distinguished from a type without a syntax tree.
        "3:37 call, 3:48 call?, 3:60 call?, 4:7 def"
    );
    assert_eq!(
        at_home("rust", rust, &target("function", "", "g", 7)),
        "6:12 call, 6:30 read, 7:3 def"
    );
}
