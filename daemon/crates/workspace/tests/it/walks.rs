//! Walking, checking one path, listing, counting.

use std::{collections::BTreeSet, os::unix::ffi::OsStrExt as _, sync::Mutex};

use cairn_workspace::{Ignore, Root, Roots, WalkOptions, count_languages, list_dir, walk};

use crate::{pipe, put, root};

fn files(root: &Root, opts: &WalkOptions) -> BTreeSet<String> {
    let paths = Mutex::new(BTreeSet::new());
    let report = walk(root, opts, &|w| {
        assert!(paths.lock().unwrap().insert(w.rel));
    });
    let paths = paths.into_inner().unwrap();
    assert_eq!(report.files, paths.len() as u64);
    paths
}

fn fixture(dir: &std::path::Path) {
    std::fs::create_dir_all(dir.join(".git/info")).unwrap();
    put(dir, ".git/info/exclude", "excluded.txt\n");
    put(dir, ".git/config", "");
    put(dir, ".gitignore", "target/\n*.log\n!keep.log\n/only-top\n");
    put(dir, ".ignore", "by-ignore\n");
    put(dir, ".rgignore", "by-rg\n");
    put(dir, "sub/.gitignore", "local\n!again.log\n");
    for rel in [
        "a.rs",
        "a.log",
        "keep.log",
        "excluded.txt",
        "by-ignore",
        "by-rg",
        "only-top",
        "target/x.rs",
        ".hidden",
        ".dir/f",
        "sub/local",
        "sub/other",
        "sub/again.log",
        "sub/only-top",
        "sub/deep/local",
        "vendor/v.js",
        "ü/ö.txt",
    ] {
        put(dir, rel, "x\n");
    }
    std::os::unix::fs::symlink("a.rs", dir.join("link.rs")).unwrap();
}

#[test]
fn walk_matches_ripgrep() {
    let (dir, root) = root();
    fixture(dir.path());
    let want = [
        "a.rs",
        "keep.log",
        "sub/again.log",
        "sub/only-top",
        "sub/other",
        "vendor/v.js",
        "ü/ö.txt",
    ];
    let got = files(&root, &WalkOptions::default());
    assert_eq!(got.iter().map(String::as_str).collect::<Vec<_>>(), want);
    if let Ok(out) =
        std::process::Command::new("rg").arg("--files").current_dir(dir.path()).output()
    {
        let rg: BTreeSet<String> =
            String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(got, rg);
    }
    let opts = WalkOptions {
        exclude: vec!["vendor/".into(), "*.log".into()],
        threads: 1,
        ..WalkOptions::default()
    };
    assert_eq!(
        files(&root, &opts).into_iter().collect::<Vec<_>>(),
        ["a.rs", "sub/only-top", "sub/other", "ü/ö.txt"]
    );
    assert!(opts.check().is_ok());
    assert!(
        WalkOptions { exclude: vec!["a[".into()], threads: 1, ..WalkOptions::default() }
            .check()
            .is_err()
    );
}

#[test]
fn hidden_files_are_walked_alone_on_request() {
    let (dir, root) = root();
    for path in [
        "a.rs",
        ".github/workflows/ci.yml",
        ".eslintrc",
        "sub/.config/x",
        ".cache/ignored",
        ".shown/visible",
        ".git/config",
        "sub/.git/config",
        ".hg/store",
        "sub/.git-hooks/pre-push",
    ] {
        let full = dir.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, "x").unwrap();
    }
    std::fs::write(dir.path().join(".ignore"), ".cache\n!.shown\n").unwrap();
    let opts = WalkOptions { hidden_only: true, ..WalkOptions::default() };
    let hidden = files(&root, &opts);
    let expected = [
        ".eslintrc",
        ".github/workflows/ci.yml",
        ".ignore",
        "sub/.config/x",
        "sub/.git-hooks/pre-push",
    ];
    assert_eq!(hidden.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let visible = files(&root, &WalkOptions::default());
    assert_eq!(visible.iter().map(String::as_str).collect::<Vec<_>>(), [".shown/visible", "a.rs"]);
    let rules = Ignore::build(&root, &opts);
    for path in visible.iter().map(String::as_str).chain([".git/config", ".cache/ignored"]) {
        assert!(!rules.is_walked(path, false), "{path}");
    }
    assert!(expected.iter().all(|path| rules.is_walked(path, false)));
}

