//! Indentation of new lines in the characters of the file, derived from the lines that were matched
//! although their white space differs.

use std::collections::BTreeMap;

use cairn_workspace::Indent;

/// Steps that the given lines alone may prove. A wider one might as well be two steps.
const STEPS: [i64; 3] = [4, 2, 3];

/// The indentation of a line cannot be translated unambiguously.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untranslatable;

/// Characters that indent a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tabs,
    Spaces,
}

/// Indentation as tabs and the spaces after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Width {
    tabs: i64,
    spaces: i64,
}

impl Width {
    /// Returns the width of white space; `None` for other characters or orders.
    fn of(blanks: &str) -> Option<Self> {
        let rest = blanks.trim_start_matches('\t');
        let is_regular = rest.bytes().all(|b| b == b' ');
        let size = |text: &str| i64::try_from(text.len()).ok();
        is_regular.then_some(Self { tabs: size(blanks)? - size(rest)?, spaces: size(rest)? })
    }

    /// Returns the measure in a kind, and the spaces that are no step of it.
    fn measure(self, kind: Kind) -> Option<(i64, i64)> {
        match kind {
            Kind::Tabs => Some((self.tabs, self.spaces)),
            Kind::Spaces => (self.tabs == 0).then_some((self.spaces, 0)),
        }
    }
}

/// The file's indentation as a linear function of the given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Linear {
    given: Kind,
    file: Kind,
    numerator: i64,
    denominator: i64,
    offset: i64,
}

impl Linear {
    fn at(&self, measure: i64) -> Option<i64> {
        let scaled = measure.checked_mul(self.numerator)?;
        let value = (scaled % self.denominator == 0).then(|| scaled / self.denominator)?;
        value.checked_add(self.offset).filter(|value| *value >= 0)
    }
}

/// Translation of the indentation of new lines.
#[derive(Debug)]
pub struct IndentMap {
    /// The file's indentation of each given one; `None` where lines disagree.
    known: BTreeMap<String, Option<String>>,
    is_same: bool,
    linear: Option<Linear>,
}

fn blanks(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Returns the indentation of a line without the space that precedes the star of a comment.
fn steps(line: &str) -> &str {
    let blanks = blanks(line);
    match blanks.strip_suffix(' ') {
        Some(steps) if line[blanks.len()..].starts_with('*') => steps,
        _ => blanks,
    }
}

fn is_full(line: &str) -> bool {
    !line.trim().is_empty()
}

/// Returns the one kind of these indentations; `None` for none or both.
fn kind_of<'a>(all: impl Iterator<Item = &'a str>) -> Option<Kind> {
    let mut tabs = false;
    let mut spaces = false;
    for blanks in all {
        tabs |= blanks.contains('\t');
        spaces |= blanks.starts_with(' ');
    }
    match (tabs, spaces) {
        (true, false) => Some(Kind::Tabs),
        (false, true) => Some(Kind::Spaces),
        _ => None,
    }
}

impl IndentMap {
    /// Compares lines of the file with the given ones that they matched, in the same order.
    pub fn new(file: &[&str], old: &[&str], new: &[&str], usual: Indent) -> Self {
        let pairs: Vec<(&str, &str)> = file
            .iter()
            .zip(old)
            .filter(|(a, b)| is_full(a) && is_full(b))
            .map(|(a, b)| (blanks(a), blanks(b)))
            .collect();
        let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (file, given) in &pairs {
            known
                .entry((*given).to_owned())
                .and_modify(|earlier| {
                    if earlier.as_deref() != Some(*file) {
                        *earlier = None;
                    }
                })
                .or_insert_with(|| Some((*file).to_owned()));
        }
        let given: Vec<&str> =
            old.iter().chain(new).filter(|line| is_full(line)).map(|line| steps(line)).collect();
        Self {
            is_same: pairs.iter().all(|(file, given)| file == given),
            linear: linear(&pairs, &given, usual),
            known,
        }
    }

    /// Returns a line with the indentation of the file.
    pub fn translate(&self, line: &str) -> Result<String, Untranslatable> {
        if self.is_same {
            return Ok(line.to_owned());
        }
        if !is_full(line) {
            return Ok(String::new());
        }
        let given = blanks(line);
        let text = &line[given.len()..];
        match self.known.get(given) {
            Some(Some(known)) => return Ok(format!("{known}{text}")),
            Some(None) => return Err(Untranslatable),
            None => {}
        }
        let linear = self.linear.ok_or(Untranslatable)?;
        let width = Width::of(given).ok_or(Untranslatable)?;
        // Spaces before the star of a comment are no step.
        let star = i64::from(text.starts_with('*'));
        let attempts = [0, star].into_iter().filter_map(|extra| {
            let (measure, rest) = width.measure(linear.given)?;
            let measure = if linear.given == Kind::Spaces { measure - extra } else { measure };
            let rest = if linear.given == Kind::Spaces { extra } else { rest };
            Some((linear.at(measure)?, rest))
        });
        let (measure, rest) = attempts.into_iter().next().ok_or(Untranslatable)?;
        let unit = if linear.file == Kind::Tabs { "\t" } else { " " };
        let count = |n: i64| usize::try_from(n).map_err(|_| Untranslatable);
        Ok(format!("{}{}{text}", unit.repeat(count(measure)?), " ".repeat(count(rest)?)))
    }
}

