//! The sessions of an editor: creating, loading, listing and configuring.

use std::{path::Path, sync::Arc, time::Duration};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SubscriptionId,
    index::IndexStatus,
    session::{Page, Session, SubscribeResult},
    turn::{ProviderInfo, ProviderSet},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Inner, editor_servers::EditorServer, update::Displayed};

/// Maximum number of open sessions per editor.
const MAX_SESSIONS: usize = 32;
/// Time that listing the models may take; a session opens without the list after that.
const MODELS_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of offered models.
const MAX_MODELS: usize = 200;
/// The mode in which tool calls are executed.
const DEFAULT_MODE: &str = "default";
/// The mode in which tool calls with effects are only described.
const DRY_RUN_MODE: &str = "dry-run";

/// The only way to authenticate, which needs nothing from the editor.
pub const AUTH_METHOD: &str = "cairn";

/// A session that an editor has open.
pub struct OpenSession {
    /// The subscription that delivers its events.
    pub subscription: Option<SubscriptionId>,
    /// The part of the present answer that the editor already displays.
    pub displayed: Displayed,
    /// Fires at the end of the replay; until then, events are history.
    pub replay_done: Option<oneshot::Sender<()>>,
    /// Set if turns make no changes.
    pub dry_run: bool,
    /// The folder that paths are relative to.
    pub folder: String,
    /// Further folders that the user works with.
    pub directories: Vec<String>,
    /// True if the editor brought MCP servers.
    pub has_servers: bool,
    /// Problems with those servers that the user has not been notified of.
    pub server_problems: Vec<String>,
}

/// Params of `session/new`, `session/load` and `session/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenParams {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    mcp_servers: Vec<EditorServer>,
    #[serde(default)]
    additional_directories: Vec<String>,
}

#[derive(Deserialize)]
pub struct ListParams {
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

/// Params of the method `authenticate`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthParams {
    method_id: String,
}

/// Params of the methods that configure a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigParams {
    session_id: String,
    #[serde(default)]
    mode_id: String,
    #[serde(default)]
    config_id: String,
    #[serde(default)]
    value: Value,
}

impl OpenParams {
    fn check(&self) -> Result<(), Failure> {
        let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
        let relative = self.additional_directories.iter().find(|d| !Path::new(d).is_absolute());
        if let Some(relative) = relative {
            let path = relative.escape_default();
            return bad(format!("additionalDirectories: '{path}' is not an absolute path"));
        }
        if !Path::new(&self.cwd).is_absolute() {
            return bad(format!("cwd: '{}' is not an absolute path", self.cwd.escape_default()));
        }
        Ok(())
    }
}

fn unknown_session(session: &str) -> Failure {
    let excerpt: String = session.chars().take(64).collect();
    let text = format!("session '{}' is not open here; load it first", excerpt.escape_default());
    Failure::new(Reason::SessionNotFound, text)
}

impl Inner {
    /// Returns the declared root that contains a folder. Opening the folder in an editor counts as
    /// the user's consent to declare it.
    pub async fn root(&self, folder: &str) -> Result<String, Failure> {
        let status: IndexStatus = self.client.request("index.status", &json!({})).await?;
        // Roots can be nested: choose the innermost one.
        let around = status.roots.iter().filter(|root| Path::new(folder).starts_with(&root.path));
        if let Some(root) = around.max_by_key(|root| root.path.len()) {
            return Ok(root.path.clone());
        }
        let receipt: Value = self.client.call("index.addRoot", &json!({"path": folder})).await?;
        Ok(receipt["path"].as_str().unwrap_or(folder).to_owned())
    }

