//! The MCP servers and further folders that an editor adds to a session.

use std::collections::BTreeMap;

use cairn_protocol::{
    error::{Failure, Reason},
    session::{SessionMcpServer, SessionMcpServers},
};
use serde::Deserialize;
use serde_json::json;

use super::{Agent, Inner, update};

/// Maximum number of further folders of a session.
const MAX_DIRECTORIES: usize = 16;

/// A server as the protocol describes it. A server without a type is a program.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum EditorServer {
    Remote {
        #[serde(rename = "type")]
        kind: String,
        name: String,
        #[serde(default)]
        url: String,
        #[serde(default)]
        headers: Vec<Named>,
    },
    Program {
        name: String,
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: Vec<Named>,
    },
}

/// A variable or a header.
#[derive(Deserialize)]
pub struct Named {
    name: String,
    value: String,
}

fn by_name(all: Vec<Named>) -> BTreeMap<String, String> {
    all.into_iter().map(|one| (one.name, one.value)).collect()
}

impl EditorServer {
    fn into_server(self) -> Result<SessionMcpServer, Failure> {
        match self {
            Self::Program { name, command, args, env } => Ok(SessionMcpServer {
                name,
                command: Some(command),
                args,
                env: by_name(env),
                ..SessionMcpServer::default()
            }),
            Self::Remote { kind, name, url, headers } if kind == "http" => Ok(SessionMcpServer {
                name,
                url: Some(url),
                headers: by_name(headers),
                ..SessionMcpServer::default()
            }),
            Self::Remote { kind, name, .. } => {
                let text = format!(
                    "mcpServers: '{}' has the type '{}'; supported are programs and 'http'",
                    name.escape_default(),
                    kind.escape_default()
                );
                Err(Failure::new(Reason::InvalidParams, text))
            }
        }
    }
}

impl Inner {
    /// Declares the further folders of a session as roots, as the session's own folder is.
    pub(super) async fn declare(&self, folders: &[String]) -> Result<(), Failure> {
        if folders.len() > MAX_DIRECTORIES {
            let text = format!("additionalDirectories: at most {MAX_DIRECTORIES} are possible");
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        for folder in folders {
            self.root(folder).await?;
        }
        Ok(())
    }

    /// Replaces the editor's servers of a session. Returns the problems with single ones, for the
    /// user: the session works without them.
    pub(super) async fn connect_servers(
        &self,
        session: &str,
        servers: Vec<EditorServer>,
    ) -> Result<Vec<String>, Failure> {
        let had_servers = self.state().sessions.get(session).is_some_and(|open| open.has_servers);
        if servers.is_empty() && !had_servers {
            return Ok(vec![]);
        }
        let servers: Vec<SessionMcpServer> =
            servers.into_iter().map(EditorServer::into_server).collect::<Result<_, _>>()?;
        let has_servers = !servers.is_empty();
        let params = json!({"sessionId": session, "servers": servers});
        let answer: SessionMcpServers =
            self.client.request("session.setMcpServers", &params).await?;
        if let Some(open) = self.state().sessions.get_mut(session) {
            open.has_servers = has_servers;
        }
        let problem = |status: cairn_protocol::session::SessionMcpStatus| {
            Some(format!("The MCP server '{}' is not available: {}.\n", status.name, status.error?))
        };
        Ok(answer.servers.into_iter().filter_map(problem).collect())
    }

    /// Reports problems with the servers of a session, after the editor knows its id.
    pub(super) async fn report_servers(&self, session: &str) {
        let problems = match self.state().sessions.get_mut(session) {
            Some(open) => std::mem::take(&mut open.server_problems),
            None => vec![],
        };
        for problem in problems {
            self.update(session, update::thought_chunk(&problem)).await;
        }
    }

    async fn end_servers(&self, session: &str) {
        let params = json!({"sessionId": session, "servers": []});
        if let Err(failure) = self.client.call("session.setMcpServers", &params).await {
            tracing::debug!(%session, %failure, "the mcp servers of an editor cannot be ended");
        }
    }

    /// Ends the editor's servers of a session that it closes.
    pub(super) async fn close_servers(&self, session: &str) {
        let had_servers = self
            .state()
            .sessions
            .get_mut(session)
            .is_some_and(|open| std::mem::take(&mut open.has_servers));
        if had_servers {
            self.end_servers(session).await;
        }
    }
}

impl Drop for Agent {
    /// Ends the servers that the editor brought: they run with its user's intent alone.
    fn drop(&mut self) {
        let with_servers: Vec<String> = {
            let state = self.inner.state();
            let all = state.sessions.iter().filter(|(_, open)| open.has_servers);
            all.map(|(session, _)| session.clone()).collect()
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if with_servers.is_empty() {
            return;
        }
        let inner = std::sync::Arc::clone(&self.inner);
        runtime.spawn(async move {
            for session in with_servers {
                inner.end_servers(&session).await;
            }
        });
    }
}
