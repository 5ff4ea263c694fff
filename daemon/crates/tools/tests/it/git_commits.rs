//! A repository whose commits have what diffs of git can have: each form of a text file, names that
//! are quoted, renames, modes, empty files.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use crate::git_apply::git;

/// A commit: its name, its parent and its id.
pub type Commit = (String, String, String);

struct Writer<'a> {
    folder: &'a Path,
    commits: Vec<Commit>,
    last: Option<String>,
}

const LINES: [&str; 12] = [
    "fn one() {",
    "    let a = 1;",
    "    a + 1",
    "}",
    "",
    "fn two() {",
    "    let a = 1;",
    "    a + 2",
    "}",
    "",
    "// caf\u{e9}",
    "// end",
];

/// Returns lines in a form.
fn formed(form: &str, lines: &[String]) -> Vec<u8> {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let line = match form {
            "tabs" => line.replace("    ", "\t"),
            "decomposed" => line.replace('\u{e9}', "e\u{301}"),
            _ => line.clone(),
        };
        text.push_str(&line);
        let is_last = at + 1 == lines.len();
        text.push_str(match form {
            "crlf" | "mark-crlf" => "\r\n",
            "mixed" if at % 3 == 0 => "\r\n",
            "open" if is_last => "",
            "open-crlf" => {
                if is_last {
                    ""
                } else {
                    "\r\n"
                }
            }
            "cr" => "\r",
            _ => "\n",
        });
    }
    let mark = if form.starts_with("mark") { "\u{feff}" } else { "" };
    format!("{mark}{text}").into_bytes()
}

