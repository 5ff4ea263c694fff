//! Resolution to files by the rules of each language.

use cairn_code_graph::Resolved;

use crate::trees::Tree;

#[test]
fn python_modules_are_found_by_package_and_layout() {
    let tree = Tree::new(&[
        ("pyproject.toml", ""),
        ("src/pkg/__init__.py", ""),
        ("src/pkg/a.py", "from . import b, name\nfrom .sub import c\nimport pkg.sub.d\nimport os"),
        ("src/pkg/b.py", "from pkg import a\nfrom ..outside import x"),
        ("src/pkg/sub/__init__.py", ""),
        ("src/pkg/sub/c.py", "from ... import z\nfrom ..b import f"),
        ("src/pkg/sub/d.py", "from space.n import m"),
        ("src/space/n/m.py", ""),
        ("tests/test_a.py", "import pkg\nfrom pkg.sub import d\nimport shared\nimport os"),
        ("tests/shared.py", ""),
        ("tests/os.py", ""),
    ]);
    let init = "src/pkg/__init__.py";
    assert_eq!(
        tree.targets("src/pkg/a.py"),
        [init, "src/pkg/b.py", "src/pkg/sub/c.py", "src/pkg/sub/d.py"]
    );
    assert_eq!(tree.targets("src/pkg/b.py"), ["src/pkg/a.py"]);
    assert_eq!(tree.targets("src/pkg/sub/c.py"), ["src/pkg/b.py"]);
    assert_eq!(tree.targets("src/pkg/sub/d.py"), ["src/space/n/m.py"]);
    assert_eq!(
        tree.targets("tests/test_a.py"),
        [init, "src/pkg/sub/d.py", "tests/os.py", "tests/shared.py"]
    );
}

#[test]
fn script_paths_are_probed_as_the_compiler_does() {
    let tree = Tree::new(&[
        ("a.ts", "import './b.js'; import './c'; import './d'; import './e.css'; import './gone'"),
        ("b.js", ""),
        ("b.ts", ""),
        ("c.tsx", ""),
        ("d/index.ts", ""),
        ("d/package.json", "{}"),
        ("e.css", ""),
        ("f.js", "import './b.js'"),
    ]);
    assert_eq!(tree.targets("a.ts"), ["b.ts", "c.tsx", "d/index.ts", "e.css"]);
}

#[test]
fn packages_of_a_workspace_are_found_by_name() {
    let tree = Tree::new(&[
        ("package.json", "{\"workspaces\": [\"packages/*\"]}"),
        (
            "packages/one/package.json",
            "{\"name\": \"@x/one\", \"main\": \"./dist/index.js\", \"imports\": {\"#in/*\": \"./src/in/*.js\"},
             \"exports\": {\".\": {\"import\": \"./dist/index.mjs\"}, \"./sub/*\": \"./dist/sub/*.js\"}}",
        ),
        ("packages/one/src/index.ts", "import '#in/a'"),
        ("packages/one/src/in/a.ts", ""),
        ("packages/one/src/sub/b.ts", ""),
        ("packages/two/package.json", "{\"name\": \"two\", \"main\": \"lib/main.js\"}"),
        ("packages/two/src/main.ts", "import '@x/one'; import '@x/one/sub/b'; import 'react/jsx'"),
        ("app/x.js", "require('two')"),
    ]);
    assert_eq!(tree.targets("packages/one/src/index.ts"), ["packages/one/src/in/a.ts"]);
    assert_eq!(
        tree.targets("packages/two/src/main.ts"),
        ["packages/one/src/index.ts", "packages/one/src/sub/b.ts"]
    );
    assert_eq!(tree.targets("app/x.js"), ["packages/two/src/main.ts"]);
    assert!(tree.graph().externals().contains_key("react"));
}

