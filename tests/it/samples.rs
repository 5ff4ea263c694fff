//! Samples in the README and the guide: each command is run in the project of `fixtures/sample`,
//! and its output is compared. `CAIRN_UPDATE=1` writes the outputs into the documents and the
//! picture of the README.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::LazyLock,
};

use regex::Regex;

use crate::{
    chat::{calls, text_answer},
    documents::documents,
    sealed::{Daemon, binary, command, git, tree},
    terminal::Terminal,
    tidy::root,
};

use serde_json::{Value, json};

/// The language of a fenced block whose commands are run.
const FENCE: &str = "```console";

/// The documents with samples: the README and the guide.
fn sampled_documents() -> Vec<PathBuf> {
    let mut all = documents();
    all.retain(|path| path.ends_with("README.md") || path.starts_with(root().join("docs/guide")));
    all.sort();
    all
}

/// A home and a copy of the sample project, as a repository.
struct Project {
    daemon: Daemon,
    folder: PathBuf,
    _dir: tempfile::TempDir,
}

impl Project {
    /// Starts a daemon whose model gives these answers.
    fn new(answers: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tidepool");
        copy(&root().join("tests/it/fixtures/sample"), &folder);
        std::fs::copy(
            root().join("tests/it/fixtures/queries.jsonl"),
            dir.path().join("queries.jsonl"),
        )
        .unwrap();
        git(&folder, &["init", "-q", "-b", "main"]);
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-q", "-m", "a queue"]);
        let script = dir.path().join("script.json");
        let model = json!({"model": "script", "contextTokens": 32768, "answers": answers});
        std::fs::write(&script, model.to_string()).unwrap();
        let home = dir.path().join("home");
        let config = json!({"llm": {"provider": "scripted", "endpoint": script}});
        tree(&home, &[("config/config.json", &config.to_string())]);
        let daemon = Daemon::start_in(&home, &[]);
        let project = Self { daemon, folder, _dir: dir };
        // The first command declares the folder and waits for its index.
        project.output("cairn grep --files");
        project
    }

    /// The standard output of a shell command in the project.
    fn output(&self, line: &str) -> String {
        let sealed = command(&self.daemon.home);
        let mut shell = std::process::Command::new("sh");
        shell.env_clear();
        for (name, value) in sealed.get_envs() {
            shell.env(name, value.unwrap());
        }
        let path =
            format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).current_dir(&self.folder).arg("-c");
        // The address that the documents name.
        let line =
            line.replace("127.0.0.1:7433", self.daemon.address().trim_start_matches("ws://"));
        shell.env("TOKEN", self.daemon.token()).arg(&line);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.replace(self.folder.to_str().unwrap(), "/home/me/tidepool")
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A text without what differs from run to run: times, dates, ids, commits, ports and secrets of
/// links.
fn stable(text: &str) -> String {
    static VARIES: LazyLock<Regex> = LazyLock::new(|| {
        let varies = r#"\b(ses|root)_[0-9a-f]+|\d{4}-\d\d-\d\d|http://127\.0\.0\.1\S*|"tookUs":\d+|\b[\d.]+ ?m?s\b|\bat [0-9a-f]{12}\b"#;
        Regex::new(varies).unwrap()
    });
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    VARIES.replace_all(&lines.join("\n"), "#").into_owned()
}

/// A document with the outputs of its commands as `run` returns them.
fn with_outputs(text: &str, run: &mut dyn FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line != FENCE {
            continue;
        }
        while let Some(line) = lines.next() {
            if line == "```" {
                out.push_str("```\n");
                break;
            }
            let Some(first) = line.strip_prefix("$ ") else { panic!("no command before: {line}") };
            let mut command = first.to_owned();
            let mut printed = format!("{line}\n");
            while command.ends_with('\\') {
                let more = lines.next().unwrap();
                command = format!("{command}\n{more}");
                printed.push_str(&format!("{more}\n"));
            }
            let mut before = String::new();
            while let Some(output) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```")
            {
                before.push_str(output);
                before.push('\n');
            }
            let actual = format!("{}\n", run(&command).trim_end());
            let same = stable(&actual) == stable(&before);
            out.push_str(&format!("{printed}{}", if same { before } else { actual }));
        }
    }
    out
}

#[test]
fn outputs_are_replaced_where_they_differ() {
    let text = "a\n```console\n$ one\nin 5 ms; session ses_1\n$ two\nold\n```\nb\n";
    let mut run = |command: &str| match command {
        "one" => "in 7 ms; session ses_2\n".to_owned(),
        _ => "new\n\n".to_owned(),
    };
    let expected = "a\n```console\n$ one\nin 5 ms; session ses_1\n$ two\nnew\n```\nb\n";
    assert_eq!(with_outputs(text, &mut run), expected);
}

#[test]
fn samples_of_the_documents_are_current() {
    let project = Project::new(&json!([
        calls("read_file", &json!({"path": "src/tidepool/worker.py"})),
        text_answer(
            "After 8 attempts: `Worker.give_back` in src/tidepool/worker.py logs an error and removes the job."
        ),
    ]));
    let mut stale = Vec::new();
    for path in sampled_documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        let actual = with_outputs(&text, &mut |command| project.output(command));
        if actual != text {
            if std::env::var_os("CAIRN_UPDATE").is_some() {
                std::fs::write(&path, &actual).unwrap();
            } else {
                let changed =
                    text.lines().zip(actual.lines()).find(|(before, after)| before != after);
                stale.push(format!("{}: {changed:#?}", path.display()));
            }
        }
        // A command without output is an example; one with output that is not run would go stale.
        let unchecked = text.contains("\n```\n$ cairn");
        assert!(!unchecked, "{}: a sample in a block that is not `console`", path.display());
    }
    assert!(stale.is_empty(), "run with CAIRN_UPDATE=1: {stale:#?}");
}

/// Colours of the picture: those of VGA have too little contrast to read.
const COLOURS: &[(&str, &str)] = &[
    ("#000000", "#0d1117"),
    ("#AAAAAA", "#e6edf3"),
    ("#555555", "#9198a1"),
    ("#0000AA", "#79c0ff"),
    ("#AA0000", "#ff7b72"),
    ("#00AA00", "#7ee787"),
    ("#00AAAA", "#76e3ea"),
    ("#AA00AA", "#d2a8ff"),
    ("opacity: 0.4", "opacity: 0.7"),
];

#[test]
fn picture_of_the_readme_is_current() {
    let project = Project::new(&json!([]));
    let query = "how long to wait before a failed job is tried again";
    let Some(mut terminal) =
        Terminal::start(&project.daemon.home, &project.folder, &["search", query, "-k", "2"])
    else {
        return;
    };
    terminal.wait_exit(0);
    let screen = terminal.colours();
    // The terminal reports the end of the command in a last line, below empty ones.
    let lines: Vec<&str> = screen.lines().filter(|line| !line.contains("Pane is dead")).collect();
    let screen = format!("$ cairn search \"{query}\" -k 2\n{}", lines.join("\n").trim_end());
    let mut picture = anstyle_svg::Term::new().render_svg(&screen);
    for (dark, readable) in COLOURS {
        picture = picture.replace(dark, readable);
    }
    let path = root().join("docs/search.svg");
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        picture,
        "run with CAIRN_UPDATE=1"
    );
}

