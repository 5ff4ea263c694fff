//! A terminal that a test writes to and reads from: tmux, without this machine's configuration.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::sealed::{binary, missing, wait_for};

/// A command in a terminal, which is killed on drop.
pub struct Terminal {
    dir: tempfile::TempDir,
}

/// The size of a terminal and further variables of its command.
pub struct Setup<'a> {
    pub columns: u16,
    pub variables: &'a [(&'a str, &'a str)],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { columns: 100, variables: &[] }
    }
}

impl Terminal {
    /// Starts the binary in `folder`; `None` after a notice if tmux is missing.
    pub fn start(home: &Path, folder: &Path, args: &[&str]) -> Option<Self> {
        Self::start_with(home, folder, args, &Setup::default())
    }

    /// Starts the binary in a terminal of this size; `None` after a notice if tmux is missing.
    pub fn start_with(
        home: &Path,
        folder: &Path,
        args: &[&str],
        setup: &Setup<'_>,
    ) -> Option<Self> {
        let probe =
            Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !probe.is_ok_and(|s| s.success()) {
            missing("tmux");
            return None;
        }
        let terminal = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::write(terminal.dir.path().join("tmux.conf"), "set -g remain-on-exit on\n")
            .unwrap();
        let columns = setup.columns.to_string();
        let mut command = terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", "50", "-c"]);
        command.arg(folder).args([
            "-e",
            &format!("CAIRN_HOME={}", home.display()),
            "-e",
            "COLORTERM=",
        ]);
        // Ctrl+C is for the command alone, and its exit code is written to a file because tmux does
        // not always report it.
        let code = terminal.dir.path().join("code");
        let line = format!("trap '' INT; \"$@\"; echo $? > {}", code.display());
        // tmux replaces some variables, such as PATH, by its own.
        command.args(["sh", "-c", &line, "sh", "env"]);
        command.args(setup.variables.iter().map(|(name, value)| format!("{name}={value}")));
        command.arg(binary()).args(args).env("HOME", home);
        assert!(command.status().unwrap().success());
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("LANG", "C.UTF-8");
        command
            .env("TMUX_TMPDIR", self.dir.path())
            .arg("-f")
            .arg(self.dir.path().join("tmux.conf"));
        command.arg("-u").args(args);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.tmux(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the screen and its scrollback.
    fn capture(&self) -> String {
        let text = self.run(&["capture-pane", "-p", "-S", "-"]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns the screen and its scrollback with colours.
    pub fn colours(&self) -> String {
        self.run(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Waits until `expected` is on the screen, and returns the complete text.
    pub fn see(&mut self, expected: &str) -> String {
        self.until(expected, |text| text.contains(expected.trim_end()))
    }

    /// Waits until `expected` follows the last `mark`.
    pub fn see_after(&mut self, mark: &str, expected: &str) -> String {
        self.until(expected, |text| {
            text.rsplit_once(mark).is_some_and(|(_, rest)| rest.contains(expected))
        })
    }

    /// Waits until `text` is no longer on the screen, and returns the complete text.
    pub fn see_gone(&mut self, text: &str) -> String {
        self.until(text, |screen| !screen.contains(text))
    }

    /// Waits until the last line is `expected`.
    pub fn see_last(&mut self, expected: &str) -> String {
        self.until(expected, |text| text.lines().next_back() == Some(expected))
    }

    fn until(&self, expected: &str, is: impl Fn(&str) -> bool) -> String {
        let last = std::cell::RefCell::new(String::new());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(expected, || {
                let text = self.capture();
                last.borrow_mut().clone_from(&text);
                is(&text).then_some(text)
            })
        }));
        outcome.unwrap_or_else(|_| panic!("'{expected}' did not come:\n{}", last.borrow()))
    }

    /// Changes the width of the terminal.
    pub fn resize(&mut self, columns: u16) {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", "50"]);
    }

    /// Types a text without a line end.
    pub fn text(&mut self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Presses a named key.
    pub fn key(&mut self, name: &str) {
        self.run(&["send-keys", name]);
    }

    /// Sends bytes, such as a sequence that a terminal sends itself.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let args: Vec<&str> = hex.iter().map(String::as_str).collect();
        self.run(&[&["send-keys", "-H"], args.as_slice()].concat());
    }

    /// Pastes a text as terminals do, between the marks of a paste.
    pub fn paste(&mut self, text: &str) {
        let file = self.dir.path().join("paste");
        std::fs::write(&file, text).unwrap();
        self.run(&["load-buffer", "-b", "test", file.to_str().unwrap()]);
        self.run(&["paste-buffer", "-p", "-r", "-b", "test"]);
    }

    /// Stores what the command writes from now on.
    pub fn record(&mut self) {
        let file = self.dir.path().join("raw");
        std::fs::write(&file, "").unwrap();
        self.run(&["pipe-pane", "-O", &format!("cat >> '{}'", file.display())]);
    }

    /// Waits until the recorded bytes contain `expected`.
    pub fn see_raw(&mut self, expected: &str) -> String {
        let file = self.dir.path().join("raw");
        wait_for(expected, || {
            let text = String::from_utf8_lossy(&std::fs::read(&file).ok()?).into_owned();
            text.contains(expected).then_some(text)
        })
    }

    /// Types a line and presses Enter.
    pub fn line(&mut self, text: &str) {
        self.text(text);
        self.key("Enter");
    }

    /// Waits until the command has exited with that code.
    pub fn wait_exit(&mut self, code: i32) {
        let file = self.dir.path().join("code");
        let exit_code = wait_for("the end of the command", || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.strip_suffix('\n').map(str::to_owned)
        });
        assert_eq!(exit_code, code.to_string(), "{}", self.capture());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ignored = self.tmux(&["kill-server"]).status();
    }
}
