//! Notifications of unattended runs: on the desktop, and by a webhook. Events are queued with a
//! bound and sent one after the other, so that a slow receiver delays notifications alone. The
//! desktop is also notified of other approvals that wait.

mod approvals;
mod desktop;
mod webhook;

use std::sync::Arc;

use cairn_config::NotificationsConfig;
use cairn_engine::{Engine, RunEvent};
use cairn_protocol::unattended::UnattendedStatus;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::keychain::Keychain;
use webhook::{Secret, Webhook};

/// Events that wait to be sent; further ones are dropped.
const MAX_QUEUED: usize = 64;

/// Starts sending the events of an engine's runs, and approvals that wait; returns the tasks, none
/// if nothing is configured.
pub fn start(config: &NotificationsConfig, engine: &Engine) -> Vec<JoinHandle<()>> {
    let webhook = match open_webhook(config) {
        Ok(webhook) => webhook,
        Err(why) => {
            tracing::warn!("no webhook is sent: {why}");
            None
        }
    };
    if webhook.is_none() && !config.desktop {
        return vec![];
    }
    let (queue, mut events) = mpsc::channel::<RunEvent>(MAX_QUEUED);
    engine.set_run_observer(Arc::new(move |event| {
        if queue.try_send(event).is_err() {
            tracing::warn!("a notification is dropped: {MAX_QUEUED} others wait");
        }
    }));
    let on_desktop = config.desktop;
    let mut tasks = vec![tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if on_desktop {
                desktop::notify(&title(&event), &text(&event)).await;
            }
            if let Some(webhook) = &webhook {
                webhook.deliver(&event).await;
            }
        }
    })];
    if on_desktop {
        let notices = engine.approval_notices();
        tasks.push(tokio::spawn(approvals::run(engine.clone(), notices)));
    }
    tasks
}

fn open_webhook(config: &NotificationsConfig) -> Result<Option<Webhook>, String> {
    let Some(address) = &config.webhook else { return Ok(None) };
    let secret = if let Some(path) = &config.webhook_secret_file {
        Secret::Key(cairn_llm::read_key_file(path).map_err(|error| error.to_string())?)
    } else if !config.webhook_secret_command.is_empty() {
        Secret::Keychain(Keychain::start(config.webhook_secret_command.clone()))
    } else {
        return Err(
            "notifications.webhookSecretFile or webhookSecretCommand must name the secret \
                    of its signatures"
                .to_owned(),
        );
    };
    Webhook::new(address, config.webhook_private, secret).map(Some)
}

fn title(event: &RunEvent) -> String {
    match event.run.status {
        UnattendedStatus::Waiting => "Cairn waits for your answer".to_owned(),
        status => format!("Cairn: run {}", status.as_str()),
    }
}

/// Returns the request, and the question or the reason below it.
fn text(event: &RunEvent) -> String {
    let more = event.question.as_ref().or(event.run.reason.as_ref());
    match more {
        Some(more) => format!("{}\n{more}", event.run.request),
        None => event.run.request.clone(),
    }
}
