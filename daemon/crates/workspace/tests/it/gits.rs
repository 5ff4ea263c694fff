//! Git: status and log of good and hostile repositories, clones that succeed, fail and are
//! interrupted.

use std::{
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use cairn_protocol::error::Reason;
use cairn_workspace::{
    Roots,
    git::{
        CLONE_LIMIT, CloneRequest, CloneSource, DiffRequest, Remote, RemoteLocation, git_clone,
        git_commit, git_diff, git_head, git_log, git_status, remove_partials,
    },
};

use crate::{pipe, put, root};

pub fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

pub fn repository(dir: &Path) {
    put(dir, "a.rs", "fn a() {}\n");
    put(dir, "b.rs", "fn b() {}\n");
    git(dir, &["init", "-q"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "first\n\nbody"]);
    put(dir, "a.rs", "fn a() { 1 }\n");
    git(dir, &["commit", "-qam", "second"]);
}

#[test]
fn git_status_and_log() {
    let (dir, root) = root();
    assert!(!git_status(&root, ".").unwrap().is_repository);
    assert!(git_log(&root, 10).unwrap().is_empty());
    git(dir.path(), &["init", "-q"]);
    let unborn = git_status(&root, ".").unwrap();
    assert_eq!((unborn.branch.as_deref(), unborn.head), (Some("main"), None));
    assert!(git_log(&root, 10).unwrap().is_empty());
    repository(dir.path());
    git(dir.path(), &["remote", "add", "origin", "https://me:secret@example.org/r.git"]);
    put(dir.path(), "a.rs", "changed\n");
    put(dir.path(), "new/deep/x", "");
    std::fs::remove_file(dir.path().join("b.rs")).unwrap();
    let status = git_status(&root, "new").unwrap();
    assert_eq!(git_head(&root).unwrap().head.unwrap(), git(dir.path(), &["rev-parse", "HEAD"]));
    assert_eq!(status.remote.unwrap(), "https://example.org/r.git");
    let changes: Vec<_> =
        status.changes.iter().map(|c| (c.path.as_str(), c.status.as_str())).collect();
    assert_eq!(changes, [("a.rs", "modified"), ("b.rs", "deleted"), ("new/", "untracked")]);
    assert!(!status.truncated);
    let log = git_log(&root, 10).unwrap();
    let got: Vec<_> =
        log.iter().map(|c| (c.subject.as_str(), c.paths.len(), c.author.as_str())).collect();
    assert_eq!(got, [("second", 1, "A"), ("first", 2, "A")]);
    assert_eq!(git_log(&root, 1).unwrap().len(), 1);
    // Later logs of a history that grows, and one that is written again, are those of git.
    let subjects = || -> Vec<(String, usize)> {
        let log = git_log(&root, 10).unwrap().into_iter();
        // Commits of one second have no order.
        let all: std::collections::BTreeSet<_> = log.map(|c| (c.subject, c.paths.len())).collect();
        all.into_iter().collect()
    };
    assert_eq!(subjects(), [("first".into(), 2), ("second".into(), 1)]);
    git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "third"]);
    assert_eq!(subjects(), [("first".into(), 2), ("second".into(), 1), ("third".into(), 0)]);
    git(dir.path(), &["reset", "-q", "--soft", "HEAD~2"]);
    git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "other"]);
    assert_eq!((subjects()[1].0.as_str(), subjects().len()), ("other", 2));
    for n in 0..1005 {
        put(dir.path(), &format!("u{n}"), "");
    }
    let many = git_status(&root, ".").unwrap();
    assert_eq!((many.changes.len(), many.truncated), (1000, true));
}

