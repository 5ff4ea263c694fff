//! Import statements of each language as they are written.

use cairn_code_graph::{FileImports, extract_imports};

/// The imports as `line kind specifier{names}`, with `~` for one of types only.
fn render(file: &FileImports) -> String {
    let one = |i: &cairn_code_graph::Import| {
        let name = |n: &cairn_code_graph::ImportedName| match &n.alias {
            Some(alias) => format!("{}>{alias}", n.name),
            None => n.name.clone(),
        };
        let names = i.names.iter().map(name).collect::<Vec<_>>().join(" ");
        let names = if names.is_empty() { names } else { format!("{{{names}}}") };
        let alias = i.alias.as_ref().map(|a| format!(">{a}")).unwrap_or_default();
        let types = if i.is_type_only { "~" } else { "" };
        format!("{} {}{types} {}{names}{alias}", i.line, i.kind.name(), i.specifier)
    };
    file.imports.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn check(lang: &str, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let file = extract_imports(lang, "x", text.as_bytes());
        assert_eq!(render(&file), *expected, "{lang}: {text}");
        assert_eq!(FileImports::decode(&file.encode()).as_ref(), Some(&file), "{text}");
    }
}

#[test]
fn python_statements_are_extracted() {
    check(
        "python",
        &[
            ("import a.b as c, d\n", "1 import a.b>c; 1 import d"),
            (
                "from .x import (a, # c\n  b as c,\n)\nfrom ..  import y\n",
                "1 import .x{a b>c}; 4 import ..{y}",
            ),
            ("from . import *\n", "1 import .{*}"),
            (
                "def f():\n    import a\n    if x: import b; import c\n",
                "2 import a; 3 import b; 3 import c",
            ),
            (
                "if TYPE_CHECKING:\n    from a import (\n        b,\n    )\n\n    import c\nimport d\n",
                "2 import~ a{b}; 6 import~ c; 7 import d",
            ),
            ("if not TYPE_CHECKING:\n    import a\n", "2 import a"),
            (
                "\"\"\"\nimport no\n\\\"\"\"\nimport no\n\"\"\"\nx = 'import no' # import no\nimport a",
                "7 import a",
            ),
            (
                "importlib.import_module(\"a.b\")\n__import__('c')\nimport_module(x)\n",
                "1 dynamic a.b; 2 dynamic c",
            ),
            ("from a import \\\n  b\nraise X from y\nfrom_ = 1\n", "1 import a{b}"),
            ("import a.\\\n  b\r\nimport\tc\n", "1 import a.b; 3 import c"),
        ],
    );
}

#[test]
fn script_statements_are_extracted() {
    check(
        "typescript",
        &[
            (
                "import a, { b as c, type D } from './x';\nimport 'y';\nimport * as z from \"z\"",
                "1 import ./x{default>a b>c D}; 2 import y; 3 import z>z",
            ),
            (
                "import type { A } from './a';\nimport { type B, type C } from './b';\nimport type from './t';\nimport type D from 'd'",
                "1 import~ ./a{A}; 2 import~ ./b{B C}; 3 import ./t{default>type}; 4 import~ d{default>D}",
            ),
            (
                "export * from './a'\nexport { b,\n c as d } from './b'\nexport * as e from 'e'\nexport const x = 1; export type { T } from './t'",
                "1 re-export ./a{*}; 2 re-export ./b{b c>d}; 4 re-export e>e; 5 re-export~ ./t{T}",
            ),
            (
                "const a = require('a'), p = import(/* chunk */ './b');\nimport c = require('c');\nrequire.resolve('./d')\nimport(`./e`)\nimport(`./${f}`)\nrequire('x' + y)\n",
                "1 require a>a; 1 dynamic ./b; 2 require c>c; 3 require ./d; 4 dynamic ./e",
            ),
            (
                "// import 'no'\n/* import 'no' */ const s = \"import 'no'\", t = `import 'no' ${`}`} `, r = /'\"`/g, d = 1 / 2; import 'yes'",
                "2 import yes",
            ),
            ("export { a, b as c };\nimport 'x'", "1 re-export {a b>c}; 2 import x"),
            ("const { a, b: c = 1 } = require('./x')", "1 require ./x{a b>c}"),
            (
                "x.import('no'); x.require('no'); import.meta.url; foo_require('no'); import 'a'",
                "1 import a",
            ),
            (
                "/// <reference path=\"x.d.ts\" />\nimport { default as a, 'b c' as d } from 'm'",
                "1 import~ ./x.d.ts; 2 import m{default>a b c>d}",
            ),
        ],
    );
    check(
        "vue",
        &[(
            "<p>it's import 'no'</p>\n<script lang=\"ts\">\nimport a from './a'\n</script>",
            "3 import ./a{default>a}",
        )],
    );
}

