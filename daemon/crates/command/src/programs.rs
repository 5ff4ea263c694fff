//! Programs whose arguments can make them run others or write files: the table `programs.txt`.
//!
//! A rule that ends in `*` accepts further arguments. For the programs of the table it accepts only
//! the listed ones; for any other program it accepts all, since the rule's author allowed that.

use std::sync::LazyLock;

use super::Word;

/// Plain arguments that a program accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    Any,
    No,
    One,
    Local,
    Listing,
    Names,
    Lines,
}

/// Further arguments that a program accepts.
struct Further {
    program: &'static str,
    /// The word after the program that this row applies to.
    sub: &'static str,
    flags: Vec<&'static str>,
    values: Vec<&'static str>,
    operands: Operands,
}

struct Table {
    rows: Vec<Further>,
    closed: Vec<&'static str>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { rows: vec![], closed: vec![] };
    for line in
        include_str!("programs.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        match line.strip_prefix("! ") {
            Some(names) => table.closed.extend(names.split(' ')),
            None => table.rows.push(row(line)),
        }
    }
    table
});

/// Parses a row of the table. A row without an entry for plain arguments accepts none.
fn row(line: &'static str) -> Further {
    let mut columns = line.split('|').map(str::trim);
    let mut column = || columns.next().unwrap_or_default();
    let named = column();
    let (program, sub) = named.split_once(' ').unwrap_or((named, ""));
    let (flags, values) =
        (column().split_whitespace().collect(), column().split_whitespace().collect());
    let operands = match column() {
        "any" => Operands::Any,
        "one" => Operands::One,
        "local" => Operands::Local,
        "listing" => Operands::Listing,
        "names" => Operands::Names,
        "lines" => Operands::Lines,
        _ => Operands::No,
    };
    Further { program, sub, flags, values, operands }
}

/// Returns true if a rule that ends in `*` after `fixed` (the program first) accepts `more`.
pub(super) fn takes(fixed: &[String], more: &[Word]) -> bool {
    let Some((program, sub)) = fixed.split_first() else { return false };
    let name = unversioned(program.rsplit('/').next().unwrap_or(program));
    let Some(words) = more.iter().map(argument).collect::<Option<Vec<_>>>() else { return false };
    if words.is_empty() {
        return true;
    }
    if let Some((module, rest)) = module_of(name, sub) {
        // Python runs the module as a program of that name; one without a row may be anything.
        return row_of(module, rest).is_some_and(|row| fits(row, rest.is_empty(), &words));
    }
    // A rule for the program alone covers a subcommand as far as a rule for the subcommand does.
    if sub.is_empty()
        && let Some((first, rest)) = words.split_first()
        && let Some(row) = TABLE.rows.iter().find(|r| r.program == name && r.sub == *first)
    {
        return fits(row, false, rest);
    }
    match row_of(name, sub) {
        Some(row) => fits(row, sub.is_empty(), &words),
        None => !TABLE.closed.contains(&name),
    }
}

/// Returns the row of a program for a rule with the words `sub` after it.
fn row_of(name: &str, sub: &[String]) -> Option<&'static Further> {
    TABLE
        .rows
        .iter()
        .find(|r| r.program == name && (r.sub.is_empty() || sub.iter().any(|s| s == r.sub)))
}

/// Returns the module that Python runs, and the words after it.
fn module_of<'a>(name: &str, sub: &'a [String]) -> Option<(&'a str, &'a [String])> {
    match sub {
        [option, module, rest @ ..] if name.starts_with("python") && option == "-m" => {
            Some((module, rest))
        }
        _ => None,
    }
}

/// Returns the subcommands that a rule for a program and any arguments covers, if it covers no
/// others; empty if it covers the program without arguments only.
pub(super) fn covers_only(fixed: &[String]) -> Option<Vec<&'static str>> {
    if !takes_none(fixed) {
        return None;
    }
    let (program, sub) = fixed.split_first()?;
    let name = unversioned(program.rsplit('/').next().unwrap_or(program));
    let rows = TABLE.rows.iter().filter(|r| sub.is_empty() && r.program == name);
    Some(rows.map(|r| r.sub).filter(|sub| !sub.is_empty()).collect())
}

/// Strips the version: `python3.11`, `gcc-12` and `perl5` are treated like the unversioned program.
fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let known =
        |name: &str| TABLE.closed.contains(&name) || TABLE.rows.iter().any(|r| r.program == name);
    if known(bare) && !known(name) { bare } else { name }
}

/// Returns the text of an argument that cannot be an option in disguise.
fn argument(word: &Word) -> Option<&str> {
    match word.certainty {
        super::Certainty::Known => Some(&word.text),
        // Names that the shell expands begin as the pattern does.
        super::Certainty::Pattern
            if !word.text.starts_with(['*', '?', '[', '-', '+', '@', '!']) =>
        {
            Some(&word.text)
        }
        _ => None,
    }
}

