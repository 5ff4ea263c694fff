//! C#: namespaces, and those that a project uses everywhere.

use rustc_hash::FxHashMap;

use super::packages::Packages;
use super::paths::{Paths, ancestors, file_name, parent};
use super::{FileId, Resolved, SourceTree, manifest};
use crate::import::{FileImports, Import, ImportKind};

pub struct Projects {
    packages: Packages,
    /// Namespaces that the files below a folder use without a statement of their own.
    usings: FxHashMap<String, Vec<String>>,
}

impl Projects {
    pub fn new(tree: &dyn SourceTree, paths: &Paths, sources: Vec<(FileId, FileImports)>) -> Self {
        let projects: Vec<&String> = tree
            .files()
            .iter()
            .filter(|path| path.ends_with(".csproj") || is_properties(path))
            .collect();
        let mut usings: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for path in &projects {
            let Some(text) = manifest::text(tree, path) else { continue };
            let all = usings.entry(parent(path).to_owned()).or_default();
            all.extend(included_usings(&text).map(str::to_owned));
        }
        let is_project = |folder: &&str| projects.iter().any(|path| parent(path) == *folder);
        for (id, imports) in &sources {
            let globals = imports.imports.iter().filter(|i| i.kind == ImportKind::ReExport);
            let namespaces: Vec<String> = globals.map(|i| i.specifier.clone()).collect();
            if !namespaces.is_empty() {
                let folder = parent(paths.path(*id));
                let project = ancestors(folder).find(is_project).unwrap_or(folder);
                usings.entry(project.to_owned()).or_default().extend(namespaces);
            }
        }
        usings.retain(|_, namespaces| !namespaces.is_empty());
        Self { packages: Packages::new('.', sources), usings }
    }

    pub fn resolve(
        &self,
        paths: &Paths,
        importer: &str,
        file: &FileImports,
        import: &Import,
    ) -> Resolved {
        let name = import.specifier.as_str();
        let is_static = !import.names.is_empty();
        let files = if !is_static && self.packages.has_package(name) {
            self.packages.used(paths, importer, name, file)
        } else {
            self.packages.qualified(paths, importer, name).into_iter().collect()
        };
        match Resolved::from_files(files) {
            Resolved::Unresolved if !self.packages.has_package(name) => {
                Resolved::External(name.to_owned())
            }
            resolved => resolved,
        }
    }

    /// Types of the file's namespace, of those around it, and of those that its project uses
    /// everywhere.
    pub fn same_package(&self, paths: &Paths, importer: &str, file: &FileImports) -> Vec<FileId> {
        let mut found = self.packages.enclosing_packages(paths, importer, file);
        let everywhere = ancestors(parent(importer)).filter_map(|folder| self.usings.get(folder));
        for namespace in everywhere.flatten() {
            found.extend(self.packages.used(paths, importer, namespace, file));
        }
        found
    }
}

/// True for properties of all projects below a folder.
fn is_properties(path: &str) -> bool {
    ["Directory.Build.props", "Directory.Build.targets"].contains(&file_name(path))
}

/// The namespaces of `<Using Include="…" />`.
fn included_usings(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("<Using ").filter_map(|(at, _)| {
        let tag = text[at..].split_once('>').map_or("", |(tag, _)| tag);
        let (_, rest) = tag.split_once("Include=\"")?;
        rest.split_once('"').map(|(name, _)| name)
    })
}
