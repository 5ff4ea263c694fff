//! The methods of unattended runs, schedules and the board.

use cairn_protocol::{
    board::BoardParams,
    explore::SessionRef,
    schedule::{ScheduleAddParams, ScheduleRef},
    session::Empty,
    time::Timestamp,
    unattended::UnattendedStartParams,
};

use crate::{
    approval_list,
    method::{Audit, Method, Scope},
    rights::Right,
};

pub fn methods() -> Vec<Method> {
    let mut all = runs();
    all.extend(schedules());
    all
}

fn runs() -> Vec<Method> {
    vec![
        Method::new(
            "session.board",
            "The sessions with what they work on, what they cost, and who waits for an answer.",
            |cx, p: BoardParams| async move {
                let mut board = cx.api().engine.board(p).await?;
                approval_list::bound(board.rows.iter_mut().flat_map(|row| &mut row.waiting));
                Ok(board)
            },
        ),
        Method::new(
            "unattended.start",
            "Starts a turn that goes on without the client, and further ones until a check succeeds.",
            |cx, p: UnattendedStartParams| async move {
                let client = cx.client_name();
                cx.api().engine.start_unattended(p, client).await
            },
        )
        .detached(Right::Prompt),
        Method::new(
            "unattended.list",
            "The unattended runs, newest first.",
            |cx, _: Empty| async move { cx.api().engine.unattended_runs().await },
        ),
        Method::new(
            "unattended.stop",
            "Stops an unattended run: cancels its turn, and starts no other.",
            |cx, p: SessionRef| async move { cx.api().engine.stop_unattended(&p.session_id).await },
        )
        .detached(Right::Prompt)
        .audit(Audit::BestEffort),
    ]
}

fn schedules() -> Vec<Method> {
    vec![
        Method::new(
            "schedule.add",
            "Adds a schedule: a request that starts at set times.",
            |cx, p: ScheduleAddParams| async move {
                let client = cx.client_name();
                cx.api().engine.add_schedule(p, client, Timestamp::now()).await
            },
        )
        .detached(Right::Admin)
        .scope(Scope::Global),
        Method::new(
            "schedule.list",
            "The schedules with their next times, latest runs and missed times.",
            |cx, _: Empty| async move { cx.api().engine.schedules(Timestamp::now()).await },
        ),
        Method::new(
            "schedule.remove",
            "Removes a schedule; its active run continues.",
            |cx, p: ScheduleRef| async move {
                cx.api().engine.remove_schedule(p).await.map(|()| Empty {})
            },
        )
        .detached(Right::Admin)
        .audit(Audit::BestEffort),
        Method::new(
            "schedule.run",
            "Starts a run of a schedule now.",
            |cx, p: ScheduleRef| async move {
                cx.api().engine.run_schedule(p, Timestamp::now()).await
            },
        )
        .detached(Right::Admin),
    ]
}