#[test]
fn path_mappings_are_inherited_and_relative_to_their_file() {
    let tree = Tree::new(&[
        (
            "tsconfig.base.json",
            "{\"compilerOptions\": {\"paths\": {\"~/*\": [\"./lib/*\"],},} } // c",
        ),
        ("app/tsconfig.json", "{\"extends\": \"../tsconfig.base\"}"),
        ("app/x.ts", "import '~/a'"),
        ("lib/a.ts", ""),
        (
            "web/tsconfig.json",
            "{\"files\": [], \"references\": [{\"path\": \"./tsconfig.app.json\"}]}",
        ),
        ("web/tsconfig.app.json", "{\"compilerOptions\": {\"baseUrl\": \"src\"}}"),
        ("web/src/y.ts", "import 'deep/z'"),
        ("web/src/deep/z.ts", ""),
        ("loop/tsconfig.json", "{\"extends\": \"./tsconfig.json\"}"),
        ("loop/w.ts", "import 'none'"),
    ]);
    assert_eq!(tree.targets("app/x.ts"), ["lib/a.ts"]);
    assert_eq!(tree.targets("web/src/y.ts"), ["web/src/deep/z.ts"]);
    assert_eq!(tree.first("loop/w.ts"), Resolved::External("none".to_owned()));
}

#[test]
fn rust_paths_lead_through_modules_crates_and_re_exports() {
    let tree = Tree::new(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = ['a', 'b']\n[workspace.dependencies]\nshort = { path = 'b', package = 'b-long' }",
        ),
        (
            "a/Cargo.toml",
            "[package]\nname = 'a-one'\n[dependencies]\nshort = { workspace = true }\nserde = '1'",
        ),
        ("a/src/lib.rs", "pub mod m;\nmod n;\nuse short::deep::T;\nuse serde::de;"),
        ("a/src/m/mod.rs", "mod o;\nuse super::n::F;\nfn f() { short::g::h() }"),
        (
            "a/src/m/o.rs",
            "use crate::m::*;\nuse super::super::n;\n#[cfg(test)]\nmod tests { use super::*; }",
        ),
        ("a/src/n.rs", "fn x() { crate::m::o::y(); n2::z() }\nuse crate::m::o as n2;"),
        ("a/src/main.rs", "fn main() { a_one::m::run() }"),
        ("a/tests/t.rs", "mod common;\nuse a_one::n::F;"),
        ("a/tests/common/mod.rs", ""),
        ("b/Cargo.toml", "[package]\nname = 'b-long'\n[lib]\nname = 'b_lib'\npath = 'entry.rs'"),
        ("b/entry.rs", "mod g;\npub use g::inner as deep;"),
        ("b/g.rs", "pub mod inner;"),
        ("b/g/inner.rs", ""),
    ]);
    assert_eq!(tree.targets("a/src/lib.rs"), ["a/src/m/mod.rs", "a/src/n.rs", "b/g/inner.rs"]);
    assert_eq!(tree.targets("a/src/m/mod.rs"), ["a/src/m/o.rs", "a/src/n.rs", "b/g.rs"]);
    assert_eq!(tree.targets("a/src/m/o.rs"), ["a/src/m/mod.rs", "a/src/n.rs"]);
    assert_eq!(tree.targets("a/src/n.rs"), ["a/src/m/o.rs"]);
    assert_eq!(tree.targets("a/src/main.rs"), ["a/src/m/mod.rs"]);
    assert_eq!(tree.targets("a/tests/t.rs"), ["a/src/n.rs", "a/tests/common/mod.rs"]);
    assert_eq!(tree.targets("b/entry.rs"), ["b/g.rs", "b/g/inner.rs"]);
    assert!(tree.graph().externals().contains_key("serde"));
}

#[test]
fn go_packages_are_found_by_all_modules() {
    let tree = Tree::new(&[
        ("go.mod", "module ex.com/a\n\nreplace other.com/x => ./third\n"),
        (
            "main.go",
            "package main\nimport (\n\"ex.com/a/b\"\n\"ex.com/a/sub/c\"\n\"other.com/x/y\"\n\"fmt\"\n)",
        ),
        ("b/b.go", "package b"),
        ("b/b_test.go", "package b"),
        ("sub/go.mod", "module ex.com/a/sub"),
        ("sub/c/c.go", "package c"),
        ("third/y/y.go", "package y"),
    ]);
    assert_eq!(tree.targets("main.go"), ["b/b.go", "sub/c/c.go", "third/y/y.go"]);
}

