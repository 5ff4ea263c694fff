//! JSON-RPC names: methods, notifications, the path and port. Only `api`, `transport` and `client-sdk` use this.

/// Path of the WebSocket.
pub const PATH: &str = "/rpc";
/// Port that is tried first.
pub const DEFAULT_PORT: u16 = 7433;
/// Bonjour service type.
pub const SERVICE_TYPE: &str = "_oasearch._tcp";
/// Prefix of the subprotocol that carries a browser's token.
pub const BEARER_SUBPROTOCOL: &str = "bearer.";

/// Notification from the client: `{id}` of a call to cancel.
pub const CANCEL: &str = "$/cancelRequest";
/// Notification with a record.
pub const EVENT: &str = "orchestrate.event";
/// Notification that the backlog is sent.
pub const SYNCED: &str = "orchestrate.synced";
/// Notification that a client fell behind.
pub const LAGGED: &str = "orchestrate.lagged";
/// Notification that a subscription ended for a reason of the daemon's: its session was deleted.
pub const GONE: &str = "orchestrate.gone";
/// Notification about an index.
pub const INDEX_PROGRESS: &str = "index.progress";
/// Notification about a clone.
pub const GIT_PROGRESS: &str = "git.progress";
/// Notification with early search results.
pub const SEARCH_PARTIAL: &str = "search.partial";
/// Every notification the daemon sends.
pub const NOTIFICATIONS: &[&str] =
    &[EVENT, SYNCED, LAGGED, GONE, INDEX_PROGRESS, GIT_PROGRESS, SEARCH_PARTIAL];