#[test]
fn hostile_repository_runs_no_program() {
    let (dir, root) = root();
    repository(dir.path());
    let marker = dir.path().join(".git/marker");
    let script = dir.path().join(".git/evil");
    put(dir.path(), ".git/evil", &format!("#!/bin/sh\ntouch {}\ncat\n", marker.display()));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("filter.x.clean", evil),
        ("filter.x.smudge", evil),
        ("filter.x.process", evil),
        ("diff.external", evil),
        ("core.pager", evil),
        ("core.hooksPath", dir.path().join(".git").to_str().unwrap()),
        ("core.sshCommand", evil),
        ("gpg.program", evil),
        ("log.showSignature", "true"),
    ] {
        git(dir.path(), &["config", key, value]);
    }
    put(dir.path(), ".gitattributes", "* filter=x diff=x\n");
    put(dir.path(), "a.rs", "fn a() { 2 }\n");
    let status = git_status(&root, ".").unwrap();
    assert!(status.changes.iter().any(|c| c.path == "a.rs"));
    assert_eq!(git_log(&root, 10).unwrap().len(), 2);
    assert!(!marker.exists());
    // Control: git itself runs them.
    let _ = Command::new("git").arg("status").current_dir(dir.path()).output().unwrap();
    assert!(marker.exists());
}

#[test]
fn repositories_leading_outside_roots_are_ignored() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("secret")).unwrap();
    repository(&base.join("secret"));
    let secret = base.join("secret/.git");
    type Make<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Make<'_>); 5] = [
        ("a .git file", &|dir| put(dir, ".git", &format!("gitdir: {}\n", secret.display()))),
        ("a .git link", &|dir| symlink(&secret, dir.join(".git")).unwrap()),
        ("a work tree", &|dir| {
            repository(dir);
            git(dir, &["config", "core.worktree", base.join("secret").to_str().unwrap()]);
        }),
        ("a commondir", &|dir| {
            repository(dir);
            put(dir, ".git/commondir", secret.to_str().unwrap());
        }),
        ("a linked object store", &|dir| {
            repository(dir);
            std::fs::remove_dir_all(dir.join(".git/objects")).unwrap();
            symlink(secret.join("objects"), dir.join(".git/objects")).unwrap();
        }),
    ];
    for (what, make) in cases {
        let dir = base.join("inside");
        std::fs::create_dir(&dir).unwrap();
        make(&dir);
        let start = Instant::now();
        let alone = Roots::new(vec![]).declare(&dir).unwrap();
        assert!(!git_status(&alone, ".").unwrap().is_repository, "{what}");
        assert!(git_log(&alone, 5).unwrap().is_empty(), "{what}");
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
    // Control: a work tree that its repository knows is one.
    git(&base.join("secret"), &["worktree", "add", "-q", "../tree"]);
    let tree = Roots::new(vec![]).declare(&base.join("tree")).unwrap();
    assert_eq!(git_status(&tree, ".").unwrap().branch.as_deref(), Some("tree"));
    // A repository above the root is not searched.
    std::fs::create_dir(base.join("secret/sub")).unwrap();
    let sub = Roots::new(vec![]).declare(&base.join("secret/sub")).unwrap();
    assert!(!git_status(&sub, ".").unwrap().is_repository);
}

