//! The actions of the slash commands.

use cairn_client_sdk::{Client, ClientError};
use cairn_protocol::{
    event::AgentEvt,
    model::{ModelInfo, TokenUsage},
    prompt::{PromptSetParams, PromptShowParams, PromptShown},
    session::Empty,
    tool::ToolCallParams,
    trace::TraceGetParams,
    turn::{ModelListParams, ProviderCurrentParams, ProviderSetParams},
};

use super::{
    Chat,
    clipboard::{self, Content},
    figures,
    images::{self, Image},
    picker,
    screen::Out,
    slash::{self, Slash},
    status_line::{self, StatusLine},
    view,
};
use crate::{
    commands::{config, models, rules, tools},
    exit::Failure,
    render::output::{self, plain},
};

/// Records per page when searching a session for a plan.
const PAGE: u32 = 500;

impl Chat<'_> {
    /// Runs a command that the user typed.
    pub async fn command(&mut self, command: Slash, argument: &str) -> Result<(), Failure> {
        let session = Client::session(&self.session);
        match command {
            Slash::Provider => self.provider(argument).await,
            Slash::Model if argument.is_empty() => self.pick_model().await,
            Slash::Model => self.choose(None, Some(argument.to_owned())).await,
            Slash::Resume => self.resume().await,
            Slash::Image => self.add_image(argument),
            Slash::Paste => self.paste().await,
            Slash::Config => {
                config::show(self.app, (!argument.is_empty()).then_some(argument)).await
            }
            Slash::Tools => Ok(output::print(&tools::table(&self.offered().await?))?),
            Slash::Plan => self.plan().await,
            Slash::Mode => self.set_mode(argument),
            Slash::Cost => self.cost().await,
            Slash::Clear => {
                self.client.session_clear(&session).await?;
                self.turns.clear();
                self.usage = None;
                Ok(output::line("the conversation is empty")?)
            }
            Slash::Compress => Ok(output::line(&self.compress().await?)?),
            Slash::System => self.system(argument).await,
            Slash::Tasks => self.tasks(argument).await,
            Slash::Undo => self.undo().await,
            Slash::Rules => self.rules(argument).await,
            Slash::Trust => self.review_trust().await,
            Slash::Help => {
                self.screen.measure();
                let width = self.screen.capabilities().width;
                Ok(output::print(&slash::help(&self.sources.commands, width))?)
            }
            Slash::Exit => Ok(()),
        }
    }

    async fn current(&self) -> Result<cairn_protocol::turn::ModelChoice, ClientError> {
        let params = ProviderCurrentParams { session_id: Some(self.session.clone()) };
        self.client.provider_current(&params).await
    }

    /// Returns provider and model for display.
    pub async fn model_name(&self) -> Result<String, ClientError> {
        let mut now = self.current().await?;
        if now.model.is_empty() {
            let known = self.client.provider_list(&Empty {}).await?.data;
            let default =
                known.into_iter().find(|p| p.name == now.provider).and_then(|p| p.default_model);
            now.model = default.unwrap_or_default();
        }
        let endpoint = now.endpoint.map(|e| format!(" at {e}")).unwrap_or_default();
        Ok(plain(format!("{} {}{endpoint}", now.provider, now.model).trim()))
    }

    async fn provider(&mut self, argument: &str) -> Result<(), Failure> {
        let mut words = argument.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None | Some("list"), None, _) => {
                let page = self.client.provider_list(&Empty {}).await?;
                Ok(output::print(&models::providers(&page.data))?)
            }
            (Some("current"), None, _) => Ok(output::line(&self.model_name().await?)?),
            (Some(name), model, None) => {
                self.choose(Some(name.to_owned()), model.map(str::to_owned)).await
            }
            _ => Err(Failure::usage("too many words").hint("/provider NAME [MODEL]")),
        }
    }

    /// Lets the user choose one of the provider's models; without a terminal it lists them.
    async fn pick_model(&mut self) -> Result<(), Failure> {
        let now = self.current().await?;
        let provider = Some(now.provider.clone());
        if !self.interactive {
            return models::list(self.app, &self.client, provider).await.map(drop);
        }
        let offered = self.client.model_list(&ModelListParams { provider }).await?.data;
        if offered.is_empty() {
            self.app.info(&format!("{} lists no models; /model NAME selects one", now.provider));
            return Ok(());
        }
        let widest = offered.iter().map(|m| m.model.chars().count()).max().unwrap_or(0).min(48);
        let row = |model: &ModelInfo| {
            let window = model.context_tokens.map(|n| format!("{} tokens", output::number(n)));
            let name = plain(&model.model);
            let is_current = self.model == format!("{} {name}", now.provider);
            let mark = if is_current { "●" } else { " " };
            format!("{mark} {name:<widest$}  {}", window.unwrap_or_default())
        };
        let rows = offered.iter().map(row).collect();
        self.screen.measure();
        let capabilities = self.screen.capabilities();
        let Some(at) = picker::choose("model", rows, capabilities).await? else { return Ok(()) };
        match offered.into_iter().nth(at) {
            Some(model) => self.choose(None, Some(model.model)).await,
            None => Ok(()),
        }
    }

    /// Adds a picture to the next message.
    fn add_image(&mut self, argument: &str) -> Result<(), Failure> {
        let path = images::words(argument).join(" ");
        if path.is_empty() {
            return Err(Failure::usage("a path is missing").hint("/image PATH"));
        }
        let home = self.app.env.home.as_deref();
        let image = Image::read(&images::resolved(&path, &self.folder, home))?;
        self.add_picture(image)
    }

    fn add_picture(&mut self, image: Image) -> Result<(), Failure> {
        if self.pictures.len() >= images::MAX_IMAGES {
            return Err(Failure::usage("the message has no room for another picture"));
        }
        self.app.info(&format!("{} goes with the next message", image.describe()));
        self.pictures.push(image);
        Ok(())
    }

    /// Adds the clipboard's picture to the next message, or inserts its text into the prompt.
    async fn paste(&mut self) -> Result<(), Failure> {
        match clipboard::read().await? {
            Content::Image(image) => self.add_picture(image),
            Content::Text(text) => {
                let text = self.sources.pastes.add(text);
                if let Some(refusal) = self.sources.pastes.take_refusal() {
                    return Err(refusal);
                }
                self.unsent = text;
                Ok(())
            }
        }
    }

    /// Reads the name of the session's model.
    pub async fn refresh_model(&mut self) -> Result<(), Failure> {
        self.model = self.model_name().await?;
        Ok(())
    }

    /// Renders the line above the prompt.
    pub fn status_line(&mut self) -> String {
        self.screen.measure();
        let line = StatusLine {
            model: self.model.clone(),
            context: self.usage,
            mode: status_line::mode(&self.policy),
            cost_micro_usd: self.cost_micro_usd,
            branch: if self.app.is_remote() { None } else { status_line::branch(&self.folder) },
        };
        line.render(self.screen.capabilities().width)
    }

    /// Displays the last result completely.
    pub fn unfold(&mut self) -> Result<(), Failure> {
        let text = match &self.folded {
            Some(folded) => folded.render(),
            None => "there is no folded result\n".to_owned(),
        };
        // The cursor is still inside the prompt.
        Ok(self.screen.write(&[Out::Note(format!("\n{text}"))])?)
    }

    async fn choose(
        &mut self,
        provider: Option<String>,
        model: Option<String>,
    ) -> Result<(), Failure> {
        let params =
            ProviderSetParams { session_id: self.session.clone(), provider, model, endpoint: None };
        let set = self.client.provider_set(&params).await?;
        for warning in &set.warnings {
            self.app.info(&format!("warning: {}", plain(warning)));
        }
        let context =
            set.context_tokens.map(|n| format!(", {} tokens of context", output::number(n)));
        let text =
            format!("{} {}{}", set.choice.provider, set.choice.model, context.unwrap_or_default());
        self.usage = set.context_tokens.map(|window| (0, window));
        self.refresh_model().await?;
        Ok(output::line(&plain(&text))?)
    }

    /// Lists the tools that the next turn offers.
    async fn offered(&self) -> Result<Vec<cairn_protocol::tool::ToolInfo>, ClientError> {
        let mut tools = self.client.tool_list(&Empty {}).await?.data;
        tools.retain(|tool| match &self.policy.ops {
            Some(ops) => ops.contains(&tool.name),
            None => !tool.hidden && (!tool.network || self.policy.network),
        });
        Ok(tools)
    }

    /// Shows the usage of the session's turns.
    async fn cost(&self) -> Result<(), Failure> {
        let mut total = TokenUsage::default();
        let (mut turns, mut unpriced) = (0_u64, 0_u64);
        let mut after = 0;
        loop {
            let params =
                TraceGetParams { trace_id: self.session.clone(), after, limit: Some(PAGE) };
            let page = self.client.trace_get(&params).await?;
            for envelope in &page.data {
                let Some(AgentEvt::RunCompleted { result }) = envelope.body.evt() else { continue };
                turns += 1;
                unpriced += u64::from(result.usage.cost_micro_usd.is_none());
                total.input_tokens += result.usage.input_tokens;
                total.output_tokens += result.usage.output_tokens;
                total.cached_tokens += result.usage.cached_tokens;
                let cost = total.cost_micro_usd.unwrap_or(0);
                total.cost_micro_usd =
                    result.usage.cost_micro_usd.map(|own| cost + own).or(total.cost_micro_usd);
            }
            match page.next_after {
                Some(next) => after = next,
                None => break,
            }
        }
        Ok(output::line(&figures::session_cost(&total, turns, unpriced))?)
    }

    /// Shows the latest plan in the session's log.
    async fn plan(&self) -> Result<(), Failure> {
        let mut latest = None;
        let mut after = 0;
        loop {
            let params =
                TraceGetParams { trace_id: self.session.clone(), after, limit: Some(PAGE) };
            let page = self.client.trace_get(&params).await?;
            for envelope in &page.data {
                match envelope.body.evt() {
                    Some(AgentEvt::PlanUpdate { items }) => latest = Some(items.clone()),
                    Some(AgentEvt::Cleared {}) => latest = None,
                    _ => {}
                }
            }
            match page.next_after {
                Some(next) => after = next,
                None => break,
            }
        }
        let text = latest.map(|items| view::plan(&items)).filter(|text| !text.is_empty());
        Ok(output::print(&text.unwrap_or_else(|| "there is no plan\n".into()))?)
    }

    async fn system(&self, argument: &str) -> Result<(), Failure> {
        if argument.is_empty() {
            let current_prompt = self.system_prompt().await?;
            let lines: Vec<String> = current_prompt.system.lines().map(plain).collect();
            return Ok(output::line(&lines.join("\n"))?);
        }
        let system = (argument != "default").then(|| argument.to_owned());
        self.client
            .prompt_set(&PromptSetParams { session_id: self.session.clone(), system })
            .await?;
        Ok(output::line("the system text is set, and the conversation is empty")?)
    }

    /// Returns the system text that the next turn of this chat starts with.
    pub async fn system_prompt(&self) -> Result<PromptShown, Failure> {
        let params = PromptShowParams {
            session_id: self.session.clone(),
            policy: Some(self.policy.clone()),
        };
        Ok(self.client.prompt_show(&params).await?)
    }

    /// Undoes the latest turn that changed files and was not undone; each call goes one further
    /// back.
    async fn undo(&mut self) -> Result<(), Failure> {
        while let Some(turn) = self.turns.last().cloned() {
            match self.undo_turn(turn).await {
                // A turn without changes is passed over.
                Err(failure) if failure.reason() == "invalid_params" => {
                    self.turns.pop();
                }
                other => return other,
            }
        }
        let text = "no turn of this chat can be undone".into();
        Err(Failure::with_reason("path_not_found", text))
    }

    async fn undo_turn(&mut self, turn: String) -> Result<(), Failure> {
        let params = ToolCallParams {
            session_id: self.session.clone(),
            name: "undo_turn".into(),
            arguments: serde_json::json!({"turnId": turn}),
        };
        // Typing the command counts as the answer to the approval.
        let Some(result) =
            tools::result(self.app, &self.client, &params, tools::Approver::Preapproved).await?
        else {
            return Ok(());
        };
        if let Some(failure) = tools::failure(&result) {
            return Err(failure);
        }
        self.turns.pop();
        let restored = result.output.get("restored").and_then(serde_json::Value::as_array);
        let paths: Vec<String> =
            restored.into_iter().flatten().filter_map(|p| p.as_str()).map(plain).collect();
        Ok(output::line(&format!("restored {}", paths.join(", ")))?)
    }

    async fn rules(&self, argument: &str) -> Result<(), Failure> {
        if argument.is_empty() {
            let page = self.client.permission_list(&Empty {}).await?;
            return Ok(output::print(&rules::list(&page.data))?);
        }
        let Some(rule) = argument.strip_prefix("remove ").map(str::trim) else {
            return Err(
                Failure::usage("only 'remove RULE' can follow").hint("/rules shows the rules")
            );
        };
        let params = rules::named(&self.client, rule, None).await?;
        self.client.permission_revoke(&params).await?;
        Ok(output::line(&format!("removed {}", plain(&params.rule)))?)
    }
}
