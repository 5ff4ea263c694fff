//! The error table: one row per reason, frozen as part of the contract.
//!
//! `data.reason` is the contract, the code groups by area, and the message is for people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal, $retry:literal, $hint:literal;)*) => {
        /// Reason for a failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* #[doc = $hint] $name,)*
        }

        impl Reason {
            /// All reasons, in the order of the table.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// Returns the JSON-RPC error code.
            pub fn code(self) -> i32 {
                match self { $(Reason::$name => $code,)* }
            }
            /// Returns the stable string in `data.reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }
            /// Returns true if the same call may succeed later.
            pub fn retryable(self) -> bool {
                match self { $(Reason::$name => $retry,)* }
            }
            /// Returns advice for a person on how to resolve the failure.
            pub fn hint(self) -> &'static str {
                match self { $(Reason::$name => $hint,)* }
            }
        }
    };
}

reasons! {
    ParseError = -32700, "parse_error", false, "send one JSON value per message";
    InvalidRequest = -32600, "invalid_request", false, "send a JSON-RPC 2.0 request object or a batch of them";
    MethodNotFound = -32601, "method_not_found", false, "rpc.discover lists the methods";
    InvalidParams = -32602, "invalid_params", false, "see the method's schema in rpc.discover";
    Internal = -32603, "internal", true, "see the daemon's log; 'cairn status' shows its path";
    Cancelled = -32800, "cancelled", true, "the call was cancelled by its client";
    Overloaded = 1001, "overloaded", true, "wait retryAfterMs, then retry; initialize returns the limits";
    NotInitialized = 1002, "not_initialized", false, "send initialize first, not in a batch";
    AlreadyInitialized = 1003, "already_initialized", false, "initialize is sent once per connection";
    IncompatibleVersion = 1004, "incompatible_version", false, "update the older side";
    TooLarge = 1005, "too_large", false, "send less; initialize returns the limits";
    ShuttingDown = 1006, "shutting_down", true, "reconnect in a moment";
    DiskFull = 1007, "disk_full", true, "free space on the disk of the data folder, then try again";
    StorageFailed = 1008, "storage_failed", true, "see the daemon's log for the file and the cause";
    NotSupported = 1009, "not_supported", false, "this build does not support it";
    PathNotFound = 2001, "path_not_found", false, "check the path; it must exist";
    PathOutsideRoots = 2002, "path_outside_roots", false, "declare the folder first with index.addRoot";
    PathBlocked = 2003, "path_blocked", false, "the path is protected by safety.sandboxBlockedPaths in the user's config";
    NotADirectory = 2004, "not_a_directory", false, "name a folder";
    NotAFile = 2005, "not_a_file", false, "name a regular file";
    PathUnreadable = 2006, "path_unreadable", true, "check the permissions of the path";
    RootNotFound = 3001, "root_not_found", false, "index.list lists the declared roots";
    RootAmbiguous = 3002, "root_ambiguous", false, "several roots are declared: specify one";
    BadPattern = 3003, "bad_pattern", false, "check the regular expression or glob; without isRegex the text is matched literally";
    IndexFailed = 3004, "index_failed", true, "index.status reports the failure; index.rebuild starts over";
    NoRoots = 3005, "no_roots", false, "declare a root with index.addRoot";
    SessionNotFound = 4001, "session_not_found", false, "session.list lists the sessions";
    SessionBusy = 4002, "session_busy", true, "wait for its run to end, or abort it";
    RequestConflict = 4003, "request_conflict", false, "the requestId was used with different content: use a new one";
    AfterBeyondHead = 4004, "after_beyond_head", false, "the session has no such record yet; subscribe from headSeq or below";
    Gone = 4005, "gone", false, "these records are no longer stored; start from oldestSeq";
    SubscriptionNotFound = 4006, "subscription_not_found", false, "it ended or belongs to another connection";
    NotResumable = 4007, "not_resumable", false, "only interrupted sessions can be resumed";
    BlobNotFound = 4008, "blob_not_found", false, "it was deleted with its session, or never stored";
    BadTrace = 4009, "bad_trace", false, "import accepts the JSONL text that trace.export produces";
    ApprovalNotFound = 4011, "approval_not_found", false, "approval.list lists the pending approvals";
    ApprovalResolved = 4012, "approval_resolved", false, "the first answer counts; it is in error.data.details";
    RunNotFound = 4013, "run_not_found", false, "the session has no such active turn";
    SessionExists = 4010, "session_exists", false, "delete the existing session first, then import it again";
    UnknownTool = 5001, "unknown_tool", false, "tool.list lists the tools";
    ToolDenied = 5002, "tool_denied", false, "the policy does not allow it; the message names the rule";
    ToolFailed = 5003, "tool_failed", true, "see the message";
    ToolTimedOut = 5004, "tool_timed_out", true, "request less, or raise the tool's time limit";
    AuditFailed = 5005, "audit_failed", true, "nothing was done because it could not be recorded; see the daemon's log";
    NetworkDenied = 5006, "network_denied", false, "set policy.network to allow it";
    SandboxMissing = 5007, "sandbox_missing", false, "sandbox.probe reports the reason; sandbox.whenMissing in the user's config sets the fallback";
    FileChanged = 5008, "file_changed", true, "read the file again, then edit it";
    DeniedByUser = 5009, "denied_by_user", false, "the user denied it; the message has the reason";
    NoApprover = 5010, "no_approver", false, "connect a client that can answer approvals, or write a rule that allows the call";
    BudgetExceeded = 5011, "budget_exceeded", false, "raise the run's budget, or request less";
    TurnLimit = 5012, "turn_limit", false, "raise agent.maxIterations, or request less";
    Stuck = 5013, "stuck", false, "the model repeated the same calls; rephrase, or use another model";
    PluginRefused = 5014, "plugin_refused", false, "a plugin refused it; the message names the plugin and the reason";
    McpServerNotFound = 5015, "mcp_server_not_found", false, "mcp.list lists the servers of the configuration";
    LoginFailed = 5016, "login_failed", true, "see the message; 'cairn mcp login NAME' starts a new login";
    BadUrl = 6001, "bad_url", false, "use https, ssh, git or file URLs; nothing may begin with '-'";
    CloneFailed = 6002, "clone_failed", true, "see git's output in the message";
    AuthenticationRequired = 6003, "authentication_required", false, "set up git credentials or an SSH key for that host; Cairn never prompts";
    DestinationExists = 6004, "destination_exists", false, "choose another dest";
    GitFailed = 6005, "git_failed", true, "see the message";
    RevisionNotFound = 6006, "revision_not_found", false, "'git log --oneline' and 'git tag' list revisions; a shallow clone has only its latest commits, and a folder without git none";
    ModelUnavailable = 7001, "model_unavailable", true, "start the model server or check llm.endpoint";
    ModelNotFound = 7002, "model_not_found", false, "model.list lists the models";
    ModelUnauthorized = 7003, "model_unauthorized", false, "set the provider's key in its environment variable, the keychain or llm.apiKey";
    ModelRateLimited = 7004, "model_rate_limited", true, "wait, then try again";
    ContextOverflow = 7005, "context_overflow", false, "shorten the conversation with /compress, or use a model with a larger context";
    ModelMalformed = 7006, "model_malformed", true, "the endpoint does not speak the provider's format: check llm.provider and llm.endpoint";
    ModelCut = 7007, "model_cut", true, "the connection to the model was lost; the partial answer is stored";
    ModelTimedOut = 7008, "model_timed_out", true, "the model sent nothing for llm.timeoutSeconds";
    ModelRejected = 7009, "model_rejected", false, "the provider refused the request; see the message";
    ProviderUnknown = 7010, "provider_unknown", false, "provider.list lists the providers";
    ExternalDenied = 7011, "external_llm_denied", false, "set models.allowExternal, and policy.allowExternalLLMs for this run";
    SchemaMismatch = 7012, "schema_mismatch", true, "the model's answer does not match the requested schema";
    Unauthorized = 8001, "unauthorized", false, "send the token from the file named in daemon.json, as 'Authorization: Bearer <token>'";
    OriginDenied = 8002, "origin_denied", false, "browsers may connect from allowed origins only (listen.allowedOrigins)";
    HostDenied = 8003, "host_denied", false, "connect by the loopback address or an allowed host name (listen.allowedHosts)";
    RightMissing = 8004, "right_missing", false, "the connection may not call this method; rpc.discover lists the right it needs (x-right)";
    RemoteOff = 8005, "remote_off", false, "set listen.lan to true in the user's config and restart the daemon, or start it with 'cairn serve --lan ADDRESS'";
    NotPaired = 8006, "not_paired", false, "pair the two machines: 'cairn pair' on the daemon's, 'cairn pair HOST' on this one";
    PairingRefused = 8007, "pairing_refused", true, "create a new code with 'cairn pair' on the daemon's machine";
    DeviceNotFound = 8008, "device_not_found", false, "client.list lists the paired devices";
    FleetOff = 8009, "fleet_off", false, "set fleet.server in the user's config and restart the daemon; docs/fleet.md has the rest";
    BrokerUnreachable = 8010, "broker_unreachable", true, "fleet.status has the state of the broker; check fleet.server and its credentials";
    DaemonNotFound = 8011, "daemon_not_found", false, "fleet.status lists the connected daemons";
    PoolRunNotFound = 8012, "pool_run_not_found", false, "fleet.runs lists the runs of a pool";
}

