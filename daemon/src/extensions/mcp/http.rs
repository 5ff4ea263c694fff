//! Connections to servers with streamable HTTP, with the user's login if one is stored.

use cairn_config::McpServer;
use rmcp::{
    RoleClient,
    service::{ClientInitializeError, RunningService},
    transport::{
        StreamableHttpClientTransport,
        auth::{AuthClient, AuthError, AuthorizationManager},
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use super::{
    link::{End, Handler, describe_error},
    logins::LoginStore,
    process::Variables,
};

/// Maximum bytes of one message of a server.
const MAX_EVENT: usize = 8 * 1024 * 1024;

type Service = RunningService<RoleClient, Handler>;

/// Opens a connection.
///
/// # Errors
/// The reason why there is none; a refusal for want of a login among them.
pub async fn open(
    (url, config, variables): (&str, &McpServer, Variables),
    store: Option<LoginStore>,
    handler: Handler,
) -> Result<Service, End> {
    let transport_config = transport_config(url, config, variables).map_err(End::Failed)?;
    // Installs the built-in provider; further calls have no effect.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let opened = match store {
        Some(store) => {
            let manager = manager(url, store).await.map_err(|e| End::Failed(describe(&e)))?;
            let client = AuthClient::new(client().map_err(End::Failed)?, manager);
            let transport = StreamableHttpClientTransport::with_client(client, transport_config);
            rmcp::serve_client(handler, transport).await
        }
        None => {
            let transport = StreamableHttpClientTransport::from_config(transport_config);
            rmcp::serve_client(handler, transport).await
        }
    };
    opened.map_err(|error| {
        if requires_login(&error) {
            End::LoginRequired
        } else {
            End::Failed(describe_error(&error))
        }
    })
}

/// Returns a client that follows no redirect, since its requests have a token.
fn client() -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .pool_max_idle_per_host(0)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|e| format!("no client can be made: {e}"))
}

/// Returns the manager of a server's tokens. Without a stored login it makes no request.
async fn manager(url: &str, store: LoginStore) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new(url).await?;
    manager.set_credential_store(store);
    manager.initialize_from_store().await?;
    Ok(manager)
}

fn describe(error: &AuthError) -> String {
    format!("its login cannot be used: {error}")
}

/// Returns true if the server refused the connection for want of a login, or because the one that
/// is stored is no longer accepted.
fn requires_login(error: &ClientInitializeError) -> bool {
    if error.auth_challenge().is_some() {
        return true;
    }
    let ClientInitializeError::TransportError { error, .. } = error else { return false };
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error.error);
    while let Some(error) = cause {
        let error_of_login = error.downcast_ref::<AuthError>();
        if matches!(error_of_login, Some(AuthError::AuthorizationRequired)) {
            return true;
        }
        if let Some(StreamableHttpError::Auth(AuthError::AuthorizationRequired)) =
            error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            return true;
        }
        cause = error.source();
    }
    false
}

fn transport_config(
    url: &str,
    config: &McpServer,
    variables: Variables,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut transport_config = StreamableHttpClientTransportConfig::with_uri(url);
    transport_config.max_sse_event_size = MAX_EVENT;
    for (name, value) in &config.headers {
        let bad = || format!("its header '{}' cannot be sent", name.escape_default());
        let value = variables.read(value)?;
        let mut value = ::http::HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        let name = ::http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        transport_config.custom_headers.insert(name, value);
    }
    Ok(transport_config)
}
