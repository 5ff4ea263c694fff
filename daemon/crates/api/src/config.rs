//! The configuration methods. The host supplies the effective settings.

use std::sync::Arc;

use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    error::{Failure, Reason},
    session::Empty,
};

use crate::{connection::Caller, method::Method, rights::Right};

/// The configuration of the host. Both methods block.
pub trait ConfigSource: Send + Sync {
    /// Returns the effective settings of a root, or of the daemon itself.
    ///
    /// # Errors
    /// `root_not_found`; `invalid_params` with the reason, if a root's file cannot be read.
    fn show(&self, params: &ConfigGetParams) -> Result<ConfigAnswer, Failure>;
    /// Reads the files again. If any of them is invalid, all settings stay as they are.
    ///
    /// # Errors
    /// `invalid_params` that names file and key.
    fn reload(&self) -> Result<ConfigReloaded, Failure>;
}

pub fn methods() -> Vec<Method> {
    vec![
        Method::new("config.get", "The effective configuration and the source of each value.", get),
        Method::new("config.reload", "Reloads the configuration files.", reload)
            .detached(Right::Admin),
    ]
}

async fn get(cx: Caller, params: ConfigGetParams) -> Result<ConfigAnswer, Failure> {
    blocking(cx, move |source| source.show(&params)).await
}

async fn reload(cx: Caller, _: Empty) -> Result<ConfigReloaded, Failure> {
    blocking(cx, |source| source.reload()).await
}

async fn blocking<T: Send + 'static>(
    cx: Caller,
    work: impl FnOnce(&dyn ConfigSource) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let none = || Failure::new(Reason::NotSupported, "this host has no configuration files");
    let source: Arc<dyn ConfigSource> = cx.api().config.get().cloned().ok_or_else(none)?;
    let done = tokio::task::spawn_blocking(move || work(&*source)).await;
    done.map_err(|e| {
        Failure::new(Reason::Internal, format!("the configuration could not be read: {e}"))
    })?
}
