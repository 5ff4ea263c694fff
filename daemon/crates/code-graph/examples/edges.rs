//! Prints the import edges of a tree as lines of importer, target, line and kind.
#![expect(clippy::print_stdout, reason = "the output is the product")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use cairn_code_graph::{
    FileImports, ImportGraph, Resolved, Resolver, SourceFile, SourceTree, extract_imports,
};

struct Disk {
    root: String,
    files: Vec<String>,
}

impl SourceTree for Disk {
    fn files(&self) -> &[String] {
        &self.files
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(Path::new(&self.root).join(path)).ok()
    }
}

const LANGUAGES: &[(&str, &[&str])] = &[
    ("rust", &["rs"]),
    ("python", &["py", "pyi"]),
    ("javascript", &["js", "mjs", "cjs", "jsx"]),
    ("typescript", &["ts", "mts", "cts"]),
    ("tsx", &["tsx"]),
    ("go", &["go"]),
    ("c", &["c", "h"]),
    ("cpp", &["cc", "cpp", "cxx", "hh", "hpp"]),
    ("java", &["java"]),
    ("kotlin", &["kt"]),
    ("ruby", &["rb", "ru"]),
    ("csharp", &["cs"]),
    ("php", &["php"]),
    ("swift", &["swift"]),
    ("lua", &["lua"]),
    ("elixir", &["ex", "exs"]),
];

fn language(path: &str) -> Option<&'static str> {
    let extension = path.rsplit_once('.')?.1;
    LANGUAGES.iter().find(|(_, all)| all.contains(&extension)).map(|(name, _)| *name)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().ok_or("usage: edges FOLDER [--unresolved]")?;
    let is_verbose = arguments.next().is_some();
    let listed = Command::new("git").args(["-C", &root, "ls-files", "-z"]).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut files: Vec<String> =
        listed.split('\0').filter(|f| !f.is_empty()).map(str::to_owned).collect();
    files.sort_unstable();
    let tree = Disk { root, files };
    let mut extracted: Vec<(&str, &str, FileImports)> = Vec::new();
    for path in &tree.files {
        let Some(lang) = language(path) else { continue };
        let Ok(text) = std::fs::read(Path::new(&tree.root).join(path)) else { continue };
        extracted.push((path, lang, extract_imports(lang, path, &text)));
    }
    let sources: Vec<SourceFile<'_>> =
        extracted.iter().map(|(path, lang, imports)| SourceFile { path, lang, imports }).collect();
    let resolver = Resolver::new(&tree, &sources);
    if is_verbose {
        for source in &sources {
            for import in &source.imports.imports {
                let target = resolver.resolve(source.path, source.lang, source.imports, import);
                let target = match target {
                    Resolved::Files(files) => format!("{} files", files.len()),
                    Resolved::External(package) => format!("external {package}"),
                    Resolved::Unresolved => "unresolved".to_owned(),
                };
                let kind = import.kind.name();
                println!("{}:{}\t{kind}\t{}\t{target}", source.path, import.line, import.specifier);
            }
        }
        return Ok(());
    }
    let ids: HashMap<&str, u32> = tree.files.iter().map(String::as_str).zip(0..).collect();
    let graph = ImportGraph::build(&resolver, &sources, |path| ids.get(path).copied());
    for edge in graph.edges() {
        let (from, to) = (resolver.path(edge.from), resolver.path(edge.to));
        println!("{from}\t{to}\t{}\t{}", edge.line, edge.kind.name());
    }
    Ok(())
}
