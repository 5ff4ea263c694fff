//! Allowed commands whose arguments run other programs or write files.

use std::fs;

use serde_json::json;

use super::{has_programs, shells, with_control};
use crate::{
    hooks::Scene,
    sealed::{commit_all, program, tree},
};

/// Rules as users write them, each for programs that are thought to read alone.
const RULES: &[&str] = &[
    "git *",
    "git status *",
    "git diff *",
    "git log *",
    "find *",
    "sed *",
    "awk *",
    "tar *",
    "rg *",
    "sort *",
    "uniq *",
    "xargs *",
    "env *",
    "make *",
    "node *",
    "perl *",
    "curl *",
    "sqlite3 *",
    "python3 *",
    "vim *",
    "timeout *",
    "cat *",
];

const FORMS: &[(&str, &str)] = &[
    ("git-fsmonitor", "git -c core.fsmonitor='touch {M}; false' status"),
    ("git-alias", "git -c alias.x='!touch {M}' x"),
    ("git-exec-path", "git --exec-path=tools touch-it"),
    ("git-external-diff", "GIT_EXTERNAL_DIFF='touch {M};:' git diff"),
    (
        "git-config-env",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch {M}' git x",
    ),
    ("git-export", "export GIT_EXTERNAL_DIFF='touch {M};:'; git diff"),
    ("git-log-output", "git log -p --output={M}"),
    ("git-diff-output", "git diff --output={M}"),
    ("git-no-index", "git diff --no-index --output={M} notes.txt more.txt"),
    ("git-config", "git config -f tools/x alias.x '!touch {M}' && GIT_CONFIG_GLOBAL=tools/x git x"),
    ("find-exec", "find . -maxdepth 0 -exec touch {M} \\;"),
    ("find-execdir", "find notes.txt -execdir touch {M} \\;"),
    ("find-fprint", "find . -maxdepth 0 -fprint {M}"),
    ("find-fls", "find . -maxdepth 0 -fls {M}"),
    ("sed-e", "sed -n '1e touch {M}' more.txt"),
    ("sed-w", "sed -n 'w {M}' more.txt"),
    ("sed-s-e", "sed 's/.*/touch {M}/e' more.txt"),
    ("sed-s-w", "sed 's/more/x/w {M}' more.txt"),
    ("awk-system", "awk 'BEGIN { system(\"touch {M}\") }'"),
    ("awk-print", "awk 'BEGIN { print 1 > \"{M}\" }'"),
    ("awk-pipe", "awk 'BEGIN { \"touch {M}\" | getline }'"),
    (
        "tar-checkpoint",
        "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch {M}' more.txt",
    ),
    ("tar-program", "tar -c -f other.tar -I 'touch {M}; cat' more.txt"),
    ("tar-to-command", "tar -xf in.tar --to-command='touch {M}'"),
    ("tar-create", "tar -cf {M} more.txt"),
    ("rg-pre", "rg --pre ./tools/mark.sh more more.txt"),
    ("rg-config", "RIPGREP_CONFIG_PATH=tools/rg.conf rg more more.txt"),
    ("sort-output", "sort -o {M} more.txt"),
    ("sort-joined", "sort more.txt -o{M}"),
    ("sort-long", "sort --outp={M} more.txt"),
    ("uniq-output", "uniq more.txt {M}"),
    ("xargs", "xargs touch {M} < /dev/null"),
    ("env", "env touch {M}"),
    ("env-split", "env -S 'touch {M}'"),
    ("timeout", "timeout 5 touch {M}"),
    ("make-file", "make -f tools/evil.mk {M}"),
    ("make-eval", "make --eval='$(shell touch {M})' -n more.txt"),
    ("make-shell", "make SHELL=tools/sh.sh -f tools/hit.mk hit-make-shell"),
    ("node", "node -e 'require(\"fs\").writeFileSync(\"{M}\", \"\")'"),
    ("perl", "perl -e 'system(\"touch {M}\")'"),
    ("curl-output", "curl -s -o {M} file:///etc/hostname"),
    ("curl-config", "curl -K tools/curl.conf"),
    ("sqlite", "sqlite3 :memory: '.shell touch {M}'"),
    ("python", "python3 -c 'open(\"{M}\", \"w\")'"),
    ("vim", "vim -es -c '!touch {M}' -c 'qa!'"),
    ("redirect", "cat more.txt > {M}"),
    ("path", "PATH=$PWD/tools/bin:$PATH git status"),
    ("own-program", "./tools/bin/git status"),
    ("relative-program", "tools/bin/git status"),
];

fn prepare(scene: &Scene) {
    let repo = scene.path("repo");
    fs::remove_dir_all(repo.join(".git")).unwrap();
    let mark = |name: &str| format!("#!/bin/sh\ntouch hit-{name}\n");
    program(&repo.join("tools/git-touch-it"), &mark("git-exec-path"));
    program(&repo.join("tools/mark.sh"), "#!/bin/sh\ntouch hit-rg-pre\n");
    program(&repo.join("tools/config.sh"), &mark("rg-config"));
    program(&repo.join("tools/sh.sh"), &mark("make-shell"));
    let by_name = "#!/bin/sh\ncase $0 in ./*) touch hit-own-program;; \
        tools/*) touch hit-relative-program;; *) touch hit-path;; esac\n";
    program(&repo.join("tools/bin/git"), by_name);
    tree(
        &repo,
        &[
            ("more.txt", "more\n"),
            ("tools/rg.conf", "--pre=./tools/config.sh\n"),
            ("tools/evil.mk", "hit-%:\n\t@touch $@\n"),
            ("tools/hit.mk", "hit-make-shell:\n\t@echo\n"),
            ("tools/curl.conf", "url = file:///etc/hostname\noutput = hit-curl-config\n"),
        ],
    );
    let done = std::process::Command::new("tar")
        .args(["-cf", "in.tar", "more.txt"])
        .current_dir(&repo)
        .status();
    assert!(done.unwrap().success());
    commit_all(&repo);
    tree(&repo, &[("notes.txt", "changed\n")]);
}

#[test]
fn allowed_commands_run_no_other_program_by_their_arguments() {
    let programs = ["git", "find", "sed", "awk", "tar", "rg", "make", "node", "perl", "curl"];
    if !has_programs(&programs) || !has_programs(&["sqlite3", "python3", "vim", "bwrap"]) {
        return;
    }
    let rules: Vec<String> = RULES.iter().map(|rule| format!("run_shell({rule})")).collect();
    with_control(
        &shells(FORMS),
        &[],
        prepare,
        &json!({"permissions": {"allow": rules}}),
        &json!({"permissions": {"allow": ["run_shell"]}}),
    );
}
