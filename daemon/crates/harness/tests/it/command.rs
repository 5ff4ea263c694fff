//! Command lines against rules: lines that may run and lines that never may.

use std::{collections::BTreeMap, time::Instant};

use cairn_harness::{
    CheckedRule, Grants, Rule, RuleError, Rules, Subject, Verdict,
    command::{Certainty, CommandLine},
};
use proptest::prelude::*;

const TABLE: &str = include_str!("data/commands.txt");
const ALLOWED: &[&str] = &[
    "run_shell(git status *)",
    "run_shell(git diff *)",
    "run_shell(git log *)",
    "run_shell(git commit *)",
    "run_shell(cargo test *)",
    "run_shell(make *)",
    "run_shell(go test *)",
    "run_shell(npm test)",
    "run_shell(ls *)",
    "run_shell(cat *)",
    "run_shell(grep *)",
    "run_shell(rg *)",
    "run_shell(echo *)",
    "run_shell(head *)",
    "run_shell(wc *)",
    "run_shell(sort *)",
    "run_shell(uniq *)",
    "run_shell(find *)",
    "run_shell(tar *)",
    "run_shell(rsync *)",
    "run_shell(sed -n *)",
    "run_shell(printf *)",
    "run_shell(cd *)",
    "run_shell(true)",
    "run_shell(ssh build.example uptime)",
    "write_file(out)",
];
const NEVER: &[&str] = &["run_shell(rm -rf /)", "run_shell(sudo)", "run_shell(chmod 777)"];

fn read(list: &[&str]) -> Vec<Rule> {
    list.iter().map(|r| r.parse().unwrap()).collect()
}

fn decide(rules: &Rules, text: &str) -> (Verdict, String) {
    let line = CommandLine::parse(text);
    let grants = Grants::default();
    let subject =
        Subject { command: Some(&line), memory: &[], ..Subject::new("run_shell", &grants) };
    let decision = rules.decide(&subject);
    (decision.verdict, decision.by.to_string())
}

fn rules() -> Rules {
    Rules { allow: read(ALLOWED), final_deny: read(NEVER), ..Rules::default() }
}

#[test]
fn attacks_are_denied_and_harmless_lines_are_allowed() {
    let rules = rules();
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let (mut category, mut wrong) = ("", Vec::new());
    for row in TABLE.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(name) = row.strip_prefix('[') {
            category = name.strip_suffix(']').unwrap();
            continue;
        }
        let (sign, text) = row.split_once(' ').unwrap();
        // Quotes at the beginning of a line may also be the shell's own.
        let text = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
        let (verdict, why) = decide(&rules, &text);
        let count = counts.entry(category).or_default();
        match sign {
            "+" => count.1 += 1,
            "-" => count.0 += 1,
            _ => panic!("{row}"),
        }
        if (verdict == Verdict::Allow) != (sign == "+") {
            wrong.push(format!("{category}: {row}: {verdict:?} {why}"));
        }
    }
    let attacks: u32 = counts.values().map(|c| c.0).sum();
    println!(
        "{attacks} attacks, {} harmless: {counts:?}",
        counts.values().map(|c| c.1).sum::<u32>()
    );
    assert!(attacks >= 200, "{attacks}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn denied_command_matches_every_spelling() {
    let rules = Rules {
        allow: read(&["*"]),
        final_deny: read(NEVER),
        default: Verdict::Allow,
        ..Rules::default()
    };
    for text in [
        "sudo ls",
        "/usr/bin/sudo ls",
        "s\"u\"do ls",
        "s'u'do ls",
        "\\sudo ls",
        "$'sudo' ls",
        "$'\\x73udo' ls",
        "sudo$X ls",
        "ls; sudo ls",
        "ls | sudo tee x",
        "ls && (sudo ls)",
        "echo $(sudo ls)",
        "echo \"`sudo ls`\"",
        "X=1 sudo ls",
        "env sudo ls",
        "env -u X A=b sudo ls",
        "timeout 5 sudo ls",
        "xargs -n 1 sudo",
        "bash -c 'sudo ls'",
        "bash -c \"sh -c 'sudo ls'\"",
        "eval sudo ls",
        "find . -exec sudo ls {} ;",
        "nice -n 5 nohup sudo ls",
        "f() { sudo ls; }; f",
        "if true; then sudo ls; fi",
        "cat <(sudo ls)",
        "cat <<EOF\n$(sudo ls)\nEOF",
        "env --weird sudo ls",
        "if ; sudo ls",
        "rm -rf /",
        "rm -fr /",
        "rm -r -f /",
        "rm -f -r -v /",
        "rm --recursive --force /",
        "rm --recurs --force /",
        "rm -Rf /",
        "rm / -rf",
        "rm -rf -- /",
        "rm -rf //",
        "rm -rf /.",
        "rm -rf /usr/..",
        "rm -rf /*",
        "rm -rf \"/\"",
        "rm -rf a / b",
        "rm -rf --no-preserve-root /",
        "rm -rf /$X",
        "cd x && rm -rf /",
        "chmod 777 x",
        "chmod -R 777 x",
        "chmod 0777 x",
        "/bin/chmod 777 x",
        "chmod '777' x",
        "busybox chmod 777 x",
    ] {
        let (verdict, why) = decide(&rules, text);
        assert_eq!(verdict, Verdict::Deny, "{text}: {why}");
        assert!(why.starts_with("finalDeny: run_shell("), "{text}: {why}");
    }
    for text in [
        "echo sudo",
        "rm -rf /tmp/x",
        "rm -r /",
        "rm -f /",
        "chmod 755 x",
        "ls /",
        "echo 777",
        "grep sudo f",
    ] {
        assert_eq!(decide(&rules, text).0, Verdict::Allow, "{text}");
    }
}