fn fits(row: &Further, all: bool, words: &[&str]) -> bool {
    // Without its first option it would do something else.
    if row.operands == Operands::Listing
        && all
        && words.first().is_none_or(|w| !row.flags.contains(w))
    {
        return false;
    }
    let (mut words, mut operands, mut options) = (words.iter(), Vec::new(), true);
    while let Some(word) = words.next() {
        if !options && for_tests(row, word) {
            continue;
        }
        if !options || *word == "-" || !is_option(row, word) {
            operands.push(*word);
        } else if *word == "--" {
            // Arguments after this are for the tests that are run.
            options = row.program == "cargo";
        } else if row.values.contains(word) {
            let Some(value) = words.next() else { return false };
            if row.program == "make" && !value.bytes().all(|b| b.is_ascii_digit()) {
                operands.push(value);
            }
        } else if !known(row, word) {
            return false;
        }
    }
    operands_fit(row.operands, &operands)
}

/// Options that control how tests are run and reported, for any test runner. None names a file or a
/// program.
const OF_TESTS: &[&str] = &[
    "--watch",
    "--watchAll",
    "--no-watch",
    "--run",
    "--once",
    "--ci",
    "--bail",
    "--silent",
    "--verbose",
    "--runInBand",
    "--coverage",
    "--no-coverage",
    "--passWithNoTests",
    "--color",
    "--no-color",
    "--colors",
    "--no-colors",
];

/// Returns true if a word after `--` is an option for what a package script runs.
fn for_tests(row: &Further, word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    matches!(row.program, "npm" | "yarn" | "pnpm")
        && OF_TESTS.contains(&name)
        && value.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns true if a rule that ends in `*` after these words accepts no argument nevertheless: the
/// arguments of such a program are programs, or may name one.
pub(super) fn takes_none(fixed: &[String]) -> bool {
    let Some((program, sub)) = fixed.split_first() else { return false };
    let name = unversioned(program.rsplit('/').next().unwrap_or(program));
    if let Some((module, rest)) = module_of(name, sub) {
        return row_of(module, rest).is_none();
    }
    match row_of(name, sub) {
        Some(row) => row.operands == Operands::No && row.values.is_empty() && row.flags.len() < 3,
        None => TABLE.closed.contains(&name),
    }
}

fn is_option(row: &Further, word: &str) -> bool {
    word.starts_with('-')
        || (word.starts_with('+') && row.program == "cargo")
        || row.flags.contains(&word)
}

fn known(row: &Further, word: &str) -> bool {
    if row.flags.contains(&word) {
        return true;
    }
    if let Some((name, _)) = word.split_once('=')
        && name.starts_with('-')
    {
        let long = row.values.contains(&name) && name.starts_with("--");
        return long || row.flags.iter().any(|f| f.strip_suffix('=') == Some(name));
    }
    let number = word.len() > 1 && word[1..].bytes().all(|b| b.is_ascii_digit());
    if number && matches!((row.program, row.sub), ("git", "log" | "show")) {
        return true;
    }
    if word.starts_with("--") {
        return false;
    }
    let short = |v: &&&str| v.len() == 2 && word.starts_with(**v) && word.len() > 2;
    let joined_digits = |v: &&str| word[v.len()..].bytes().all(|b| b.is_ascii_digit() || b == b',');
    row.values.iter().find(short).is_some_and(joined_digits) || cluster(row, word)
}

/// Returns true for several listed letters behind one dash. Not for programs whose long options
/// have one dash.
fn cluster(row: &Further, word: &str) -> bool {
    let one_dash = matches!(row.program, "find" | "go" | "tar");
    let letter = |c: char| row.flags.contains(&format!("-{c}").as_str());
    !one_dash && word.len() > 2 && word[1..].chars().all(letter)
}

fn operands_fit(kind: Operands, operands: &[&str]) -> bool {
    let name = |text: &&str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || "._-/: ".contains(c))
            && !text.starts_with('-')
    };
    match kind {
        Operands::Any => true,
        Operands::No => operands.is_empty(),
        Operands::One => operands.len() <= 1,
        Operands::Local | Operands::Listing => {
            operands.iter().all(|o| !o.contains(':') && !o.starts_with('-'))
        }
        Operands::Names => operands.iter().all(name),
        Operands::Lines => operands.split_first().is_none_or(|(script, _)| {
            let range = script.strip_suffix('p').unwrap_or("x");
            range.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'$')
        }),
    }
}

