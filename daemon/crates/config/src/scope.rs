//! The reader of each key, and the widest scope that it applies to.

use crate::keys;

/// The widest scope that a key applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The daemon and all of its clients. A single command cannot set the key.
    Daemon,
    /// One session; `cairn chat` can set the key for its own.
    Session,
    /// The client program; the daemon does not read the key.
    Client,
}

#[derive(Debug, Clone, Copy)]
pub struct KeyUse {
    /// The dotted key; `*` stands for names that the user chooses.
    pub key: &'static str,
    pub scope: Scope,
    /// The source file that reads the key, relative to the repository.
    pub reader: &'static str,
}

const COMPOSE: &str = "daemon/src/compose.rs";
const LANGUAGE_SERVERS: &str = "daemon/src/language_servers.rs";
const MODELS: &str = "daemon/src/models.rs";
const SERVE: &str = "daemon/src/serve.rs";
const LAUNCH: &str = "daemon/src/launch.rs";
const CHAT: &str = "client-sdk/cli/src/chat/setup.rs";
const LAN: &str = "daemon/src/remote.rs";
const LINK: &str = "daemon/src/extensions/mcp/link.rs";
const PROCESS: &str = "daemon/src/extensions/mcp/process.rs";
const TELEMETRY: &str = "daemon/src/telemetry.rs";
const NOTIFICATIONS: &str = "daemon/src/notifications.rs";
const FLEET: &str = "daemon/src/fleet.rs";
const EXTRAS: &str = "daemon/src/extensions/mod.rs";
const HOOKS: &str = "daemon/src/extensions/hooks/sources.rs";

use Scope::{Client, Daemon, Session};

