//! Search filters that are limited to a run's paths.

use cairn_protocol::{
    error::{Failure, Reason},
    search::SearchFilters,
};
use globset::Glob;

/// Limits `filters` to `parts` and all that lies beneath them.
///
/// # Errors
/// `bad_pattern` for a glob that cannot be narrowed.
pub fn narrow(filters: &mut SearchFilters, parts: &[String]) -> Result<(), Failure> {
    if let [part] = parts {
        filters.path_prefix = Some(part.clone());
        return Ok(());
    }
    let (mut globs, included): (Vec<String>, Vec<String>) =
        std::mem::take(&mut filters.globs).into_iter().partition(|g| g.starts_with('!'));
    let excluded_count = globs.len();
    for part in parts {
        let names: Vec<&str> = part.split('/').collect();
        if included.is_empty() {
            globs.extend([glob(&names, &[]), glob(&names, &["**"])]);
        }
        for one in &included {
            let pattern = anchored(one)?;
            let pieces: Vec<&str> = pattern.split('/').collect();
            for rest in rests(&pieces, &names)? {
                let narrowed = glob(&names, rest);
                if !globs.contains(&narrowed) {
                    globs.push(narrowed);
                }
            }
        }
    }
    if globs.len() == excluded_count {
        // The parts contain no requested file.
        globs.push("!**".into());
    }
    filters.globs = globs;
    Ok(())
}

/// Returns globs that exclude a path and all beneath it.
pub fn exclude(path: &str) -> [String; 2] {
    let names: Vec<&str> = path.split('/').collect();
    [format!("!{}", glob(&names, &[])), format!("!{}", glob(&names, &["**"]))]
}

/// Returns a glob of the search as it applies to complete paths.
fn anchored(glob: &str) -> Result<String, Failure> {
    let folders_in_braces =
        glob.split('{').skip(1).any(|rest| rest.split('}').next().unwrap_or("").contains('/'));
    if folders_in_braces {
        let text = format!(
            "filters.globs: '{}' has '/' in braces, which a run with paths does not support: write a \
            separate glob for each",
            glob.escape_default()
        );
        return Err(Failure::new(Reason::BadPattern, text));
    }
    let mut text = match glob.strip_prefix('/') {
        Some(anchored) => anchored.to_owned(),
        None if glob.trim_end_matches('/').contains('/') => glob.to_owned(),
        None => format!("**/{glob}"),
    };
    if text.ends_with('/') {
        text.push_str("**");
    }
    Ok(text)
}

/// Returns the rest of a glob, in components, after its beginning has matched all of `names`; there
/// may be several ways.
fn rests<'g, 'p>(pieces: &'g [&'p str], names: &[&str]) -> Result<Vec<&'g [&'p str]>, Failure> {
    let Some((name, deeper)) = names.split_first() else {
        // A glob that ends in `**` means the folder's files, and the part may be a file itself.
        return Ok(if *pieces == ["**"] { vec![pieces, &[]] } else { vec![pieces] });
    };
    let Some((piece, rest)) = pieces.split_first() else { return Ok(vec![]) };
    if *piece == "**" {
        let mut all = rests(pieces, deeper)?;
        all.extend(rests(rest, names)?);
        return Ok(all);
    }
    let bad = |e: globset::Error| Failure::new(Reason::BadPattern, format!("filters.globs: {e}"));
    let hit = Glob::new(piece).map_err(bad)?.compile_matcher().is_match(name);
    if hit { rests(rest, deeper) } else { Ok(vec![]) }
}

/// Returns the glob of a part of the tree, followed by the rest of another.
fn glob(names: &[&str], rest: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        text.push('/');
        for c in name.chars() {
            match c {
                '*' | '?' | '[' | ']' | '{' | '}' | '\\' => text.extend(['[', c, ']']),
                c => text.push(c),
            }
        }
    }
    for piece in rest {
        text.push('/');
        text.push_str(piece);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(globs: &[&str], parts: &[&str]) -> SearchFilters {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let mut filters = SearchFilters { globs: own(globs), ..SearchFilters::default() };
        narrow(&mut filters, &own(parts)).unwrap();
        filters
    }

    #[test]
    fn single_part_becomes_prefix() {
        let filters = narrowed(&["*.rs"], &["src/a"]);
        assert_eq!(
            (filters.path_prefix.as_deref(), filters.globs),
            (Some("src/a"), vec!["*.rs".to_owned()])
        );
    }

    #[test]
    fn several_parts_are_intersected_with_requested_globs() {
        for (globs, want) in [
            (&[][..], &["/a", "/a/**", "/b/c", "/b/c/**"][..]),
            (&["!x"], &["!x", "/a", "/a/**", "/b/c", "/b/c/**"]),
            (&["*.rs"], &["/a/**/*.rs", "/b/c/**/*.rs"]),
            (&["/b/*.rs"], &["!**"]),
            (&["/b/**"], &["/b/c/**", "/b/c"]),
            (&["b/?/d/*.rs", "z/"], &["/a/**/z/**", "/b/c/d/*.rs", "/b/c/**/z/**"]),
            (&["**/c"], &["/a/**/c", "/b/c/**/c", "/b/c"]),
        ] {
            assert_eq!(narrowed(globs, &["a", "b/c"]).globs, want, "{globs:?}");
        }
        assert!(
            narrow(
                &mut SearchFilters {
                    globs: vec!["{a/b,c}/*.rs".into()],
                    ..SearchFilters::default()
                },
                &["a".into(), "b".into()]
            )
            .is_err()
        );
        assert_eq!(glob(&["a[1]"], &[]), "/a[[]1[]]");
    }
}
