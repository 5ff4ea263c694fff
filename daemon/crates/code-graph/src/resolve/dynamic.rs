//! Ruby and Lua: files below load paths.

use rustc_hash::FxHashSet;

use super::paths::{Paths, ancestors, join, parent};
use super::{FileId, Resolved};
use crate::import::{Import, ImportKind};

pub struct LoadPaths {
    ruby: FxHashSet<String>,
    lua: FxHashSet<String>,
}

impl LoadPaths {
    pub fn new(paths: &Paths) -> Self {
        let below = |names: &[&str]| {
            let is_named = |f: &&str| names.contains(&super::paths::file_name(f)) || f.is_empty();
            paths.folders().filter(is_named).map(str::to_owned).collect::<FxHashSet<String>>()
        };
        Self { ruby: below(&["lib", "test", "spec", "app"]), lua: below(&["lua", "src", "lib"]) }
    }

    pub fn resolve_ruby(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let file = |path: &str| paths.id(path).or_else(|| paths.id(&format!("{path}.rb")));
        let one =
            |id: Option<FileId>| id.map_or(Resolved::Unresolved, |f| Resolved::Files(vec![f]));
        if import.specifier.starts_with('.') {
            return one(join(parent(importer), &import.specifier).and_then(|p| file(&p)));
        }
        if import.kind == ImportKind::Autoload && import.specifier.is_empty() {
            let name = import.names.first().map(|n| snake_case(&n.name)).unwrap_or_default();
            let folder = importer.strip_suffix(".rb").unwrap_or(importer);
            let beside = join(folder, &name).and_then(|p| file(&p));
            return one(beside.or_else(|| file(&join(parent(importer), &name)?)));
        }
        let below =
            |name: &str| paths.below_roots(importer, name, |folder| self.ruby.contains(folder));
        let name = import.specifier.as_str();
        let found = below(&format!("{name}.rb")).or_else(|| below(name));
        match found {
            Some(id) => Resolved::Files(vec![id]),
            None => {
                let gem = import.specifier.split('/').next().unwrap_or_default();
                Resolved::External(gem.to_owned())
            }
        }
    }

    pub fn resolve_lua(&self, paths: &Paths, importer: &str, import: &Import) -> Resolved {
        let is_file = import.kind == ImportKind::Include;
        let name =
            if is_file { import.specifier.clone() } else { import.specifier.replace('.', "/") };
        let file = |path: &str| {
            paths.id(path).or_else(|| {
                ["lua", "luau"].iter().find_map(|e| {
                    paths
                        .id(&format!("{path}.{e}"))
                        .or_else(|| paths.id(&format!("{path}/init.{e}")))
                })
            })
        };
        let above = ancestors(parent(importer)).find_map(|f| file(&join(f, &name)?));
        let found = ["lua", "luau"].iter().find_map(|e| {
            let below =
                |name: &str| paths.below_roots(importer, name, |folder| self.lua.contains(folder));
            below(&format!("{name}.{e}")).or_else(|| below(&format!("{name}/init.{e}")))
        });
        let by_end = || {
            let found = paths.ending_with(&format!("{name}.lua"));
            if found.len() == 1 { found.first().copied() } else { None }
        };
        match found.or(above).or_else(by_end) {
            Some(id) => Resolved::Files(vec![id]),
            None => Resolved::External(import.specifier.clone()),
        }
    }
}

/// `FooBar` as `foo_bar`, and `HTTPServer` as `http_server`.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (at, c) in chars.iter().enumerate() {
        let after_lower =
            at > 0 && (chars[at - 1].is_lowercase() || chars[at - 1].is_ascii_digit());
        let before_lower = at > 0 && chars.get(at + 1).is_some_and(|n| n.is_lowercase());
        if c.is_uppercase() && (after_lower || before_lower && chars[at - 1].is_uppercase()) {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn constants_become_names_of_files() {
        let names =
            [("FooBar", "foo_bar"), ("HTTPServer", "http_server"), ("A", "a"), ("S3Key", "s3_key")];
        for (constant, file) in names {
            assert_eq!(super::snake_case(constant), file);
        }
    }
}