#[test]
fn types_are_found_by_package_and_use() {
    let tree = Tree::new(&[
        (
            "s/p/A.java",
            "package p;\nimport q.B;\nimport q.r.*;\nimport static q.S.m;\nclass A { C c; D d; Z z; }",
        ),
        ("s/p/C.java", "package p;\nclass C {}"),
        ("s/p/Unused.java", "package p;\nclass Unused {}"),
        ("s/q/B.java", "package q;\nclass B {}"),
        ("s/q/S.java", "package q;\nclass S {}"),
        ("s/q/r/D.java", "package q.r;\nclass D {}"),
        ("s/q/r/E.java", "package q.r;\nclass E {}"),
        ("k/f.kt", "package k\nimport p.C\nimport k2.helper\n"),
        ("k/odd.kt", "package k2\nfun helper() = 1\n"),
        ("c/x.cs", "using N.M;\nnamespace N.O;\nclass X { Y y; Outer o; }"),
        ("c/y.cs", "namespace N.M;\nclass Y {}"),
        ("c/z.cs", "namespace N.M;\nclass Z {}"),
        ("c/o.cs", "namespace N { class Outer {} }"),
    ]);
    assert_eq!(
        tree.targets("s/p/A.java"),
        ["s/p/C.java", "s/q/B.java", "s/q/S.java", "s/q/r/D.java"]
    );
    assert_eq!(tree.targets("k/f.kt"), ["k/odd.kt", "s/p/C.java"]);
    assert_eq!(tree.targets("c/x.cs"), ["c/o.cs", "c/y.cs"]);
}

#[test]
fn headers_files_and_load_paths_are_found() {
    let tree = Tree::new(&[
        ("CMakeLists.txt", "include_directories(${PROJECT_SOURCE_DIR}/api)"),
        ("api/pub.h", ""),
        (
            "src/a.c",
            "#include \"b.h\"\n#include <pub.h>\n#include <string.h>\n#include \"deep/c.h\"",
        ),
        ("src/b.h", ""),
        ("x/string.h", ""),
        ("x/deep/c.h", ""),
        ("lib/gem.rb", "require 'gem/part'\nrequire_relative 'gem/other'\nautoload :FooBar"),
        ("lib/gem/part.rb", ""),
        ("lib/gem/other.rb", ""),
        ("lib/gem/foo_bar.rb", ""),
        ("composer.json", "{\"autoload\": {\"psr-4\": {\"App\\\\\": \"php/\"}}}"),
        (
            "php/Main.php",
            "<?php namespace App;\nuse App\\Sub\\T;\nrequire __DIR__ . '/inc/i.php';\nnew Near();",
        ),
        ("php/Near.php", "<?php namespace App;\nclass Near {}"),
        ("php/Sub/T.php", "<?php namespace App\\Sub;\nclass T {}"),
        ("php/inc/i.php", "<?php"),
        ("Package.swift", ".target(name: \"Core\", path: \"Custom\"),"),
        ("Custom/k.swift", "public struct Key {}"),
        ("Custom/l.swift", "public struct Lock {}"),
        ("Sources/App/m.swift", "import Core\nlet k = Key()"),
        ("lua/m.lua", "require 'n.o'"),
        ("lua/n/o.lua", ""),
    ]);
    assert_eq!(tree.targets("src/a.c"), ["api/pub.h", "src/b.h", "x/deep/c.h"]);
    assert_eq!(
        tree.targets("lib/gem.rb"),
        ["lib/gem/foo_bar.rb", "lib/gem/other.rb", "lib/gem/part.rb"]
    );
    assert_eq!(tree.targets("php/Main.php"), ["php/Near.php", "php/Sub/T.php", "php/inc/i.php"]);
    assert_eq!(tree.targets("Sources/App/m.swift"), ["Custom/k.swift"]);
    assert_eq!(tree.targets("lua/m.lua"), ["lua/n/o.lua"]);
}

