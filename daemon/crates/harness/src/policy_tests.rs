//! Tests of decisions by single rules.

use cairn_protocol::turn::ExecutionMode;

use super::*;

fn rules(list: &[&str]) -> Vec<Rule> {
    list.iter().map(|r| r.parse().unwrap()).collect()
}

fn check(
    rules: &Rules,
    tool: &str,
    path: &str,
    grants: &Grants,
    read_only: bool,
    want: (Verdict, &str),
) {
    let paths: Vec<String> = if path.is_empty() { vec![] } else { vec![path.into()] };
    let (network, narrows) = (tool == "git_clone", tool == "search_hybrid");
    let subject =
        Subject { paths: &paths, read_only, network, narrows, ..Subject::new(tool, grants) };
    let got = rules.decide(&subject);
    assert_eq!((got.verdict, got.by.to_string().as_str()), want, "{tool} {path}");
}

/// Rules are stored as text: what a text is read as must allow the command that was approved, and
/// nothing else.
#[test]
fn rules_of_a_command_are_read_back_as_they_are() {
    for text in [
        "ls",
        "git commit -m 'two\nlines'",
        "cat > notes.md <<'E'\nTools:\nrun_shell\nE",
        "echo 'a)b' | wc -l",
        "printf '%s' \"it's\" ' leading'",
        "echo 'ends with *'",
        "echo '*'",
        "'= x'",
        "a=1 make test",
        "for x in 1 2; do\n  make\ndone",
        "echo \\\n",
        "true;\nrun_shell(ls)\n",
    ] {
        let line = CommandLine::parse(text);
        let granted = Rule::for_command(&line);
        assert!(!granted.is_empty(), "{text:?}");
        let texts: Vec<String> = granted.iter().map(Rule::to_string).collect();
        let read: Vec<Rule> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(read, granted, "{text:?}");
        let alone = Rules { allow: read, default: Verdict::Deny, ..Rules::default() };
        let verdict = |text: &str| alone.decide_line(&CommandLine::parse(text)).verdict;
        for other in ["touch injected_file", "run_shell", "ls -R /", "echo x", "rm -rf ."] {
            assert_eq!(verdict(other), Verdict::Deny, "{text:?} allows {other:?}: {texts:?}");
        }
    }
}

/// A rule that ends in `*` covers what its words cover, and a request names what it does not.
#[test]
fn rule_of_a_program_covers_its_known_subcommands() {
    for (rule, command, uncovered) in [
        ("run_shell(git *)", "git log --oneline", None),
        ("run_shell(git *)", "git status -s src", None),
        ("run_shell(git *)", "git log --output=/tmp/x", Some("does not cover '--output=/tmp/x'")),
        ("run_shell(git *)", "git push origin main", Some("does not cover 'push'")),
        ("run_shell(git *)", "git -c core.pager=id log", Some("does not cover '-c'")),
        ("run_shell(git log *)", "git log -3 --ext-diff", Some("does not cover '--ext-diff'")),
        ("run_shell(sed *)", "sed -n 1p a.txt", None),
        ("run_shell(sed *)", "sed -i s/a/b/ a.txt", Some("does not cover '-i'")),
        ("run_shell(python3 -m pytest *)", "python3 -m pytest -q", None),
        ("run_shell(python3 -m pytest *)", "python3 -m pytest -p x", Some("does not cover '-p'")),
        ("run_shell(awk *)", "awk 1 a.txt", Some("allows it only without arguments")),
        ("run_shell(node *)", "node a.js", Some("allows it only without arguments")),
    ] {
        let set = Rules { allow: rules(&[rule]), ..Rules::default() };
        let decision = set.decide_line(&CommandLine::parse(command));
        match uncovered {
            None => assert_eq!(decision.verdict, Verdict::Allow, "{rule}: {command}"),
            Some(why) => {
                assert_eq!(decision.verdict, Verdict::Ask, "{rule}: {command}");
                let text = decision.by.to_string();
                assert!(text.contains(rule) && text.contains(why), "{command}: {text}");
            }
        }
    }
}

#[test]
fn narrower_rules_are_recognised() {
    let is_within = |narrow: &str, wide: &str| {
        narrow.parse::<Rule>().unwrap().is_within(&wide.parse().unwrap())
    };
    for (narrow, wide) in [
        ("write_file(src)", "write_file"),
        ("write_file(src/a.rs)", "write_file(src/**)"),
        ("write_file(src/lib/**)", "write_file(src)"),
        ("write_file(src)", "*(src)"),
        ("run_shell(git status *)", "run_shell"),
        ("run_shell(cargo test --lib *)", "run_shell(cargo test *)"),
        ("run_shell(cargo test)", "run_shell(cargo test *)"),
        ("run_shell(= cargo test --lib)", "run_shell(cargo test *)"),
        ("network(static.crates.io)", "network(*.crates.io)"),
    ] {
        assert!(is_within(narrow, wide), "{narrow} within {wide}");
        assert!(!is_within(wide, narrow), "{wide} within {narrow}");
    }
    for (one, other) in [
        ("write_file(src)", "delete_file"),
        ("write_file(**/a)", "write_file(src)"),
        ("write_file(docs)", "write_file(src)"),
        ("write_file(src/[a-z])", "write_file(src/[b-z])"),
        ("run_shell(= cargo test; rm x)", "run_shell(cargo test *)"),
        ("network(crates.io)", "network(*.crates.io)"),
    ] {
        assert!(!is_within(one, other), "{one} within {other}");
    }
}

