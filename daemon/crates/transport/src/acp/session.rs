//! Sessions of an editor: begun, loaded, listed, set up.

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

use super::{Inner, update::Shown};

/// Sessions that one editor has open at most.
const MOST: usize = 32;
/// How long the list of models may take; a session begins without it then.
const MODELS_TIMEOUT: Duration = Duration::from_secs(3);
/// Models that are offered at most.
const MODELS: usize = 200;
/// The mode in which calls are made.
const WORK: &str = "default";
/// The mode in which calls that change something are told and not made.
const DRY: &str = "dry-run";

/// A session that an editor has open.
pub struct Open {
    /// Brings its events.
    pub subscription: Option<SubscriptionId>,
    /// What was shown of the answer that is on its way.
    pub shown: Shown,
    /// Told once the past was sent; until then events are the past.
    pub replayed: Option<oneshot::Sender<()>>,
    /// Whether turns make no changes.
    pub dry_run: bool,
    /// The folder that paths are relative to.
    pub folder: String,
}

/// Parameters of `session/new`, `session/load` and `session/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    mcp_servers: Vec<Value>,
    #[serde(default)]
    additional_directories: Vec<String>,
}

/// Parameters of `session/list`.
#[derive(Deserialize)]
pub struct Listed {
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

/// Parameters that set something up.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    session_id: String,
    #[serde(default)]
    mode_id: String,
    #[serde(default)]
    config_id: String,
    #[serde(default)]
    value: Value,
}

impl Place {
    fn check(&self) -> Result<(), Failure> {
        let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
        if !self.mcp_servers.is_empty() {
            return bad(
                "mcpServers: servers of an editor are not taken; name them in cairn's own config".into()
            );
        }
        if !self.additional_directories.is_empty() {
            return bad(
                "additionalDirectories: a session works in one folder; declare others with 'cairn index'"
                    .into(),
            );
        }
        if !Path::new(&self.cwd).is_absolute() {
            return bad(format!("cwd: '{}' is not an absolute path", self.cwd.escape_default()));
        }
        Ok(())
    }
}

fn unknown(session: &str) -> Failure {
    let shown: String = session.chars().take(64).collect();
    let text = format!("session '{}' is not open here; load it first", shown.escape_default());
    Failure::new(Reason::SessionNotFound, text)
}

impl Inner {
    /// The declared root around a folder. An editor that works there is its user's consent to declare it.
    async fn root(&self, folder: &str) -> Result<String, Failure> {
        let status: IndexStatus = self.queue.ask("index.status", &json!({})).await?;
        // The longest that holds it: roots may lie in one another.
        let around = status.roots.iter().filter(|root| Path::new(folder).starts_with(&root.path));
        if let Some(root) = around.max_by_key(|root| root.path.len()) {
            return Ok(root.path.clone());
        }
        let receipt: Value = self.queue.call("index.addRoot", &json!({"path": folder})).await?;
        Ok(receipt["path"].as_str().unwrap_or(folder).to_owned())
    }

    /// `session/new`.
    pub async fn new_session(self: &Arc<Self>, place: Place) -> Result<Value, Failure> {
        place.check()?;
        self.room_for_one()?;
        let root = self.root(&place.cwd).await?;
        let name = Path::new(&root).file_name().map(|n| n.to_string_lossy().into_owned());
        let title = name.unwrap_or_else(|| root.clone());
        let title: String = title.chars().take(200).collect();
        let made: Session = self.queue.ask("session.create", &json!({"root": root, "title": title})).await?;
        let id = made.session_id.to_string();
        self.follow(&id, &root, json!("live")).await?;
        let mut answer = self.settings(&id).await;
        answer["sessionId"] = json!(id);
        Ok(answer)
    }

    /// `session/load` with its past told, `session/resume` without.
    pub async fn open_session(self: &Arc<Self>, place: Place, replay: bool) -> Result<Value, Failure> {
        place.check()?;
        self.room_for_one()?;
        let id = place.session_id.clone().unwrap_or_default();
        let session: Session = self.queue.ask("session.get", &json!({"sessionId": id})).await?;
        let folder = session.root.unwrap_or(place.cwd);
        self.close(&id).await;
        let after = if replay { json!(0) } else { json!("live") };
        let replayed = self.follow(&id, &folder, after).await?;
        // The answer comes after the whole past. An error means that the session was closed meanwhile.
        let _closed = replayed.await;
        Ok(self.settings(&id).await)
    }

