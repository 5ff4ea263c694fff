//! Table of keys: each has code that reads it and a test of its effect.

use std::path::Path;

/// Test that shows the effect of each key, by file and name.
const EFFECTS: &[(&str, &str)] = &[
    ("agent.maxIterations", "config_keys::turn_limits_are_enforced"),
    ("agent.retryAttempts", "config_keys::failed_requests_are_retried_as_configured"),
    ("agent.retryBackoffBaseMs", "config_keys::failed_requests_are_retried_as_configured"),
    ("agentPlugins.folders", "hooks::agent_plugin_brings_skill_server_command_and_hook"),
    ("ann", "config_keys::invalid_value_is_refused_with_its_key"),
    ("chat.mode", "chat::mode_of_flags_and_configuration_decides_about_edits"),
    ("chat.notify", "chat_view::user_is_notified_while_the_terminal_has_no_focus"),
    ("chat.promptProgress", "chat::mode_of_flags_and_configuration_decides_about_edits"),
    ("chat.theme", "chat_view::diffs_have_the_colours_of_the_theme_and_none_with_no_color"),
    ("context.compactionThreshold", "config_keys::turn_limits_are_enforced"),
    ("context.maxTokens", "config_keys::turn_limits_are_enforced"),
    ("context.maxToolOutputChars", "config_keys::turn_limits_are_enforced"),
    ("context.repoMapTokens", "config_keys::model_settings_are_sent_in_its_request"),
    ("daemon.idleExitSeconds", "config_keys::daemon_starts_as_configured"),
    ("daemon.log", "config_keys::daemon_starts_as_configured"),
    ("diagnostics.command", "chat::formatter_and_check_run_after_edits"),
    ("diagnostics.mode", "chat::formatter_and_check_run_after_edits"),
    ("diagnostics.servers.*.command", "diagnostics::configured_server_is_used_in_trusted_folders"),
    (
        "diagnostics.servers.*.extensions",
        "diagnostics::configured_server_is_used_in_trusted_folders",
    ),
    ("diagnostics.servers.*.markers", "diagnostics::configured_server_is_used_in_trusted_folders"),
    ("diagnostics.timeoutSeconds", "chat::formatter_and_check_run_after_edits"),
    ("diagnostics.wait", "diagnostics::configured_server_is_used_in_trusted_folders"),
    ("discovery", "config_keys::invalid_value_is_refused_with_its_key"),
    ("embedder", "config_keys::invalid_value_is_refused_with_its_key"),
    ("exclusions", "config_keys::daemon_starts_as_configured"),
    ("fleet.blobs", "fleet::blobs_are_copied_to_the_object_store_of_the_broker"),
    (
        "fleet.caFile",
        "fleet::login::daemon_logs_in_by_credentials_over_tls_and_not_by_expired_ones",
    ),
    (
        "fleet.cloneFrom",
        "fleet::login::allowed_repository_is_cloned_for_a_run_and_others_are_refused",
    ),
    (
        "fleet.credentialsFile",
        "fleet::login::daemon_logs_in_by_credentials_over_tls_and_not_by_expired_ones",
    ),
    ("fleet.mirror", "fleet::records_are_followed_and_copied_to_sql_by_programs_in_python"),
    ("fleet.mirrorFolders", "fleet::login::only_sessions_of_the_chosen_folders_are_mirrored"),
    ("fleet.name", "fleet::run_of_a_pool_is_done_on_its_commit_and_answered_from_afar"),
    ("fleet.passwordFile", "fleet::login::daemon_logs_in_by_name_and_password"),
    ("fleet.plaintext", "fleet::login::broker_of_another_machine_needs_tls_or_the_users_word"),
    ("fleet.pools", "fleet::run_of_a_pool_is_done_on_its_commit_and_answered_from_afar"),
    ("fleet.replicas", "fleet::copies_on_several_nodes_need_a_cluster"),
    ("fleet.server", "fleet::run_of_a_pool_is_done_on_its_commit_and_answered_from_afar"),
    ("fleet.user", "fleet::login::daemon_logs_in_by_name_and_password"),
    ("format.commands.*", "chat::formatter_and_check_run_after_edits"),
    ("git.autoCommit", "config_keys::commits_and_plugin_hooks_follow_configuration"),
    ("git.commitMessagePrefix", "config_keys::commits_and_plugin_hooks_follow_configuration"),
    ("hooks.Notification", "hooks::every_event_runs_its_hook"),
    ("hooks.PostToolUse", "hooks::every_event_runs_its_hook"),
    ("hooks.PreCompact", "hooks::every_event_runs_its_hook"),
    ("hooks.PreToolUse", "hooks::every_event_runs_its_hook"),
    ("hooks.SessionEnd", "hooks::every_event_runs_its_hook"),
    ("hooks.SessionStart", "hooks::every_event_runs_its_hook"),
    ("hooks.Stop", "hooks::every_event_runs_its_hook"),
    ("hooks.SubagentStop", "hooks::every_event_runs_its_hook"),
    ("hooks.UserPromptSubmit", "hooks::every_event_runs_its_hook"),
    ("hooks.importClaude", "hooks::hooks_of_claude_code_run_if_imported"),
    ("hooks.mayAllow", "hooks::hook_allows_only_if_the_user_lets_it"),
    (
        "hooks.outsideSandbox",
        "trust::hook_of_a_project_leaves_the_sandbox_by_its_exact_command_alone",
    ),
    ("listen.address", "config_keys::daemon_starts_as_configured"),
    ("listen.allowedHosts", "config_keys::configured_hosts_and_origins_are_accepted"),
    ("listen.allowedOrigins", "config_keys::configured_hosts_and_origins_are_accepted"),
    ("listen.lan", "config_keys::daemon_starts_as_configured"),
    ("listen.lanAddress", "config_keys::daemon_starts_as_configured"),
    ("listen.lanPort", "config_keys::daemon_starts_as_configured"),
    ("listen.port", "config_keys::daemon_starts_as_configured"),
    ("llm.agents.*.credentials", "agents::agent_answers_from_its_sandbox_and_is_audited"),
    ("llm.agents.*.env", "agents::agent_answers_from_its_sandbox_and_is_audited"),
    ("llm.agents.*.path", "agents::agent_answers_from_its_sandbox_and_is_audited"),
    ("llm.agents.*.timeoutSeconds", "agents::agent_failures_have_typed_outcomes"),
    ("llm.apiKey", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.apiKeyCommand", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.apiKeyFile", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.endpoint", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.maxTokens", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.model", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.provider", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.reasoningEffort", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.temperature", "config_keys::model_settings_are_sent_in_its_request"),
    ("llm.timeoutSeconds", "config_keys::failed_requests_are_retried_as_configured"),
    ("llm.toolCalls", "config_keys::costs::tool_calls_are_forced_by_a_schema"),
    ("mcp.listedTools", "mcp_questions::tools_of_a_large_server_are_looked_up"),
    ("mcp.tools", "mcp_tools::clients_are_offered_the_tools_of_the_configuration"),
    ("mcp.servers.*.args", "mcp::tools_of_an_official_server_pass_the_gate"),
    ("mcp.servers.*.command", "mcp::tools_of_an_official_server_pass_the_gate"),
    ("mcp.servers.*.env.*", "mcp::tools_of_an_official_server_pass_the_gate"),
    ("mcp.servers.*.trustAnnotations", "mcp::tools_of_an_official_server_pass_the_gate"),
    ("mcp.servers.*.timeoutSeconds", "mcp::misbehaving_server_does_not_affect_others"),
    ("mcp.servers.*.startTimeoutSeconds", "mcp::misbehaving_server_does_not_affect_others"),
    ("models.allowExternal", "config_keys::external_models_are_limited"),
    ("models.maxTokensPerDay", "config_keys::external_models_are_limited"),
    ("models.maxUsdPerDay", "config_keys::costs::costs_are_limited_as_configured"),
    ("models.maxUsdPerSession", "config_keys::costs::costs_are_limited_as_configured"),
    ("models.maxUsdPerTurn", "config_keys::costs::costs_are_limited_as_configured"),
    ("models.models", "config_keys::external_models_are_limited"),
    ("models.providers", "config_keys::external_models_are_limited"),
    ("network.ask", "config_keys::network::commands_reach_configured_domains"),
    ("network.domains", "config_keys::network::commands_reach_configured_domains"),
    ("network.ports", "config_keys::network::commands_reach_configured_domains"),
    ("notifications.desktop", "unattended::desktop_and_webhook_are_notified_of_questions_and_ends"),
    ("notifications.webhook", "unattended::desktop_and_webhook_are_notified_of_questions_and_ends"),
    (
        "notifications.webhookPrivate",
        "unattended::desktop_and_webhook_are_notified_of_questions_and_ends",
    ),
    ("notifications.webhookSecretCommand", "unattended::webhook_without_a_secret_sends_nothing"),
    (
        "notifications.webhookSecretFile",
        "unattended::desktop_and_webhook_are_notified_of_questions_and_ends",
    ),
    ("permissions.allow", "config_keys::rules_allow_and_deny_calls"),
    ("permissions.approvalTimeoutSeconds", "config_keys::approvals_wait_as_long_as_configured"),
    ("permissions.defaultAction", "config_keys::rules_allow_and_deny_calls"),
    ("permissions.deny", "config_keys::rules_allow_and_deny_calls"),
    ("permissions.finalDeny", "config_keys::rules_allow_and_deny_calls"),
    ("permissions.overrides", "config_keys::rules_allow_and_deny_calls"),
    ("plugins", "config_keys::commits_and_plugin_hooks_follow_configuration"),
    ("rerank.maxMs", "config_keys::invalid_value_is_refused_with_its_key"),
    ("rerank.model", "config_keys::invalid_value_is_refused_with_its_key"),
    ("rerank.top", "config_keys::invalid_value_is_refused_with_its_key"),
    ("resources.maxConnections", "config_keys::daemon_starts_as_configured"),
    ("resources.maxFileBytes", "config_keys::daemon_starts_as_configured"),
    ("resources.memoryMb", "config_keys::invalid_value_is_refused_with_its_key"),
    ("resources.threads", "config_keys::invalid_value_is_refused_with_its_key"),
    ("roots", "config_keys::daemon_starts_as_configured"),
    ("safety.blockedCommands", "config_keys::rules_allow_and_deny_calls"),
    ("safety.requireConfirmation", "config_keys::rules_allow_and_deny_calls"),
    ("safety.sandboxAllowedPaths", "config_keys::rules_allow_and_deny_calls"),
    ("safety.sandboxBlockedPaths", "config_keys::commands_run_as_configured"),
    ("safety.sandboxEnabled", "config_keys::commands_run_as_configured"),
    ("retention.keep", "storage::old_sessions_are_packed_and_removed_as_configured"),
    ("retention.maxAgeDays", "storage::old_sessions_are_packed_and_removed_as_configured"),
    ("retention.maxBytes", "storage::size_of_the_log_is_limited_as_configured"),
    ("retention.packAfterDays", "storage::old_sessions_are_packed_and_removed_as_configured"),
    (
        "sandbox.backgroundSeconds",
        "config_keys::network::background_commands_are_limited_as_configured",
    ),
    (
        "sandbox.maxBackground",
        "config_keys::network::background_commands_are_limited_as_configured",
    ),
    (
        "telemetry.enabled",
        "telemetry::telemetry_is_off_by_default_and_remote_endpoints_must_be_named",
    ),
    (
        "telemetry.endpoint",
        "telemetry::telemetry_is_off_by_default_and_remote_endpoints_must_be_named",
    ),
    ("telemetry.headers.*", "telemetry::turn_is_traced_without_its_content"),
    ("telemetry.intervalSeconds", "telemetry::metrics_are_exported"),
    ("telemetry.metrics", "telemetry::metrics_are_exported"),
    ("telemetry.traces", "telemetry::metrics_are_exported"),
    ("tools.builtin.*.allowedPrefixes", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.cwd", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.enabled", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.maxOutputChars", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.mode", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.timeoutSeconds", "config_keys::commands_run_as_configured"),
    ("tools.external", "outside::sighup_adds_replaces_and_removes_configured_programs"),
    ("tools.mode", "config_keys::model_settings_are_sent_in_its_request"),
    ("trust.folders", "config_keys::trusted_folder_sets_its_model"),
    ("ui.color", "config_keys::terminal::terminal_colours_follow_configuration"),
    ("ui.shell", "shellmode::configuration_makes_the_chat_a_shell"),
    ("ui.showTokenUsage", "config_keys::terminal::terminal_output_follows_configuration"),
    ("ui.showToolCalls", "config_keys::terminal::terminal_output_follows_configuration"),
    ("version", "config_keys::invalid_value_is_refused_with_its_key"),
    ("worktrees.setup", "unattended::setup_prepares_new_work_trees_and_its_failure_starts_no_turn"),
];

/// Keys without a test of their effect in the daemon, each with the reason.
const UNSEEN: &[(&str, &str)] = &[
    ("daemon.drainSeconds", "the test waits for the daemon's end, in drains"),
    ("llm.agents.*.arguments", "shown by the arguments of the agent's process alone"),
    ("llm.agents.*.credentialsWritable", "shown by the writes of an agent alone"),
    ("llm.agents.*.readable", "shown by the reads of an agent alone"),
    ("llm.api", "the requests of each API are tested with the providers"),
    ("mcp.servers.*.cwd", "a server tells nobody where it runs"),
    ("mcp.servers.*.enabled", "as tools.builtin.*.enabled"),
    ("mcp.servers.*.headers.*", "tested where servers are reached by HTTP"),
    ("mcp.servers.*.url", "tested where servers are reached by HTTP"),
    (
        "models.maxRequestsPerMinute",
        "its effect is a wait of a minute; a test of the engine has a clock for it",
    ),
    ("network.askTimeoutSeconds", "tested in the tools, with a resolver of the test"),
    ("network.presets", "their names resolve outside of this machine; tested in compose"),
    ("resources.maxRuns", "tested in the engine and in api with runs that never end"),
    ("sandbox.whenMissing", "this machine has a sandbox; tested in the harness without one"),
    ("tools.web.apiKeyEnv", "web tools reach no server of this machine; tested in the tools"),
    ("tools.web.backend", "as tools.web.apiKeyEnv"),
    ("tools.web.endpoint", "as tools.web.apiKeyEnv"),
    ("ui.streamResponses", "tested in the view of the chat"),
];

/// P5: each key of the schema has code that reads it and a test of its effect.
#[test]
fn every_key_has_a_reader_and_a_test() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| std::fs::read_to_string(top.join(path)).unwrap_or_default();
    let mut wrong = Vec::new();
    for known in cairn_config::key_uses() {
        let source = read(known.reader);
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let last = known.key.split('.').rfind(|part| *part != "*").unwrap_or_default();
        let field: String = last
            .chars()
            .flat_map(|c| {
                if c.is_ascii_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }
            })
            .collect();
        let field = field.trim_start_matches('_');
        if !code.contains(&format!(".{field}")) {
            wrong.push(format!("{}: {} does not read it", known.key, known.reader));
        }
        let tests: Vec<_> = EFFECTS.iter().filter(|(key, _)| *key == known.key).collect();
        let unseen: Vec<_> = UNSEEN.iter().filter(|(key, _)| *key == known.key).collect();
        if tests.len() + unseen.len() != 1 {
            wrong.push(format!("{}: {} tests", known.key, tests.len() + unseen.len()));
        }
        for (_, test) in tests {
            let (module, name) = test.rsplit_once("::").unwrap();
            let text = read(&format!("tests/it/{}.rs", module.replace("::", "/")));
            if !text.contains(&format!("fn {name}(")) || !text.contains(last) {
                wrong.push(format!("{}: {test} does not name it", known.key));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