    /// Handles the method `session/new`.
    pub async fn new_session(self: &Arc<Self>, params: OpenParams) -> Result<Value, Failure> {
        params.check()?;
        self.check_capacity()?;
        let root = self.root(&params.cwd).await?;
        self.declare(&params.additional_directories).await?;
        let name = Path::new(&root).file_name().map(|n| n.to_string_lossy().into_owned());
        let title = name.unwrap_or_else(|| root.clone());
        let title: String = title.chars().take(200).collect();
        let created: Session =
            self.client.request("session.create", &json!({"root": root, "title": title})).await?;
        let id = created.session_id.to_string();
        self.follow(&id, &root, json!("live")).await?;
        self.equip(&id, params.additional_directories, params.mcp_servers).await?;
        let mut answer = self.settings(&id).await;
        answer["sessionId"] = json!(id);
        Ok(answer)
    }

    /// Handles `session/load`, with a replay of the history, and `session/resume`, without.
    pub async fn open_session(
        self: &Arc<Self>,
        params: OpenParams,
        replay: bool,
    ) -> Result<Value, Failure> {
        params.check()?;
        self.check_capacity()?;
        let id = params.session_id.clone().unwrap_or_default();
        let session: Session =
            self.client.request("session.get", &json!({"sessionId": id})).await?;
        let folder = session.root.unwrap_or(params.cwd);
        self.declare(&params.additional_directories).await?;
        self.close(&id).await;
        let after = if replay { json!(0) } else { json!("live") };
        let replay_done = self.follow(&id, &folder, after).await?;
        // The answer comes after the complete replay. An error means that the session was closed
        // meanwhile.
        let _closed = replay_done.await;
        self.equip(&id, params.additional_directories, params.mcp_servers).await?;
        Ok(self.settings(&id).await)
    }

    /// Adds the editor's folders and servers to a session that it has opened.
    async fn equip(
        &self,
        id: &str,
        directories: Vec<String>,
        servers: Vec<EditorServer>,
    ) -> Result<(), Failure> {
        let connected = self.connect_servers(id, servers).await;
        let problems = match connected {
            Ok(problems) => problems,
            Err(failure) => {
                self.close(id).await;
                return Err(failure);
            }
        };
        if let Some(open) = self.state().sessions.get_mut(id) {
            open.directories = directories;
            open.server_problems = problems;
        }
        Ok(())
    }

