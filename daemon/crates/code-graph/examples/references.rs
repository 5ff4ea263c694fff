//! Prints the references to sampled definitions of a tree: FOLDER LANGUAGE COUNT SEED [PREFIX].
//!
//! A line begins with `target` (path, line, column, name, kind, container), `ref` (path, line,
//! column, confidence, kind) or `twin` (path, line), another definition of the name; lines of a
//! target follow it.
#![expect(clippy::print_stdout, reason = "the output is the product")]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use cairn_code_graph::{
    FileImports, ImportGraph, ReferenceKind, Resolver, SourceFile, SourceTree, Target, View, Views,
    extract_imports, is_default_export, references_in, subclasses_in,
};
use cairn_symbols::extract::{Symbol, extract};

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

struct File {
    path: String,
    lang: &'static str,
    text: Vec<u8>,
    imports: FileImports,
    symbols: Vec<Symbol>,
}

fn language(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "rs" => "rust",
        "py" => "python",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" => "typescript",
        "tsx" => "tsx",
        "go" => "go",
        "c" | "h" => "c",
        "cc" => "cpp",
        "java" => "java",
        _ => return None,
    })
}

/// Levels of subclasses that are followed.
const SUBCLASS_ROUNDS: usize = 3;

/// A generator of numbers by a linear congruence, so that a seed gives one sample everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

fn has_word(text: &[u8], name: &str) -> bool {
    let is_ident = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    memchr::memmem::find_iter(text, name.as_bytes()).any(|at| {
        let before = at.checked_sub(1).and_then(|i| text.get(i));
        !is_ident(before) && !is_ident(text.get(at + name.len()))
    })
}

fn load(tree: &Disk) -> Vec<File> {
    let stop = AtomicBool::new(false);
    let read = |path: &String| {
        let lang = language(path)?;
        let text = std::fs::read(Path::new(&tree.root).join(path)).ok()?;
        let imports = extract_imports(lang, path, &text);
        let symbols = extract(lang, path, &text, &stop).map_or_else(Vec::new, |e| e.symbols);
        Some(File { path: path.clone(), lang, text, imports, symbols })
    };
    tree.files.iter().filter_map(read).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, lang, count, seed, rest @ ..] = arguments.as_slice() else {
        return Err("usage: references FOLDER LANGUAGE COUNT SEED [PREFIX]".into());
    };
    let prefix = rest.first().map_or("", String::as_str);
    let listed = Command::new("git").args(["-C", root, "ls-files", "-z"]).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut paths: Vec<String> =
        listed.split('\0').filter(|f| !f.is_empty()).map(str::to_owned).collect();
    paths.sort_unstable();
    let tree = Disk { root: root.clone(), files: paths };
    let files = load(&tree);
    let sources: Vec<SourceFile<'_>> = files
        .iter()
        .map(|f| SourceFile { path: &f.path, lang: f.lang, imports: &f.imports })
        .collect();
    let resolver = Resolver::new(&tree, &sources);
    let ids: HashMap<&str, u32> = tree.files.iter().map(String::as_str).zip(0..).collect();
    let graph = ImportGraph::build(&resolver, &sources, |path| ids.get(path).copied());
    let by_id: HashMap<u32, &File> = files.iter().map(|f| (ids[f.path.as_str()], f)).collect();
    let mut definitions: HashMap<&str, usize> = HashMap::new();
    let mut candidates = Vec::new();
    for file in &files {
        for symbol in &file.symbols {
            *definitions.entry(&symbol.name).or_default() += 1;
            if lang.split(',').any(|l| l == file.lang) && file.path.starts_with(prefix) {
                candidates.push((file, symbol));
            }
        }
    }
    let stop = AtomicBool::new(false);
    let mut random = Random(seed.parse()?);
    let imports = |id: u32| by_id.get(&id).map(|f| (f.lang, &f.imports));
    for _ in 0..count.parse::<usize>()?.min(candidates.len()) {
        let (file, symbol) = candidates.swap_remove(random.below(candidates.len()));
        let mut target = Target {
            name: symbol.name.clone(),
            kind: symbol.kind.to_owned(),
            container: symbol.container.clone(),
            path: file.path.clone(),
            line: symbol.start_line,
            is_default: false,
            is_unique: definitions[symbol.name.as_str()] == 1,
        };
        target.is_default = is_default_export(&file.text, target.importable());
        let mut views = Views::new(&resolver, &graph, &imports, &target, ids[file.path.as_str()]);
        let mut searched = HashSet::new();
        for _ in 0..SUBCLASS_ROUNDS {
            let seen: Vec<u32> = views.files().chain([ids[file.path.as_str()]]).collect();
            for id in seen.into_iter().filter(|id| searched.insert(*id)) {
                let Some(other) = by_id.get(&id) else { continue };
                let view = views.of(id, &other.path);
                let classes =
                    subclasses_in(other.lang, &other.path, &other.text, &target, &view, &stop);
                for class in classes {
                    views.add_subclass(&resolver, &graph, &imports, (id, &class));
                }
            }
        }
        report(&files, &ids, &views, &target);
    }
    Ok(())
}

fn report(files: &[File], ids: &HashMap<&str, u32>, views: &Views, target: &Target) {
    let stop = AtomicBool::new(false);
    let mut column = 0;
    let mut name_line = target.line;
    let mut lines = Vec::new();
    for file in files {
        let view: View = views.of(ids[file.path.as_str()], &file.path);
        let class = target.container.as_deref().filter(|_| target.name == "constructor");
        let is_named = has_word(&file.text, &target.name)
            || class.is_some_and(|name| has_word(&file.text, name))
            || view.names.iter().any(|name| has_word(&file.text, name));
        if !is_named {
            continue;
        }
        let found = references_in(file.lang, &file.path, &file.text, target, &view, &stop);
        for reference in found.unwrap_or_default() {
            if view.is_same_file && reference.kind == ReferenceKind::Definition {
                column = reference.column;
                name_line = reference.line;
            }
            lines.push(format!(
                "ref\t{}\t{}\t{}\t{:?}\t{:?}",
                file.path, reference.line, reference.column, reference.confidence, reference.kind
            ));
        }
    }
    let container = target.container.as_deref().unwrap_or("");
    let Target { path, name, kind, .. } = target;
    println!("target\t{path}\t{name_line}\t{column}\t{name}\t{kind}\t{container}");
    for line in lines {
        println!("{line}");
    }
    for file in files {
        for symbol in file.symbols.iter().filter(|s| s.name == *name) {
            if file.path != *path || symbol.start_line != target.line {
                println!("twin\t{}\t{}", file.path, symbol.start_line);
            }
        }
    }
}
