//! Small tasks in small repositories, each through a real daemon in a fresh copy; a check command
//! decides about success. A script proves the flow; a model server can be tried in its place.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, binary},
    meter::report,
};

/// Longest time of one task.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Most model requests of one task.
const MAX_REQUESTS: u32 = 40;
/// File with the final answer, which checks of questions read.
const ANSWER: &str = "ANSWER.txt";

/// A task as its file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    /// Request to the agent.
    prompt: String,
    /// Command line that succeeds if the task is done; it runs in the sandbox.
    check: String,
    /// Files of the repository.
    files: BTreeMap<String, String>,
}

/// The model of a run.
enum Model {
    /// The script of each task.
    Script,
    /// A server that is compatible with OpenAI's, and the name of its model.
    Server { url: String, name: String },
}

/// Result of one task.
struct Row {
    name: String,
    outcome: String,
    is_done: bool,
    requests: usize,
    calls: usize,
    tokens: u64,
    seconds: f64,
}

/// Runs the tasks that the arguments name, or all. Returns true if all succeeded.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let Arguments { model, names, folder } = read_arguments(arguments)?;
    if !binary().is_file() {
        return Err(format!("{} is missing: build cairn-daemon first", binary().display()));
    }
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks");
    let folder = folder.unwrap_or_else(own);
    let mut all: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("task.toml").is_file())
        .collect();
    all.sort();
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|path| name_of(path) == **name))
    {
        return Err(format!("{unknown} is not a task"));
    }
    all.retain(|path| names.is_empty() || names.contains(&name_of(path)));
    report(line(["task", "outcome", "requests", "calls", "tokens", "seconds"]));
    let mut done = 0;
    for path in &all {
        let row = run_task(path, name_of(path), &model)?;
        done += usize::from(row.is_done);
        let (requests, calls) = (row.requests.to_string(), row.calls.to_string());
        let (tokens, seconds) = (row.tokens.to_string(), format!("{:.1}", row.seconds));
        report(line([&row.name, &row.outcome, &requests, &calls, &tokens, &seconds]));
    }
    report(format!("{done} of {} tasks done", all.len()));
    Ok(done == all.len())
}

fn line(cells: [&str; 6]) -> String {
    let [name, outcome, numbers @ ..] = cells;
    let numbers: String = numbers.iter().map(|number| format!("{number:>10}")).collect();
    format!("{name:<24}{outcome:<36}{numbers}")
}

/// Arguments of a run.
struct Arguments {
    model: Model,
    /// Names of tasks; all if empty.
    names: Vec<String>,
    /// Folder of other tasks.
    folder: Option<PathBuf>,
}

fn read_arguments(arguments: &[String]) -> Result<Arguments, String> {
    let mut model = Model::Script;
    let mut names = Vec::new();
    let mut folder = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--model" => {
                let (Some(url), Some(name)) = (rest.next(), rest.next()) else {
                    return Err("--model needs the URL of a server and the name of a model".into());
                };
                model = Model::Server { url: url.clone(), name: name.clone() };
            }
            "--folder" => {
                folder = Some(rest.next().ok_or("--folder needs a folder of tasks")?.into());
            }
            option if option.starts_with("--") => return Err(format!("{option} is not an option")),
            name => names.push(name.to_owned()),
        }
    }
    Ok(Arguments { model, names, folder })
}

