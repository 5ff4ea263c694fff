//! JavaScript and TypeScript: relative paths, path mappings, and packages of the tree by name.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::paths::{Paths, ancestors, file_name, join, parent};
use super::tsconfig::Configs;
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::Import;

/// Extensions that a specifier may omit, in order.
const EXTENSIONS: [&str; 12] =
    ["ts", "tsx", "js", "jsx", "d.ts", "mts", "cts", "mjs", "cjs", "json", "vue", "svelte"];
/// Folders of built files, which stand for sources.
const BUILT: [&str; 9] = ["dist", "lib", "build", "out", "esm", "cjs", "es", "types", "umd"];
/// Fields of a manifest with an entry point, those of sources first.
const ENTRIES: [&str; 6] = ["source", "types", "typings", "module", "main", "browser"];
/// Maximum nesting of conditions in `exports`.
const MAX_DEPTH: usize = 8;

pub struct Packages {
    /// Folders of packages by name.
    by_name: FxHashMap<String, String>,
    /// Parts of manifests by folder.
    manifests: FxHashMap<String, Value>,
    configs: Configs,
}

impl Packages {
    pub fn new(tree: &dyn SourceTree, paths: &Paths) -> Self {
        let mut manifests = FxHashMap::default();
        let mut by_name: FxHashMap<String, String> = FxHashMap::default();
        for id in paths.named("package.json") {
            let path = paths.path(*id);
            let folder = parent(path);
            let Some(mut value) = manifest::json(tree, path) else { continue };
            if let Some(name) = value.get("name").and_then(Value::as_str)
                && !folder.split('/').any(|f| f == "node_modules")
            {
                by_name.entry(name.to_owned()).or_insert_with(|| folder.to_owned());
            }
            if let Some(fields) = value.as_object_mut() {
                let used =
                    |key: &str| matches!(key, "exports" | "imports") || ENTRIES.contains(&key);
                fields.retain(|key, _| used(key));
            }
            manifests.insert(folder.to_owned(), value);
        }
        let configs = Configs::new(tree, paths, &by_name);
        Self { by_name, manifests, configs }
    }

