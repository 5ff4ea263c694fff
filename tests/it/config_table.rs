//! Table of keys: each has code that reads it and a test of its effect.

use std::path::Path;

/// Test that shows the effect of each key, by file and name.
const EFFECTS: &[(&str, &str)] = &[
    ("agent.max_iterations", "config_keys::settings_of_turns_bound_them"),
    ("agent.retry_attempts", "config_keys::failed_requests_are_repeated_as_configured"),
    ("agent.retry_backoff_base_ms", "config_keys::failed_requests_are_repeated_as_configured"),
    ("ann", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("context.compaction_threshold", "config_keys::settings_of_turns_bound_them"),
    ("context.max_tokens", "config_keys::settings_of_turns_bound_them"),
    ("context.max_tool_output_chars", "config_keys::settings_of_turns_bound_them"),
    ("context.repo_map_tokens", "config_keys::settings_of_the_model_reach_its_request"),
    ("daemon.idleExitSeconds", "config_keys::the_daemon_starts_as_configured"),
    ("daemon.log", "config_keys::the_daemon_starts_as_configured"),
    ("discovery", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("embedder", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("exclusions", "config_keys::the_daemon_starts_as_configured"),
    ("git.auto_commit", "config_keys::a_turn_is_committed_and_told_to_plugins_as_configured"),
    ("git.commit_message_prefix", "config_keys::a_turn_is_committed_and_told_to_plugins_as_configured"),
    ("listen.address", "config_keys::the_daemon_starts_as_configured"),
    ("listen.allowedHosts", "config_keys::names_and_origins_of_the_daemon_are_those_configured"),
    ("listen.allowedOrigins", "config_keys::names_and_origins_of_the_daemon_are_those_configured"),
    ("listen.lan", "config_keys::the_daemon_starts_as_configured"),
    ("listen.lanAddress", "config_keys::the_daemon_starts_as_configured"),
    ("listen.lanPort", "config_keys::the_daemon_starts_as_configured"),
    ("listen.port", "config_keys::the_daemon_starts_as_configured"),
    ("llm.agents.*.credentials", "agents::an_agent_answers_from_its_sandbox_and_both_ends_are_in_the_audit"),
    ("llm.agents.*.env", "agents::an_agent_answers_from_its_sandbox_and_both_ends_are_in_the_audit"),
    ("llm.agents.*.path", "agents::an_agent_answers_from_its_sandbox_and_both_ends_are_in_the_audit"),
    ("llm.agents.*.timeout_seconds", "agents::what_goes_wrong_with_an_agent_is_a_typed_outcome"),
    ("llm.api_key", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.api_key_command", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.api_key_file", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.endpoint", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.max_tokens", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.model", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.provider", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.temperature", "config_keys::settings_of_the_model_reach_its_request"),
    ("llm.timeout_seconds", "config_keys::failed_requests_are_repeated_as_configured"),
    ("mcp.servers.*.args", "mcp::tools_of_an_official_server_act_through_the_gate"),
    ("mcp.servers.*.command", "mcp::tools_of_an_official_server_act_through_the_gate"),
    ("mcp.servers.*.env.*", "mcp::tools_of_an_official_server_act_through_the_gate"),
    ("mcp.servers.*.trust_annotations", "mcp::tools_of_an_official_server_act_through_the_gate"),
    ("mcp.servers.*.timeout_seconds", "mcp::a_server_that_does_what_it_should_not_harms_nobody"),
    ("mcp.servers.*.start_timeout_seconds", "mcp::a_server_that_does_what_it_should_not_harms_nobody"),
    ("models.allowExternal", "config_keys::models_outside_this_machine_are_bounded"),
    ("models.maxTokensPerDay", "config_keys::models_outside_this_machine_are_bounded"),
    ("models.models", "config_keys::models_outside_this_machine_are_bounded"),
    ("models.providers", "config_keys::models_outside_this_machine_are_bounded"),
    ("permissions.allow", "config_keys::rules_decide_about_calls"),
    ("permissions.approvalTimeoutSeconds", "config_keys::approvals_wait_as_long_as_configured"),
    ("permissions.defaultAction", "config_keys::rules_decide_about_calls"),
    ("permissions.deny", "config_keys::rules_decide_about_calls"),
    ("permissions.finalDeny", "config_keys::rules_decide_about_calls"),
    ("permissions.overrides", "config_keys::rules_decide_about_calls"),
    ("plugins", "config_keys::a_turn_is_committed_and_told_to_plugins_as_configured"),
    ("rerank.maxMs", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("rerank.model", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("rerank.top", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("resources.maxConnections", "config_keys::the_daemon_starts_as_configured"),
    ("resources.maxFileBytes", "config_keys::the_daemon_starts_as_configured"),
    ("resources.memoryMb", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("resources.threads", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
    ("roots", "config_keys::the_daemon_starts_as_configured"),
    ("safety.blocked_commands", "config_keys::rules_decide_about_calls"),
    ("safety.require_confirmation", "config_keys::rules_decide_about_calls"),
    ("safety.sandbox_allowed_paths", "config_keys::rules_decide_about_calls"),
    ("safety.sandbox_blocked_paths", "config_keys::commands_run_as_configured"),
    ("safety.sandbox_enabled", "config_keys::commands_run_as_configured"),
    ("telemetry.enabled", "telemetry::nothing_is_sent_unless_it_is_wanted_and_elsewhere_only_by_name"),
    ("telemetry.endpoint", "telemetry::nothing_is_sent_unless_it_is_wanted_and_elsewhere_only_by_name"),
    ("telemetry.headers.*", "telemetry::a_turn_is_a_trace_and_nothing_of_it_is_told"),
    ("telemetry.intervalSeconds", "telemetry::the_figures_of_metrics_are_sent"),
    ("telemetry.metrics", "telemetry::the_figures_of_metrics_are_sent"),
    ("telemetry.traces", "telemetry::the_figures_of_metrics_are_sent"),
    ("tools.builtin.*.allowed_prefixes", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.cwd", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.enabled", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.max_output_chars", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.mode", "config_keys::commands_run_as_configured"),
    ("tools.builtin.*.timeout_seconds", "config_keys::commands_run_as_configured"),
    ("tools.external", "outside::programs_of_the_configuration_come_change_and_go_with_a_hang_up"),
    ("tools.mode", "config_keys::settings_of_the_model_reach_its_request"),
    ("trust.folders", "config_keys::a_trusted_folder_sets_its_own_model"),
    ("ui.color", "config_keys::a_terminal_is_as_configured"),
    ("ui.show_token_usage", "config_keys::the_terminal_shows_what_is_configured"),
    ("ui.show_tool_calls", "config_keys::the_terminal_shows_what_is_configured"),
    ("version", "config_keys::a_value_that_makes_no_sense_is_refused_by_its_key"),
];

/// Keys without a test of their effect in the daemon, each with the reason.
const UNSEEN: &[(&str, &str)] = &[
    ("daemon.drainSeconds", "the test waits for the daemon's end, in drains"),
    ("llm.agents.*.arguments", "shown by the arguments of the agent's process alone"),
    ("llm.agents.*.credentials_writable", "shown by the writes of an agent alone"),
    ("llm.agents.*.readable", "shown by the reads of an agent alone"),
    ("mcp.servers.*.cwd", "a server tells nobody where it runs"),
    ("mcp.servers.*.enabled", "as tools.builtin.*.enabled"),
    ("mcp.servers.*.headers.*", "tested where servers are reached by HTTP"),
    ("mcp.servers.*.url", "tested where servers are reached by HTTP"),
    (
        "models.maxRequestsPerMinute",
        "its effect is a wait of a minute; a test of the engine has a clock for it",
    ),
    ("resources.maxRuns", "tested in the engine and in api with runs that never end"),
    ("sandbox.whenMissing", "this machine has a sandbox; tested in the harness without one"),
    ("tools.web.api_key_env", "web tools reach no server of this machine; tested in the tools"),
    ("tools.web.backend", "as tools.web.api_key_env"),
    ("tools.web.endpoint", "as tools.web.api_key_env"),
    ("ui.shell", "tested at a terminal, in shellmode"),
    ("ui.stream_responses", "tested at a terminal, in chat"),
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
            .flat_map(|c| if c.is_ascii_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] })
            .collect();
        if !code.contains(&format!(".{field}")) {
            wrong.push(format!("{}: {} does not read it", known.key, known.reader));
        }
        let tests: Vec<_> = EFFECTS.iter().filter(|(key, _)| *key == known.key).collect();
        let unseen: Vec<_> = UNSEEN.iter().filter(|(key, _)| *key == known.key).collect();
        if tests.len() + unseen.len() != 1 {
            wrong.push(format!("{}: {} tests", known.key, tests.len() + unseen.len()));
        }
        for (_, test) in tests {
            let (file, name) = test.split_once("::").unwrap();
            let text = read(&format!("tests/it/{file}.rs"));
            if !text.contains(&format!("fn {name}(")) || !text.contains(last) {
                wrong.push(format!("{}: {test} does not name it", known.key));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
