//! A server that is a program: it has a clean environment and its own process group, its last error
//! output is stored, and it is killed at the end.

use std::{
    collections::VecDeque,
    io,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::McpServer;
use futures_util::{SinkExt, Stream, StreamExt};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
};

/// Variables that a program inherits from the daemon's environment.
const INHERITED_VARIABLES: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TMPDIR", "TERM", "TZ"];
/// Maximum bytes of one message.
const MAX_LINE: usize = 8 * 1024 * 1024;
/// Number of invalid lines after which a program is not considered a server.
const MAX_INVALID_LINES: usize = 100;
/// Maximum stored lines of standard error, and bytes of each.
const STDERR_LINES: (usize, usize) = (5, 300);
/// Time that a program may take to exit by itself.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// Returns true if a URL belongs to this machine.
pub fn is_local(url: &str) -> bool {
    let host =
        url.parse::<http::Uri>().ok().and_then(|u| u.host().map(str::to_owned)).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Replaces each `${NAME}` by a variable of the daemon's environment.
///
/// # Errors
/// A variable is not set.
pub fn expand_variables(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, end) = after.split_once('}').ok_or_else(|| "a '${' has no '}'".to_owned())?;
        let value = std::env::var(name).map_err(|_| {
            format!("the variable {} is not set where the daemon runs", name.escape_default())
        })?;
        out.push_str(before);
        out.push_str(&value);
        rest = end;
    }
    Ok(out + rest)
}

/// Reading of the values of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variables {
    /// `${NAME}` is a variable of the daemon: the user wrote the configuration.
    Expanded,
    /// Values mean what they are: a client wrote them, which must not read the daemon's variables.
    Literal,
}

impl Variables {
    /// Returns a value of the configuration as it is used.
    ///
    /// # Errors
    /// A variable is not set.
    pub fn read(self, value: &str) -> Result<String, String> {
        match self {
            Self::Expanded => expand_variables(value),
            Self::Literal => Ok(value.to_owned()),
        }
    }
}

/// A running program. Dropping it kills the whole process group.
pub struct Child {
    child: tokio::process::Child,
    group: Option<rustix::process::Pid>,
    words: Arc<Mutex<VecDeque<String>>>,
}

impl Child {
    /// Starts the program of a server.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub fn start(config: &McpServer, variables: Variables) -> Result<Self, String> {
        let program = config.command.as_deref().unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(&config.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.envs(
            INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))),
        );
        for (name, value) in &config.env {
            command.env(name, variables.read(value)?);
        }
        if let Some(folder) =
            config.cwd.clone().or_else(|| std::env::var_os("HOME").map(Into::into))
        {
            command.current_dir(folder);
        }
        let mut child = command
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| format!("'{}' cannot be started: {e}", program.escape_default()))?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        let words = Arc::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(collect_stderr(stderr, Arc::clone(&words)));
        }
        Ok(Self { child, group, words })
    }

    /// Returns the program's standard input and output as a transport, once.
    ///
    /// # Errors
    /// The transport was taken already.
    pub fn transport(
        &mut self,
    ) -> Result<
        (
            impl futures_util::Sink<TxJsonRpcMessage<RoleClient>, Error = io::Error>
            + Unpin
            + Send
            + 'static
            + use<>,
            impl Stream<Item = RxJsonRpcMessage<RoleClient>> + Unpin + Send + 'static + use<>,
        ),
        String,
    > {
        let stdin = self.child.stdin.take();
        let stdout = self.child.stdout.take();
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err("its standard input and output are in use".to_owned());
        };
        Ok((Box::pin(sink(stdin)), Box::pin(messages(stdout))))
    }

    /// Waits briefly for the program to exit, then kills it; adds its exit status and last error
    /// output to `why`.
    pub async fn terminate(&mut self, why: String) -> String {
        // Its standard input is closed by now, which asks a server to exit.
        let status = tokio::time::timeout(EXIT_GRACE, self.child.wait()).await;
        self.kill();
        let exit = match status {
            Ok(Ok(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let stderr_text = if words.is_empty() {
            String::new()
        } else {
            format!("; it printed: {}", words.join(" / "))
        };
        format!("{why}{exit}{stderr_text}")
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take()
            && let Err(error) =
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(%error, "an mcp server's processes cannot be killed");
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Stores the last lines of a program's standard error.
async fn collect_stderr(stderr: ChildStderr, words: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = (&mut reader).take(64 * 1024);
        match part.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text: String = String::from_utf8_lossy(&line)
            .chars()
            .filter(|c| !c.is_control())
            .take(STDERR_LINES.1)
            .collect();
        if text.trim().is_empty() {
            continue;
        }
        tracing::debug!("mcp server: {text}");
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() == STDERR_LINES.0 {
            words.pop_front();
        }
        words.push_back(text);
    }
}

fn sink(
    stdin: ChildStdin,
) -> impl futures_util::Sink<TxJsonRpcMessage<RoleClient>, Error = io::Error> + Send {
    let write = |mut stdin: ChildStdin, message: TxJsonRpcMessage<RoleClient>| async move {
        let mut line = serde_json::to_vec(&message).map_err(io::Error::other)?;
        line.push(b'\n');
        stdin.write_all(&line).await?;
        stdin.flush().await?;
        Ok::<_, io::Error>(stdin)
    };
    futures_util::sink::unfold(stdin, write).sink_map_err(|e| e)
}

/// Parses the messages of a program. Invalid lines are skipped up to a limit.
fn messages(stdout: ChildStdout) -> impl Stream<Item = RxJsonRpcMessage<RoleClient>> + Send {
    let begin = (BufReader::new(stdout), 0_usize);
    futures_util::stream::unfold(begin, |(mut reader, mut garbage)| async move {
        loop {
            let mut line = Vec::new();
            let read = (&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await;
            match read {
                Ok(0) | Err(_) => return None,
                Ok(_) if line.len() > MAX_LINE => {
                    tracing::warn!("an mcp server sent a line of more than {MAX_LINE} bytes");
                    return None;
                }
                Ok(_) => {}
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(message) => return Some((message, (reader, garbage))),
                Err(error) => {
                    tracing::debug!(%error, "an mcp server printed an invalid message");
                    garbage += 1;
                    if garbage > MAX_INVALID_LINES {
                        tracing::warn!("an mcp server prints invalid messages");
                        return None;
                    }
                }
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_missing_ones_reported() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(expand_variables("Bearer ${PATH}!").unwrap(), format!("Bearer {path}!"));
        assert_eq!(expand_variables("$PATH {x}").unwrap(), "$PATH {x}");
        assert!(
            expand_variables("${CAIRN_NO_SUCH_VARIABLE}")
                .unwrap_err()
                .contains("CAIRN_NO_SUCH_VARIABLE")
        );
        assert!(expand_variables("${PATH").is_err());
    }

    #[test]
    fn local_urls_are_recognised() {
        for (url, expected) in [
            ("http://127.0.0.1:3000/mcp", true),
            ("http://localhost/mcp", true),
            ("http://[::1]:1/", true),
            ("https://example.org/mcp", false),
            ("http://127.0.0.1.example.org/", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_local(url), expected, "{url}");
        }
    }
}
