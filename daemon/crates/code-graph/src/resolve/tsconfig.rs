//! Path mappings of `tsconfig.json` and `jsconfig.json`.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::paths::{Paths, ancestors, join, parent};
use super::{SourceTree, manifest};

/// Maximum configurations that extend each other.
const MAX_DEPTH: usize = 8;

#[derive(Debug, Default, Clone)]
pub struct Config {
    /// The folder that bare specifiers are looked up in.
    base_url: Option<String>,
    /// Pattern, and targets relative to the root.
    mappings: Vec<(String, Vec<String>)>,
}

pub struct Configs {
    by_folder: FxHashMap<String, Config>,
}

impl Configs {
    /// `packages` maps names of packages in the tree to their folders.
    pub fn new(tree: &dyn SourceTree, paths: &Paths, packages: &FxHashMap<String, String>) -> Self {
        let mut by_folder = FxHashMap::default();
        for name in ["tsconfig.json", "jsconfig.json"] {
            for id in paths.named(name) {
                let path = paths.path(*id);
                let loader = Loader { tree, paths, packages };
                if let Some(config) = loader.load(path, 0) {
                    by_folder.entry(parent(path).to_owned()).or_insert(config);
                }
            }
        }
        Self { by_folder }
    }

    /// Paths without extension that a bare specifier may stand for, best first.
    pub fn candidates(&self, folder: &str, specifier: &str) -> Vec<String> {
        let Some(config) = ancestors(folder).find_map(|f| self.by_folder.get(f)) else {
            return Vec::new();
        };
        let mut matches: Vec<(usize, &str, &Vec<String>)> = Vec::new();
        for (pattern, targets) in &config.mappings {
            match pattern.split_once('*') {
                None if pattern == specifier => matches.push((usize::MAX, "", targets)),
                None => {}
                Some((head, tail)) => {
                    let rest = specifier.strip_prefix(head).and_then(|r| r.strip_suffix(tail));
                    matches.extend(rest.map(|r| (head.len(), r, targets)));
                }
            }
        }
        matches.sort_by_key(|(length, ..)| std::cmp::Reverse(*length));
        let replaced = |(_, rest, targets): &(usize, &str, &Vec<String>)| {
            targets.iter().map(|t| t.replacen('*', rest, 1)).collect::<Vec<_>>()
        };
        let mut all: Vec<String> = matches.iter().flat_map(replaced).collect();
        all.extend(config.base_url.as_deref().and_then(|base| join(base, specifier)));
        all
    }
}

struct Loader<'a> {
    tree: &'a dyn SourceTree,
    paths: &'a Paths,
    packages: &'a FxHashMap<String, String>,
}

impl Loader<'_> {
    fn load(&self, path: &str, depth: usize) -> Option<Config> {
        if depth > MAX_DEPTH {
            return None;
        }
        let value = manifest::json(self.tree, path)?;
        let folder = parent(path);
        let mut config = Config::default();
        let parents = match value.get("extends") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        for base in parents {
            let base = self.extended(folder, base).and_then(|p| self.load(&p, depth + 1));
            if let Some(base) = base {
                config.base_url = base.base_url.or(config.base_url);
                if !base.mappings.is_empty() {
                    config.mappings = base.mappings;
                }
            }
        }
        let options = value.get("compilerOptions");
        let option = |key: &str| options.and_then(|o| o.get(key));
        if let Some(base) = option("baseUrl").and_then(Value::as_str) {
            config.base_url = join(folder, base);
        }
        if let Some(mappings) = option("paths").and_then(Value::as_object) {
            let base = config.base_url.clone().unwrap_or_else(|| folder.to_owned());
            config.mappings = mappings
                .iter()
                .map(|(pattern, targets)| {
                    let targets = targets.as_array().into_iter().flatten();
                    let targets = targets.filter_map(|t| join(&base, t.as_str()?));
                    (pattern.clone(), targets.collect())
                })
                .collect();
        }
        // A solution has its options in the projects that it refers to.
        if config.mappings.is_empty() && config.base_url.is_none() {
            let references = value.get("references").and_then(Value::as_array);
            for reference in references.into_iter().flatten() {
                let target = reference.get("path").and_then(Value::as_str);
                let path = target.and_then(|t| self.config_file(&join(folder, t)?));
                // A project in another folder has its own files.
                let own = path.filter(|p| parent(p) == folder);
                if let Some(other) = own.and_then(|p| self.load(&p, depth + 1)) {
                    config.mappings.extend(other.mappings);
                    config.base_url = config.base_url.or(other.base_url);
                }
            }
        }
        Some(config)
    }

    fn config_file(&self, path: &str) -> Option<String> {
        let candidates = [path.to_owned(), format!("{path}.json"), format!("{path}/tsconfig.json")];
        candidates.into_iter().find(|p| self.paths.id(p).is_some())
    }

    fn extended(&self, folder: &str, base: &str) -> Option<String> {
        if base.starts_with('.') {
            return self.config_file(&join(folder, base)?);
        }
        let (name, rest) = super::script::split_package(base);
        self.config_file(&join(self.packages.get(name)?, rest)?)
    }
}