    fn room_for_one(&self) -> Result<(), Failure> {
        if self.state().sessions.len() >= MOST {
            let text = format!("{MOST} sessions are open in this editor; close one");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        Ok(())
    }

    /// Follows a session; the answer comes when its past is told.
    async fn follow(
        self: &Arc<Self>,
        id: &str,
        folder: &str,
        after: Value,
    ) -> Result<oneshot::Receiver<()>, Failure> {
        let (replayed, told) = oneshot::channel();
        let open = Open {
            subscription: None,
            shown: Shown::default(),
            replayed: Some(replayed),
            dry_run: false,
            folder: folder.to_owned(),
        };
        // There before its first event.
        self.state().sessions.insert(id.to_owned(), open);
        let params = json!({"sessionId": id, "after": after});
        match self.queue.ask::<SubscribeResult>("orchestrate.subscribe", &params).await {
            Ok(followed) => {
                let name = followed.subscription_id.to_string();
                let mut state = self.state();
                let early = state.early.iter().position(|early| *early == name);
                if let Some(at) = early {
                    state.early.swap_remove(at);
                }
                let mut replayed = None;
                if let Some(open) = state.sessions.get_mut(id) {
                    open.subscription = Some(followed.subscription_id);
                    replayed = early.and_then(|_| open.replayed.take());
                }
                drop(state);
                if early.is_some() {
                    self.told(id.to_owned(), replayed);
                }
                Ok(told)
            }
            Err(failure) => {
                self.state().sessions.remove(id);
                Err(failure)
            }
        }
    }

    /// Stops following a session.
    async fn close(&self, id: &str) {
        let open = self.state().sessions.remove(id);
        if let Some(subscription) = open.and_then(|open| open.subscription) {
            // It may have ended by itself.
            let _ended =
                self.queue.call("orchestrate.unsubscribe", &json!({"subscriptionId": subscription})).await;
        }
    }

    /// `session/close`: its turns of this editor end.
    pub async fn close_session(&self, named: Setting) -> Result<Value, Failure> {
        let turns: Vec<String> = {
            let state = self.state();
            let of = state.turns.iter().filter(|(_, turn)| turn.session == named.session_id);
            of.map(|(id, _)| id.clone()).collect()
        };
        for turn in turns {
            self.cancel(&named.session_id, &turn).await;
        }
        self.close(&named.session_id).await;
        Ok(json!({}))
    }

    /// `session/list`.
    pub async fn list_sessions(&self, listed: Listed) -> Result<Value, Failure> {
        let params = listed.cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page: Page<Session> = self.queue.ask("session.list", &params).await?;
        let within = |root: &str| listed.cwd.as_deref().is_none_or(|cwd| Path::new(cwd).starts_with(root));
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

    /// Modes and models, as an answer that begins a session tells them.
    async fn settings(&self, id: &str) -> Value {
        let mode = |id: &str, name: &str, description: &str| json!({"id": id, "name": name, "description": description});
        let current = if self.is_dry(id) { DRY } else { WORK };
        let modes = json!({
            "currentModeId": current,
            "availableModes": [
                mode(WORK, "Work", "Changes are made; where the rules say so you are asked first"),
                mode(DRY, "Dry run", "Changes are told and not made"),
            ],
        });
        match self.options(id).await {
            Some(options) => json!({"modes": modes, "configOptions": options}),
            None => json!({"modes": modes}),
        }
    }

    /// Whether turns of a session make no changes.
    pub fn is_dry(&self, id: &str) -> bool {
        self.state().sessions.get(id).is_some_and(|open| open.dry_run)
    }

    /// The models that a session may have, where its provider tells them in time.
    async fn options(&self, id: &str) -> Option<Value> {
        let current: ProviderSet =
            self.queue.ask("provider.current", &json!({"sessionId": id})).await.ok()?;
        let params = json!({"provider": current.choice.provider});
        let list = self.queue.call("model.list", &params);
        let listed = tokio::time::timeout(MODELS_TIMEOUT, list).await.ok().and_then(Result::ok);
        let listed = listed.unwrap_or_default();
        let names = listed["data"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let mut names: Vec<&str> = names.filter_map(|model| model["model"].as_str()).take(MODELS).collect();
        // Where the configuration names none it is the provider's own choice.
        let model = match current.choice.model.as_str() {
            "" => {
                self.default_model(&current.choice.provider).await.or(names.first().map(|n| (*n).to_owned()))
            }
            named => Some(named.to_owned()),
        };
        let model = model?;
        if !names.contains(&model.as_str()) {
            names.insert(0, &model);
        }
        let options: Vec<Value> = names.iter().map(|name| json!({"value": name, "name": name})).collect();
        Some(json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "description": format!("A model of {}", current.choice.provider),
            "currentValue": model, "options": options,
        }]))
    }

    /// What a provider takes where no model is named.
    async fn default_model(&self, provider: &str) -> Option<String> {
        self.provider(provider).await?.default_model
    }

    async fn provider(&self, name: &str) -> Option<ProviderInfo> {
        let list: Page<ProviderInfo> = self.queue.ask("provider.list", &json!({})).await.ok()?;
        list.data.into_iter().find(|info| info.name == name)
    }

    /// Whether prompts may hold images: what a session begins with decides, as an editor is told once.
    pub async fn images(&self) -> bool {
        let current = self.queue.ask::<ProviderSet>("provider.current", &json!({})).await;
        let Ok(current) = current else { return false };
        self.provider(&current.choice.provider).await.is_some_and(|info| info.images)
    }

    /// `session/set_mode`.
    pub fn set_mode(&self, setting: &Setting) -> Result<Value, Failure> {
        let dry_run = match setting.mode_id.as_str() {
            WORK => false,
            DRY => true,
            _ => {
                let text = format!("modeId: there are '{WORK}' and '{DRY}'");
                return Err(Failure::new(Reason::InvalidParams, text));
            }
        };
        let mut state = self.state();
        let open = state.sessions.get_mut(&setting.session_id);
        open.ok_or_else(|| unknown(&setting.session_id))?.dry_run = dry_run;
        Ok(json!({}))
    }

    /// `session/set_config_option`: the model.
    pub async fn set_option(&self, setting: Setting) -> Result<Value, Failure> {
        self.folder(&setting.session_id)?;
        let (Some(model), "model") = (setting.value.as_str(), setting.config_id.as_str()) else {
            return Err(Failure::new(
                Reason::InvalidParams,
                "configId: there is 'model', whose value is a name",
            ));
        };
        let params = json!({"sessionId": setting.session_id, "model": model});
        self.queue.ask::<ProviderSet>("provider.set", &params).await?;
        Ok(json!({"configOptions": self.options(&setting.session_id).await}))
    }

    /// The folder of a session that is open.
    pub fn folder(&self, id: &str) -> Result<String, Failure> {
        self.state().sessions.get(id).map(|open| open.folder.clone()).ok_or_else(|| unknown(id))
    }
}