#[test]
fn pipes_in_tree_do_not_block_status() {
    let (dir, root) = root();
    repository(dir.path());
    std::fs::remove_file(dir.path().join("a.rs")).unwrap();
    pipe(&dir.path().join("a.rs"));
    pipe(&dir.path().join("untracked"));
    let start = Instant::now();
    let status = git_status(&root, ".").unwrap();
    assert!(status.changes.iter().any(|c| c.path == "a.rs"));
    assert!(start.elapsed() < Duration::from_secs(20));
    // Rules that are a pipe: the facts known without them are returned.
    pipe(&dir.path().join(".gitignore"));
    let status = git_status(&root, ".").unwrap();
    assert!(status.is_repository && status.head.is_some() && status.truncated);
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// Returns a clone request: of a declared folder, or of a server.
fn request(url: &str, dest: &Path) -> CloneRequest {
    let remote = Remote::parse(url).unwrap();
    let source = match remote.location().clone() {
        RemoteLocation::Folder(folder) => {
            let roots = Roots::new(vec![]);
            roots.declare(&folder).unwrap();
            CloneSource::folder(&roots, remote).unwrap()
        }
        RemoteLocation::Host { .. } => CloneSource::host(remote, vec![]),
    };
    CloneRequest { source, branch: None, dest: dest.to_path_buf(), limit: CLONE_LIMIT }
}

fn entry_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn clone_creates_reuses_and_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    std::fs::create_dir(base.join("origin")).unwrap();
    repository(&base.join("origin"));
    git(&base.join("origin"), &["branch", "other"]);
    let url = format!("file://{}", base.join("origin").display());
    let dest = base.join("ws/clone");
    let mut stages = vec![];
    let done =
        git_clone(&request(&url, &dest), &mut |s, p| stages.push((s, p)), &|| false).unwrap();
    assert_eq!(done.head, git(&base.join("origin"), &["rev-parse", "HEAD"]));
    assert_eq!((done.branch.as_deref(), done.reused), (Some("main"), false));
    assert!(stages.contains(&("receiving", 100.0)), "{stages:?}");
    assert!(dest.join("a.rs").exists());
    let repeated = git_clone(&request(&url, &dest), &mut |_, _| {}, &|| false).unwrap();
    assert!(repeated.reused && repeated.head == done.head);
    let reason = |r: CloneRequest| git_clone(&r, &mut |_, _| {}, &|| false).unwrap_err().reason;
    assert_eq!(
        reason(CloneRequest { branch: Some("other".into()), ..request(&url, &dest) }),
        Reason::DestinationExists
    );
    assert_eq!(reason(request("https://example.org/else", &dest)), Reason::DestinationExists);
    put(&base, "ws/mine/file", "");
    assert_eq!(reason(request(&url, &base.join("ws/mine"))), Reason::DestinationExists);
    let other =
        CloneRequest { branch: Some("other".into()), ..request(&url, &base.join("ws/other")) };
    assert_eq!(
        git_clone(&other, &mut |_, _| {}, &|| false).unwrap().branch.as_deref(),
        Some("other")
    );
    let none = CloneRequest { branch: Some("none".into()), ..request(&url, &base.join("ws/none")) };
    assert_eq!(reason(none), Reason::CloneFailed);
    let option = CloneRequest {
        branch: Some("--upload-pack=x".into()),
        ..request(&url, &base.join("ws/none"))
    };
    assert_eq!(reason(option), Reason::InvalidParams);
    std::fs::create_dir(base.join("plain")).unwrap();
    let plain = format!("file://{}", base.join("plain").display());
    assert_eq!(reason(request(&plain, &base.join("ws/none"))), Reason::CloneFailed);
    for bad in ["--upload-pack=touch x", "-x", "ext::sh -c touch% x", "/tmp/x"] {
        assert_eq!(Remote::parse(bad).unwrap_err().reason, Reason::BadUrl, "{bad}");
    }
    std::fs::create_dir(base.join("empty")).unwrap();
    git(&base.join("empty"), &["init", "-q"]);
    let empty = format!("file://{}", base.join("empty").display());
    assert_eq!(reason(request(&empty, &base.join("ws/none"))), Reason::CloneFailed);
    assert_eq!(entry_names(&base.join("ws")), ["clone", "mine", "other"]);
    std::fs::create_dir_all(base.join("ws/x.partial-00/.git")).unwrap();
    assert_eq!(remove_partials(&base.join("ws")), 1);
    assert_eq!(entry_names(&base.join("ws")), ["clone", "mine", "other"]);
}

