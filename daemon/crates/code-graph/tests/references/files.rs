//! References in other files, by their imports.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use cairn_code_graph::{
    FileImports, ImportGraph, Resolver, SourceFile, SourceTree, Target, Views, extract_imports,
    references_in,
};

use crate::{render, target};

struct Tree(Vec<String>);

impl SourceTree for Tree {
    fn files(&self) -> &[String] {
        &self.0
    }

    fn read(&self, path: &str) -> Option<String> {
        (path == "Cargo.toml").then(|| "[package]\nname = 'own'".to_owned())
    }
}

/// References to `target` in all files, as `path` and those that [`render`] returns.
fn search(lang: &str, files: &[(&str, &str)], target: &Target) -> String {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let tree = Tree(files.keys().map(|p| (*p).to_owned()).collect());
    let extracted: Vec<FileImports> =
        files.iter().map(|(path, text)| extract_imports(lang, path, text.as_bytes())).collect();
    let sources: Vec<SourceFile<'_>> = files
        .keys()
        .zip(&extracted)
        .map(|(path, imports)| SourceFile { path, lang, imports })
        .collect();
    let resolver = Resolver::new(&tree, &sources);
    let id = |path: &str| tree.0.iter().position(|f| f == path).map(|i| i as u32);
    let graph = ImportGraph::build(&resolver, &sources, id);
    let imports = |file: u32| extracted.get(file as usize).map(|i| (lang, i));
    let home = id(&target.path).expect("the file exists");
    let views = Views::new(&resolver, &graph, &imports, target, home);
    let mut out = Vec::new();
    for (path, text) in &files {
        let view = views.of(id(path).expect("the file exists"), path);
        let stop = AtomicBool::new(false);
        let Some(found) = references_in(lang, path, text.as_bytes(), target, &view, &stop) else {
            continue;
        };
        if !found.is_empty() {
            out.push(format!("{path} {}", render(&found)));
        }
    }
    out.join("; ")
}

fn at(path: &str, target: Target) -> Target {
    Target { path: path.to_owned(), ..target }
}

#[test]
fn python_imports_aliases_and_re_exports_lead_to_it() {
    let files = [
        ("pkg/__init__.py", "from .a import run as start\n"),
        ("pkg/a.py", "def run(): pass\n"),
        ("b.py", "from pkg.a import run\nrun()\ndef f(run): run()\n"),
        (
            "c.py",
            "import pkg\nfrom pkg import a as m\npkg.start()\nm.run()\npkg.run\nother.run()\n",
        ),
        ("d.py", "from pkg import start\nstart()\n"),
        ("e.py", "from elsewhere import run\nrun()\n"),
        ("f.py", "def g():\n    from pkg.a import run\n    run()\n"),
    ];
    assert_eq!(
        search("python", &files, &at("pkg/a.py", target("function", "", "run", 1))),
        "b.py 1:18 import, 2:0 call; c.py 3:4 call, 4:2 call; d.py 1:16 import, 2:0 call; \
         f.py 2:22 import, 3:4 call; pkg/__init__.py 1:15 import, 1:22 import; pkg/a.py 1:4 def"
    );
}

#[test]
fn script_imports_and_re_exports_lead_to_it() {
    let files = [
        ("a.ts", "export function run() {}\nexport default run;\n"),
        ("barrel.ts", "export * from './a';\nexport { run as go } from './a';\n"),
        ("b.ts", "import { run } from './barrel';\nrun();\n{ let run = 1; run; }\n"),
        ("c.ts", "import { go } from './barrel';\nimport * as all from './a';\ngo(); all.run();\n"),
        ("d.ts", "import main from './a';\nmain();\n"),
        ("e.ts", "import { run } from 'elsewhere';\nrun();\n"),
        ("f.ts", "import { run } from './a';\nexport { run as own };\n"),
        ("g.ts", "import { own } from './f';\nown();\n"),
    ];
    let target = at("a.ts", Target { is_default: true, ..target("function", "", "run", 1) });
    assert_eq!(
        search("typescript", &files, &target),
        "a.ts 1:16 def, 2:15 read; b.ts 1:9 import, 2:0 call; \
         barrel.ts 2:9 import, 2:16 import; c.ts 1:9 import, 3:0 call, 3:10 call; \
         d.ts 1:7 import, 2:0 call; f.ts 1:9 import, 2:9 import; \
         g.ts 1:9 import, 2:0 call"
    );
}

#[test]
fn members_are_found_through_the_imported_type() {
    let files = [
        ("a.py", "class Store:\n    def get(self): pass\n"),
        (
            "b.py",
            "from a import Store as S\ns = S()\ns.get()\nS.get(s)\n{}.get(1)\ndef f(x: S): x.get()\n",
        ),
        ("c.py", "d = {}\nd.get(1)\n"),
    ];
    assert_eq!(
        search("python", &files, &at("a.py", target("method", "Store", "get", 2))),
        "a.py 2:8 def; b.py 3:2 call~, 4:2 call, 5:3 call?, 6:15 call~; c.py 2:2 call?"
    );
}

#[test]
fn packages_and_headers_lead_to_it() {
    let files = [
        ("p/a.go", "package p\nfunc Run() {}\n"),
        ("p/b.go", "package p\nfunc g() { Run() }\n"),
        ("q/c.go", "package q\nfunc Run() {}\nfunc h() { Run() }\n"),
    ];
    assert_eq!(
        search("go", &files, &at("p/a.go", target("function", "", "Run", 2))),
        "p/a.go 2:5 def; p/b.go 2:11 call"
    );
    let files = [
        ("Cargo.toml", ""),
        ("src/lib.rs", "mod a;\nmod b;\nfn f() { a::run() }\n"),
        ("src/a.rs", "pub fn run() {}\n"),
        ("src/b.rs", "use crate::a::run;\nfn g() { run(); crate::a::run(); other::run() }\n"),
    ];
    assert_eq!(
        search("rust", &files, &at("src/a.rs", target("function", "", "run", 1))),
        "src/a.rs 1:7 def; src/b.rs 1:14 import, 2:9 call, 2:26 call; src/lib.rs 3:12 call"
    );
}

#[test]
fn prototypes_lead_to_a_global_and_static_functions_hide_it() {
    let files = [
        ("a.c", "int run(void) { return 1; }\n"),
        ("a.h", "int run(void);\n"),
        ("b.c", "#include \"a.h\"\nint f(void) { return run(); }\n"),
        ("c.c", "static int run(void) { return 2; }\nint g(void) { return run(); }\n"),
    ];
    assert_eq!(
        search("c", &files, &at("a.c", target("function", "", "run", 1))),
        "a.c 1:4 def; a.h 1:4 def~; b.c 2:21 call"
    );
}