    fn check_capacity(&self) -> Result<(), Failure> {
        if self.state().sessions.len() >= MAX_SESSIONS {
            let text = format!("{MAX_SESSIONS} sessions are open in this editor; close one");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        Ok(())
    }

    /// Follows a session; the returned receiver fires at the end of the replay.
    async fn follow(
        self: &Arc<Self>,
        id: &str,
        folder: &str,
        after: Value,
    ) -> Result<oneshot::Receiver<()>, Failure> {
        let (replay_done, replay_end) = oneshot::channel();
        let open = OpenSession {
            subscription: None,
            displayed: Displayed::default(),
            replay_done: Some(replay_done),
            dry_run: false,
            folder: folder.to_owned(),
            directories: vec![],
            has_servers: false,
            server_problems: vec![],
        };
        // Inserted before the first event arrives.
        self.state().sessions.insert(id.to_owned(), open);
        let params = json!({"sessionId": id, "after": after});
        match self.client.request::<SubscribeResult>("orchestrate.subscribe", &params).await {
            Ok(followed) => {
                let name = followed.subscription_id.to_string();
                let mut state = self.state();
                let early = state.early_replays.iter().position(|replay| *replay == name);
                if let Some(at) = early {
                    state.early_replays.swap_remove(at);
                }
                let mut replay_done = None;
                if let Some(open) = state.sessions.get_mut(id) {
                    open.subscription = Some(followed.subscription_id);
                    replay_done = early.and_then(|_| open.replay_done.take());
                }
                drop(state);
                if early.is_some() {
                    self.replay_finished(id.to_owned(), replay_done);
                }
                Ok(replay_end)
            }
            Err(failure) => {
                self.state().sessions.remove(id);
                Err(failure)
            }
        }
    }

    /// Stops following a session.
    async fn close(&self, id: &str) {
        self.close_servers(id).await;
        let open = self.state().sessions.remove(id);
        if let Some(subscription) = open.and_then(|open| open.subscription) {
            // The subscription may have ended already.
            let _already_closed = self
                .client
                .call("orchestrate.unsubscribe", &json!({"subscriptionId": subscription}))
                .await;
        }
    }

    /// Handles `session/close`: the editor's turns in the session end.
    pub async fn close_session(&self, params: ConfigParams) -> Result<Value, Failure> {
        let turns: Vec<String> = {
            let state = self.state();
            let of = state.turns.iter().filter(|(_, turn)| turn.session == params.session_id);
            of.map(|(id, _)| id.clone()).collect()
        };
        for turn in turns {
            self.cancel(&params.session_id, &turn).await;
        }
        self.close(&params.session_id).await;
        Ok(json!({}))
    }

    /// Handles `session/delete`: the session is closed, and its log is deleted.
    pub async fn delete_session(&self, params: ConfigParams) -> Result<Value, Failure> {
        let id = json!({"sessionId": params.session_id});
        let _answer = self.close_session(params).await?;
        self.client.call("session.delete", &id).await?;
        Ok(json!({}))
    }

    /// Handles `authenticate`: the client has presented the daemon's token already, so that only
    /// the model can be missing.
    pub async fn authenticate(&self, method: &AuthParams) -> Result<Value, Failure> {
        if method.method_id != AUTH_METHOD {
            let text = format!("authenticate: methodId must be '{AUTH_METHOD}'");
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        let current: ProviderSet = self.client.request("provider.current", &json!({})).await?;
        let provider = self.provider(&current.choice.provider).await;
        match provider.filter(|provider| !provider.available) {
            Some(provider) => {
                let why = provider.reason.unwrap_or_default();
                let text = format!("the model provider {} is not available: {why}", provider.name);
                Err(Failure::new(Reason::ModelUnavailable, text))
            }
            None => Ok(json!({})),
        }
    }

    /// Sends the title and the last change of a session.
    pub async fn report_info(&self, id: &str) {
        let params = json!({"sessionId": id});
        let session = self.client.request::<Session>("session.get", &params).await;
        let Ok(session) = session else { return };
        let update = json!({
            "sessionUpdate": "session_info_update", "title": session.title,
            "updatedAt": session.updated_at,
        });
        self.update(id, update).await;
    }

    /// Handles the method `session/list`.
    pub async fn list_sessions(&self, listed: ListParams) -> Result<Value, Failure> {
        let params = listed.cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page: Page<Session> = self.client.request("session.list", &params).await?;
        let within =
            |root: &str| listed.cwd.as_deref().is_none_or(|cwd| Path::new(cwd).starts_with(root));
        let of = |session: Session| {
            let root = session.root.filter(|root| within(root))?;
            Some(json!({
                "sessionId": session.session_id, "cwd": root, "title": session.title,
                "updatedAt": session.updated_at,
            }))
        };
        let sessions: Vec<Value> = page.data.into_iter().filter_map(of).collect();
        Ok(json!({"sessions": sessions, "nextCursor": page.next_cursor}))
    }

    /// Returns modes and models, as answers that open a session contain them.
    async fn settings(&self, id: &str) -> Value {
        let mode = |id: &str, name: &str, description: &str| json!({"id": id, "name": name, "description": description});
        let current = if self.is_dry_run(id) { DRY_RUN_MODE } else { DEFAULT_MODE };
        let modes = json!({
            "currentModeId": current,
            "availableModes": [
                mode(DEFAULT_MODE, "Work", "Makes changes, and asks first where the rules require it"),
                mode(DRY_RUN_MODE, "Dry run", "Describes changes without making them"),
            ],
        });
        match self.options(id).await {
            Some(options) => json!({"modes": modes, "configOptions": options}),
            None => json!({"modes": modes}),
        }
    }

    /// Returns true if turns of the session make no changes.
    pub fn is_dry_run(&self, id: &str) -> bool {
        self.state().sessions.get(id).is_some_and(|open| open.dry_run)
    }

    /// Returns the selectable models, if the provider lists them in time.
    async fn options(&self, id: &str) -> Option<Value> {
        let current: ProviderSet =
            self.client.request("provider.current", &json!({"sessionId": id})).await.ok()?;
        let params = json!({"provider": current.choice.provider});
        let list = self.client.call("model.list", &params);
        let listed = tokio::time::timeout(MODELS_TIMEOUT, list).await.ok().and_then(Result::ok);
        let listed = listed.unwrap_or_default();
        let names = listed["data"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let mut names: Vec<&str> =
            names.filter_map(|model| model["model"].as_str()).take(MAX_MODELS).collect();
        // An empty name in the configuration means the provider's default.
        let model = match current.choice.model.as_str() {
            "" => self
                .default_model(&current.choice.provider)
                .await
                .or(names.first().map(|n| (*n).to_owned())),
            model => Some(model.to_owned()),
        };
        let model = model?;
        if !names.contains(&model.as_str()) {
            names.insert(0, &model);
        }
        let options: Vec<Value> =
            names.iter().map(|name| json!({"value": name, "name": name})).collect();
        Some(json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "description": format!("A model of {}", current.choice.provider),
            "currentValue": model, "options": options,
        }]))
    }