#[test]
fn existing_clone_is_updated_or_reports_reason() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (origin, dest) = (base.join("origin"), base.join("ws/clone"));
    std::fs::create_dir(&origin).unwrap();
    repository(&origin);
    let url = format!("file://{}", origin.display());
    let clone = || git_clone(&request(&url, &dest), &mut |_, _| {}, &|| false).unwrap();
    let text = |name: &str| std::fs::read_to_string(dest.join(name)).unwrap();
    let commit = |name: &str, text: &str| {
        put(&origin, name, text);
        git(&origin, &["add", "."]);
        git(&origin, &["commit", "-qm", "more"]);
        git(&origin, &["rev-parse", "HEAD"])
    };
    let first = clone();
    let same = clone();
    assert_eq!((same.head, same.reused, same.stale), (first.head.clone(), true, None));
    let second = commit("a.rs", "fn a() { 3 }\n");
    let got = clone();
    assert_eq!((got.head, got.branch.as_deref(), got.stale), (second.clone(), Some("main"), None));
    assert_eq!(text("a.rs"), "fn a() { 3 }\n");
    // A rewritten history is followed: no work of the user depends on it.
    git(&origin, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!((clone().head, clone().stale), (first.head, None));
    // A file that was changed locally is not lost, and an unrelated one does not matter.
    put(&dest, "b.rs", "mine\n");
    let third = commit("a.rs", "fn a() { 4 }\n");
    assert_eq!((clone().head, text("b.rs").as_str()), (third.clone(), "mine\n"));
    commit("b.rs", "theirs\n");
    let stale_clone = clone();
    assert!(stale_clone.stale.unwrap().starts_with("fetched and not checked out: "));
    assert_eq!((stale_clone.head, text("b.rs").as_str()), (third, "mine\n"));
    git(&dest, &["checkout", "-q", "b.rs"]);
    git(&dest, &["commit", "-q", "--allow-empty", "-m", "my own"]);
    assert!(clone().stale.unwrap().contains("local commits"));
    git(&dest, &["reset", "-q", "--hard", "origin/main"]);
    assert_eq!((clone().stale, text("b.rs").as_str()), (None, "theirs\n"));
    // Without the remote it is returned unchanged, with git's message.
    let clone_request = request(&url, &dest);
    std::fs::remove_dir_all(origin.join(".git")).unwrap();
    let offline = git_clone(&clone_request, &mut |_, _| {}, &|| false).unwrap();
    assert!(offline.reused && offline.stale.unwrap().starts_with("not fetched: fetching file://"));
    assert_eq!(text("b.rs"), "theirs\n");
}