    pub fn resolve(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        // Bundlers append options to a path.
        let specifier = import.specifier.split(['?', '!']).next().unwrap_or_default();
        if specifier.is_empty() {
            return Resolved::Unresolved;
        }
        let folder = parent(importer);
        let found =
            |file: Option<FileId>| file.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![f]));
        if specifier.starts_with('.') {
            return found(join(folder, specifier).and_then(|path| self.probe(paths, &path)));
        }
        let mapped = self.configs.candidates(folder, specifier);
        if let Some(file) = mapped.iter().find_map(|path| self.probe(paths, path)) {
            return Resolved::Files(vec![file]);
        }
        if specifier.starts_with('#') {
            return found(self.own_import(paths, folder, specifier));
        }
        if specifier.is_empty() || specifier.starts_with('/') {
            return Resolved::Unresolved;
        }
        let (name, rest) = split_package(specifier);
        match self.by_name.get(name) {
            Some(dir) => found(self.package_file(paths, dir, rest)),
            None => Resolved::External(name.to_owned()),
        }
    }

    /// The file of a path that may lack its extension, have the one of the built file, or be a
    /// folder.
    fn probe(&self, paths: &Paths, path: &str) -> Option<FileId> {
        self.probe_file(paths, path).or_else(|| {
            if !paths.has_folder(path) {
                return None;
            }
            let entry = self.manifests.get(path).and_then(|m| self.entry(paths, path, m));
            entry.or_else(|| probe_index(paths, path))
        })
    }

    fn probe_file(&self, paths: &Paths, path: &str) -> Option<FileId> {
        if path.is_empty() {
            return None;
        }
        // A source precedes the built file beside it, as in the compiler, and that its declaration.
        let candidates = source_names(path);
        let is_declaration = |p: &&String| p.contains(".d.");
        let source = candidates.iter().filter(|p| !is_declaration(p)).find_map(|p| paths.id(p));
        let declaration = || candidates.iter().filter(is_declaration).find_map(|p| paths.id(p));
        let extended = || EXTENSIONS.iter().find_map(|e| paths.id(&format!("{path}.{e}")));
        source.or_else(|| paths.id(path)).or_else(declaration).or_else(extended)
    }

    /// The file of `name/rest`, where `dir` is the package's folder.
    fn package_file(&self, paths: &Paths, dir: &str, rest: &str) -> Option<FileId> {
        let manifest = self.manifests.get(dir);
        let key = if rest.is_empty() { ".".to_owned() } else { format!("./{rest}") };
        let exports = manifest.and_then(|m| m.get("exports"));
        let exported = exports.and_then(|e| self.conditional(paths, dir, e, &key));
        if rest.is_empty() {
            return exported
                .or_else(|| manifest.and_then(|m| self.entry(paths, dir, m)))
                .or_else(|| probe_index(paths, &join(dir, "src")?))
                .or_else(|| probe_index(paths, dir));
        }
        exported
            .or_else(|| self.probe(paths, &join(dir, rest)?))
            .or_else(|| self.source_of(paths, dir, rest))
            .or_else(|| self.probe(paths, &join(dir, &format!("src/{rest}"))?))
    }

    /// The entry point that fields of a manifest name.
    fn entry(&self, paths: &Paths, dir: &str, manifest: &Value) -> Option<FileId> {
        let fields = ENTRIES.iter().filter_map(|key| manifest.get(*key)?.as_str());
        fields.into_iter().find_map(|target| self.source_of(paths, dir, target))
    }

    /// The source of a built file, or the file itself.
    fn source_of(&self, paths: &Paths, dir: &str, target: &str) -> Option<FileId> {
        let path = join("", target)?;
        let mut candidates = Vec::new();
        let mut rest = path.as_str();
        for _ in 0..3 {
            let Some((head, tail)) = rest.split_once('/') else { break };
            if !BUILT.contains(&head) {
                break;
            }
            candidates.push(format!("src/{tail}"));
            candidates.push(tail.to_owned());
            rest = tail;
        }
        candidates.insert(0, path.clone());
        candidates.iter().find_map(|c| {
            let path = join(dir, c)?;
            let file = self.probe_file(paths, &path);
            file.or_else(|| probe_index(paths, &path))
        })
    }

    /// The file that `exports` or `imports` maps `key` to.
    fn conditional(&self, paths: &Paths, dir: &str, map: &Value, key: &str) -> Option<FileId> {
        let has_keys =
            |o: &serde_json::Map<String, Value>| o.keys().any(|k| k.starts_with(['.', '#']));
        match map {
            Value::Object(fields) if has_keys(fields) => {
                let exact = fields.get(key).map(|value| (value, ""));
                let pattern = || {
                    let rows = fields.iter().filter_map(|(pattern, value)| {
                        let (head, tail) = pattern.split_once('*')?;
                        let rest = key.strip_prefix(head)?.strip_suffix(tail)?;
                        Some((head.len(), (value, rest)))
                    });
                    rows.max_by_key(|(length, _)| *length).map(|(_, found)| found)
                };
                let (value, rest) = exact.or_else(pattern)?;
                self.targets(value, 0)
                    .iter()
                    .find_map(|t| self.source_of(paths, dir, &t.replace('*', rest)))
            }
            value if key == "." => {
                self.targets(value, 0).iter().find_map(|t| self.source_of(paths, dir, t))
            }
            _ => None,
        }
    }

    /// All targets of a value with conditions, in order.
    fn targets(&self, value: &Value, depth: usize) -> Vec<String> {
        match value {
            Value::String(target) => vec![target.clone()],
            Value::Array(all) if depth < MAX_DEPTH => {
                all.iter().flat_map(|v| self.targets(v, depth + 1)).collect()
            }
            Value::Object(all) if depth < MAX_DEPTH => {
                all.values().flat_map(|v| self.targets(v, depth + 1)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A specifier that the nearest manifest maps in `imports`.
    fn own_import(&self, paths: &Paths, folder: &str, specifier: &str) -> Option<FileId> {
        let (dir, manifest) =
            ancestors(folder).find_map(|f| self.manifests.get(f).map(|m| (f, m)))?;
        self.conditional(paths, dir, manifest.get("imports")?, specifier)
    }
}

fn probe_index(paths: &Paths, folder: &str) -> Option<FileId> {
    EXTENSIONS.iter().find_map(|e| paths.id(&join(folder, &format!("index.{e}"))?))
}

/// Names of the sources that are compiled to `path`.
fn source_names(path: &str) -> Vec<String> {
    let rows: [(&str, &[&str]); 8] = [
        (".d.ts", &[".ts", ".tsx"]),
        (".d.mts", &[".mts", ".ts", ".tsx"]),
        (".d.cts", &[".cts", ".ts", ".tsx"]),
        (".js", &[".ts", ".tsx", ".d.ts", ".jsx"]),
        (".jsx", &[".tsx"]),
        (".mjs", &[".mts", ".ts", ".tsx", ".d.mts"]),
        (".cjs", &[".cts", ".ts", ".tsx", ".d.cts"]),
        (".iife.js", &[".ts"]),
    ];
    let of = |(built, sources): &(&str, &[&str])| {
        let base = path.strip_suffix(built)?;
        Some(sources.iter().map(|s| format!("{base}{s}")).collect::<Vec<_>>())
    };
    if file_name(path).contains('.') {
        rows.iter().filter_map(of).flatten().collect()
    } else {
        Vec::new()
    }
}

/// The package of a bare specifier, and the path in it.
pub fn split_package(specifier: &str) -> (&str, &str) {
    let scope =
        if specifier.starts_with('@') { specifier.find('/').map_or(0, |i| i + 1) } else { 0 };
    match specifier[scope..].find('/') {
        Some(at) => (&specifier[..scope + at], &specifier[scope + at + 1..]),
        None => (specifier, ""),
    }
}
