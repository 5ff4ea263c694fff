//! The methods of turns: runs, approvals, models, prompts.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalRef, ApprovalResolveParams},
    background::{BackgroundCommand, BackgroundOutputParams, BackgroundRef},
    error::Failure,
    explore::SessionRef,
    model::ModelInfo,
    prompt::{PromptAppendParams, PromptSetParams, PromptShowParams},
    sandbox::SandboxProbe,
    session::{ArchiveParams, Empty, ForkParams, Page},
    tool::{GrantedRule, NarrowParams, RevokeParams},
    turn::{
        ModelListParams, ProviderCurrentParams, ProviderInfo, ProviderSetParams, RunStartParams,
        SteerParams, TurnRef,
    },
};

use crate::{
    approval_list,
    method::{Audit, Method, Scope},
    rights::Right,
};

pub fn methods() -> Vec<Method> {
    let mut all = runs();
    all.extend(background());
    all.extend(approvals());
    all.extend(models());
    all.extend(prompts());
    all
}

fn single_page<T>(data: Vec<T>) -> Result<Page<T>, Failure> {
    Ok(Page { data, next_cursor: None })
}

fn runs() -> Vec<Method> {
    vec![
        Method::new(
            "orchestrate.run.start",
            "Starts a turn of an agent in a session; `run_completed` is its last event.",
            |cx, p: RunStartParams| async move {
                let client = cx.client_name();
                cx.api().engine.start_run(p, client).await
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "orchestrate.run.status",
            "The state of a session's turns.",
            |cx, p: SessionRef| async move { cx.api().engine.run_status(&p.session_id).await },
        ),
        Method::new(
            "orchestrate.run.cancel",
            "Cancels a running or queued turn.",
            |cx, p: TurnRef| async move { cx.api().engine.cancel_run(p).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
        Method::new(
            "orchestrate.run.steer",
            "Adds a message to a running turn, which its model receives next.",
            |cx, p: SteerParams| async move {
                let client = cx.client_name();
                cx.api().engine.steer(p, client).await
            },
        )
        .detached(Right::Prompt),
        Method::new(
            "session.fork",
            "Creates a session from the history of another, up to a turn.",
            |cx, p: ForkParams| async move { cx.api().engine.fork_session(p).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.archive",
            "Archives a session, or restores it.",
            |cx, p: ArchiveParams| async move { cx.api().engine.archive_session(p).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.clear",
            "Clears a session's conversation; its log is retained.",
            |cx, p: SessionRef| async move {
                let client = cx.client_name();
                cx.api().engine.clear_conversation(&p.session_id, client).await.map(|()| Empty {})
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.compress",
            "Replaces a session's conversation with a summary.",
            |cx, p: SessionRef| async move { cx.api().engine.compress(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
    ]
}

fn background() -> Vec<Method> {
    vec![
        Method::new(
            "background.list",
            "Background commands of a session, oldest first.",
            |cx, p: SessionRef| async move {
                let commands = cx.api().engine.background_commands(&p.session_id).await?;
                single_page::<BackgroundCommand>(commands)
            },
        ),
        Method::new(
            "background.output",
            "New output of a background command.",
            |cx, p: BackgroundOutputParams| async move {
                cx.api().engine.background_output(&p.session_id, &p.id, p.cursor).await
            },
        ),
        Method::new(
            "background.stop",
            "Stops a background command, and waits until it has ended.",
            |cx, p: BackgroundRef| async move {
                cx.api().engine.stop_background(&p.session_id, &p.id).await
            },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
    ]
}

fn approvals() -> Vec<Method> {
    vec![
        Method::new(
            "approval.list",
            "Pending approvals, newest first.",
            |cx, p: ApprovalListParams| async move {
                let mut listed = cx.api().engine.approvals(p).await?;
                approval_list::bound(&mut listed);
                single_page::<Approval>(listed)
            },
        ),
        Method::new("approval.get", "One approval, complete.", |cx, p: ApprovalRef| async move {
            cx.api().engine.approval(&p.approval_id).await
        }),
        Method::new(
            "approval.resolve",
            "Answers an approval; the first answer counts.",
            |cx, p: ApprovalResolveParams| async move {
                let by = cx.client_name().unwrap_or_default();
                cx.api().engine.resolve_approval(p, &by).await
            },
        )
        .detached(Right::Approve)
        .audit(Audit::BestEffort),
        Method::new(
            "sandbox.probe",
            "The sandbox for commands on this machine, and what it does not prevent.",
            |cx, _: Empty| async move {
                cx.api().engine.sandbox_probe().await as Result<SandboxProbe, Failure>
            },
        ),
        Method::new("permission.list", "Permanently granted rules.", |cx, _: Empty| async move {
            single_page::<GrantedRule>(cx.api().engine.granted())
        }),
        Method::new(
            "permission.revoke",
            "Revokes a granted rule.",
            |cx, p: RevokeParams| async move {
                cx.api().engine.revoke(&p).await.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
        Method::new(
            "permission.narrow",
            "Replaces a granted rule by one that covers less.",
            |cx, p: NarrowParams| async move {
                cx.api().engine.narrow(&p).await.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn models() -> Vec<Method> {
    vec![
        Method::new("provider.list", "The available model providers.", |cx, _: Empty| async move {
            single_page::<ProviderInfo>(cx.api().engine.providers()?)
        }),
        Method::new(
            "provider.current",
            "The model of a session.",
            |cx, p: ProviderCurrentParams| async move {
                cx.api().engine.current_model(p.session_id.as_ref()).await
            },
        ),
        Method::new(
            "provider.set",
            "Changes the model of a session from its next turn on.",
            |cx, p: ProviderSetParams| async move {
                let client = cx.client_name();
                cx.api().engine.set_model(p, client).await
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "model.list",
            "The models of a provider.",
            |cx, p: ModelListParams| async move {
                single_page::<ModelInfo>(cx.api().engine.models(p.provider).await?)
            },
        ),
    ]
}

fn prompts() -> Vec<Method> {
    vec![
        Method::new(
            "prompt.show",
            "The system text of a session's next turn.",
            |cx, p: PromptShowParams| async move { cx.api().engine.show_prompt(p).await },
        ),
        Method::new(
            "prompt.set",
            "Replaces the base of a session's system text; its conversation is cleared.",
            |cx, p: PromptSetParams| async move {
                let client = cx.client_name();
                cx.api().engine.set_prompt(p, client).await
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "prompt.append",
            "Adds to a session's system text.",
            |cx, p: PromptAppendParams| async move { cx.api().engine.append_prompt(p).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "prompt.refresh",
            "Refreshes the time, the project and the map in a session's system text.",
            |cx, p: SessionRef| async move { cx.api().engine.refresh_prompt(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
    ]
}
