//! The methods of turns: runs, approvals, models, prompts.

use cairn_protocol::{
    approval::{Approval, ApprovalListParams, ApprovalResolveParams},
    error::Failure,
    explore::SessionRef,
    model::ModelInfo,
    prompt::{PromptAppendParams, PromptSetParams},
    sandbox::SandboxProbe,
    session::{ArchiveParams, Empty, ForkParams, Page},
    tool::{GrantedRule, RevokeParams},
    turn::{
        ModelListParams, ProviderCurrentParams, ProviderInfo, ProviderSetParams, RunStartParams, SteerParams,
        TurnRef,
    },
};

use crate::{
    method::{Audit, Method, Scope},
    rights::Right,
};

/// All of them.
pub fn methods() -> Vec<Method> {
    let mut all = runs();
    all.extend(approvals());
    all.extend(models());
    all.extend(prompts());
    all
}

fn whole<T>(data: Vec<T>) -> Result<Page<T>, Failure> {
    Ok(Page { data, next_cursor: None })
}

fn runs() -> Vec<Method> {
    vec![
        Method::new(
            "orchestrate.run.start",
            "Takes a turn of an agent in a session; `run_completed` is its last event.",
            |cx, p: RunStartParams| async move {
                let client = cx.client_name();
                cx.api().engine.start_run(p, client).await
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "orchestrate.run.status",
            "Where a session's turns stand.",
            |cx, p: SessionRef| async move { cx.api().engine.run_status(&p.session_id).await },
        ),
        Method::new(
            "orchestrate.run.cancel",
            "Stops a turn, at work or waiting.",
            |cx, p: TurnRef| async move { cx.api().engine.cancel_run(p).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
        Method::new(
            "orchestrate.run.steer",
            "Tells a turn at work something that its model hears next.",
            |cx, p: SteerParams| async move {
                let client = cx.client_name();
                cx.api().engine.steer(p, client).await
            },
        )
        .detached(Right::Prompt),
        Method::new(
            "session.fork",
            "Makes a session with the past of another, up to a turn.",
            |cx, p: ForkParams| async move { cx.api().engine.fork_session(p).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.archive",
            "Puts a session away, or takes it out again.",
            |cx, p: ArchiveParams| async move { cx.api().engine.archive_session(p).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.clear",
            "Empties a session's conversation; its log stays.",
            |cx, p: SessionRef| async move {
                let client = cx.client_name();
                cx.api().engine.clear_conversation(&p.session_id, client).await.map(|()| Empty {})
            },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
        Method::new(
            "session.compress",
            "Condenses a session's conversation into a summary.",
            |cx, p: SessionRef| async move { cx.api().engine.compress(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
    ]
}

fn approvals() -> Vec<Method> {
    vec![
        Method::new(
            "approval.list",
            "Calls that wait for leave, newest first.",
            |cx, p: ApprovalListParams| async move { whole::<Approval>(cx.api().engine.approvals(p).await?) },
        ),
        Method::new(
            "approval.resolve",
            "Answers one; the first answer counts.",
            |cx, p: ApprovalResolveParams| async move {
                let by = cx.client_name().unwrap_or_default();
                cx.api().engine.resolve_approval(p, &by).await
            },
        )
        .detached(Right::Approve)
        .audit(Audit::BestEffort),
        Method::new(
            "sandbox.probe",
            "How commands are confined here, and what that does not stop.",
            |cx, _: Empty| async move { cx.api().engine.sandbox_probe().await as Result<SandboxProbe, Failure> },
        ),
        Method::new("permission.list", "Rules that were granted for good.", |cx, _: Empty| async move {
            whole::<GrantedRule>(cx.api().engine.granted())
        }),
        Method::new("permission.revoke", "Takes a granted rule back.", |cx, p: RevokeParams| async move {
            cx.api().engine.revoke(&p.rule).await.map(|()| Empty {})
        })
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
    ]
}

fn models() -> Vec<Method> {
    vec![
        Method::new("provider.list", "The model providers there are.", |cx, _: Empty| async move {
            whole::<ProviderInfo>(cx.api().engine.providers()?)
        }),
        Method::new(
            "provider.current",
            "Which model a session talks to.",
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
        Method::new("model.list", "The models of a provider.", |cx, p: ModelListParams| async move {
            whole::<ModelInfo>(cx.api().engine.models(p.provider).await?)
        }),
    ]
}

fn prompts() -> Vec<Method> {
    vec![
        Method::new(
            "prompt.show",
            "The system text of a session's next turn.",
            |cx, p: SessionRef| async move { cx.api().engine.show_prompt(&p.session_id).await },
        ),
        Method::new(
            "prompt.set",
            "Replaces the base of a session's system text; its conversation is emptied.",
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
            "Makes the time, the project and the map in a session's system text anew.",
            |cx, p: SessionRef| async move { cx.api().engine.refresh_prompt(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .scope(Scope::PerSession),
    ]
}
