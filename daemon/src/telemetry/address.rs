//! The choice of the collector, and whether it may be on another machine.

use crate::extensions::mcp::is_local;

/// The default address of collectors.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:4318";

/// Chooses the collector's address, without a trailing slash, and returns a warning if the
/// environment's is ignored. A variable set for other programs must not make the daemon contact
/// another machine; only the user's own configuration can.
pub fn choose(configured: Option<&str>, standard: Option<&str>) -> (String, Option<String>) {
    let without_trailing_slash = |text: &str| text.trim_end_matches('/').to_owned();
    match (configured, standard.filter(|text| !text.is_empty())) {
        (Some(named), _) => (without_trailing_slash(named), None),
        (None, Some(standard)) if is_local(standard) => (without_trailing_slash(standard), None),
        (None, Some(standard)) => {
            let text = format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT is ignored, because {} is not on this machine; set telemetry.endpoint to send there",
                without_credentials(standard)
            );
            (DEFAULT_ADDRESS.to_owned(), Some(text))
        }
        (None, None) => (DEFAULT_ADDRESS.to_owned(), None),
    }
}

/// Requires TLS for sending keys to another machine.
///
/// # Errors
/// The reason why telemetry cannot be sent there.
pub fn check(address: &str, with_headers: bool) -> Result<(), String> {
    let secret = with_headers || address.contains('@');
    if secret && !address.starts_with("https://") && !is_local(address) {
        return Err(format!(
            "{} would receive its headers unencrypted: use https",
            without_credentials(address)
        ));
    }
    Ok(())
}

/// Removes anything that may be a password from an address.
pub fn without_credentials(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_cannot_select_another_machine() {
        let cases: [(Option<&str>, Option<&str>, &str, bool); 8] = [
            (None, None, DEFAULT_ADDRESS, false),
            (None, Some(""), DEFAULT_ADDRESS, false),
            (None, Some("http://localhost:9/"), "http://localhost:9", false),
            (None, Some("http://[::1]:9"), "http://[::1]:9", false),
            (None, Some("https://collector.example:4318"), DEFAULT_ADDRESS, true),
            (None, Some("http://127.0.0.1.example"), DEFAULT_ADDRESS, true),
            (None, Some("nonsense"), DEFAULT_ADDRESS, true),
            (
                Some("https://collector.example/otlp/"),
                Some("http://[::1]:9"),
                "https://collector.example/otlp",
                false,
            ),
        ];
        for (configured, standard, address, ignored) in cases {
            let (chosen, why) = choose(configured, standard);
            assert_eq!(
                (chosen.as_str(), why.is_some()),
                (address, ignored),
                "{configured:?} {standard:?}"
            );
        }
    }

    #[test]
    fn keys_require_tls_or_loopback() {
        assert!(check("http://collector.example", false).is_ok());
        assert!(check("https://collector.example", true).is_ok());
        assert!(check("http://127.0.0.1:4318", true).is_ok());
        assert!(check("http://collector.example", true).unwrap_err().contains("use https"));
        let with_password = check("http://u:hunter2@collector.example", false).unwrap_err();
        assert!(!with_password.contains("hunter2"), "{with_password}");
    }
}