    /// Returns the model that a provider uses by default.
    async fn default_model(&self, provider: &str) -> Option<String> {
        self.provider(provider).await?.default_model
    }

    async fn provider(&self, name: &str) -> Option<ProviderInfo> {
        let list: Page<ProviderInfo> =
            self.client.request("provider.list", &json!({})).await.ok()?;
        list.data.into_iter().find(|info| info.name == name)
    }

    /// Returns true if prompts may contain images. The default model decides, because an editor
    /// receives this only once.
    pub async fn accepts_images(&self) -> bool {
        let current = self.client.request::<ProviderSet>("provider.current", &json!({})).await;
        let Ok(current) = current else { return false };
        self.provider(&current.choice.provider).await.is_some_and(|info| info.images)
    }

    /// Handles the method `session/set_mode`.
    pub fn set_mode(&self, setting: &ConfigParams) -> Result<Value, Failure> {
        let dry_run = match setting.mode_id.as_str() {
            DEFAULT_MODE => false,
            DRY_RUN_MODE => true,
            _ => {
                let text = format!("modeId must be '{DEFAULT_MODE}' or '{DRY_RUN_MODE}'");
                return Err(Failure::new(Reason::InvalidParams, text));
            }
        };
        let mut state = self.state();
        let open = state.sessions.get_mut(&setting.session_id);
        open.ok_or_else(|| unknown_session(&setting.session_id))?.dry_run = dry_run;
        Ok(json!({}))
    }

    /// Handles `session/set_config_option`, which selects the model.
    pub async fn set_option(&self, setting: ConfigParams) -> Result<Value, Failure> {
        self.folder(&setting.session_id)?;
        let (Some(model), "model") = (setting.value.as_str(), setting.config_id.as_str()) else {
            return Err(Failure::new(
                Reason::InvalidParams,
                "configId must be 'model', with a model name as the value",
            ));
        };
        let params = json!({"sessionId": setting.session_id, "model": model});
        self.client.request::<ProviderSet>("provider.set", &params).await?;
        Ok(json!({"configOptions": self.options(&setting.session_id).await}))
    }

    /// Describes the further folders of a session to its model; empty if there are none.
    pub fn directories_text(&self, id: &str) -> String {
        let state = self.state();
        let directories = state.sessions.get(id).map_or(&[][..], |open| &open.directories);
        if directories.is_empty() {
            return String::new();
        }
        format!("Further folders of this work, by absolute path: {}\n", directories.join(", "))
    }

    /// Returns the folder of an open session.
    pub fn folder(&self, id: &str) -> Result<String, Failure> {
        self.state()
            .sessions
            .get(id)
            .map(|open| open.folder.clone())
            .ok_or_else(|| unknown_session(id))
    }
}