/// Derives the function from pairs of indentations of the file and of the caller.
fn linear(pairs: &[(&str, &str)], given: &[&str], usual: Indent) -> Option<Linear> {
    let from_usual = match usual {
        Indent::Tabs => Some(Kind::Tabs),
        Indent::Spaces(_) => Some(Kind::Spaces),
        Indent::None | Indent::Mixed => None,
    };
    let file = kind_of(pairs.iter().map(|(file, _)| *file)).or(from_usual);
    let kind = kind_of(given.iter().copied());
    let file = file.or(kind)?;
    let kind = kind.unwrap_or(file);
    let mut points: Vec<(i64, i64)> = Vec::new();
    for (in_file, given) in pairs {
        let (value, rest) = Width::of(in_file)?.measure(file)?;
        let (measure, own_rest) = Width::of(given)?.measure(kind)?;
        let measure = if kind == Kind::Spaces { measure - rest } else { measure };
        if kind == Kind::Tabs && own_rest != rest && file == Kind::Tabs {
            return None;
        }
        points.push((measure, value));
    }
    points.sort_unstable();
    points.dedup();
    let (first, last) = (*points.first()?, *points.last()?);
    let (numerator, denominator) = if first.0 == last.0 {
        if first.1 != last.1 {
            return None;
        }
        scale_of_one(first, given, (kind, file), usual)?
    } else {
        (last.1 - first.1, last.0 - first.0)
    };
    let shift = first.0 * numerator;
    if denominator == 0 || shift % denominator != 0 {
        return None;
    }
    let offset = first.1 - shift / denominator;
    let linear = Linear { given: kind, file, numerator, denominator, offset };
    let fits = |(measure, value): &(i64, i64)| {
        let scaled = measure * numerator;
        scaled % denominator == 0 && scaled / denominator + offset == *value
    };
    points.iter().all(fits).then_some(linear)
}

/// Returns the scale if all pairs have one indentation: that of the steps, if they are known.
fn scale_of_one(
    (measure, value): (i64, i64),
    given: &[&str],
    (kind, file): (Kind, Kind),
    usual: Indent,
) -> Option<(i64, i64)> {
    match (kind, file) {
        (Kind::Tabs, Kind::Tabs) | (Kind::Spaces, Kind::Spaces) => Some((1, 1)),
        (Kind::Tabs, Kind::Spaces) => match usual {
            Indent::Spaces(step) => Some((i64::try_from(step).ok()?, 1)),
            _ => None,
        },
        (Kind::Spaces, Kind::Tabs) => {
            let sizes = given.iter().filter_map(|blanks| i64::try_from(blanks.len()).ok());
            let step = sizes.filter(|size| *size > 1).fold(0, gcd);
            // A line that is indented in both proves the step, if all others fit.
            if value > 0 && measure > 0 {
                let own = measure / value;
                let is_step = measure % value == 0 && own > 1 && own <= 8 && step % own == 0;
                return is_step.then_some((1, own));
            }
            STEPS.contains(&step).then_some((1, step))
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(
        file: &[&str],
        old: &[&str],
        usual: Indent,
        line: &str,
    ) -> Result<String, Untranslatable> {
        IndentMap::new(file, old, &[line], usual).translate(line)
    }

    #[test]
    fn indentation_follows_the_matched_lines() {
        let tabs = Indent::Tabs;
        for (file, old, usual, line, expected) in [
            // The same indentation as a matched line.
            (&["\ta"][..], &["    a"][..], tabs, "    b", Ok("\tb")),
            // Deeper and shallower, by the step of two lines or of one.
            (&["\ta", "\t\tb"], &["  a", "    b"], tabs, "      c", Ok("\t\t\tc")),
            (&["\ta"], &["    a"], tabs, "        b", Ok("\t\tb")),
            (&["\t\ta"], &["        a"], tabs, "    b", Ok("\tb")),
            (&["\t\t\ta"], &["    a"], tabs, "        b", Err(Untranslatable)),
            (&["\ta"], &["a"], tabs, "    b", Ok("\t\tb")),
            (&["a"], &[" a"], tabs, "    b", Err(Untranslatable)),
            (&["\ta"], &["        a"], tabs, "                b", Ok("\t\tb")),
            (&["\ta"], &["        a"], tabs, "      b", Err(Untranslatable)),
            // Eight columns may be one step or two.
            (&["\ta"], &["a"], tabs, "        b", Err(Untranslatable)),
            // A line between two steps.
            (&["\ta"], &["    a"], tabs, "      b", Err(Untranslatable)),
            (&["\ta", "\t * x"], &["    a", "     * x"], tabs, "         * y", Ok("\t\t * y")),
            // Lines that disagree.
            (&["\ta", "\t\tb"], &["a", "b"], tabs, "c", Err(Untranslatable)),
            // Tabs for the file's spaces.
            (&["    a"], &["\ta"], Indent::Spaces(4), "\t\tb", Ok("        b")),
            (&["    a"], &["\ta"], Indent::Mixed, "\t\tb", Err(Untranslatable)),
            // Spaces for spaces.
            (&["    if", "        y"], &["if", "    y"], Indent::Spaces(4), "}", Ok("    }")),
            (&["  a", "    b"], &["    a", "        b"], Indent::Spaces(2), "c", Ok("c")),
            (&["  a"], &["a"], Indent::Spaces(2), "  b", Ok("    b")),
            (&["\ta"], &["    a"], tabs, "", Ok("")),
            // Equal indentation is not touched.
            (&["  a  b"], &["  a b"], Indent::Spaces(2), "\tc", Ok("\tc")),
        ] {
            let got = translated(file, old, usual, line);
            assert_eq!(got.as_deref(), expected.as_deref(), "{file:?} {old:?} {line:?}");
        }
    }
}