/// Lists every key of the schema once.
#[rustfmt::skip]
const USES: &[(&str, Scope, &str)] = &[
    ("agent.maxIterations", Session, COMPOSE),
    ("agent.retryAttempts", Daemon, MODELS),
    ("agent.retryBackoffBaseMs", Daemon, MODELS),
    ("agentPlugins.folders", Daemon, EXTRAS),
    ("ann", Daemon, COMPOSE),
    ("chat.mode", Client, CHAT),
    ("chat.notify", Client, CHAT),
    ("chat.promptProgress", Client, CHAT),
    ("chat.theme", Client, CHAT),
    ("context.compactionThreshold", Session, COMPOSE),
    ("context.maxTokens", Session, COMPOSE),
    ("context.maxToolOutputChars", Session, COMPOSE),
    ("context.repoMapTokens", Session, COMPOSE),
    ("daemon.drainSeconds", Daemon, COMPOSE),
    ("daemon.idleExitSeconds", Daemon, SERVE),
    ("daemon.log", Daemon, "daemon/src/reload.rs"),
    ("diagnostics.command", Daemon, COMPOSE),
    ("diagnostics.mode", Daemon, COMPOSE),
    ("diagnostics.servers.*.command", Daemon, LANGUAGE_SERVERS),
    ("diagnostics.servers.*.extensions", Daemon, LANGUAGE_SERVERS),
    ("diagnostics.servers.*.markers", Daemon, LANGUAGE_SERVERS),
    ("diagnostics.timeoutSeconds", Daemon, COMPOSE),
    ("diagnostics.wait", Daemon, LANGUAGE_SERVERS),
    ("discovery", Daemon, SERVE),
    ("embedder", Daemon, COMPOSE),
    ("exclusions", Daemon, COMPOSE),
    ("fleet.blobs", Daemon, FLEET),
    ("fleet.caFile", Daemon, FLEET),
    ("fleet.cloneFrom", Daemon, FLEET),
    ("fleet.credentialsFile", Daemon, FLEET),
    ("fleet.mirror", Daemon, FLEET),
    ("fleet.mirrorFolders", Daemon, FLEET),
    ("fleet.name", Daemon, FLEET),
    ("fleet.passwordFile", Daemon, FLEET),
    ("fleet.plaintext", Daemon, "daemon/crates/config/src/model/checks.rs"),
    ("fleet.pools", Daemon, FLEET),
    ("fleet.replicas", Daemon, FLEET),
    ("fleet.server", Daemon, FLEET),
    ("fleet.user", Daemon, FLEET),
    ("format.commands.*", Daemon, COMPOSE),
    ("git.autoCommit", Daemon, COMPOSE),
    ("git.commitMessagePrefix", Daemon, COMPOSE),
    ("hooks.Notification", Daemon, HOOKS),
    ("hooks.PostToolUse", Daemon, HOOKS),
    ("hooks.PreCompact", Daemon, HOOKS),
    ("hooks.PreToolUse", Daemon, HOOKS),
    ("hooks.SessionEnd", Daemon, HOOKS),
    ("hooks.SessionStart", Daemon, HOOKS),
    ("hooks.Stop", Daemon, HOOKS),
    ("hooks.SubagentStop", Daemon, HOOKS),
    ("hooks.UserPromptSubmit", Daemon, HOOKS),
    ("hooks.importClaude", Daemon, HOOKS),
    ("hooks.mayAllow", Daemon, HOOKS),
    ("hooks.outsideSandbox", Daemon, HOOKS),
    ("listen.address", Daemon, SERVE),
    ("listen.allowedHosts", Daemon, SERVE),
    ("listen.allowedOrigins", Daemon, SERVE),
    ("listen.lan", Daemon, LAN),
    ("listen.lanAddress", Daemon, LAN),
    ("listen.lanPort", Daemon, LAN),
    ("listen.port", Daemon, SERVE),
    ("llm.agents.*.arguments", Daemon, LAUNCH),
    ("llm.agents.*.credentials", Daemon, LAUNCH),
    ("llm.agents.*.credentialsWritable", Daemon, LAUNCH),
    ("llm.agents.*.env", Daemon, LAUNCH),
    ("llm.agents.*.path", Daemon, LAUNCH),
    ("llm.agents.*.readable", Daemon, LAUNCH),
    ("llm.agents.*.timeoutSeconds", Daemon, MODELS),
    ("llm.api", Daemon, MODELS),
    ("llm.apiKey", Daemon, MODELS),
    ("llm.apiKeyCommand", Daemon, MODELS),
    ("llm.apiKeyFile", Daemon, MODELS),
    ("llm.endpoint", Session, MODELS),
    ("llm.maxTokens", Session, COMPOSE),
    ("llm.model", Session, MODELS),
    ("llm.provider", Session, MODELS),
    ("llm.reasoningEffort", Daemon, MODELS),
    ("llm.temperature", Session, COMPOSE),
    ("llm.timeoutSeconds", Daemon, MODELS),
    ("llm.toolCalls", Daemon, MODELS),
    ("mcp.listedTools", Daemon, COMPOSE),
    ("mcp.servers.*.args", Daemon, PROCESS),
    ("mcp.servers.*.command", Daemon, PROCESS),
    ("mcp.servers.*.cwd", Daemon, PROCESS),
    ("mcp.servers.*.enabled", Daemon, "daemon/src/extensions/mcp.rs"),
    ("mcp.servers.*.env.*", Daemon, PROCESS),
    ("mcp.servers.*.headers.*", Daemon, "daemon/src/extensions/mcp/http.rs"),
    ("mcp.servers.*.startTimeoutSeconds", Daemon, LINK),
    ("mcp.servers.*.timeoutSeconds", Daemon, "daemon/src/extensions/mcp.rs"),
    ("mcp.servers.*.trustAnnotations", Daemon, "daemon/src/extensions/mcp.rs"),
    ("mcp.servers.*.url", Daemon, LINK),
    ("mcp.tools", Daemon, "daemon/src/serve.rs"),
    ("models.allowExternal", Daemon, COMPOSE),
    ("models.maxRequestsPerMinute", Daemon, COMPOSE),
    ("models.maxTokensPerDay", Daemon, COMPOSE),
    ("models.maxUsdPerDay", Daemon, COMPOSE),
    ("models.maxUsdPerSession", Daemon, COMPOSE),
    ("models.maxUsdPerTurn", Daemon, COMPOSE),
    ("models.models", Daemon, COMPOSE),
    ("models.providers", Daemon, COMPOSE),
    ("network.ask", Daemon, COMPOSE),
    ("network.askTimeoutSeconds", Daemon, COMPOSE),
    ("network.domains", Daemon, COMPOSE),
    ("network.ports", Daemon, COMPOSE),
    ("network.presets", Daemon, COMPOSE),
    ("notifications.desktop", Daemon, NOTIFICATIONS),
    ("notifications.webhook", Daemon, NOTIFICATIONS),
    ("notifications.webhookPrivate", Daemon, NOTIFICATIONS),
    ("notifications.webhookSecretCommand", Daemon, NOTIFICATIONS),
    ("notifications.webhookSecretFile", Daemon, NOTIFICATIONS),
    ("permissions.allow", Daemon, COMPOSE),
    ("permissions.approvalTimeoutSeconds", Daemon, COMPOSE),
    ("permissions.defaultAction", Daemon, COMPOSE),
    ("permissions.deny", Daemon, COMPOSE),
    ("permissions.finalDeny", Daemon, COMPOSE),
    ("permissions.overrides", Daemon, COMPOSE),
    ("plugins", Daemon, EXTRAS),
    ("rerank.maxMs", Daemon, COMPOSE),
    ("rerank.model", Daemon, COMPOSE),
    ("rerank.top", Daemon, COMPOSE),
    ("resources.maxConnections", Daemon, SERVE),
    ("resources.maxFileBytes", Daemon, COMPOSE),
    ("resources.maxRuns", Daemon, COMPOSE),
    ("resources.memoryMb", Daemon, COMPOSE),
    ("resources.threads", Daemon, COMPOSE),
    ("retention.keep", Daemon, COMPOSE),
    ("retention.maxAgeDays", Daemon, COMPOSE),
    ("retention.maxBytes", Daemon, COMPOSE),
    ("retention.packAfterDays", Daemon, COMPOSE),
    ("roots", Daemon, SERVE),
    ("safety.blockedCommands", Daemon, COMPOSE),
    ("safety.requireConfirmation", Daemon, COMPOSE),
    ("safety.sandboxAllowedPaths", Daemon, COMPOSE),
    ("safety.sandboxBlockedPaths", Daemon, COMPOSE),
    ("safety.sandboxEnabled", Session, COMPOSE),
    ("sandbox.backgroundSeconds", Daemon, COMPOSE),
    ("sandbox.maxBackground", Daemon, COMPOSE),
    ("sandbox.whenMissing", Daemon, COMPOSE),
    ("telemetry.enabled", Daemon, TELEMETRY),
    ("telemetry.endpoint", Daemon, TELEMETRY),
    ("telemetry.headers.*", Daemon, TELEMETRY),
    ("telemetry.intervalSeconds", Daemon, TELEMETRY),
    ("telemetry.metrics", Daemon, TELEMETRY),
    ("telemetry.traces", Daemon, TELEMETRY),
    ("tools.builtin.*.allowedPrefixes", Daemon, COMPOSE),
    ("tools.builtin.*.cwd", Daemon, COMPOSE),
    ("tools.builtin.*.enabled", Session, COMPOSE),
    ("tools.builtin.*.maxOutputChars", Daemon, COMPOSE),
    ("tools.builtin.*.mode", Daemon, COMPOSE),
    ("tools.builtin.*.timeoutSeconds", Daemon, COMPOSE),
    ("tools.external", Daemon, EXTRAS),
    ("tools.mode", Session, COMPOSE),
    ("tools.web.apiKeyEnv", Daemon, COMPOSE),
    ("tools.web.backend", Daemon, COMPOSE),
    ("tools.web.endpoint", Daemon, COMPOSE),
    ("trust.folders", Daemon, "daemon/crates/config/src/project.rs"),
    ("ui.color", Client, CHAT),
    ("ui.shell", Client, CHAT),
    ("ui.showTokenUsage", Client, CHAT),
    ("ui.showToolCalls", Client, CHAT),
    ("ui.streamResponses", Client, CHAT),
    ("version", Daemon, "daemon/crates/config/src/model/checks.rs"),
    ("worktrees.setup", Daemon, COMPOSE),
];

pub fn key_uses() -> impl Iterator<Item = KeyUse> {
    USES.iter().map(|&(key, scope, reader)| KeyUse { key, scope, reader })
}

/// Returns the scope of a dotted key; `None` if the key does not exist.
pub fn scope_of(key: &str) -> Option<Scope> {
    key_uses().find(|known| keys::matches(known.key, key)).map(|known| known.scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_schema_has_one_reader() {
        let listed: Vec<&str> = key_uses().map(|known| known.key).collect();
        let keys: Vec<&str> = keys::leaves().iter().map(String::as_str).collect();
        assert_eq!(listed, keys);
        assert_eq!(scope_of("tools.builtin.run_shell.enabled"), Some(Session));
        assert_eq!(scope_of("no.such.key"), None);
    }
}