#[test]
fn decision_names_rule_and_part() {
    let rules = rules();
    for (text, want) in [
        ("git status -s", (Verdict::Allow, "allow: run_shell(git status *) for 'git status -s'")),
        ("ls && id -u", (Verdict::Ask, "default: not read-only for 'id -u'")),
        ("ls; sudo x", (Verdict::Deny, "finalDeny: run_shell(sudo) in 'sudo x'")),
    ] {
        assert_eq!(decide(&rules, text), (want.0, want.1.to_owned()), "{text}");
    }
    let (_, why) = decide(&rules, "git status \"");
    assert!(why.contains("a quote is not closed"), "{why}");
}

#[test]
fn each_part_is_decided_separately() {
    let line = CommandLine::parse("git push && git status && rm x");
    let memory: Vec<(Rule, Verdict)> =
        vec![("run_shell(git push)".parse().unwrap(), Verdict::Allow)];
    let grants = Grants::default();
    let set = |deny: &[&str], overrides: &[&str]| Rules {
        allow: read(&["run_shell(git status)"]),
        deny: read(deny),
        overrides: read(overrides).into_iter().map(|r| (r, Verdict::Allow)).collect(),
        ..Rules::default()
    };
    let subject =
        Subject { command: Some(&line), memory: &memory, ..Subject::new("run_shell", &grants) };
    for (deny, overrides, want) in [
        (&[][..], &[][..], Verdict::Ask),
        (&["run_shell(rm)"][..], &[][..], Verdict::Deny),
        (&["run_shell(rm)"][..], &["run_shell(rm x)"][..], Verdict::Allow),
        (&["run_shell(git)"][..], &["run_shell(rm x)"][..], Verdict::Deny),
    ] {
        assert_eq!(set(deny, overrides).decide(&subject).verdict, want, "{deny:?} {overrides:?}");
    }
}

#[test]
fn denied_paths_apply_to_commands() {
    let rules =
        Rules { allow: read(&["*"]), final_deny: read(&["*(secrets)"]), ..Rules::default() };
    for text in [
        "cat secrets/key",
        "cat ./secrets/key",
        "cat x/../secrets/key",
        "ls > secrets/x",
        "tool --in=secrets/a",
    ] {
        assert_eq!(decide(&rules, text).0, Verdict::Deny, "{text}");
    }
    for text in ["cat secretsx", "cat src/a"] {
        assert_eq!(decide(&rules, text).0, Verdict::Allow, "{text}");
    }
}

