//! Path patterns of rules: a path with all beneath it, or a glob.

use std::{fmt, path::Path};

use globset::{GlobBuilder, GlobMatcher};

use crate::{PatternError, Root};

/// A path of a rule. Relative ones start at the root, absolute ones at the top of the file system.
/// Without `*`, `?` or `[` it covers the named path and all beneath it; a glob covers its matches
/// and all beneath them, and one without a `/` matches at any depth.
#[derive(Debug, Clone)]
pub struct PathPattern {
    text: String,
    absolute: bool,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Prefix(Vec<String>),
    Glob(Box<GlobMatcher>),
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// An empty pattern, one with `..`, an invalid glob.
    pub fn read(text: &str) -> Result<Self, PatternError> {
        if text.trim().is_empty() {
            return Err(PatternError::Empty);
        }
        if parts(text).any(|part| part == "..") {
            return Err(PatternError::Climbs(text.to_owned()));
        }
        let absolute = text.starts_with('/');
        let plain = parts(text).collect::<Vec<_>>().join("/");
        if !plain.contains(['*', '?', '[', '{']) {
            let names = parts(text).map(str::to_owned).collect();
            return Ok(Self { text: text.to_owned(), absolute, kind: Kind::Prefix(names) });
        }
        let glob = if plain.contains('/') || absolute { plain } else { format!("**/{plain}") };
        let built = GlobBuilder::new(&glob).literal_separator(true).build();
        let no_glob = |e: globset::Error| PatternError::Glob {
            text: text.to_owned(),
            cause: e.kind().clone(),
        };
        let matcher = built.map_err(no_glob)?.compile_matcher();
        Ok(Self { text: text.to_owned(), absolute, kind: Kind::Glob(Box::new(matcher)) })
    }

    /// Returns its path, without empty components and dots; `None` for a glob.
    pub fn prefix(&self) -> Option<String> {
        match &self.kind {
            Kind::Prefix(names) => Some(names.join("/")),
            Kind::Glob(_) => None,
        }
    }

    /// Returns true if it starts at the top of the file system.
    pub fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// Returns true if it covers `path`: relative to the root for a relative pattern, absolute for
    /// an absolute one.
    pub fn covers(&self, path: &str) -> bool {
        let names: Vec<&str> = parts(path).collect();
        if names.contains(&"..") {
            return false;
        }
        match &self.kind {
            Kind::Prefix(prefix) => {
                names.len() >= prefix.len() && names.iter().zip(prefix).all(|(a, b)| a == b)
            }
            Kind::Glob(glob) => (1..=names.len()).any(|end| glob.is_match(names[..end].join("/"))),
        }
    }

    /// Returns its path, relative to the root at `top`; `None` for a glob and for a path outside.
    pub fn prefix_in(&self, top: &Path) -> Option<String> {
        let prefix = self.prefix()?;
        if !self.absolute {
            return Some(prefix);
        }
        let path = Path::new("/").join(prefix);
        Some(path.strip_prefix(top).ok()?.to_str()?.to_owned())
    }

    /// Returns the target of its path in `root`, if that is a different one.
    pub fn leads_to(&self, root: &Root) -> Option<Self> {
        let rel = self.prefix_in(&root.path).filter(|rel| !rel.is_empty())?;
        let target = root.locate(&rel).ok()?;
        (target.real() != rel).then(|| Self::read(target.real()).ok()).flatten()
    }

    /// Returns true if it covers the file at `rel` in the root at `top`.
    pub fn covers_in(&self, top: &Path, rel: &str) -> bool {
        if self.absolute { self.covers(&top.join(rel).to_string_lossy()) } else { self.covers(rel) }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the components of a path without empty ones and dots.
pub(crate) fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|c| !c.is_empty() && *c != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_complete_components_and_descendants() {
        for (pattern, path, want) in [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", true),
            ("a/b", "a/bc", false),
            ("./a//b/", "a/b/c", true),
            ("a", ".", false),
            (".", "a", true),
            ("src/**", "src/a/b", true),
            ("src/**", "srcx/a", false),
            ("*.pem", "deep/in/key.pem", true),
            ("*.pem", "key.pem/inside", true),
            ("*.pem", "key.pemx", false),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/{a,b}", "src/b/c", true),
            ("a", "a/../b", false),
            ("/srv/x", "/srv/x/y", true),
        ] {
            assert_eq!(PathPattern::read(pattern).unwrap().covers(path), want, "{pattern} {path}");
        }
        assert!(PathPattern::read("/srv/r/a").unwrap().covers_in(Path::new("/srv/r"), "a/b"));
        assert!(!PathPattern::read("/srv/r/a").unwrap().covers_in(Path::new("/srv/s"), "a/b"));
        for bad in ["", " ", "../a", "a/../b", "a[", "a{b"] {
            assert!(PathPattern::read(bad).is_err(), "{bad}");
        }
    }
}
