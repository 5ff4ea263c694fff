//! `apply_patch` beside `git apply`: the same files for every commit's diff, or a refusal that
//! changes nothing.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    fixture::{Fixture, allow},
    git_commits,
};

/// Files by path: content, and permission to execute.
type Tree = BTreeMap<PathBuf, (Vec<u8>, bool)>;

fn tree(top: &Path) -> Tree {
    use std::os::unix::fs::PermissionsExt as _;
    let mut files = Tree::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let rel = path.strip_prefix(top).unwrap().to_owned();
            let content = match meta.is_symlink() {
                true => std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                false => std::fs::read(&path).unwrap(),
            };
            files.insert(rel, (content, meta.permissions().mode() & 0o100 != 0));
        }
    }
    files
}

pub fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new("git")
        .args(["-c", "core.autocrlf=false", "-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn words(output: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(output).split_whitespace().map(str::to_owned).collect()
}

/// Outcome of one commit.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Same,
    /// The tool refused, and changed nothing.
    Refused(String),
    /// Git itself does not apply its diff.
    NotByGit(String),
    Different(String),
}

/// A repository, and a workspace whose files are those before a commit.
struct Comparison {
    fixture: Fixture,
    repository: PathBuf,
    peer: tempfile::TempDir,
}

impl Comparison {
    async fn new(repository: PathBuf) -> Self {
        let fixture = Fixture::new(&[], allow(&["*"])).await;
        Self { fixture, repository, peer: tempfile::tempdir().unwrap() }
    }

    /// Writes the files of a commit that a diff names to an empty folder.
    fn check_out(&self, commit: &str, paths: &[u8], folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_dir = path.symlink_metadata().unwrap().is_dir();
            let done =
                if is_dir { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            done.unwrap();
        }
        let index = self.peer.path().join("index");
        let _absent = std::fs::remove_file(&index);
        if paths.is_empty() {
            return;
        }
        let mut child = Command::new("git")
            .arg("-C")
            .arg(&self.repository)
            .args(["-c", "core.autocrlf=false", "--work-tree"])
            .arg(folder)
            .args(["--literal-pathspecs", "checkout", "-q", commit])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_INDEX_FILE", &index)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(paths).unwrap();
        assert!(child.wait().unwrap().success(), "{commit}");
    }

    /// Compares the tool with git for the diff between two commits.
    async fn apply(&self, parent: &str, commit: &str, options: &[&str]) -> Outcome {
        let range = [parent, commit];
        let names =
            [&["diff", "--no-renames", "--name-only", "-z", "--diff-filter=MDT"], &range[..]];
        let mut paths = git(&self.repository, &names.concat(), b"").unwrap();
        if options.iter().any(|option| option.contains("copies")) {
            // The sources of copies are not among the changed files.
            paths = git(&self.repository, &["ls-tree", "-r", "-z", "--name-only", parent], b"")
                .unwrap();
        }
        let diff = [&["diff", "--no-color"], options, &range[..]].concat();
        let patch = git(&self.repository, &diff, b"").unwrap();
        let folder = self.fixture.path("");
        self.check_out(parent, &paths, &folder);
        let before = tree(&folder);
        let peer = self.peer.path().join("tree");
        std::fs::create_dir_all(&peer).unwrap();
        self.check_out(parent, &paths, &peer);
        let strip = if options.contains(&"--no-prefix") { "-p0" } else { "-p1" };
        let by_git = git(
            &peer,
            &["apply", "--unidiff-zero", "--whitespace=nowarn", strip, "--allow-empty", "-"],
            &patch,
        );
        let Ok(text) = String::from_utf8(patch) else {
            return Outcome::Refused("the diff is not UTF-8, which JSON cannot express".into());
        };
        for path in before.keys() {
            let read = json!({"path": path, "limit": 1});
            let _link = self.fixture.call("read_file", read).await;
        }
        let by_tool = self.fixture.call("apply_patch", json!({"patch": text})).await;
        let after = tree(&folder);
        match (by_tool, by_git) {
            (Err(error), _) if after == before => Outcome::Refused(error.message),
            (Err(error), _) => Outcome::Different(format!("refused, but changed files: {error}")),
            (Ok(_), Err(error)) => Outcome::NotByGit(error),
            (Ok(_), Ok(_)) if after == tree(&peer) => Outcome::Same,
            (Ok(_), Ok(_)) => Outcome::Different(difference(&after, &tree(&peer))),
        }
    }
}

