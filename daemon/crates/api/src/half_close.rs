//! The end of a connection whose client sends nothing more, and messages that never reached it.

use cairn_protocol::error::Failure;

use crate::{Connection, message};

impl Connection {
    /// Waits until the answers of all calls are queued, for a client that sends nothing more.
    pub async fn finish_calls(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Queues the answer to a message that the transport could not accept.
    pub async fn refuse(&self, failure: &Failure) {
        self.reply(message::failure(None, failure)).await;
    }
}