/// Writes the sample of a chat in a terminal, or compares it.
#[test]
fn chat_session_of_the_guide_is_current() {
    let test = "\"\"\"A job that always fails.\"\"\"\n\nimport unittest\n\nfrom tidepool import Queue, Worker\nfrom tidepool.worker import MAX_ATTEMPTS\n\n\nclass DropTest(unittest.TestCase):\n    def test_job_is_dropped_after_the_last_attempt(self):\n        queue = Queue(\":memory:\")\n        worker = Worker(queue)\n        queue.put(\"unknown\", {})\n        job = queue.lease()\n        job.attempts = MAX_ATTEMPTS\n        worker.give_back(job)\n        self.assertIsNone(queue.lease())\n";
    let command = "PYTHONPATH=src python3 -m unittest tests/test_drop.py";
    let project = Project::new(&json!([
        calls("search_code", &json!({"query": "drop a job after too many attempts"})),
        calls("read_file", &json!({"path": "src/tidepool/worker.py"})),
        calls("write_file", &json!({"path": "tests/test_drop.py", "content": test})),
        calls("run_shell", &json!({"command": command})),
        text_answer(
            "`Worker.give_back` drops a job after 8 attempts. tests/test_drop.py covers it and passes."
        ),
    ]));
    let Some(mut terminal) =
        Terminal::start(&project.daemon.home, &project.folder, &["chat", "--allow-bash"])
    else {
        return;
    };
    terminal.see("\n● ");
    terminal.line("find where a failed job is dropped and add a test");
    terminal.see("allow? y once");
    terminal.key("y");
    terminal.see_after("allowed once", "allow? y once");
    terminal.key("y");
    terminal.see("● changed ");
    let screen = terminal.see("passes.");
    let from = screen.find("● find where").unwrap();
    // Figures of tokens and times are left out, and the line above the next prompt, which may not be
    // there yet.
    let is_stable = |line: &&str| {
        !line.starts_with("● prompt eval")
            && !line.contains("tokens  last:")
            && !line.starts_with("scripted script · ")
    };
    let lines: Vec<&str> = screen[from..].lines().filter(is_stable).map(str::trim_end).collect();
    let session = format!(
        "{FENCE} session\n$ cairn chat --allow-bash\n{}\n```\n",
        lines.join("\n").trim_end_matches(['●', '\n', ' '])
    );
    let path = root().join("docs/guide/chat.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = text.find(&format!("{FENCE} session")).unwrap();
    let end = start + text[start..].find("\n```\n").unwrap() + "\n```\n".len();
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(&path, format!("{}{session}{}", &text[..start], &text[end..])).unwrap();
    } else {
        assert_eq!(stable(&text[start..end]), stable(&session), "run with CAIRN_UPDATE=1");
    }
}