#[test]
fn rule_lists_apply_in_order() {
    let set = Rules {
        final_deny: rules(&["*(secrets)"]),
        overrides: vec![("content_get_span(docs)".parse().unwrap(), Verdict::Allow)],
        deny: rules(&["content_get_span"]),
        allow: rules(&["write_file(src)"]),
        confirm: vec![],
        ..Rules::default()
    };
    let (free, net) = (Grants::default(), Grants { network: true, ..Grants::default() });
    let tight = Grants {
        unconfined: false,
        mode: ExecutionMode::Ask,
        ops: Some(vec!["fs_list_dir".into(), "search_hybrid".into()]),
        paths: Some(vec!["src/inner".into()]),
        network: false,
        domains: false,
    };
    use Verdict::{Allow, Ask, Deny};
    for (tool, path, grants, read_only, want) in [
        ("content_get_span", "secrets/key", &free, true, (Deny, "finalDeny: *(secrets)")),
        ("content_get_span", "secretsx/key", &free, true, (Deny, "deny: content_get_span")),
        (
            "content_get_span",
            "docs/a.md",
            &free,
            true,
            (Allow, "overrides: content_get_span(docs)"),
        ),
        ("content_get_span", "docs/../secrets", &free, true, (Deny, "deny: content_get_span")),
        ("fs_list_dir", ".", &free, true, (Allow, "default: read-only inside declared roots")),
        ("write_file", "src/a", &free, false, (Allow, "allow: write_file(src)")),
        ("write_file", "srcx/a", &free, false, (Ask, "default: not read-only")),
        ("git_clone", "", &free, false, (Deny, "policy.network of the run")),
        ("git_clone", "", &net, false, (Allow, "default: network granted to this run")),
        ("search_grep", "src", &tight, true, (Deny, "policy.ops of the run")),
        ("fs_list_dir", "lib", &tight, true, (Deny, "policy.paths of the run")),
        ("fs_list_dir", "src", &tight, true, (Deny, "policy.paths of the run")),
        (
            "fs_list_dir",
            "src/inner/x",
            &tight,
            true,
            (Allow, "default: read-only inside declared roots"),
        ),
        ("search_hybrid", "src", &tight, true, (Allow, "default: read-only inside declared roots")),
        ("search_hybrid", ".", &tight, true, (Allow, "default: read-only inside declared roots")),
        ("search_hybrid", "lib", &tight, true, (Deny, "policy.paths of the run")),
    ] {
        check(&set, tool, path, grants, read_only, want);
    }
}

// G6
#[test]
fn request_names_rule_without_arguments() {
    let set = Rules { allow: rules(&["run_shell(awk *)"]), ..Rules::default() };
    let decision = set.decide_line(&CommandLine::parse("awk 1 f"));
    assert_eq!(decision.verdict, Verdict::Ask);
    let rule = "run_shell(awk *)".parse().unwrap();
    let fallback = DecidedBy::Fallback(Fallback::ActsWithArguments(rule));
    assert_eq!(decision.by, DecidedBy::Parts(vec![(fallback, "awk 1 f".into())]));
    assert_eq!(set.decide_line(&CommandLine::parse("awk")).verdict, Verdict::Allow);
    let other = set.decide_line(&CommandLine::parse("id -u"));
    assert_eq!(
        other.by,
        DecidedBy::Parts(vec![(DecidedBy::Fallback(Fallback::Acts), "id -u".into())])
    );
}

#[test]
fn rules_are_parsed_or_rejected() {
    for good in
        ["*", "git_clone", "fs_list_dir(a/b)", "run_shell(git status *)", "run_shell(= a | b)"]
    {
        assert_eq!(good.parse::<Rule>().unwrap().to_string(), good);
    }
    for bad in [
        "",
        "(x)",
        "a(",
        "a()",
        "run_shell(a; b)",
        "run_shell(*)",
        "run_shell(timeout 3 ls)",
        "run_shell(ls $X)",
    ] {
        assert!(bad.parse::<Rule>().is_err(), "{bad}");
    }
}

fn mode_subject<'a>(tool: &'a str, paths: &'a [String], grants: &'a Grants) -> Subject<'a> {
    let effect = match tool {
        "write_file" => ToolEffect::Edit,
        "delete_file" => ToolEffect::Remove,
        _ => ToolEffect::Any,
    };
    let read_only = tool == "read_file";
    Subject { paths, inside: true, effect, read_only, confined: true, ..Subject::new(tool, grants) }
}