/// `error.data` of a failed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Stable reason string, part of the contract.
    pub reason: String,
    /// True if the same call may succeed later.
    pub retryable: bool,
    /// Advice on how to resolve the failure.
    pub hint: String,
    /// Time to wait before the next attempt, in milliseconds; set for `overloaded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Further details: the versions of both sides, `oldestSeq`, the path of an invalid field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

/// A failure that passes between crates: a reason and a message that names the object.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Reason for the failure.
    pub reason: Reason,
    /// Message for a person: lower case, names the object, no full stop.
    pub message: String,
    /// Further details for `data.details`.
    pub details: Option<serde_json::Value>,
}

impl Failure {
    /// Creates a failure with `reason`.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: None }
    }

    /// Adds details to the failure.
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Returns the `error.data` of this failure.
    pub fn data(&self) -> ErrorData {
        ErrorData {
            reason: self.reason.as_str().into(),
            retryable: self.reason.retryable(),
            hint: self.reason.hint().into(),
            retry_after_ms: (self.reason == Reason::Overloaded).then_some(250),
            details: self.details.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_reasons_are_unique_and_outside_the_reserved_range() {
        let mut codes = std::collections::HashSet::new();
        let mut names = std::collections::HashSet::new();
        for r in Reason::ALL {
            assert!(codes.insert(r.code()), "{r:?}");
            assert!(names.insert(r.as_str()), "{r:?}");
            assert!(
                r.code() > 0 || r.code() >= -32700 && r.code() <= -32600 || r.code() == -32800,
                "{r:?}"
            );
        }
    }
}
