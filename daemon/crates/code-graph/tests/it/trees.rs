//! Small trees in memory.

use std::collections::BTreeMap;

use cairn_code_graph::{
    FileImports, ImportGraph, Resolved, Resolver, SourceFile, SourceTree, extract_imports,
};

pub struct Tree {
    files: Vec<String>,
    texts: BTreeMap<String, String>,
}

impl SourceTree for Tree {
    fn files(&self) -> &[String] {
        &self.files
    }

    fn read(&self, path: &str) -> Option<String> {
        self.texts.get(path).cloned()
    }
}

pub fn language(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, e)| e) {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" => "typescript",
        "tsx" => "tsx",
        "go" => "go",
        "java" => "java",
        "kt" => "kotlin",
        "c" | "h" => "c",
        "cc" => "cpp",
        "rb" => "ruby",
        "cs" => "csharp",
        "php" => "php",
        "swift" => "swift",
        "ex" | "exs" => "elixir",
        "lua" => "lua",
        "vue" => "vue",
        _ => "",
    }
}

impl Tree {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let texts: BTreeMap<String, String> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { files: texts.keys().cloned().collect(), texts }
    }

    fn extracted(&self) -> Vec<FileImports> {
        let extract = |(path, text): (&String, &String)| {
            extract_imports(language(path), path, text.as_bytes())
        };
        self.texts.iter().map(extract).collect()
    }

    pub fn graph(&self) -> ImportGraph {
        let extracted = self.extracted();
        let of = |(path, imports)| SourceFile { path, lang: language(path), imports };
        let sources: Vec<SourceFile<'_>> =
            self.files.iter().map(String::as_str).zip(&extracted).map(of).collect();
        let resolver = Resolver::new(self, &sources);
        ImportGraph::build(&resolver, &sources, |path| {
            self.files.iter().position(|f| f == path).map(|i| i as u32)
        })
    }

    /// The targets of all edges from `path`, without repetitions.
    pub fn targets(&self, path: &str) -> Vec<&str> {
        let graph = self.graph();
        let id = self.files.iter().position(|f| f == path).expect("the file exists") as u32;
        let mut targets: Vec<&str> =
            graph.dependencies(id).iter().map(|e| self.files[e.to as usize].as_str()).collect();
        targets.dedup();
        targets
    }

    /// The result of the first import of `path`.
    pub fn first(&self, path: &str) -> Resolved {
        let extracted = self.extracted();
        let of = |(path, imports)| SourceFile { path, lang: language(path), imports };
        let sources: Vec<SourceFile<'_>> =
            self.files.iter().map(String::as_str).zip(&extracted).map(of).collect();
        let resolver = Resolver::new(self, &sources);
        let source = sources.iter().find(|s| s.path == path).expect("the file exists");
        resolver.resolve(path, source.lang, source.imports, &source.imports.imports[0])
    }
}
