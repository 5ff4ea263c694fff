//! Exit codes, and errors as text or JSON.

use std::{io, process::ExitCode};

use cairn_client_sdk::ClientError;

pub const OK: u8 = 0;
pub const FAILED: u8 = 1;
/// The command line is invalid.
pub const USAGE: u8 = 2;
/// Not found, or refused by policy.
pub const REFUSED: u8 = 3;
/// The daemon cannot be reached.
pub const UNREACHABLE: u8 = 4;
/// Interrupted by the user.
pub const INTERRUPTED: u8 = 130;

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    reason: String,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Creates a general failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: FAILED, reason: "failed".into(), message: message.into(), hint: None }
    }

    /// Returns the stable reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Creates a failure for invalid usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, reason: "usage".into(), message: message.into(), hint: None }
    }

    /// Creates a failure for something that is refused.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: REFUSED, reason: "refused".into(), message: message.into(), hint: None }
    }

    /// Creates a failure for a path that cannot be used.
    pub fn path(path: &std::path::Path, error: &io::Error) -> Self {
        let name = path.display();
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!("'{name}' does not exist"),
            io::ErrorKind::PermissionDenied => format!("'{name}' is not accessible to this user"),
            io::ErrorKind::AlreadyExists => format!("'{name}' exists already"),
            io::ErrorKind::NotADirectory => format!("'{name}' is not below a folder"),
            io::ErrorKind::IsADirectory => format!("'{name}' is a folder"),
            _ => format!("{name}: {error}"),
        };
        Self { code: REFUSED, reason: "path_not_found".into(), message, hint: None }
    }

    /// Creates a failure from an error in an event or answer of the daemon.
    pub fn with_reason(reason: &str, message: String) -> Self {
        Self { code: code_for_reason(reason), reason: reason.into(), message, hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Replaces the hint of failures with this reason.
    #[must_use]
    pub fn hint_for(self, reason: &str, hint: &str) -> Self {
        if self.reason == reason { self.hint(hint) } else { self }
    }

    /// Adds the context in which it happened.
    #[must_use]
    pub fn in_context(mut self, context: &str) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Renders failure and remedy for a person.
    pub fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
        format!("error: {}{}", self.message, hint.unwrap_or_default())
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Returns true if the daemon cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        self.code == UNREACHABLE
    }

    /// Prints the failure and returns the exit code. A closed output is not a failure.
    pub fn report(&self, json: bool) -> ExitCode {
        if self.reason == PIPE {
            return ExitCode::from(OK);
        }
        let mut text = if json {
            let error = serde_json::json!({"reason": self.reason, "message": self.message, "hint": self.hint});
            format!("{}\n", serde_json::json!({"error": error}))
        } else {
            format!("error: {}\n", self.message)
        };
        if let (Some(hint), false) = (&self.hint, json) {
            text.push_str(&format!("hint: {hint}\n"));
        }
        // Standard error may be closed.
        let _closed = io::Write::write_all(&mut io::stderr(), text.as_bytes());
        ExitCode::from(self.code)
    }
}

/// The reason of a broken pipe.
const PIPE: &str = "broken_pipe";

/// Returns the exit code for a reason of the error table.
fn code_for_reason(reason: &str) -> u8 {
    match reason {
        "invalid_params" | "bad_pattern" | "bad_url" | "bad_trace" => USAGE,
        "path_not_found"
        | "path_outside_roots"
        | "path_blocked"
        | "not_a_directory"
        | "not_a_file"
        | "root_not_found"
        | "revision_not_found"
        | "session_not_found"
        | "run_not_found"
        | "not_resumable"
        | "gone"
        | "tool_denied"
        | "network_denied"
        | "blob_not_found"
        | "unknown_tool"
        | "no_approver"
        | "denied_by_user"
        | "provider_unknown"
        | "model_not_found"
        | "external_llm_denied"
        | "right_missing"
        | "no_roots"
        | "root_ambiguous"
        | "remote_off"
        | "not_paired"
        | "pairing_refused"
        | "device_not_found"
        | "fleet_off"
        | "daemon_not_found"
        | "pool_run_not_found"
        | "approval_not_found"
        | "approval_resolved" => REFUSED,
        "shutting_down" => UNREACHABLE,
        _ => FAILED,
    }
}