#[test]
fn rule_for_command_allows_only_that_command() {
    for (text, other) in [
        ("git push origin main", "git push origin main -f"),
        ("ls | wc -l", "ls | id"),
        ("echo $HOME | sh", "echo $HOME | bash"),
        ("cat <<EOF\n$(id)\nEOF", "cat <<EOF\n$(ls)\nEOF"),
        ("git log > x", "git log > y"),
    ] {
        let suggested = Rule::for_command(&CommandLine::parse(text));
        for rule in &suggested {
            assert_eq!(&rule.to_string().parse::<Rule>().unwrap(), rule, "{rule}");
        }
        let rules = Rules { allow: suggested, ..Rules::default() };
        assert_eq!(decide(&rules, text).0, Verdict::Allow, "{text}");
        assert_ne!(decide(&rules, other).0, Verdict::Allow, "{other}");
    }
}

#[test]
fn rule_examples_are_checked_at_parse() {
    let rule = |matches: &[&str], rejects: &[&str]| {
        let strings = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
        CheckedRule {
            rule: "run_shell(git log *)".into(),
            matches: strings(matches),
            rejects: strings(rejects),
        }
    };
    rule(&["git log", "git log -3"], &["git log; id", "git -c x log"])
        .read(Verdict::Allow)
        .unwrap();
    for (matches, rejects, named) in
        [(&["git logs"][..], &[][..], "git logs"), (&[][..], &["git log"][..], "git log")]
    {
        let error = rule(matches, rejects).read(Verdict::Allow).unwrap_err();
        let (rule, example) = ("run_shell(git log *)".to_owned(), named.to_owned());
        let want = match matches.is_empty() {
            true => RuleError::Overreaches { rule, example },
            false => RuleError::Misses { rule, example },
        };
        assert_eq!(error, want);
    }
    // A denial must match its example in any part.
    rule(&["ls; git log"], &["ls"]).read(Verdict::Deny).unwrap();
}

#[test]
fn deep_nesting_and_long_lines_are_parsed_quickly() {
    for text in [
        "(".repeat(30_000),
        "$(".repeat(20_000),
        format!("{}id{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("echo {}id{}", "$(".repeat(3_000), ")".repeat(3_000)),
        format!("{}id", "if true; then ".repeat(3_000)),
        "a;".repeat(30_000),
        "a|".repeat(30_000),
        "<<a ".repeat(10_000),
        "${".repeat(20_000),
        "[[ ".repeat(10_000),
        "x".repeat(1 << 20),
        "sh -c ".repeat(5_000),
        "env ".repeat(10_000) + "id",
        "'".repeat(60_001),
        "`".repeat(60_001),
    ] {
        let started = Instant::now();
        let (verdict, _) = decide(&rules(), &text);
        assert_ne!(verdict, Verdict::Allow, "{}", &text[..20]);
        assert!(started.elapsed().as_secs() < 5, "{:?} for {}", started.elapsed(), &text[..20]);
    }
}

fn shell_like() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "git", "status", "id", " ", " ", "&&", "||", "|", ";", "&", "(", ")", "{", "}", "$(", "`",
        "'", "\"", "\\", "\n", "<", "<<", "EOF", "<<<", ">", ">>", "2>&1", "$x", "${x}", "$'", "*",
        "?", "[", "]", "~", "#", "=", "x=", "if", "then", "fi", "for", "in", "do", "done", "case",
        "esac", "function", "sh -c", "env", "xargs", "!", "((", "))", "[[", "]]", "é", "\u{200b}",
        "\r", "\t", "--", "-c", "{a,b}", "@(", "eval", "a",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|v| v.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _decided = decide(&rules(), &text);
    }

    #[test]
    fn line_with_another_program_is_denied(text in shell_like()) {
        // `id` may be an argument or quoted; it is never the program of an allowed part.
        let (verdict, _) = decide(&rules(), &text);
        let line = CommandLine::parse(&text);
        if verdict == Verdict::Allow {
            for part in line.parts.iter().filter(|p| !p.words.is_empty()) {
                let program = &part.words[0];
                prop_assert!(program.certainty == Certainty::Known && program.text != "id", "{text:?}");
            }
        }
    }
}
