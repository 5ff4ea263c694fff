//! Packages that files declare, and the types in them: Java, Kotlin, C#, Swift and PHP.

use rustc_hash::FxHashMap;

use super::paths::Paths;
use super::{FileId, Resolved};
use crate::import::{FileImports, Import};

pub struct Packages {
    separator: char,
    packages: FxHashMap<String, Package>,
}

/// The names that the files of a package declare.
#[derive(Default)]
struct Package {
    /// Names declared by each file.
    files: FxHashMap<FileId, Vec<String>>,
    /// Files by declared name.
    types: FxHashMap<String, Vec<FileId>>,
    /// Declared names by their hashes.
    names: FxHashMap<u32, Vec<String>>,
}

impl Packages {
    pub fn new(separator: char, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut packages = Self { separator, packages: FxHashMap::default() };
        for (id, imports) in sources {
            let package = imports.package.unwrap_or_default();
            packages.add(id, &package, imports.declared);
        }
        packages
    }

    pub fn add(&mut self, id: FileId, package: &str, declared: Vec<String>) {
        let package = self.packages.entry(package.to_owned()).or_default();
        for name in &declared {
            let files = package.types.entry(name.clone()).or_default();
            if files.is_empty() {
                let hash = cairn_symbols::extract::ident_hash(name.as_bytes());
                package.names.entry(hash).or_default().push(name.clone());
            }
            files.push(id);
        }
        package.files.entry(id).or_default().extend(declared);
    }

    pub fn has_package(&self, package: &str) -> bool {
        self.packages.contains_key(package)
    }

    /// The file of a type; of several, the one nearest to the importer.
    pub fn file_of(
        &self,
        paths: &Paths,
        importer: &str,
        package: &str,
        name: &str,
    ) -> Option<FileId> {
        paths.closest(importer, self.packages.get(package)?.types.get(name)?)
    }

    /// Files of a package that declare a type which the importer names.
    pub fn used(
        &self,
        paths: &Paths,
        importer: &str,
        package: &str,
        file: &FileImports,
    ) -> Vec<FileId> {
        let Some(package) = self.packages.get(package) else { return Vec::new() };
        let names = file.used.iter().filter_map(|hash| package.names.get(hash)).flatten();
        let mut found: Vec<FileId> = names
            .filter_map(|name| paths.closest(importer, package.types.get(name)?))
            .filter(|id| paths.path(*id) != importer)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The file of a name with its package, where trailing segments may be members.
    pub fn qualified(&self, paths: &Paths, importer: &str, name: &str) -> Option<FileId> {
        let mut rest = name;
        while let Some((package, last)) = rest.rsplit_once(self.separator) {
            if let Some(id) = self.file_of(paths, importer, package, last) {
                return Some(id);
            }
            rest = package;
        }
        self.file_of(paths, importer, "", rest)
    }

    pub fn resolve_jvm(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let package = import.specifier.as_str();
        let mut files = Vec::new();
        for name in &import.names {
            if name.name != "*" {
                let full = format!("{package}.{}", name.name);
                files.extend(self.qualified(paths, importer, &full));
            } else if self.has_package(package) {
                files.extend(self.used(paths, importer, package, file));
            } else {
                // The names of a type: `import static a.B.*`.
                files.extend(self.qualified(paths, importer, package));
            }
        }
        let is_internal = self.has_package(package);
        match Resolved::from_files(files) {
            Resolved::Unresolved if !is_internal => Resolved::External(package.to_owned()),
            resolved => resolved,
        }
    }

    pub fn same_package(&self, paths: &Paths, importer: &str, file: &FileImports) -> Vec<FileId> {
        let package = file.package.as_deref().unwrap_or_default();
        self.used(paths, importer, package, file)
            .into_iter()
            .filter(|id| !self.is_hidden(paths, *id, package, file))
            .collect()
    }

    /// True if imports bind all names of `id` that the file uses to other types.
    fn is_hidden(&self, paths: &Paths, id: FileId, package: &str, file: &FileImports) -> bool {
        let declared = self.packages.get(package).and_then(|package| package.files.get(&id));
        let is_bound = |name: &String| {
            let names =
                file.imports.iter().filter(|i| i.specifier != package).flat_map(|i| &i.names);
            names.into_iter().any(|n| n.local() == name)
        };
        debug_assert!(!paths.path(id).is_empty(), "the file is in the tree");
        declared.into_iter().flatten().filter(|n| file.uses(n)).all(is_bound)
    }

    /// Types of the file's namespace and those around it, which need no `using`.
    pub fn enclosing_packages(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
    ) -> Vec<FileId> {
        let mut found = Vec::new();
        let mut package = file.package.as_deref();
        while let Some(name) = package {
            found.extend(self.used(paths, importer, name, file));
            package = name.rsplit_once(self.separator).map(|(outer, _)| outer);
        }
        found
    }
}