/// Returns true if the variable may be set before a command without an approval.
pub(super) fn harmless_variable(name: &str, value: &Word) -> bool {
    const NAMES: &[&str] = &[
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "NO_COLOR",
        "FORCE_COLOR",
        "CI",
        "RUST_BACKTRACE",
        "CARGO_TERM_COLOR",
        "COLUMNS",
    ];
    let plain = |v: &str| v.chars().all(|c| c.is_ascii_alphanumeric() || "_.-@:".contains(c));
    (NAMES.contains(&name) || name.starts_with("LC_")) && value.value().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes_line(rule: &str, more: &str) -> bool {
        let fixed: Vec<String> = rule.split(' ').map(str::to_owned).collect();
        let more: Vec<Word> = more.split(' ').filter(|w| !w.is_empty()).map(Word::known).collect();
        takes(&fixed, &more)
    }

    // G6
    #[test]
    fn test_names_may_contain_spaces() {
        let takes = |rule: &str, more: &[&str]| {
            let fixed: Vec<String> = rule.split(' ').map(str::to_owned).collect();
            let more: Vec<Word> = more.iter().copied().map(Word::known).collect();
            takes(&fixed, &more)
        };
        assert!(takes("cargo test", &["name with space"]));
        assert!(takes("pytest", &["-k", "one and two"]));
        assert!(!takes("cargo test", &["name; id"]) && !takes("cargo test", &["--config", "a b"]));
    }

    // G6
    #[test]
    fn rules_without_arguments_are_recognized() {
        let none =
            |rule: &str| takes_none(&rule.split(' ').map(str::to_owned).collect::<Vec<String>>());
        for rule in [
            "sed",
            "awk",
            "man",
            "less",
            "vim",
            "ssh",
            "wget",
            "zip",
            "xargs",
            "tee",
            "python3",
            "python3 -m http.server",
            "/usr/bin/perl5",
        ] {
            assert!(none(rule), "{rule}");
        }
        for rule in [
            "cargo test",
            "git status",
            "ls",
            "npm test",
            "sed -n",
            "rg",
            "make",
            "python3 -m pytest",
        ] {
            assert!(!none(rule), "{rule}");
        }
    }

    #[test]
    fn arguments_that_run_programs_are_rejected() {
        for (rule, fine, bad) in [
            ("git status", "-s --porcelain=v2 src", "--config-env=x"),
            ("git log", "-n 3 --oneline -5 HEAD", "--output=/x"),
            ("git diff", "--stat -U3 HEAD~1", "--ext-diff"),
            ("git", "", "-c core.pager=x log"),
            ("git", "log --oneline -5", "log --output=/x"),
            ("git", "status -s", "push origin main"),
            ("sed", "-n 1p file", "-n 1e file"),
            ("pylint", "-E src", "--init-hook=x src"),
            ("python3 -m pylint", "-j 2 src", "--load-plugins=evil src"),
            ("prettier", "--check src", "--plugin=./evil.js src"),
            ("jest", "--ci unit", "--config=evil.js unit"),
            ("mocha", "--bail unit", "-r ./evil.js unit"),
            ("rspec", "-b spec", "-r ./evil spec"),
            ("phpunit", "--testdox unit", "--bootstrap evil.php"),
            ("iconv", "-f utf-8 file", "-o out file"),
            ("nm", "-C lib.so", "--plugin ./evil.so lib.so"),
            ("pandoc", "", "--lua-filter evil.lua file"),
            ("sed", "", "s/a/b/e file"),
            ("python3 -m pytest", "-q tests", "--pdbcls=x:y"),
            ("python3 -m", "", "pytest"),
            ("python3 -m http.server", "", "8000"),
            ("node", "", "x.js"),
            ("find", ". -name x -maxdepth 2", ". -exec id"),
            ("find", ". -type f", ". -delete"),
            ("sort", "-rn -k2 file", "--compress-program=x"),
            ("sort", "-u file", "-o out"),
            ("uniq", "-c in", "in out"),
            ("tar", "tf a.tar", "xf a.tar --to-command=id"),
            ("tar", "-tf a.tar", "-tf host:a.tar"),
            ("rsync", "-a src dst", "-a -e id src dst"),
            ("sed -n", "1,5p file", "1e file"),
            ("cargo test", "-p x --release name", "--config x"),
            ("make", "-j4 all", "SHELL=x all"),
            ("go test", "-run=X ./pkg", "-exec=id ./pkg"),
            ("rg", "-n word src", "--pre=id word"),
            ("cat", "-n file", ""),
            ("python3.11", "", "x.py"),
            ("awk", "", "{system(1)}"),
            // G6: useful arguments that such rules must accept.
            ("npm test", "-- --watch=false --ci", "-- --globalSetup=./x.js"),
            ("npm test", "name", "-- --watch=$(id)"),
            ("pnpm test", "-- --run", "-- --config=x"),
        ] {
            assert!(takes_line(rule, fine), "{rule} {fine}");
            assert!(bad.is_empty() || !takes_line(rule, bad), "{rule} {bad}");
        }
    }
}
