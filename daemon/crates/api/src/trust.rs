//! The methods about trust in what folders bring.

use cairn_protocol::trust::{TrustGetParams, TrustRemoveParams, TrustSetParams};

use crate::{
    method::{Audit, Method},
    rights::Right,
};

pub fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "trust.get",
            "What a folder brings that runs or instructs agents, compared with what was trusted.",
            |cx, p: TrustGetParams| async move { cx.api().engine.folder_trust(p).await },
        )
        .detached(Right::Admin)
        .audit(Audit::None),
        Method::new(
            "trust.set",
            "Trusts or refuses items of a folder with exactly these contents.",
            |cx, p: TrustSetParams| async move { cx.api().engine.set_folder_trust(p).await },
        )
        .detached(Right::Admin),
        Method::new(
            "trust.remove",
            "Removes the trust in a folder: nothing that it brings is used then.",
            |cx, p: TrustRemoveParams| async move { cx.api().engine.remove_folder_trust(p).await },
        )
        .detached(Right::Admin),
    ]
}