fn difference(tool: &Tree, git: &Tree) -> String {
    let paths = tool.keys().chain(git.keys());
    let first = paths.into_iter().find(|path| tool.get(*path) != git.get(*path));
    let excerpt = |tree: &Tree| {
        let file = first.and_then(|path| tree.get(path));
        file.map(|(bytes, mode)| {
            (String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>(), *mode)
        })
    };
    format!("{first:?}: tool {:?}, git {:?}", excerpt(tool), excerpt(git))
}

/// Options of `git diff` that are tried on each commit.
const OPTIONS: [&[&str]; 6] = [
    &[],
    &["--no-renames"],
    &["-M", "-C", "--find-copies-harder"],
    &["--no-prefix", "-M"],
    &["-U0", "-M"],
    &["-U1", "--src-prefix=i/", "--dst-prefix=w/"],
];

/// Refusals that are correct.
const STATED: [&str; 2] = ["binary changes cannot be applied", "symbolic links cannot be changed"];

#[tokio::test]
async fn diffs_of_commits_are_applied_as_git_applies_them() {
    let repository = tempfile::tempdir().unwrap();
    let commits = git_commits::write(repository.path());
    assert!(commits.len() >= 60, "{}", commits.len());
    let comparison = Comparison::new(repository.path().to_owned()).await;
    let mut wrong = Vec::new();
    let mut same = 0;
    for (name, parent, commit) in &commits {
        for options in OPTIONS {
            match comparison.apply(parent, commit, options).await {
                Outcome::Same => same += 1,
                Outcome::Refused(why) if STATED.iter().any(|stated| why.contains(stated)) => {}
                other => wrong.push(format!("{name} {options:?}: {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{same} same, wrong:\n{}", wrong.join("\n"));
    assert!(same >= 6 * (commits.len() - 4), "{same}");
}

/// Compares both on the last commits of a real repository, and prints counts.
#[tokio::test]
#[ignore = "needs CAIRN_APPLY_REPOSITORY, the path of a repository; CAIRN_APPLY_COMMITS is their number"]
async fn diffs_of_a_real_repository_are_applied_as_git_applies_them() {
    let repository = std::env::var("CAIRN_APPLY_REPOSITORY").unwrap();
    let number = std::env::var("CAIRN_APPLY_COMMITS").unwrap_or_else(|_| "300".to_owned());
    let repository = PathBuf::from(repository);
    let log = ["log", "--no-merges", "--format=%H %P", "-n", &number];
    let log = git(&repository, &log, b"").unwrap();
    let comparison = Comparison::new(repository).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let [commit, parent] = &words(line.as_bytes())[..] else { continue };
        let outcome = comparison.apply(parent, commit, &["-M"]).await;
        let key = match &outcome {
            Outcome::Same => "same".to_owned(),
            Outcome::NotByGit(why) => format!("not applied by git: {why}"),
            Outcome::Refused(why) => format!("refused: {}", kind_of(why)),
            Outcome::Different(_) => "different".to_owned(),
        };
        *counts.entry(key).or_default() += 1;
        if let Outcome::Different(how) = outcome {
            wrong.push(format!("{commit}: {how}"));
        }
    }
    print_counts(&counts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[expect(clippy::print_stdout, reason = "the counts are the result of a run by hand")]
fn print_counts(counts: &BTreeMap<String, usize>) {
    counts.iter().for_each(|(key, n)| println!("{n:5} {key}"));
}

/// Returns a refusal without paths and numbers, so that equal ones are counted together.
fn kind_of(why: &str) -> String {
    let mut is_quoted = false;
    let mut kind = String::new();
    for c in why.chars().take(200) {
        is_quoted ^= c == '\'';
        if !is_quoted && !c.is_ascii_digit() {
            kind.push(c);
        }
    }
    kind
}
