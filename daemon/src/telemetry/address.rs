//! Which collector, and whether it may be one on another machine.

use crate::mcp::is_local;

/// Where collectors usually listen.
const USUAL: &str = "http://127.0.0.1:4318";

/// The collector's address without a slash at its end, and why that of the environment is not taken. A variable that was
/// set for other programs must not make this one speak to another machine: that takes the user's own configuration.
pub fn choose(configured: Option<&str>, standard: Option<&str>) -> (String, Option<String>) {
    let bare = |text: &str| text.trim_end_matches('/').to_owned();
    match (configured, standard.filter(|text| !text.is_empty())) {
        (Some(named), _) => (bare(named), None),
        (None, Some(standard)) if is_local(standard) => (bare(standard), None),
        (None, Some(standard)) => {
            let text = format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT is not taken, for {} is not on this machine; name it as telemetry.endpoint to send there",
                shown(standard)
            );
            (USUAL.to_owned(), Some(text))
        }
        (None, None) => (USUAL.to_owned(), None),
    }
}

/// Keys go to another machine by TLS alone.
///
/// # Errors
/// What keeps telemetry from being sent there.
pub fn check(address: &str, with_headers: bool) -> Result<(), String> {
    let secret = with_headers || address.contains('@');
    if secret && !address.starts_with("https://") && !is_local(address) {
        return Err(format!("{} would get its headers unencrypted: use https", shown(address)));
    }
    Ok(())
}

/// An address without what may be a password.
pub fn shown(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_never_sends_to_another_machine() {
        let cases: [(Option<&str>, Option<&str>, &str, bool); 8] = [
            (None, None, USUAL, false),
            (None, Some(""), USUAL, false),
            (None, Some("http://localhost:9/"), "http://localhost:9", false),
            (None, Some("http://[::1]:9"), "http://[::1]:9", false),
            (None, Some("https://collector.example:4318"), USUAL, true),
            (None, Some("http://127.0.0.1.example"), USUAL, true),
            (None, Some("nonsense"), USUAL, true),
            (
                Some("https://collector.example/otlp/"),
                Some("http://[::1]:9"),
                "https://collector.example/otlp",
                false,
            ),
        ];
        for (configured, standard, address, ignored) in cases {
            let (chosen, why) = choose(configured, standard);
            assert_eq!((chosen.as_str(), why.is_some()), (address, ignored), "{configured:?} {standard:?}");
        }
    }

    #[test]
    fn keys_go_by_tls_or_stay_here() {
        assert!(check("http://collector.example", false).is_ok());
        assert!(check("https://collector.example", true).is_ok());
        assert!(check("http://127.0.0.1:4318", true).is_ok());
        assert!(check("http://collector.example", true).unwrap_err().contains("use https"));
        let with_password = check("http://u:hunter2@collector.example", false).unwrap_err();
        assert!(!with_password.contains("hunter2"), "{with_password}");
    }
}
