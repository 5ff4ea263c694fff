//! A provider's key from a command of the user, such as one that queries the system's keychain.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_llm::Key;
use cairn_protocol::error::{Failure, Reason};

/// Time limit of the command, long enough to unlock a keychain by hand.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of a key.
const MAX_KEY: u64 = 16 * 1024;

type Slot = (Mutex<Option<Result<Key, String>>>, Condvar);

/// A key that a command prints. The command runs once, in the background, so that only users of the
/// key wait for it.
#[derive(Clone)]
pub struct Keychain(Arc<Slot>);

impl Keychain {
    /// Starts the command in the background.
    pub fn start(command: Vec<String>) -> Self {
        let slot = Arc::<Slot>::default();
        let result_slot = Arc::clone(&slot);
        let set_result = move |answer: Result<Key, String>| {
            *result_slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            result_slot.1.notify_all();
        };
        let refused = set_result.clone();
        let started = std::thread::Builder::new()
            .name("keychain".into())
            .spawn(move || set_result(run(&command)));
        if let Err(error) = started {
            refused(Err(format!("cannot start a thread: {error}")));
        }
        Self(slot)
    }

    /// Waits for the command and returns the key.
    ///
    /// # Errors
    /// `model_unauthorized` with the reason, but never with the command's output.
    pub fn key(&self) -> Result<Key, Failure> {
        let slot = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.0.1.wait_timeout_while(slot, COMMAND_TIMEOUT + Duration::from_secs(1), |s| {
                s.is_none()
            });
        let (slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let answer = slot.clone().unwrap_or_else(|| Err("it has not finished".into()));
        answer.map_err(|why| {
            Failure::new(Reason::ModelUnauthorized, format!("llm.apiKeyCommand: {why}"))
        })
    }
}

fn run(command: &[String]) -> Result<Key, String> {
    let (program, arguments) = command.split_first().ok_or("it does not name a program")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{program} cannot be started: {e}"))?;
    let out = child.stdout.take().ok_or("it has no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.take(MAX_KEY + 1).read_to_string(&mut text).map(|_| text)
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| format!("waiting for it failed: {e}"))? {
            Some(status) => break status,
            None if began.elapsed() > COMMAND_TIMEOUT => {
                let _already_exited = child.kill();
                let _already_exited = child.wait();
                return Err(format!("{program} took longer than {} s", COMMAND_TIMEOUT.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if !status.success() {
        return Err(format!("{program} exited with {status}: is the key stored under that name?"));
    }
    let text =
        reader.join().map_err(|_| "its output cannot be read")?.map_err(|e| e.to_string())?;
    if text.len() as u64 > MAX_KEY {
        return Err(format!("{program} printed more than {MAX_KEY} bytes"));
    }
    Key::new(text).ok_or_else(|| format!("{program} printed nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<Key, Failure> {
        Keychain::start(vec!["/bin/sh".into(), "-c".into(), script.into()]).key()
    }

    #[test]
    fn command_output_is_the_key_and_failures_are_reported() {
        assert!(start("printf 'sk-secret-1\\n'").is_ok());
        for (script, part) in [
            ("exit 44", "exit status: 44"),
            ("true", "printed nothing"),
            ("head -c 20000 /dev/zero", "more than"),
        ] {
            let failure = start(script).unwrap_err();
            assert_eq!(failure.reason, Reason::ModelUnauthorized);
            assert!(failure.message.contains(part), "{script}: {failure}");
        }
        // Output before a failure is not reported.
        let failure = start("echo sk-secret-2; exit 1").unwrap_err();
        assert!(!failure.to_string().contains("sk-secret"), "{failure}");
        let missing = Keychain::start(vec!["/no/such/program".into()]).key().unwrap_err();
        assert!(missing.message.contains("cannot be started"), "{missing}");
    }
}