#[test]
fn rust_items_are_extracted() {
    check(
        "rust",
        &[
            (
                "mod a;\n#[path = \"q/b.rs\"]\npub mod b;\nmod c { mod d; use super::x; use self::y::Z; mod e { use super::super::w; } }",
                "1 module a; 3 module b>q/b.rs; 4 module c::d; 4 import self{x}; 4 import self::c::y{Z}; 4 import self{w}",
            ),
            (
                "use crate::{a, b::{self, c as d, *}, r#type::E};\npub(crate) use super::f;\nuse std::io;\nuse ::g::H as _;",
                "1 import crate{a b}; 1 import crate::b{c>d *}; 1 import crate::type{E}; 2 re-export super{f}; 4 import g{H>_}",
            ),
            (
                "fn f<'a>() { crate::x::run(); b::C::new(); Vec::<u8>::new(); crate::x::run(); $crate::y::z() }",
                "1 path crate::x{run}; 1 path b{C}; 1 path crate::y{z}",
            ),
            (
                "// use no;\n/* /* use no; */ use no; */\nlet s = r#\"use no;\"#; let t = \"\\\"use no;\"; let c = '\"'; let l = '\\''; use yes::A;",
                "3 import yes{A}",
            ),
            ("extern crate foo as bar;\nfn g() -> impl Sized + use<'_> {}", "1 import foo>bar"),
            ("#[cfg_attr(not(x), path = \"y.rs\")]\nmod a;", "2 module a; 2 module a>y.rs"),
        ],
    );
}

#[test]
fn statements_of_other_languages_are_extracted() {
    check(
        "go",
        &[(
            "// c\npackage p\nimport \"a\"\nimport (\n\tx \"b/c\" // d\n\t_ \"e\"; . \"f\"\n)\nfunc f() { import \"no\" }",
            "3 import a; 5 import b/c>x; 6 import e>_; 6 import f>.",
        )],
    );
    check(
        "c",
        &[(
            "#include \"a/b.h\"\n # include <c.h>\n/*\n#include \"no\"\n*/\n#if 0\n#include \"no\"\n#else\n#include \"d.h\"\n#endif\nchar *s = \"\n#include <e.h>",
            "1 include a/b.h; 2 system-include c.h; 9 include d.h; 12 system-include e.h",
        )],
    );
    check(
        "java",
        &[(
            "package p.q;\nimport a.B;\nimport static a.C.m;\nimport d.*; // import no;\nclass X { String s = \"import no;\"; }",
            "2 import a{B}; 3 import a.C{m}>static; 4 import d{*}",
        )],
    );
    check(
        "kotlin",
        &[("package p\nimport a.b as c\nimport d.E\n", "2 import a{b>c}; 3 import d{E}")],
    );
    check(
        "ruby",
        &[(
            "require 'a/b'\nrequire_relative \"c\"\n# require 'no'\n=begin\nrequire 'no'\n=end\nautoload :D, 'd'\nx = <<~EOS\nrequire 'no'\nEOS\nrequire File.expand_path('../e', __FILE__)\n__END__\nrequire 'no'",
            "1 require a/b; 2 require ./c; 7 autoload d{D}; 11 require ./e",
        )],
    );
    check(
        "csharp",
        &[(
            "using A.B;\nusing static C.D;\nusing E = F.G;\nnamespace N {\n  class X { void M() { using var y = z; using (a) {} } }\n}",
            "1 import A.B; 2 import C.D{*}; 3 import F.G>E",
        )],
    );
    check(
        "php",
        &[(
            "<?php\nnamespace A;\nuse B\\C as D, E\\F;\nuse G\\{H, I as J};\nrequire __DIR__ . '/x.php';\nclass K { use T; }",
            "3 import B{C>D}; 3 import E{F}; 4 import G{H}; 4 import G{I>J}; 5 require ./x.php",
        )],
    );
    check("swift", &[("@testable import A\nimport struct B.C\n", "1 import A; 2 import B{C}")]);
    check(
        "lua",
        &[(
            "local a = require 'a.b'\n-- require 'no'\n--[[ require 'no' ]]\nrequire(\"c\") require [[d]]",
            "1 require a.b>a; 4 require c; 4 require d",
        )],
    );
}

#[test]
fn declared_and_used_types_are_recorded() {
    for (lang, text, package, declared) in [
        ("java", "package p;\nclass A { class B {} }\n@interface C {}\nenum D { X }", "p", "A C D"),
        (
            "kotlin",
            "package p\nfun f(a: Int) = 1\nval <T> List<T>.x: Int get() = 1\nobject O",
            "p",
            "O f x",
        ),
        (
            "csharp",
            "namespace N;\npublic record struct A(int x);\ndelegate void D();\nclass B { class C {} }",
            "N",
            "A B D",
        ),
        ("csharp", "namespace N {\n interface I {}\n}", "N", "I"),
        (
            "php",
            "<?php\nnamespace A\\B;\nfinal class C { function f() {} }\nfunction g() {}",
            "A\\B",
            "C g",
        ),
    ] {
        let file = extract_imports(lang, "x", text.as_bytes());
        assert_eq!(file.package.as_deref(), Some(package), "{lang}");
        assert_eq!(file.declared.join(" "), declared, "{lang}: {text}");
    }
    let file = extract_imports("java", "x", b"class A { Foo f; String s = \"Bar\"; } // Baz");
    assert!(file.uses("Foo") && !file.uses("Bar") && !file.uses("Baz"));
}