fn run_task(path: &Path, name: String, model: &Model) -> Result<Row, String> {
    let failed = |error: String| format!("{name}: {error}");
    let text = fs::read_to_string(path.join("task.toml")).map_err(|e| failed(e.to_string()))?;
    let task: Task = toml::from_str(&text).map_err(|e| failed(e.to_string()))?;
    let scratch = tempfile::tempdir().map_err(|e| failed(e.to_string()))?;
    let at = scratch.path().canonicalize().map_err(|e| failed(e.to_string()))?;
    let (home, folder) = (at.join("home"), at.join("repo"));
    for (file, content) in &task.files {
        write(&folder.join(file), content).map_err(&failed)?;
    }
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&folder).status();
    if !git.is_ok_and(|status| status.success()) {
        return Err(failed("git init failed".into()));
    }
    let config = configuration(model, &path.join("script.json"));
    write(&home.join("config/config.json"), &config.to_string()).map_err(&failed)?;
    let daemon = Daemon::start(&home);
    let commands = Commands { home: &home, folder: &folder, scratch: &at };
    let before = commands.check(&task.check).map_err(&failed)?;
    if before == 0 {
        return Err(failed("its check succeeds on the untouched repository".into()));
    }
    let started = Instant::now();
    let (code, records) = commands.chat(&task.prompt).map_err(&failed)?;
    let seconds = started.elapsed().as_secs_f64();
    let result = records.last().cloned().unwrap_or_default();
    let answer = result["finalOutput"].as_str().unwrap_or_default();
    write(&folder.join(ANSWER), answer).map_err(&failed)?;
    // A check that does not end is one that fails.
    let check = commands.check(&task.check).unwrap_or(-1);
    drop(daemon);
    let outcome = match (code, check) {
        (Some(0), 0) => "done".to_owned(),
        (Some(0), check) => format!("check failed ({check})"),
        (None, _) => format!("stopped after {} s", LIMIT.as_secs()),
        (Some(code), _) => {
            let reason = result["error"]["reason"].as_str().unwrap_or("no reason");
            format!("chat failed ({code}, {reason})")
        }
    };
    let answers = records.iter().filter(|record| record["evt"]["type"] == "model_answer");
    let tokens = |kind: &str| result["usage"][kind].as_u64().unwrap_or(0);
    Ok(Row {
        name,
        is_done: outcome == "done",
        outcome,
        requests: answers.count(),
        calls: result["toolTrace"].as_array().map_or(0, Vec::len),
        tokens: tokens("inputTokens") + tokens("outputTokens"),
        seconds,
    })
}

fn configuration(model: &Model, script: &Path) -> Value {
    let llm = match model {
        Model::Script => json!({"provider": "scripted", "endpoint": script}),
        Model::Server { url, name } => json!({
            "provider": "openai-compatible",
            "endpoint": url,
            "model": name,
            // Small models are forced to make valid calls.
            "tool_calls": "schema",
            "timeout_seconds": LIMIT.as_secs(),
        }),
    };
    // Questions have no answer here, and the copy is all that a tool can change.
    let safety = json!({"require_confirmation": []});
    json!({"llm": llm, "safety": safety, "agent": {"max_iterations": MAX_REQUESTS}})
}

/// Commands of the binary for one copy of a repository.
struct Commands<'a> {
    home: &'a Path,
    folder: &'a Path,
    scratch: &'a Path,
}

impl Commands<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.folder).env("CAIRN_HOME", self.home);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs a turn; returns its exit code, `None` after the limit, and its records.
    fn chat(&self, prompt: &str) -> Result<(Option<i32>, Vec<Value>), String> {
        let log = self.scratch.join("records.jsonl");
        let output = fs::File::create(&log).map_err(|error| error.to_string())?;
        let arguments = ["chat", "--no-local-session", "--json", "--mode", "auto", "-p", prompt];
        let mut command = self.command(&arguments);
        let mut child = command.stdout(output).spawn().map_err(|error| error.to_string())?;
        let until = Instant::now() + LIMIT;
        let code = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break Some(status.code().unwrap_or(-1)),
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                None => {
                    let _already_exited = child.kill();
                    let _already_exited = child.wait();
                    break None;
                }
            }
        };
        let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
        Ok((code, text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
    }

    /// Returns the exit code of a check, which runs in the sandbox as a model's commands do.
    fn check(&self, check: &str) -> Result<i64, String> {
        let call = json!({"command": check}).to_string();
        let output = self
            .command(&["--json", "tools", "call", "run_shell", &call, "--yes"])
            .output()
            .map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let code = ["output", "result"].iter().find_map(|key| value[key]["exit_code"].as_i64());
        code.or_else(|| value["exit_code"].as_i64()).ok_or_else(|| {
            format!("the check did not run: {}", String::from_utf8_lossy(&output.stdout))
        })
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    let failed = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(parent).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}
