//! The methods of the configuration. The host says what is in force.

use std::sync::Arc;

use cairn_protocol::{
    config::{ConfigAnswer, ConfigGetParams, ConfigReloaded},
    error::{Failure, Reason},
    session::Empty,
};

use crate::{connection::Caller, method::Method, rights::Right};

/// The configuration of the host. Both methods block.
pub trait ConfigSource: Send + Sync {
    /// The settings in force, for a root or for the daemon itself.
    ///
    /// # Errors
    /// `root_not_found`; `invalid_params` for a root whose file cannot be read, with the reason.
    fn show(&self, params: &ConfigGetParams) -> Result<ConfigAnswer, Failure>;
    /// Reads the files again. When any of them is wrong, everything stays as it was.
    ///
    /// # Errors
    /// `invalid_params` that names file and key.
    fn reload(&self) -> Result<ConfigReloaded, Failure>;
}

/// All of them.
pub fn methods() -> Vec<Method> {
    vec![
        Method::new("config.get", "The configuration in force, and where each value comes from.", get),
        Method::new("config.reload", "Reads the configuration files again.", reload).detached(Right::Admin),
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
    done.map_err(|e| Failure::new(Reason::Internal, format!("the configuration was not read: {e}")))?
}