#[test]
fn types_are_found_without_statements() {
    let tree = Tree::new(&[
        (
            "App/App.csproj",
            "<Project><ItemGroup><Using Include=\"N.Deep\" /></ItemGroup></Project>",
        ),
        ("App/Usings.cs", "global using N.Wide;"),
        ("App/a.cs", "namespace N;\nclass A { Near n; Deep1 d; Wide1 w; Far f; }"),
        ("App/near.cs", "namespace N;\nclass Near {}"),
        ("Lib/deep.cs", "namespace N.Deep;\nclass Deep1 {}"),
        ("Lib/wide.cs", "namespace N.Wide;\nclass Wide1 {}"),
        ("Lib/far.cs", "namespace Far;\nclass Far {}"),
        ("Lib/b.cs", "namespace M;\nclass B { Deep1 d; Wide1 w; }"),
        ("Sources/App/a.swift", "let k = Key(other)"),
        ("Sources/App/k.swift", "struct Key {}"),
        ("Sources/Other/k.swift", "struct Key {}"),
        (
            "lib/site.rb",
            "module X\n  class Site\n    def go = Page.new(Reader::Data, String)\n  end\nend",
        ),
        ("lib/page.rb", "module X\n  class Page < Base\n  end\nend"),
        ("lib/base.rb", "module X\n  class Base\n    # Site\n  end\nend"),
        ("lib/data.rb", "module X\n  module Reader\n    class Data; end\n  end\nend"),
        ("lib/posts.rb", "module X\n  module Reader\n    class Posts; end\n  end\nend"),
        ("lib/string.rb", "class String\nend"),
        ("lib/other.rb", "module Y\n  class Maker < Site\n  end\nend\nclass X::Place\nend"),
        ("lib/user.rb", "module X\n  Place.new(Maker)\nend"),
        ("spec/page_spec.rb", "class Page\nend\nX::Site"),
    ]);
    assert_eq!(tree.targets("App/a.cs"), ["App/near.cs", "Lib/deep.cs", "Lib/wide.cs"]);
    assert!(tree.targets("Lib/b.cs").is_empty());
    assert_eq!(tree.targets("Sources/App/a.swift"), ["Sources/App/k.swift"]);
    assert_eq!(tree.targets("lib/site.rb"), ["lib/data.rb", "lib/page.rb"]);
    assert_eq!(tree.targets("lib/page.rb"), ["lib/base.rb"]);
    for path in ["lib/base.rb", "lib/other.rb", "lib/user.rb"] {
        assert!(tree.targets(path).is_empty(), "{path}");
    }
    assert_eq!(tree.targets("spec/page_spec.rb"), ["lib/site.rb"]);
}

#[test]
fn modules_of_elixir_are_found_by_their_full_names() {
    let tree = Tree::new(&[
        (
            "lib/a.ex",
            "defmodule A do\n  alias A.B.{C, D.E}\n  alias A.F, as: G\n  alias A.H\n  use A.I\n  \
             import Logger\n  # A.No\n  def x, do: H.J.run(G.go(), \"A.No\", :A.No, ?\")\nend",
        ),
        ("lib/c.ex", "defmodule A.B.C do\n  E.x()\nend"),
        ("lib/e.ex", "defmodule A.B.D.E do\nend"),
        ("lib/f.ex", "defmodule A.F do\nend"),
        ("lib/h.ex", "defmodule A.H do\n  defmodule Inner do\n  end\nend"),
        ("lib/i.ex", "defmodule A.I do\n  %A.H.Inner{}\nend"),
        ("lib/j.ex", "defmodule A.H.J do\nend"),
        ("lib/no.ex", "defmodule A.No do\nend"),
    ]);
    assert_eq!(
        tree.targets("lib/a.ex"),
        ["lib/c.ex", "lib/e.ex", "lib/f.ex", "lib/h.ex", "lib/i.ex", "lib/j.ex"]
    );
    assert!(tree.targets("lib/c.ex").is_empty());
    assert_eq!(tree.targets("lib/i.ex"), ["lib/h.ex"]);
}

#[test]
fn one_module_name_in_two_languages_stays_apart() {
    let tree = Tree::new(&[
        ("a.py", "import util"),
        ("util.py", ""),
        ("a.js", "import './util'"),
        ("util.js", ""),
        ("util.rb", ""),
        ("a.rb", "require_relative 'util'"),
    ]);
    assert_eq!(tree.targets("a.py"), ["util.py"]);
    assert_eq!(tree.targets("a.js"), ["util.js"]);
    assert_eq!(tree.targets("a.rb"), ["util.rb"]);
}
