//! Checks of values that their types do not express.

use cairn_protocol::fleet::is_name;

use super::{Config, fleet, notifications, telemetry};

impl Config {
    /// Lists invalid values: the key and the requirement.
    pub(crate) fn invalid_values(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let mut check = |fine: bool, key, why: &str| {
            if !fine {
                wrong.push((key, why.to_owned()));
            }
        };
        let major = self.version.split('.').next().unwrap_or_default();
        check(
            major == "1",
            "version",
            "must be 1.0, the format that this version of Cairn supports",
        );
        let part = self.context.compaction_threshold;
        check((0.0..=1.0).contains(&part), "context.compactionThreshold", "must be 0 to 1");
        let temperature = self.llm.temperature;
        let in_range = temperature.is_none_or(|value| (0.0..=2.0).contains(&value));
        check(in_range, "llm.temperature", "must be 0 to 2");
        check(self.resources.max_connections > 0, "resources.maxConnections", "must be at least 1");
        check(self.resources.threads <= 1024, "resources.threads", "must be at most 1024");
        check(self.resources.max_file_bytes > 0, "resources.maxFileBytes", "must be at least 1");
        check(self.resources.memory_mb >= 16, "resources.memoryMb", "must be at least 16");
        check(self.resources.max_runs > 0, "resources.maxRuns", "must be at least 1");
        check((1..=200).contains(&self.rerank.top), "rerank.top", "must be 1 to 200");
        check((1..=60_000).contains(&self.rerank.max_ms), "rerank.maxMs", "must be 1 to 60000");
        check(self.agent.retry_attempts <= 100, "agent.retryAttempts", "must be at most 100");
        check(
            self.listen.address.parse::<std::net::IpAddr>().is_ok(),
            "listen.address",
            "must be an IP address",
        );
        check(self.diagnostics.wait <= 60, "diagnostics.wait", "must be at most 60");
        let telemetry = &self.telemetry;
        check(
            telemetry.endpoint.as_deref().is_none_or(telemetry::is_address),
            "telemetry.endpoint",
            "must be an http or https address",
        );
        check(
            (1..=3600).contains(&telemetry.interval_seconds),
            "telemetry.intervalSeconds",
            "must be 1 to 3600",
        );
        let own = &self.notifications;
        let fits = |text: &str| notifications::is_webhook(text, own.webhook_private);
        check(
            own.webhook.as_deref().is_none_or(fits),
            "notifications.webhook",
            "must be an https address without a user name (http needs webhookPrivate)",
        );
        self.fleet_values(&mut wrong);
        wrong
    }

    fn fleet_values(&self, wrong: &mut Vec<(&'static str, String)>) {
        let own = &self.fleet;
        if let Some(server) = &own.server
            && let Err(why) = fleet::check_server(server, own.plaintext)
        {
            wrong.push(("fleet.server", why.to_owned()));
        }
        let names = "must be 1 to 64 letters, digits, '-' and '_', and not 'pool'".to_owned();
        if own.name.as_deref().is_some_and(|name| !is_name(name)) {
            wrong.push(("fleet.name", names.clone()));
        }
        if !own.pools.iter().all(|pool| is_name(pool)) {
            wrong.push(("fleet.pools", names));
        }
        if ![1, 3, 5].contains(&own.replicas) {
            wrong.push(("fleet.replicas", "must be 1, 3 or 5".to_owned()));
        }
        if own.user.is_some() != own.password_file.is_some() {
            wrong.push(("fleet.passwordFile", "goes with fleet.user".to_owned()));
        }
    }
}
