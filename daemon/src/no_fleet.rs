//! A daemon that was built without the feature `fleet`.

use std::sync::Arc;

use cairn_api::Api;
use cairn_config::Config;
use cairn_protocol::{id::InstanceId, location::DataRoot};

/// A daemon that belongs to no fleet.
pub struct Member;

impl Member {
    /// Has nothing to leave.
    pub async fn close(&self) {}
}

/// Warns if the configuration names a broker.
pub async fn start(config: &Config, _: &DataRoot, _: &Arc<Api>, _: &InstanceId) -> Member {
    if config.fleet.server.is_some() {
        tracing::warn!("fleet.server has no effect: this program has no feature 'fleet'");
    }
    Member
}
