//! Command lines that a shell reads in another way than a reader of text.

use serde_json::json;

use super::{has_programs, shells, with_control};
use crate::{hooks::Scene, sealed::program};

const FORMS: &[(&str, &str)] = &[
    ("semicolon", "echo a; touch {M}"),
    ("and", "echo a && touch {M}"),
    ("pipe", "echo a | touch {M}"),
    ("pipe-both", "echo a |& touch {M}"),
    ("background", "echo a & touch {M}; wait"),
    ("newline", "echo a\ntouch {M}"),
    ("continuation", "echo a \\\n; touch {M}"),
    ("split-word", "echo a; to\\\nuch {M}"),
    ("quoted-word", "echo a; t''ou\"\"ch {M}"),
    ("escaped-word", "echo a; \\touch {M}"),
    ("substitution", "echo $(touch {M})"),
    ("backticks", "echo `touch {M}`"),
    ("in-quotes", "echo \"$(touch {M})\""),
    ("nested", "echo \"${x:-$(touch {M})}\""),
    ("arithmetic", "echo $(( $(touch {M}; echo 1) + 1 ))"),
    ("subscript", "a=(1); echo ${a[$(touch {M}; echo 0)]}"),
    ("indirect", "x='a[$(touch {M})]'; echo $((x))"),
    ("process-in", "cat <(touch {M})"),
    ("process-out", "echo a > >(touch {M}; cat); sleep 0.3"),
    ("here-document", "cat <<E\n$(touch {M})\nE"),
    ("after-here-document", "cat <<'E'\nx\nE\ntouch {M}"),
    ("here-document-tab", "cat <<-E\n\tx\n\tE\ntouch {M}"),
    ("here-document-quoted", "cat <<E\\\nF\nx\nEF\ntouch {M}"),
    ("here-string", "cat <<< \"$(touch {M})\""),
    ("field-separator", "echo a;touch${IFS}{M}"),
    ("braces", "echo a; {touch,{M}}"),
    ("variable", "x=touch; $x {M}"),
    ("quoted-backslash", "echo 'a\\'; touch {M}; echo ''"),
    ("ansi-quote", "echo $'\\''; touch {M}; echo $'\\''"),
    ("ansi-word", "echo a; $'\\x74ouch' {M}"),
    ("comment", "echo a # '\ntouch {M} # '"),
    ("no-comment", "echo a#; touch {M}"),
    ("function", "echo() { touch {M}; }; echo a"),
    ("function-word", "function cat { touch {M}; }; cat more.txt"),
    ("alias", "shopt -s expand_aliases; alias echo='touch {M};'\necho a"),
    ("coproc", "coproc touch {M}; wait"),
    ("time", "time touch {M}"),
    ("not", "! touch {M}"),
    ("exec", "exec touch {M}"),
    ("command", "command touch {M}"),
    ("eval", "eval 'touch {M}'"),
    ("builtin", "builtin eval 'touch {M}'"),
    ("trap", "trap 'touch {M}' EXIT; echo a"),
    ("source", "source <(echo touch {M})"),
    ("dot", "echo 'touch {M}' | . /dev/stdin"),
    ("shell", "echo 'touch {M}' | sh"),
    ("start-file", "BASH_ENV=<(echo touch {M}) bash -c :"),
    ("if", "if echo a; then touch {M}; fi"),
    ("for", "for i in 1; do touch {M}; done"),
    ("case", "case x in x) touch {M};; esac"),
    ("subshell", "( touch {M} )"),
    ("group", "{ touch {M}; }"),
    ("redirection", "echo a > {M}"),
    ("clobber", "echo a >| {M}"),
    ("both-streams", "echo a &> {M}"),
    ("read-write", "echo a <> {M}"),
    ("descriptor", "echo a {fd}> {M}"),
    ("leading", "> {M} echo a"),
    ("error-stream", "echo a 2> {M}"),
    ("no-command", "> {M}"),
    ("hash", "hash -p $PWD/tools/evil git; git status"),
    ("read-name", "printf -v PATH %s $PWD/tools/bin:$PATH; git status"),
    (
        "default-name",
        ": ${PATH:=x} ${GIT_EXTERNAL_DIFF:=touch {M};:}; export GIT_EXTERNAL_DIFF; echo a > /dev/null; eval \"$GIT_EXTERNAL_DIFF\"",
    ),
    ("argument", "git status --porcelain=\"$(touch {M})\""),
    ("fifty", "true 0"),
];

fn prepare(scene: &Scene) {
    let repo = scene.path("repo");
    std::fs::remove_dir_all(repo.join(".git")).unwrap();
    program(&repo.join("tools/evil"), "#!/bin/sh\ntouch hit-hash\n");
    program(&repo.join("tools/bin/git"), "#!/bin/sh\ntouch hit-read-name\n");
    std::fs::write(repo.join("more.txt"), "more\n").unwrap();
}

#[test]
fn command_lines_are_read_as_the_shell_reads_them() {
    if !has_programs(&["bash", "bwrap", "git"]) {
        return;
    }
    let long = format!("{} touch {{M}}", "echo a;".repeat(60));
    let forms: Vec<(&str, &str)> = FORMS
        .iter()
        .map(|(name, command)| (*name, if *name == "fifty" { long.as_str() } else { *command }))
        .collect();
    // Commands that only print, and builtins that only set a shell up.
    let rules = ["echo *", "cat *", "git status *", "printf *", "true", "sleep *"]
        .map(|rule| format!("run_shell({rule})"));
    with_control(
        &shells(&forms),
        &[],
        prepare,
        &json!({"permissions": {"allow": rules}}),
        &json!({"permissions": {"allow": ["run_shell"]}}),
    );
}
