//! Escapes and blocked paths: every denial has a control that shows the prevented access.

use std::{
    io::Read as _,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use cairn_protocol::{content::EntryKind, error::Reason};
use cairn_workspace::{Root, Roots, WorkspaceError, list_dir};

use crate::{pipe, put, root};

fn read(mut file: std::fs::File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

/// Resolves a path, then opens the result.
fn open(root: &Root, rel: &str) -> Result<std::fs::File, WorkspaceError> {
    root.locate(rel).and_then(|resolved| root.open_file(resolved.real()))
}

#[test]
fn escapes_are_denied_and_inner_symlinks_followed() {
    let outer = tempfile::tempdir().unwrap();
    put(outer.path(), "secret", "secret");
    put(outer.path(), "in/a.txt", "inner");
    let inside = outer.path().join("in");
    symlink("../secret", inside.join("up")).unwrap();
    symlink(outer.path().join("secret"), inside.join("absolute")).unwrap();
    symlink("..", inside.join("parent")).unwrap();
    symlink("a.txt", inside.join("good")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    let root = Roots::new(vec![]).declare(&inside).unwrap();
    for rel in ["up", "absolute", "../secret", "parent/secret", "/etc/passwd"] {
        assert_eq!(open(&root, rel).unwrap_err().reason(), Reason::PathOutsideRoots, "{rel}");
        assert!(root.open_file(rel).is_err(), "{rel}");
        // Control: a plain open leaves the root.
        assert!(std::fs::read(inside.join(rel)).is_ok(), "{rel}");
    }
    assert_eq!(read(open(&root, "good").unwrap()), "inner");
    assert_eq!(
        root.open_file("good").unwrap_err().reason(),
        Reason::PathNotFound,
        "links are followed by the resolver alone"
    );
    assert_eq!(open(&root, "loop").unwrap_err().reason(), Reason::PathNotFound);
    assert_eq!(root.open_file("none").unwrap_err().reason(), Reason::PathNotFound);
    assert_eq!(root.open_file("a.txt/x").unwrap_err().reason(), Reason::PathNotFound);
    assert_eq!(root.open_file(".").unwrap_err().reason(), Reason::NotAFile);
    assert_eq!(root.open_file("a\0b").unwrap_err().reason(), Reason::InvalidParams);
    assert_eq!(root.stat("up").unwrap().kind, EntryKind::Symlink);
    assert!(root.stat("parent/secret").is_err());
    assert!(list_dir(&root, "parent", 1).is_err());
    assert_eq!(list_dir(&root, "a.txt", 1).unwrap_err().reason(), Reason::NotADirectory);
}

#[test]
fn pipes_sockets_and_devices_are_refused() {
    let (dir, root) = root();
    pipe(&dir.path().join("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let start = Instant::now();
    for rel in ["pipe", "socket"] {
        assert_eq!(root.open_file(rel).unwrap_err().reason(), Reason::NotAFile, "{rel}");
        assert_eq!(root.stat(rel).unwrap().kind, EntryKind::Other);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn symlink_swapped_during_call_never_escapes() {
    let outer = tempfile::tempdir().unwrap();
    put(outer.path(), "out/f", "secret");
    put(outer.path(), "in/real/f", "inner");
    let inside = outer.path().join("in");
    let root = Roots::new(vec![]).declare(&inside).unwrap();
    let stop = AtomicBool::new(false);
    let (mut escaped, mut good) = (0, 0);
    std::thread::scope(|scope| {
        let _stop = cairn_test_support::StopOnDrop(&stop);
        scope.spawn(|| {
            let at = inside.join("d");
            while !stop.load(Ordering::Relaxed) {
                for target in ["real", "../out"] {
                    let fresh = inside.join("fresh");
                    let _ = symlink(target, &fresh);
                    let _ = std::fs::rename(&fresh, &at);
                }
            }
        });
        // Control: canonicalise, compare, open (the checked path is not the opened one).
        let start = Instant::now();
        while escaped == 0 && start.elapsed() < Duration::from_secs(20) {
            let path = inside.join("d/f");
            if path.canonicalize().is_ok_and(|p| p.starts_with(&root.path))
                && std::fs::read_to_string(&path).is_ok_and(|t| t == "secret")
            {
                escaped += 1;
            }
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(700) {
            match open(&root, "d/f") {
                Ok(file) => {
                    assert_eq!(read(file), "inner");
                    good += 1;
                }
                Err(e) => assert!(
                    matches!(
                        e.reason(),
                        Reason::PathOutsideRoots | Reason::PathNotFound | Reason::PathUnreadable
                    ),
                    "{e:?}"
                ),
            }
        }
    });
    assert!(escaped > 0, "the control found no race to lose");
    assert!(good > 0, "nothing was ever read");
}

#[test]
fn blocked_paths_match_by_component() {
    let home = tempfile::tempdir().unwrap();
    let base = home.path().canonicalize().unwrap();
    for rel in [".ssh/id", ".ssh/deep/k", ".sshx/id", "work/a"] {
        put(&base, rel, rel);
    }
    symlink(".ssh/id", base.join("link")).unwrap();
    symlink(".ssh", base.join("dirlink")).unwrap();
    let roots = Roots::new(vec![base.join(".ssh"), base.join("later")]);
    for inside in [".ssh", ".ssh/deep", "dirlink"] {
        assert_eq!(
            roots.declare(&base.join(inside)).unwrap_err().reason(),
            Reason::PathBlocked,
            "{inside}"
        );
    }
    let root = roots.declare(&base).unwrap();
    for rel in [".ssh/id", "link", "dirlink/id", "work/../.ssh/id"] {
        assert_eq!(open(&root, rel).unwrap_err().reason(), Reason::PathBlocked, "{rel}");
        assert_eq!(roots.resolve(rel, None).unwrap_err().reason(), Reason::PathBlocked, "{rel}");
        // Control: without the block they open.
        assert!(open(&Roots::new(vec![]).declare(&base).unwrap(), rel).is_ok(), "{rel}");
    }
    assert!(root.open_file(".sshx/id").is_ok());
    assert_eq!(root.stat(".ssh/id").unwrap_err().reason(), Reason::PathBlocked);
    assert!(root.stat("dirlink/id").is_err());
    assert_eq!(list_dir(&root, ".ssh", 1).unwrap_err().reason(), Reason::PathBlocked);
    assert!(list_dir(&root, "dirlink", 1).is_err());
    let listed: Vec<_> =
        list_dir(&root, ".", 3).unwrap().entries.into_iter().map(|e| e.path).collect();
    assert_eq!(listed, [".sshx", ".sshx/id", "dirlink", "link", "work", "work/a"]);
    assert_eq!(
        roots.resolve(base.join(".ssh/id").to_str().unwrap(), None).unwrap_err().reason(),
        Reason::PathBlocked
    );
}

#[test]
fn roots_can_be_declared_and_found() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    put(&base, "a/x/f", "");
    put(&base, "ab/f", "");
    symlink("a", base.join("s")).unwrap();
    let roots = Roots::new(vec![]);
    let reason = |r: Result<cairn_workspace::ResolvedPath, WorkspaceError>| r.unwrap_err().reason();
    assert_eq!(reason(roots.resolve("f", None)), Reason::NoRoots);
    assert_eq!(roots.declare(Path::new("a")).unwrap_err().reason(), Reason::InvalidParams);
    assert_eq!(roots.declare(&base.join("none")).unwrap_err().reason(), Reason::PathNotFound);
    assert_eq!(roots.declare(&base.join("ab/f")).unwrap_err().reason(), Reason::NotADirectory);
    let a = roots.declare(&base.join("s/../a/.")).unwrap();
    assert_eq!(roots.declare(&base.join("s")).unwrap().id, a.id);
    assert!(a.id.0.starts_with("root_") && a.id.0.len() == 21);
    assert_eq!(roots.resolve("x/./f", None).unwrap().real(), "x/f");
    assert_eq!(reason(roots.resolve("x/../../f", None)), Reason::PathOutsideRoots);
    let x = roots.declare(&base.join("a/x")).unwrap();
    assert_eq!(reason(roots.resolve("f", None)), Reason::RootAmbiguous);
    assert_eq!(reason(roots.resolve("f", Some("root_0000000000000000"))), Reason::RootNotFound);
    assert_eq!(roots.resolve("f", Some(&x.id.0)).unwrap().root().id, x.id);
    for (path, root, rel) in [
        ("a/x/f", &x, "f"),
        ("a/x", &x, "."),
        ("s/x/f", &x, "f"),
        ("a/y/new", &a, "y/new"),
        ("s", &a, "."),
    ] {
        let resolved = roots.resolve(base.join(path).to_str().unwrap(), None).unwrap();
        assert_eq!((&resolved.root().id, resolved.real()), (&root.id, rel), "{path}");
    }
    for path in ["ab/f", "a/../ab/f", ""] {
        assert_eq!(
            reason(roots.resolve(base.join(path).to_str().unwrap(), None)),
            Reason::PathOutsideRoots,
            "{path}"
        );
    }
    for bad in ["", "a\0", &"x/".repeat(3000)] {
        assert_eq!(reason(roots.resolve(bad, None)), Reason::InvalidParams);
    }
    assert!(roots.remove(&x.id).is_some());
    assert_eq!(roots.list().len(), 1);
}

#[test]
fn recreated_root_folder_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "r/f", "old");
    let root = Roots::new(vec![]).declare(&dir.path().join("r")).unwrap();
    std::fs::remove_dir_all(dir.path().join("r")).unwrap();
    assert_eq!(root.open_file("f").unwrap_err().reason(), Reason::PathNotFound);
    put(dir.path(), "r/f", "new");
    assert_eq!(read(root.open_file("f").unwrap()), "new");
}

/// A4: a folder above a root that is swapped for a link must not make another folder the root.
#[test]
fn symlink_above_root_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "outer/mid/r/f", "inner");
    put(dir.path(), "outside/r/f", "secret");
    let root = Roots::new(vec![]).declare(&dir.path().join("outer/mid/r")).unwrap();
    std::fs::rename(dir.path().join("outer/mid"), dir.path().join("outer/away")).unwrap();
    symlink(dir.path().join("outside"), dir.path().join("outer/mid")).unwrap();
    assert!(root.open_file("f").is_err() && root.identity_of(".").is_err());
    // Control: by path the other folder is opened.
    assert_eq!(std::fs::read_to_string(root.path.join("f")).unwrap(), "secret");
}

#[test]
fn resolution_reports_every_spelling() {
    let (dir, root) = root();
    put(dir.path(), "real/deep/f", "x");
    symlink("real", dir.path().join("l1")).unwrap();
    symlink("l1/deep", dir.path().join("l2")).unwrap();
    symlink("../l2/f", dir.path().join("real/l3")).unwrap();
    symlink("nowhere/x", dir.path().join("dangling")).unwrap();
    symlink(root.path.join("real/deep"), dir.path().join("absolute")).unwrap();
    symlink("deep/../../l1/deep/f", dir.path().join("real/up")).unwrap();
    for (requested, entry, real) in [
        ("real/deep/f", "real/deep/f", "real/deep/f"),
        ("./real/./deep/../deep/f", "real/deep/f", "real/deep/f"),
        ("l1/deep/f", "real/deep/f", "real/deep/f"),
        ("l2", "l2", "real/deep"),
        ("l2/f", "real/deep/f", "real/deep/f"),
        ("l1/l3", "real/l3", "real/deep/f"),
        ("real/up", "real/up", "real/deep/f"),
        ("dangling", "dangling", "nowhere/x"),
        ("dangling/y", "nowhere/x/y", "nowhere/x/y"),
        ("absolute/f", "real/deep/f", "real/deep/f"),
        ("l2/new/../other", "real/deep/other", "real/deep/other"),
        ("l1/deep/new", "real/deep/new", "real/deep/new"),
        (".", ".", "."),
        ("l1/..", ".", "."),
    ] {
        let resolved = root.locate(requested).unwrap();
        assert_eq!((resolved.entry(), resolved.real()), (entry, real), "{requested}");
    }
}

// R3
#[test]
fn kernel_filesystems_and_top_folder_are_rejected_as_roots() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots::new(vec![]);
    symlink("/", dir.path().join("all")).unwrap();
    symlink("/proc", dir.path().join("proc")).unwrap();
    let links = ["all", "proc"].map(|name| dir.path().join(name));
    let named =
        ["/", "/proc", "/proc/self", "/sys", "/dev", "/.", "/tmp/.."].map(std::path::PathBuf::from);
    for path in named.into_iter().chain(links) {
        let refused = roots.declare(&path).unwrap_err();
        assert_eq!(refused.reason(), Reason::PathBlocked, "{}", path.display());
    }
    assert!(roots.list().is_empty());
    roots.declare(dir.path()).unwrap();
}

// A10: the folder that is declared is the one that was checked, even if its path is replaced
// meanwhile.
#[test]
fn folder_swapped_during_declaration_is_rejected() {
    let outer = tempfile::tempdir().unwrap();
    let base = outer.path().canonicalize().unwrap();
    put(&base, "out/sub/f", "secret");
    put(&base, "in/real/sub/f", "inner");
    let inside = base.join("in");
    let stop = AtomicBool::new(false);
    let (mut by_path, mut good) = (0, 0);
    std::thread::scope(|scope| {
        let _stop = cairn_test_support::StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // A folder of the path, not its last part: a folder, then a link to the outside.
                let _ = std::fs::rename(inside.join("real"), inside.join("d"));
                let _ = std::fs::rename(inside.join("d"), inside.join("real"));
                let _ = symlink(base.join("out"), inside.join("d"));
                let _ = std::fs::remove_file(inside.join("d"));
            }
        });
        let start = Instant::now();
        while (by_path == 0 || good < 20) && start.elapsed() < Duration::from_secs(30) {
            let path = inside.join("d/sub");
            // Control: check, then use.
            if path.canonicalize().is_ok_and(|real| real.starts_with(&inside))
                && std::fs::read_to_string(path.join("f")).is_ok_and(|text| text == "secret")
            {
                by_path += 1;
            }
            let roots = Roots::new(vec![]);
            let outside =
                || cairn_protocol::error::Failure::new(Reason::PathOutsideRoots, "outside");
            let check = |real: &Path| real.starts_with(&inside).then_some(()).ok_or_else(outside);
            if let Ok(root) = roots.declare_if(&path, &check)
                && let Ok(file) = root.open_file("f")
            {
                assert_eq!(read(file), "inner");
                good += 1;
            }
        }
    });
    assert!(by_path > 0 && good > 0, "{by_path} {good}");
}