impl Writer<'_> {
    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.folder.join(path)).unwrap();
    }

    fn rename(&self, old: &str, new: &str) {
        let new = self.folder.join(new);
        std::fs::create_dir_all(new.parent().unwrap()).unwrap();
        std::fs::rename(self.folder.join(old), new).unwrap();
    }

    fn set_mode(&self, path: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.folder.join(path), mode).unwrap();
    }

    fn commit(&mut self, name: &str) {
        git(self.folder, &["add", "-A"], b"").unwrap();
        git(self.folder, &["commit", "-q", "--allow-empty", "-m", name], b"").unwrap();
        let id = git(self.folder, &["rev-parse", "HEAD"], b"").unwrap();
        let id = String::from_utf8(id).unwrap().trim().to_owned();
        if let Some(parent) = self.last.replace(id.clone()) {
            self.commits.push((name.to_owned(), parent, id));
        }
    }

    /// Edits a file of each form.
    fn edit_forms(&mut self) {
        let all: Vec<String> = LINES.iter().map(|line| (*line).to_owned()).collect();
        for form in [
            "plain",
            "tabs",
            "crlf",
            "mark",
            "mark-crlf",
            "mixed",
            "open",
            "open-crlf",
            "decomposed",
            "cr",
        ] {
            let path = format!("forms/{form}.rs");
            self.write(&path, formed(form, &all));
            self.commit(&format!("{form}: added"));
            let mut lines = all.clone();
            lines[6] = "    let a = 3;".to_owned();
            lines[10] = "// caf\u{e9}, open".to_owned();
            self.write(&path, formed(form, &lines));
            self.commit(&format!("{form}: lines changed"));
            lines[0] = "pub fn one() {".to_owned();
            lines[11] = "// END".to_owned();
            self.write(&path, formed(form, &lines));
            self.commit(&format!("{form}: first and last line changed"));
            lines.truncate(9);
            lines.insert(3, "    // \u{e9}".to_owned());
            self.write(&path, formed(form, &lines));
            self.commit(&format!("{form}: end removed"));
            lines.push("// new end".to_owned());
            self.write(&path, formed(form, &lines));
            self.commit(&format!("{form}: end added"));
        }
    }

    /// Changes the form of a file, not its lines.
    fn change_forms(&mut self) {
        let all: Vec<String> = LINES.iter().map(|line| (*line).to_owned()).collect();
        let forms = [
            "plain",
            "crlf",
            "mixed",
            "plain",
            "mark",
            "plain",
            "open",
            "plain",
            "tabs",
            "decomposed",
            "open-crlf",
        ];
        for form in forms {
            self.write("changed.rs", formed(form, &all));
            self.commit(&format!("form changed to {form}"));
        }
        self.write("returns.txt", "a\rb\nc\r\r\nd\n");
        self.commit("carriage returns added");
        self.write("returns.txt", "a\rB\nc\r\r\nd\re\n");
        self.commit("carriage returns changed");
        self.write("odd.txt", "a\u{2028}b\n\u{b}\u{85}\u{c}\nc\n");
        self.commit("separators added");
        self.write("odd.txt", "a\u{2028}B\n\u{b}\u{85}\u{c}\nC \n");
        self.commit("separators changed");
        self.write("headers.sql", "-- a\n-- b\n++ c\n@@ d\n");
        self.commit("lines like headers added");
        self.write("headers.sql", "-- A\n++ C\n++ c\n\\ d\n");
        self.commit("lines like headers changed");
        self.write("blank.txt", "a\n\n\n\nb\n");
        self.commit("blank lines added");
        self.write("blank.txt", "a\n\n\nb\n\n");
        self.commit("blank lines removed");
        let block = "{\n  x\n}\n";
        self.write("blocks.txt", block.repeat(30));
        self.commit("equal blocks added");
        self.write("blocks.txt", block.repeat(14) + "{\n  y\n}\n" + &block.repeat(16));
        self.commit("one of equal blocks changed");
    }

    /// Adds, renames and removes files with names that git quotes.
    fn move_files(&mut self) {
        let body = "a line of some length\n".repeat(10);
        for name in [
            "\u{e4}.txt",
            "with space.txt",
            "a\u{308}.txt",
            "q\"uote\\.txt",
            "a/b.txt",
            "tab\there",
        ] {
            self.write(name, format!("{name}\n{body}"));
            self.commit(&format!("{name:?} added"));
            self.write(name, format!("{name}\n{body}end\n"));
            self.commit(&format!("{name:?} changed"));
            let new = format!("moved \u{fc}/{name}");
            self.rename(name, &new);
            self.commit(&format!("{name:?} renamed"));
            let back = format!("back/{name}");
            self.rename(&new, &back);
            self.write(&back, format!("{name}\n{body}END\n"));
            self.commit(&format!("{name:?} renamed and changed"));
        }
        self.remove("back/\u{e4}.txt");
        self.commit("quoted name removed");
        self.write("copy.txt", std::fs::read(self.folder.join("back/with space.txt")).unwrap());
        self.commit("copied");
        self.write("second.txt", format!("{}more\n", body.repeat(2)));
        self.write("copy.txt", format!("{}more\n", body.repeat(2)));
        self.commit("copied and changed");
    }

    fn change_modes(&mut self) {
        self.write("run.sh", "echo a\necho b\necho c\necho d\n");
        self.commit("script added");
        self.set_mode("run.sh", 0o755);
        self.commit("made executable");
        self.rename("run.sh", "moved.sh");
        self.commit("executable renamed");
        self.write("moved.sh", "echo a\necho b\necho c\necho D\n");
        self.commit("executable changed");
        self.write("moved.sh", "echo A\necho b\necho c\necho D\n");
        self.set_mode("moved.sh", 0o644);
        self.commit("content and mode changed");
        self.rename("moved.sh", "last.sh");
        self.set_mode("last.sh", 0o755);
        self.commit("renamed with mode");
        self.write("new.sh", "echo new\n");
        self.set_mode("new.sh", 0o755);
        self.write("empty", "");
        self.write("empty.sh", "");
        self.set_mode("empty.sh", 0o755);
        self.commit("empty files added");
        self.write("empty", "a\n");
        self.commit("empty file filled");
        self.write("empty", "");
        self.remove("empty.sh");
        self.commit("file emptied, empty one removed");
        self.remove("last.sh");
        self.commit("executable removed");
        self.remove("new.sh");
        self.write("new.sh/inner.txt", "inner\n");
        self.commit("file became folder");
        std::os::unix::fs::symlink("empty", self.folder.join("link")).unwrap();
        self.commit("symbolic link added");
        self.write("binary", b"\0\x01\x02\n");
        self.commit("binary file added");
        self.commit_many();
    }

    fn commit_many(&mut self) {
        for n in 0..20 {
            self.write(&format!("many/{n}.txt"), format!("{n}\n").repeat(n));
        }
        self.commit("many files added");
        for n in 5..15 {
            self.write(&format!("many/{n}.txt"), format!("{n}\n").repeat(n - 1) + "x");
        }
        self.remove("many/2.txt");
        self.rename("many/17.txt", "many/18b.txt");
        self.commit("many files changed");
    }
}

/// Writes the repository; returns its commits but the first.
pub fn write(folder: &Path) -> Vec<Commit> {
    git(folder, &["init", "-q", "."], b"").unwrap();
    let mut writer = Writer { folder, commits: Vec::new(), last: None };
    writer.write("first", "1\n");
    writer.commit("first");
    writer.edit_forms();
    writer.change_forms();
    writer.move_files();
    writer.change_modes();
    writer.commits
}
