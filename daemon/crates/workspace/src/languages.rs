//! The language of a file by its name, for the index.

/// Languages by extension. Names are lower-case and stable: indexes store them and filters use
/// them.
const BY_EXTENSION: &[(&str, &[&str])] = &[
    ("rust", &["rs"]),
    ("python", &["py", "pyi", "pyw"]),
    ("javascript", &["js", "mjs", "cjs", "jsx"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("tsx", &["tsx"]),
    ("go", &["go"]),
    ("c", &["c", "h"]),
    ("cpp", &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tpp"]),
    ("objc", &["m", "mm"]),
    ("java", &["java"]),
    ("kotlin", &["kt", "kts"]),
    ("scala", &["scala", "sc"]),
    ("groovy", &["groovy", "gradle"]),
    ("clojure", &["clj", "cljs", "cljc", "edn"]),
    ("ruby", &["rb", "rake", "gemspec", "ru"]),
    ("swift", &["swift"]),
    ("csharp", &["cs", "csx"]),
    ("fsharp", &["fs", "fsi", "fsx"]),
    ("vb", &["vb"]),
    ("php", &["php", "phtml"]),
    ("perl", &["pl", "pm"]),
    ("lua", &["lua"]),
    ("r", &["r"]),
    ("julia", &["jl"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("erlang", &["erl", "hrl"]),
    ("haskell", &["hs", "lhs"]),
    ("ocaml", &["ml", "mli"]),
    ("elm", &["elm"]),
    ("nim", &["nim"]),
    ("zig", &["zig"]),
    ("crystal", &["cr"]),
    ("d", &["d"]),
    ("fortran", &["f", "f90", "f95", "f03", "f08", "for"]),
    ("assembly", &["s", "asm"]),
    ("lisp", &["lisp", "lsp", "el"]),
    ("scheme", &["scm", "ss", "rkt"]),
    ("tcl", &["tcl"]),
    ("vim", &["vim"]),
    ("bash", &["sh", "bash", "zsh", "ksh"]),
    ("fish", &["fish"]),
    ("powershell", &["ps1", "psm1", "psd1"]),
    ("batch", &["bat", "cmd"]),
    ("awk", &["awk"]),
    ("sql", &["sql"]),
    ("graphql", &["graphql", "gql"]),
    ("protobuf", &["proto"]),
    ("thrift", &["thrift"]),
    ("solidity", &["sol"]),
    ("html", &["html", "htm", "xhtml"]),
    ("css", &["css"]),
    ("scss", &["scss", "sass"]),
    ("less", &["less"]),
    ("vue", &["vue"]),
    ("svelte", &["svelte"]),
    ("xml", &["xml", "xsd", "xsl", "xslt", "svg", "plist", "csproj", "vcxproj"]),
    ("json", &["json", "jsonc", "json5", "jsonl", "geojson", "ipynb"]),
    ("yaml", &["yaml", "yml"]),
    ("toml", &["toml"]),
    ("ini", &["ini", "cfg", "conf", "properties"]),
    ("terraform", &["tf", "tfvars", "hcl"]),
    ("nix", &["nix"]),
    ("cmake", &["cmake"]),
    ("make", &["mk", "mak"]),
    ("starlark", &["bzl", "bazel", "star"]),
    ("dockerfile", &["dockerfile"]),
    ("markdown", &["md", "markdown", "mdx"]),
    ("rst", &["rst"]),
    ("asciidoc", &["adoc", "asciidoc"]),
    ("tex", &["tex", "sty", "cls", "bib"]),
    ("org", &["org"]),
    ("text", &["txt", "text", "log"]),
    ("diff", &["diff", "patch"]),
    ("csv", &["csv", "tsv"]),
    ("cuda", &["cu", "cuh"]),
    ("glsl", &["glsl", "vert", "frag", "comp"]),
    ("verilog", &["v", "sv", "svh"]),
    ("vhdl", &["vhd", "vhdl"]),
];

/// Languages by the complete name of a file, lower-case.
const BY_NAME: &[(&str, &[&str])] = &[
    ("make", &["makefile", "gnumakefile", "kbuild"]),
    ("cmake", &["cmakelists.txt"]),
    ("dockerfile", &["dockerfile", "containerfile"]),
    ("starlark", &["build", "workspace", "tiltfile"]),
    ("ruby", &["rakefile", "gemfile", "vagrantfile", "podfile", "brewfile"]),
    ("groovy", &["jenkinsfile"]),
    ("bash", &[".bashrc", ".bash_profile", ".profile", ".zshrc", "pkgbuild"]),
    ("toml", &["cargo.lock", "poetry.lock", "uv.lock"]),
    ("json", &["composer.lock", "flake.lock", ".babelrc", ".eslintrc"]),
    ("go_mod", &["go.mod", "go.sum", "go.work"]),
    ("just", &["justfile"]),
    ("meson", &["meson.build", "meson_options.txt"]),
    (
        "text",
        &[
            "license",
            "licence",
            "copying",
            "authors",
            "notice",
            "readme",
            "changelog",
            "codeowners",
        ],
    ),
    ("ini", &[".gitconfig", ".editorconfig", ".gitmodules"]),
];

/// Alternative names of languages, lower-case.
const ALSO: &[(&str, &str)] = &[
    ("golang", "go"),
    ("c#", "csharp"),
    ("f#", "fsharp"),
    ("objective-c", "objc"),
    ("objectivec", "objc"),
    ("obj-c", "objc"),
    ("visualbasic", "vb"),
    ("shell", "bash"),
    ("makefile", "make"),
    ("docker", "dockerfile"),
    ("emacs-lisp", "lisp"),
    ("restructuredtext", "rst"),
    ("latex", "tex"),
    ("systemverilog", "verilog"),
];

/// Returns the language with this name, extension (`js`, `.rs`) or alternative name.
pub fn language_named(name: &str) -> Option<&'static str> {
    let lower = name.trim().trim_start_matches('.').to_lowercase();
    let known = BY_EXTENSION.iter().chain(BY_NAME).map(|(language, _)| *language);
    let also = || ALSO.iter().find(|(name, _)| *name == lower).map(|(_, language)| *language);
    known
        .into_iter()
        .find(|l| *l == lower)
        .or_else(also)
        .or_else(|| by_extension().get(&*lower).copied())
}

/// Returns the language of a file by its name, lower-case; `None` when the name does not determine
/// it.
pub fn language_of(rel: &str) -> Option<&'static str> {
    let name = rel.rsplit('/').next().unwrap_or(rel);
    // Longer names are no file names; this bounds the lower-case copy.
    if name.is_empty() || name.len() > 255 {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if let Some((language, _)) = BY_NAME.iter().find(|(_, names)| names.contains(&lower.as_str())) {
        return Some(language);
    }
    if lower.starts_with("dockerfile.") {
        return Some("dockerfile");
    }
    // `.C` and `.H` are C++ by old custom, and only case distinguishes them.
    if name.ends_with(".C") || name.ends_with(".H") {
        return Some("cpp");
    }
    let (_, extension) = lower.rsplit_once('.')?;
    by_extension().get(extension).copied()
}

fn by_extension() -> &'static std::collections::HashMap<&'static str, &'static str> {
    static MAP: std::sync::OnceLock<std::collections::HashMap<&str, &str>> =
        std::sync::OnceLock::new();
    MAP.get_or_init(|| {
        BY_EXTENSION.iter().flat_map(|(l, all)| all.iter().map(move |e| (*e, *l))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_map_to_languages() {
        for (path, want) in [
            ("src/main.rs", Some("rust")),
            ("a/b.TSX", Some("tsx")),
            ("x.d.ts", Some("typescript")),
            ("Makefile", Some("make")),
            ("k/CMakeLists.txt", Some("cmake")),
            ("x.C", Some("cpp")),
            ("x.c", Some("c")),
            ("Dockerfile.prod", Some("dockerfile")),
            ("README", Some("text")),
            ("noext", None),
            (".hidden", None),
            ("", None),
            ("a.unknownext", None),
        ] {
            assert_eq!(language_of(path), want, "{path}");
        }
    }

    #[test]
    fn languages_have_aliases() {
        for (name, want) in [
            ("rust", Some("rust")),
            ("Rust", Some("rust")),
            (".rs", Some("rust")),
            ("js", Some("javascript")),
            ("C++", Some("cpp")),
            ("c#", Some("csharp")),
            ("d", Some("d")),
            ("go_mod", Some("go_mod")),
            ("Golang", Some("go")),
            ("klingon", None),
            ("", None),
        ] {
            assert_eq!(language_named(name), want, "{name}");
        }
        assert!(
            ALSO.iter()
                .all(|(name, of)| language_named(of) == Some(of)
                    && !by_extension().contains_key(name))
        );
    }

    #[test]
    fn extensions_are_unique() {
        for table in [BY_EXTENSION, BY_NAME] {
            let mut seen = std::collections::HashSet::new();
            for name in table.iter().flat_map(|(_, all)| all.iter()) {
                assert!(seen.insert(name), "{name}");
            }
        }
    }
}
