//! Packages that files declare, and the types in them: Java, Kotlin, C#, Swift and PHP.

use rustc_hash::FxHashMap;

use super::paths::Paths;
use super::{FileId, Resolved};
use crate::import::{FileImports, Import};

/// Maximum files of one package that are compared with the names of an importer.
const MAX_PACKAGE: usize = 5_000;

pub struct Packages {
    separator: char,
    /// Files and the names they declare, by package.
    files: FxHashMap<String, Vec<(FileId, Vec<String>)>>,
    /// Files by package and declared name.
    types: FxHashMap<(String, String), Vec<FileId>>,
}

impl Packages {
    pub fn new(separator: char, sources: Vec<(FileId, FileImports)>) -> Self {
        let mut packages =
            Self { separator, files: FxHashMap::default(), types: FxHashMap::default() };
        for (id, imports) in sources {
            let package = imports.package.unwrap_or_default();
            packages.add(id, &package, imports.declared);
        }
        packages
    }

    pub fn add(&mut self, id: FileId, package: &str, declared: Vec<String>) {
        for name in &declared {
            self.types.entry((package.to_owned(), name.clone())).or_default().push(id);
        }
        self.files.entry(package.to_owned()).or_default().push((id, declared));
    }

    pub fn has_package(&self, package: &str) -> bool {
        self.files.contains_key(package)
    }

    /// The file of a type; of several, the one nearest to the importer.
    pub fn file_of(
        &self,
        paths: &Paths,
        importer: &str,
        package: &str,
        name: &str,
    ) -> Option<FileId> {
        let files = self.types.get(&(package.to_owned(), name.to_owned()))?;
        paths.closest(importer, files)
    }

    /// Files of a package that declare a type which the importer names.
    pub fn used(
        &self,
        paths: &Paths,
        importer: &str,
        package: &str,
        file: &FileImports,
    ) -> Vec<FileId> {
        let Some(files) = self.files.get(package) else { return Vec::new() };
        let mut found = Vec::new();
        for (id, declared) in files.iter().take(MAX_PACKAGE) {
            let is_nearest = |name: &&String| {
                file.uses(name) && self.file_of(paths, importer, package, name) == Some(*id)
            };
            if paths.path(*id) != importer && declared.iter().any(|name| is_nearest(&name)) {
                found.push(*id);
            }
        }
        found
    }

    /// The file of a name with its package, where trailing segments may be members.
    fn qualified(&self, paths: &Paths, importer: &str, name: &str) -> Option<FileId> {
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

    pub fn resolve_csharp(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let name = import.specifier.as_str();
        let is_static = !import.names.is_empty();
        let files = if !is_static && self.has_package(name) {
            self.used(paths, importer, name, file)
        } else {
            self.qualified(paths, importer, name).into_iter().collect()
        };
        match Resolved::from_files(files) {
            Resolved::Unresolved if !self.has_package(name) => Resolved::External(name.to_owned()),
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
        let declared = self.files.get(package).into_iter().flatten();
        let declared = declared.filter(|(other, _)| *other == id).flat_map(|(_, names)| names);
        let is_bound = |name: &String| {
            let names =
                file.imports.iter().filter(|i| i.specifier != package).flat_map(|i| &i.names);
            names.into_iter().any(|n| n.local() == name)
        };
        debug_assert!(!paths.path(id).is_empty(), "the file is in the tree");
        declared.filter(|n| file.uses(n)).all(is_bound)
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