/// Returns the advice for a person at a prompt, where the daemon's is for programs.
pub fn hint_for_people(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "invalid_params" => "the command's --help explains its arguments",
        "method_not_found" => "the daemon has another version: 'cairn stop', then try again",
        "overloaded" | "shutting_down" => "try again in a moment",
        "path_outside_roots" | "no_roots" => "'cairn index add DIR' declares a folder",
        "root_not_found" | "root_ambiguous" => "'cairn index' lists the declared folders",
        "bad_pattern" => "check the regular expression; with -F the text is matched literally",
        "index_failed" => "'cairn index' shows the cause; remove the folder and add it again",
        "session_not_found" => "'cairn sessions' lists the sessions",
        "session_busy" => "wait for its run to end, or stop it: 'cairn run stop ID'",
        "after_beyond_head" | "gone" => "'cairn trace show ID' prints what is stored",
        "bad_trace" => "import accepts what 'cairn trace export' writes",
        "approval_not_found" => "'cairn approvals' lists what waits for an answer",
        "approval_resolved" => "the first answer counts",
        "unknown_tool" => "'cairn tools' lists the tools",
        "network_denied" => "allow the domain in network.domains of the configuration",
        "sandbox_missing" => "'cairn doctor' shows what is missing",
        "mcp_server_not_found" => "'cairn mcp list' lists the servers",
        "model_not_found" => "'cairn models' lists the models",
        "provider_unknown" => "'cairn models' lists the providers",
        "external_llm_denied" => {
            "'cairn setup' allows a model outside of this machine (models.allowExternal)"
        }
        "model_unavailable" => {
            "start the model server, or choose another model: 'cairn setup' finds them"
        }
        "model_unauthorized" => {
            "set the provider's key in its environment variable or llm.apiKey: 'cairn setup'"
        }
        "right_missing" => "'cairn clients' on the daemon's machine shows the rights of a device",
        "fleet_off" => "name a broker in fleet.server of the configuration",
        "broker_unreachable" => "'cairn fleet' shows the state of the broker",
        "daemon_not_found" => "'cairn fleet' lists the connected daemons",
        "pool_run_not_found" => "'cairn fleet runs POOL' lists the runs of a pool",
        "device_not_found" => "'cairn clients' lists the paired devices",
        _ => return None,
    })
}

/// Names of parameters, methods and tools in messages, and the words for them at a prompt.
const WORDS: [(&str, &str); 7] = [
    ("filters.languages: ", "the language "),
    ("filters.kinds: ", "the kind "),
    ("filters.globs: ", "the glob "),
    ("pathPrefix: ", "the path "),
    ("symbol: there is no definition", "there is no definition"),
    ("; index.status lists those of a root", "; 'cairn --json index' lists the known ones"),
    // At a prompt the hint names the command.
    ("; find entries with memory_search", ""),
];

/// Returns the message of the daemon in the words of the command line.
fn message_for_people(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |text, (name, words)| text.replace(name, words))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let (code, reason) = match &error {
            ClientError::Rpc { data, .. } => (code_for_reason(&data.reason), data.reason.clone()),
            ClientError::NotPaired { .. } => (UNREACHABLE, "not_paired".into()),
            ClientError::KeyChanged { .. } => (UNREACHABLE, "key_changed".into()),
            ClientError::Pairing(_) => (REFUSED, "pairing_refused".into()),
            ClientError::Gone(_) => (REFUSED, "gone".into()),
            error if error.is_unreachable() => (UNREACHABLE, "unreachable".into()),
            _ => (FAILED, "failed".into()),
        };
        let hint = hint_for_people(&reason).map(str::to_owned).or_else(|| error.hint());
        Self { code, reason, message: message_for_people(&error.to_string()), hint }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let mut failure = Self::failed(format!("cannot write: {error}"));
        if error.kind() == io::ErrorKind::BrokenPipe {
            failure.reason = PIPE.into();
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::error::Reason;

    use super::*;

    #[test]
    fn messages_have_the_words_of_the_command_line() {
        for (message, expected) in [
            (
                "filters.languages: 'x' is unknown; index.status lists those of a root",
                "the language 'x' is unknown; 'cairn --json index' lists the known ones",
            ),
            ("symbol: there is no definition of 'x'", "there is no definition of 'x'"),
            ("limit must be 1 to 9", "limit must be 1 to 9"),
        ] {
            assert_eq!(message_for_people(message), expected);
        }
        let absent = io::Error::from_raw_os_error(2);
        let failure = Failure::path(std::path::Path::new("a.rs"), &absent);
        assert_eq!(failure.text(), "error: 'a.rs' does not exist");
    }

    #[test]
    fn hints_name_commands_and_settings_but_no_methods() {
        let schema = cairn_config::schema().to_string();
        for reason in Reason::ALL {
            let hint = hint_for_people(reason.as_str()).unwrap_or(reason.hint());
            let words = hint.split([' ', ',', ';', ':', '(', ')', '\'']);
            let is_key = |word: &&str| {
                let mut parts = word.split('.');
                word.contains('.') && parts.all(|part| part.starts_with(char::is_alphabetic))
            };
            for word in words.filter(is_key) {
                let last = word.rsplit('.').next().unwrap_or_default();
                let is_setting = schema.contains(&format!("\"{last}\""));
                assert!(is_setting || word.ends_with(".json"), "{}: {hint}", reason.as_str());
            }
        }
    }
}