#[test]
fn single_path_check_matches_walk() {
    let (dir, root) = root();
    fixture(dir.path());
    let opts =
        WalkOptions { exclude: vec!["vendor/".into()], threads: 2, ..WalkOptions::default() };
    let walked = files(&root, &opts);
    let rules = Ignore::build(&root, &opts);
    let mut todo = vec![dir.path().to_path_buf()];
    let mut seen = 0;
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let entry = entry.unwrap();
            let rel = entry.path().strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
            match entry.file_type().unwrap() {
                t if t.is_dir() => todo.push(entry.path()),
                t if t.is_file() => {
                    seen += 1;
                    assert_eq!(rules.is_walked(&rel, false), walked.contains(&rel), "{rel}");
                }
                _ => {}
            }
        }
    }
    assert!(seen > 20);
    for (dir, want) in
        [("target", false), ("sub", true), ("vendor", false), (".git", false), ("sub/deep", true)]
    {
        assert_eq!(rules.is_walked(dir, true), want, "{dir}");
    }
}

#[test]
fn blocked_paths_invalid_names_and_traps_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    for rel in ["a.rs", "closed/b.rs", "trap/c.rs", "pipe/d.rs"] {
        put(&base, rel, "fn x() {}\n");
    }
    std::fs::write(base.join(std::ffi::OsStr::from_bytes(b"bad\xff.rs")), "").unwrap();
    std::os::unix::fs::symlink("/dev/zero", base.join("trap/.gitignore")).unwrap();
    pipe(&base.join("pipe/.ignore"));
    let root = Roots::new(vec![base.join("closed")]).declare(&base).unwrap();
    let paths = Mutex::new(vec![]);
    let report = walk(&root, &WalkOptions::default(), &|w| paths.lock().unwrap().push(w.rel));
    assert_eq!(*paths.lock().unwrap(), ["a.rs"]);
    assert_eq!((report.invalid_names, report.unreadable_count), (1, 2));
    let rules = Ignore::build(&root, &WalkOptions::default());
    for rel in ["closed/b.rs", "trap/c.rs", "pipe/d.rs"] {
        assert!(!rules.is_walked(rel, false), "{rel}");
    }
    assert_eq!(
        count_languages(&root, &[], None).into_iter().collect::<Vec<_>>(),
        [("Rust".to_owned(), 1)]
    );
    let listed: Vec<_> =
        list_dir(&root, ".", 2).unwrap().entries.into_iter().map(|e| e.path).collect();
    assert_eq!(listed, ["a.rs", "pipe", "trap"]);
}

#[test]
fn line_counts_match_tokei() {
    let (dir, root) = root();
    fixture(dir.path());
    put(dir.path(), "r.rs", "//! Doc\n//! ```\n//! let x = 1;\n//! ```\nfn a() {}\n\n/* c */\n");
    put(dir.path(), "p.html", "<html>\n<script>\nlet x = 1;\n\n</script>\n</html>\n");
    put(dir.path(), "script", "#!/usr/bin/env python3\nprint(1)\n");
    put(dir.path(), "empty.go", "");
    put(dir.path(), ".tokeignore", "no.py\n");
    put(dir.path(), "no.py", "x = 1\n");
    let mut languages = tokei::Languages::new();
    languages.get_statistics(&[&root.path], &[], &tokei::Config::default());
    let want: Vec<_> = languages.iter().map(|(l, c)| (l.to_string(), c.lines() as u64)).collect();
    let got = count_languages(&root, &[], None);
    assert_eq!(got, want.into_iter().collect());
    assert!(got["Rust"] > 3 && got["Python"] == 2, "{got:?}");
    // A second count reads what has changed.
    assert_eq!(count_languages(&root, &[], None), got);
    put(dir.path(), "script", "#!/usr/bin/env python3\nprint(1)\nprint(2)\n");
    std::fs::remove_file(dir.path().join("p.html")).unwrap();
    let again = count_languages(&root, &[], None);
    assert_eq!(again["Python"], 3, "{again:?}");
    assert!(!again.contains_key("HTML"), "{again:?}");
}

