//! The servers of the configuration as clients see them, and the logins that they start.

use std::sync::{Arc, PoisonError};

use cairn_api::McpServers;
use cairn_config::McpServer;
use cairn_protocol::{
    error::{Failure, Reason},
    mcp::{
        McpAccount, McpFinishLoginParams, McpLogin, McpServerInfo, McpServerRef, McpServerState,
    },
};

use super::{
    Servers,
    link::State,
    login::{self, LOGIN_LIMIT},
};

/// Maximum number of logins that are not finished.
const MAX_PENDING: usize = 8;

impl Servers {
    fn config(&self, name: &str) -> Result<McpServer, Failure> {
        let configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner);
        configured.get(name).cloned().ok_or_else(|| {
            let name: String = name.chars().take(64).flat_map(char::escape_default).collect();
            let text = format!("the configuration has no mcp server '{name}'");
            Failure::new(Reason::McpServerNotFound, text)
        })
    }

    /// Makes a server connect again, with the login that is stored now.
    fn login_changed(&self, name: &str) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.get(name) {
            running.server.login_changed.notify_one();
        }
    }

    fn info(&self, name: &str, config: &McpServer) -> McpServerInfo {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let server = running.get(name).map(|running| &running.server);
        let state = server.map(|server| {
            server.link.state(|state| match state {
                State::Starting => (McpServerState::Starting, None),
                State::Up(_) => (McpServerState::Connected, None),
                State::LoginRequired => {
                    (McpServerState::LoginRequired, Some(login::instruction(name)))
                }
                State::Down(why) => (McpServerState::Failed, Some(why.clone())),
            })
        });
        let (state, error) = state.unwrap_or((McpServerState::Disabled, None));
        let tools = server.map_or(0, |server| server.tools.names().len());
        McpServerInfo {
            name: name.to_owned(),
            url: config.url.as_deref().map(without_query),
            state,
            tools: u32::try_from(tools).unwrap_or(u32::MAX),
            logged_in: config.url.as_deref().is_some_and(|url| self.logins.has(name, url)),
            error,
        }
    }
}

/// Returns an address without the parts that may contain a secret.
fn without_query(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return String::new() };
    url.set_query(None);
    url.set_fragment(None);
    let _no_user = url.set_username("");
    let _no_password = url.set_password(None);
    url.into()
}

#[async_trait::async_trait]
impl McpServers for Servers {
    fn list(&self) -> Vec<McpServerInfo> {
        let configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner).clone();
        configured.iter().map(|(name, config)| self.info(name, config)).collect()
    }

    async fn login(self: Arc<Self>, server: &McpServerRef) -> Result<McpLogin, Failure> {
        let config = self.config(&server.name)?;
        let Some(url) = config.url else {
            let text = format!("mcp server '{}' is a program: it has no login", server.name);
            return Err(Failure::new(Reason::InvalidParams, text));
        };
        let (this, name) = (Arc::downgrade(&self), server.name.clone());
        let stored = move || {
            if let Some(servers) = this.upgrade() {
                servers.login_changed(&name);
            }
        };
        let pending = login::start(&self.logins, (&server.name, &url), LOGIN_LIMIT, stored).await?;
        let login = pending.login.clone();
        let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, other| other.server != server.name);
        if all.len() >= MAX_PENDING {
            // Finished ones remain for clients that ask late.
            all.retain(|_, other| other.outcome.borrow().is_none());
        }
        if all.len() >= MAX_PENDING {
            let text = format!("{MAX_PENDING} logins wait for their users already");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        all.insert(login.login_id.clone(), pending);
        Ok(login)
    }

    async fn finish_login(&self, params: McpFinishLoginParams) -> Result<McpAccount, Failure> {
        let unknown = || {
            let text = format!("there is no login {}", params.login_id);
            Failure::new(Reason::InvalidParams, text)
        };
        let (name, was_logged_in, mut outcome, redirected) = {
            let all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            let pending = all.get(&params.login_id).ok_or_else(unknown)?;
            let outcome = pending.outcome.clone();
            (pending.server.clone(), pending.was_logged_in, outcome, pending.redirected.clone())
        };
        if let Some(url) = params.redirect_url {
            // A second address is ignored while the first one is used.
            let _full = redirected.try_send(url);
        }
        let done = outcome.wait_for(Option::is_some).await;
        // The login was replaced by another one of the same server.
        let done = done.map_err(|_| unknown())?.clone();
        done.unwrap_or_else(|| Err(unknown()))?;
        Ok(McpAccount { name, logged_in: true, was_logged_in })
    }

    async fn logout(self: Arc<Self>, server: &McpServerRef) -> Result<McpAccount, Failure> {
        self.config(&server.name)?;
        let (logins, name) = (Arc::clone(&self.logins), server.name.clone());
        let removed = tokio::task::spawn_blocking(move || logins.remove(&name)).await;
        let failed = |e: String| {
            Failure::new(Reason::StorageFailed, format!("the login cannot be deleted: {e}"))
        };
        let was_logged_in =
            removed.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
        if was_logged_in {
            self.login_changed(&server.name);
        }
        Ok(McpAccount { name: server.name.clone(), logged_in: false, was_logged_in })
    }
}