#[test]
fn tampered_clone_runs_no_program() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (origin, dest, marker) = (base.join("origin"), base.join("ws/clone"), base.join("marker"));
    std::fs::create_dir(&origin).unwrap();
    repository(&origin);
    let url = format!("file://{}", origin.display());
    let clone = || git_clone(&request(&url, &dest), &mut |_, _| {}, &|| false).unwrap();
    clone();
    let touch = format!("touch {}", marker.display());
    for hook in ["post-checkout", "reference-transaction", "post-merge", "post-rewrite"] {
        put(&dest, &format!(".git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
        let hook = dest.join(".git/hooks").join(hook);
        std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    put(&origin, "a.rs", "fn a() { 5 }\n");
    git(&origin, &["commit", "-qam", "third"]);
    let got = clone();
    assert_eq!((got.stale, got.head), (None, git(&origin, &["rev-parse", "HEAD"])));
    assert!(!marker.exists(), "a hook ran");
    for (key, value) in [
        ("core.alternateRefsCommand", touch.as_str()),
        ("credential.helper", &format!("!{touch}")),
        ("core.sshCommand", &touch),
        ("remote.origin.uploadpack", &format!("{touch}; git-upload-pack")),
        ("filter.x.smudge", &touch),
        ("include.path", "/dev/null"),
    ] {
        git(&dest, &["config", key, value]);
        let got = clone();
        assert!(
            got.stale.as_deref().is_some_and(|why| why.contains("was changed")),
            "{key}: {got:?}"
        );
        git(&dest, &["config", "--unset", key]);
        assert_eq!(clone().stale, None, "{key}");
    }
    assert!(!marker.exists());
    // Control: git itself runs the hook.
    git(&dest, &["checkout", "-q", "-b", "other"]);
    assert!(marker.exists());
}

/// Starts a server that accepts connections and sends nothing.
fn silent_server() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    port
}

#[test]
fn clone_can_be_cancelled_and_times_out() {
    let port = silent_server();
    let url = format!("git://127.0.0.1:{port}/r.git");
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let cancel_at = start + Duration::from_millis(300);
    let failed = git_clone(&request(&url, &dir.path().join("c")), &mut |_, _| {}, &|| {
        Instant::now() > cancel_at
    })
    .unwrap_err();
    assert_eq!(failed.reason, Reason::Cancelled);
    let limited =
        CloneRequest { limit: Duration::from_millis(300), ..request(&url, &dir.path().join("c")) };
    assert_eq!(
        git_clone(&limited, &mut |_, _| {}, &|| false).unwrap_err().reason,
        Reason::CloneFailed
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(entry_names(dir.path()).is_empty());
}

/// Waits until no thread of this process reads a repository; other tests may have some for a
/// moment.
fn no_git_thread_is_running() -> bool {
    let reads = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "git")
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while std::fs::read_dir("/proc/self/task").unwrap().flatten().any(reads) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

type Trap = (&'static str, &'static dyn Fn(&Path));

/// Pipes at paths that git reads before anything else.
const TRAPS: &[Trap] = &[
    ("HEAD", &|dir| replace(&dir.join(".git/HEAD"))),
    ("config", &|dir| replace(&dir.join(".git/config"))),
    ("index", &|dir| replace(&dir.join(".git/index"))),
    ("packed-refs", &|dir| replace(&dir.join(".git/packed-refs"))),
    ("a reference", &|dir| replace(&dir.join(".git/refs/heads/main"))),
    ("info/exclude", &|dir| replace(&dir.join(".git/info/exclude"))),
    ("info/attributes", &|dir| replace(&dir.join(".git/info/attributes"))),
    ("info/grafts", &|dir| replace(&dir.join(".git/info/grafts"))),
    ("alternates", &|dir| replace(&dir.join(".git/objects/info/alternates"))),
    ("an include", &|dir| named(dir, "include.path", "../pipe")),
    ("an include of an include", &|dir| {
        put(dir, ".git/more", "[include]\n\tpath = \"../pipe\"\n");
        named(dir, "include.path", "more");
    }),
    ("a file of excludes", &|dir| {
        named(dir, "core.excludesFile", dir.join("pipe").to_str().unwrap())
    }),
    ("a file of attributes", &|dir| {
        named(dir, "core.attributesFile", dir.join("pipe").to_str().unwrap())
    }),
];

fn replace(path: &Path) {
    let _none = std::fs::remove_file(path);
    pipe(path);
}

fn named(dir: &Path, key: &str, value: &str) {
    git(dir, &["config", key, value]);
    pipe(&dir.join("pipe"));
}

// A5, G5: pipes in a git folder are reported by name at once, by every call.
#[test]
fn pipe_that_git_would_open_is_refused_by_name() {
    for (what, make) in TRAPS {
        let (dir, root) = root();
        repository(dir.path());
        make(dir.path());
        put(dir.path(), "a.rs", "changed\n");
        let start = Instant::now();
        let failures = [
            git_status(&root, ".").map(drop).unwrap_err(),
            git_log(&root, 5).map(drop).unwrap_err(),
            git_diff(&root, ".", &DiffRequest { max_bytes: 1000, ..DiffRequest::default() })
                .map(drop)
                .unwrap_err(),
            git_commit(&root, &["a.rs".into()], "x").map(drop).unwrap_err(),
        ];
        for failure in failures {
            assert_eq!(failure.reason, Reason::GitFailed, "{what}");
            assert!(
                failure.message.contains("pipe") || failure.message.contains("own"),
                "{what}: {failure}"
            );
        }
        assert!(start.elapsed() < Duration::from_secs(2), "{what}: {:?}", start.elapsed());
    }
    assert!(no_git_thread_is_running());
}

// A5, G5: pipes deep in a tree block no thread, and no other repository waits for them.
#[test]
fn pipes_deep_in_tree_block_no_thread() {
    let (good, good_root) = root();
    repository(good.path());
    let mut hostile = Vec::new();
    for _ in 0..8 {
        let (dir, root) = root();
        repository(dir.path());
        for n in 0..20 {
            put(dir.path(), &format!("deep/{n}/a.rs"), "x");
        }
        git(dir.path(), &["add", "deep/1/a.rs", "deep/2/a.rs"]);
        for n in 0..20 {
            pipe(&dir.path().join(format!("deep/{n}/.gitignore")));
            pipe(&dir.path().join(format!("deep/{n}/.gitattributes")));
        }
        put(dir.path(), "deep/1/a.rs", "changed");
        hostile.push((dir, root));
    }
    let start = Instant::now();
    for (dir, root) in &hostile {
        let status = git_status(root, ".").unwrap();
        assert!(!status.truncated, "{}", dir.path().display());
        let diff = git_diff(root, ".", &DiffRequest { max_bytes: 1000, ..DiffRequest::default() })
            .unwrap();
        assert!(diff.diff.contains("deep/1/a.rs") && !diff.truncated, "{diff:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(16), "{:?}", start.elapsed());
    assert!(git_status(&good_root, ".").unwrap().is_repository);
    assert!(no_git_thread_is_running());
}

// G8: a clone of a folder with pipes in its git folder is refused at once.
#[test]
fn clone_of_repository_with_pipes_is_refused() {
    let base = tempfile::tempdir().unwrap();
    for (what, make) in TRAPS {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        repository(&at);
        let roots = Roots::new(vec![]);
        roots.declare(&at).unwrap();
        let remote = || Remote::parse(&format!("file://{}", at.display())).unwrap();
        assert!(CloneSource::folder(&roots, remote()).is_ok(), "the control");
        make(&at);
        let start = Instant::now();
        assert_eq!(
            CloneSource::folder(&roots, remote()).unwrap_err().reason,
            Reason::GitFailed,
            "{what}"
        );
        assert!(start.elapsed() < Duration::from_secs(2), "{what}");
    }
    drop(base);
}

// G1: a folder stays the one that was judged, even if its path is replaced.
#[test]
fn folder_replaced_after_judgement_is_not_cloned() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (inner, secret) = (base.join("inner"), base.join("secret"));
    for repo_folder in [&inner, &secret] {
        std::fs::create_dir(repo_folder).unwrap();
        repository(repo_folder);
    }
    put(&secret, "password", "hunter2");
    git(&secret, &["add", "."]);
    git(&secret, &["commit", "-qm", "secret"]);
    let judged = request(&format!("file://{}", inner.display()), &base.join("ws/clone"));
    std::fs::rename(&inner, base.join("aside")).unwrap();
    symlink(&secret, &inner).unwrap();
    git_clone(&judged, &mut |_, _| {}, &|| false).unwrap();
    assert!(base.join("ws/clone/a.rs").exists() && !base.join("ws/clone/password").exists());
    // Control: a request made now is for the other one.
    let url = format!("file://{}", inner.display());
    let other = Command::new("git")
        .args(["clone", "-q", &url, "control"])
        .current_dir(&base)
        .status()
        .unwrap();
    assert!(other.success() && base.join("control/password").exists());
}

// G2: nothing is written into a git folder through a link.
#[test]
fn commit_follows_no_symlink_out_of_git_folder() {
    let links: [(&str, &str); 9] = [
        (".git/logs/HEAD", "outside/file"),
        (".git/logs/refs/heads/main", "outside/file"),
        (".git/logs", "outside/logs"),
        (".git/refs/heads", "outside/heads"),
        (".git/refs/heads/main", "outside/main"),
        (".git/objects/aa", "outside/objects"),
        (".git/index", "outside/index"),
        (".git/HEAD", "outside/HEAD"),
        (".git/config", "outside/config"),
    ];
    for (link, to) in links {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("repo")).unwrap();
        std::fs::create_dir_all(base.join("outside")).unwrap();
        repository(&base.join("repo"));
        put(&base, "outside/file", "as it was\n");
        let (from, to) = (base.join("repo").join(link), base.join(to));
        if from.exists() && !to.exists() {
            std::fs::rename(&from, &to).unwrap();
        }
        let _result = std::fs::remove_file(&from);
        symlink(&to, &from).unwrap();
        put(&base, "repo/a.rs", "changed\n");
        // The target folder is declared as well: that is no permission to write to it.
        let roots = Roots::new(vec![]);
        roots.declare(&base.join("outside")).unwrap();
        let root = roots.declare(&base.join("repo")).unwrap();
        let failure = git_commit(&root, &["a.rs".into()], "x").unwrap_err();
        assert_eq!(failure.reason, Reason::GitFailed, "{link}: {failure}");
        assert_eq!(
            std::fs::read_to_string(base.join("outside/file")).unwrap(),
            "as it was\n",
            "{link}"
        );
        // Control: without the link it is committed.
        std::fs::remove_file(&from).unwrap();
        let back = to.exists() && link != ".git/logs/HEAD" && link != ".git/logs/refs/heads/main";
        if back {
            std::fs::rename(&to, &from).unwrap();
        }
        assert!(git_commit(&root, &["a.rs".into()], "x").unwrap().is_some(), "{link}");
    }
}