#[test]
fn listing_is_breadth_first() {
    let (dir, root) = root();
    fixture(dir.path());
    let paths = |rel, depth| -> Vec<String> {
        list_dir(&root, rel, depth).unwrap().entries.into_iter().map(|e| e.path).collect()
    };
    let top = paths(".", 1);
    assert!(
        top.contains(&".hidden".into())
            && top.contains(&"link.rs".into())
            && top.contains(&"sub".into())
    );
    assert!(!top.contains(&"target".into()) && !top.contains(&".git".into()));
    assert_eq!(
        paths("sub", 2),
        ["sub/.gitignore", "sub/again.log", "sub/deep", "sub/only-top", "sub/other"]
    );
    // An ignored folder is listed when it is named.
    assert_eq!(paths("target", 1), ["target/x.rs"]);
    assert!(list_dir(&root, ".", 17).is_err() && list_dir(&root, ".", 0).is_err());
    for n in 0..5100 {
        put(dir.path(), &format!("many/{n}"), "");
    }
    let many = list_dir(&root, "many", 1).unwrap();
    assert_eq!((many.entries.len(), many.truncated), (5000, true));
}

// G8: the requested folder is examined, and nothing beside it.
#[test]
fn find_files_reads_only_requested_folder() {
    let (dir, root) = root();
    for n in 0..300 {
        put(dir.path(), &format!("large/{n}.rs"), "");
    }
    for name in ["small/a.rs", "small/deep/b.rs", "small/deep/ignored.rs", "small/.hidden/c.rs"] {
        put(dir.path(), name, "");
    }
    put(dir.path(), ".gitignore", "ignored.rs\n");
    put(dir.path(), ".git/HEAD", "");
    let find = |rel: &str| {
        let mut files = Vec::new();
        let examined =
            cairn_workspace::find_files(&root, rel, &mut |file| files.push(file)).unwrap();
        files.sort();
        (files, examined.entries)
    };
    assert_eq!(find("small"), (vec!["small/a.rs".to_owned(), "small/deep/b.rs".to_owned()], 5));
    let (all, examined) = find(".");
    assert!(all.len() == 302 && examined > 300, "the control: {examined}");
    assert_eq!(
        find("small/.hidden").0,
        ["small/.hidden/c.rs"],
        "a hidden folder is listed when it is named"
    );
    let refused = cairn_workspace::find_files(&root, "small/a.rs", &mut |_| ()).unwrap_err();
    assert_eq!(refused.reason(), cairn_protocol::error::Reason::NotADirectory);
}

// G9: no name of a file outside is reported, even if a link is swapped meanwhile.
#[test]
fn symlink_swapped_during_find_lists_nothing_outside() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let outer = tempfile::tempdir().unwrap();
    put(outer.path(), "out/secret.rs", "");
    put(outer.path(), "in/real/inner.rs", "");
    let inside = outer.path().join("in");
    let root = cairn_workspace::Roots::new(vec![]).declare(&inside).unwrap();
    let (stop, mut seen_by_path, mut good) = (AtomicBool::new(false), false, 0);
    std::thread::scope(|scope| {
        let _stop = cairn_test_support::StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in ["real", "../out"] {
                    let fresh = inside.join("fresh");
                    let _ = std::os::unix::fs::symlink(target, &fresh);
                    let _ = std::fs::rename(&fresh, inside.join("d"));
                }
            }
        });
        let start = std::time::Instant::now();
        while (!seen_by_path || good < 50) && start.elapsed() < std::time::Duration::from_secs(30) {
            // Control: a walk by path finds it.
            let entries = std::fs::read_dir(inside.join("d")).into_iter().flatten().flatten();
            seen_by_path |= entries.into_iter().any(|entry| entry.file_name() == "secret.rs");
            let mut files = Vec::new();
            let listed = root.locate("d").and_then(|listed| {
                cairn_workspace::find_files(&root, listed.real(), &mut |file| files.push(file))
            });
            if listed.is_ok() {
                assert!(files.iter().all(|file| file == "real/inner.rs"), "{files:?}");
                good += usize::from(!files.is_empty());
            }
        }
    });
    assert!(seen_by_path && good > 0, "{seen_by_path} {good}");
}