#[test]
fn mode_replaces_only_the_approval_of_the_default() {
    let set = Rules {
        final_deny: rules(&["write_file(never)"]),
        deny: rules(&["write_file(denied)"]),
        allow: rules(&["write_file(allowed)"]),
        confirm: rules(&["write_file(confirmed)", "run_shell(git push)"]),
        ..Rules::default()
    };
    use ExecutionMode::{AcceptEdits, Auto, Plan};
    use Verdict::{Allow, Ask, Deny};
    for (mode, tool, argument, want) in [
        (Plan, "read_file", "a", (Allow, "default: read-only inside declared roots")),
        (Plan, "write_file", "allowed/a", (Deny, "mode plan")),
        (Plan, "write_file", "never/a", (Deny, "finalDeny: write_file(never)")),
        (Plan, "run_shell", "true", (Deny, "mode plan")),
        (ExecutionMode::Ask, "write_file", "a", (Ask, "default: not read-only")),
        (AcceptEdits, "write_file", "a", (Allow, "mode accept-edits")),
        (AcceptEdits, "write_file", "never/a", (Deny, "finalDeny: write_file(never)")),
        (AcceptEdits, "write_file", "denied/a", (Deny, "deny: write_file(denied)")),
        (AcceptEdits, "write_file", "confirmed/a", (Ask, "confirm: write_file(confirmed)")),
        (AcceptEdits, "delete_file", "a", (Ask, "default: not read-only")),
        (AcceptEdits, "run_shell", "true", (Ask, "default: not read-only for 'true'")),
        (AcceptEdits, "git_commit", "a", (Ask, "default: not read-only")),
        (Auto, "delete_file", "a", (Allow, "mode auto")),
        (Auto, "run_shell", "true", (Allow, "mode auto for 'true'")),
        (Auto, "run_shell", "git push", (Ask, "confirm: run_shell(git push) for 'git push'")),
        (Auto, "git_commit", "a", (Ask, "default: not read-only")),
    ] {
        let grants = Grants { mode, ..Grants::default() };
        let line = (tool == "run_shell").then(|| CommandLine::parse(argument));
        let paths = if line.is_some() { vec![] } else { vec![argument.to_owned()] };
        let subject = Subject { command: line.as_ref(), ..mode_subject(tool, &paths, &grants) };
        let got = set.decide(&subject);
        let text = got.by.to_string();
        assert_eq!((got.verdict, text.as_str()), want, "{mode:?} {tool} {argument}");
    }
}

#[test]
fn mode_replaces_the_confirmation_of_a_tool_as_such() {
    let set = Rules {
        confirm: rules(&["write_file", "run_shell", "delete_file", "write_file(secret)"]),
        ..Rules::default()
    };
    use ExecutionMode::{AcceptEdits, Ask, Auto};
    for (mode, tool, argument, want) in [
        (Ask, "write_file", "a", Verdict::Ask),
        (AcceptEdits, "write_file", "a", Verdict::Allow),
        (AcceptEdits, "write_file", "secret/a", Verdict::Ask),
        (AcceptEdits, "delete_file", "a", Verdict::Ask),
        (AcceptEdits, "run_shell", "true", Verdict::Ask),
        (Auto, "delete_file", "a", Verdict::Allow),
        (Auto, "run_shell", "true", Verdict::Allow),
        (Auto, "write_file", "secret/a", Verdict::Ask),
    ] {
        let grants = Grants { mode, ..Grants::default() };
        let line = (tool == "run_shell").then(|| CommandLine::parse(argument));
        let paths = if line.is_some() { vec![] } else { vec![argument.to_owned()] };
        let subject = Subject { command: line.as_ref(), ..mode_subject(tool, &paths, &grants) };
        assert_eq!(set.decide(&subject).verdict, want, "{mode:?} {tool} {argument}");
        let away = Subject { inside: false, confined: false, ..subject };
        assert_eq!(set.decide(&away).verdict, Verdict::Ask, "{mode:?} {tool} elsewhere");
    }
}

#[test]
fn mode_raises_nothing_outside_the_root_or_the_sandbox() {
    let set = Rules::default();
    let line = CommandLine::parse("true");
    let path = vec!["/etc/passwd".to_owned()];
    for mode in ExecutionMode::ALL {
        let grants = Grants { mode, ..Grants::default() };
        let outside = Subject { inside: false, ..mode_subject("write_file", &path, &grants) };
        let command = Subject { command: Some(&line), ..mode_subject("run_shell", &[], &grants) };
        let open = Subject { confined: false, ..command };
        for subject in [outside, open] {
            assert_ne!(set.decide(&subject).verdict, Verdict::Allow, "{mode:?} {}", subject.tool);
        }
        // A denial by default is the user's choice.
        let closed = Rules { default: Verdict::Deny, ..Rules::default() };
        let edit = ["a".to_owned()];
        let edit = mode_subject("write_file", &edit, &grants);
        assert_eq!(closed.decide(&edit).verdict, Verdict::Deny, "{mode:?}");
    }
}
