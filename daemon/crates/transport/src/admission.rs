//! Admission: identifies the client of a request and its rights before any handler runs.

use std::sync::Arc;

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::request::Parts,
    response::Response,
};
use cairn_api::Rights;
use cairn_protocol::error::{Failure, Reason};

use crate::{
    auth::{self, Guard},
    http::{Shared, refusal, unauthenticated::Proof},
    remote::Peer,
};

/// The way a listener authenticates its clients.
#[derive(Clone)]
pub enum Authentication {
    /// By the token of the data folder.
    Token(Arc<Guard>),
    /// By the key of a paired device. The guard's origins apply, its token does not.
    Device(Arc<Guard>),
}

/// Identity and rights of an admitted request.
pub struct Admission {
    /// The WebSocket subprotocol to select.
    pub chosen: Option<String>,
    pub rights: Rights,
    /// Identifies the client: the token or a device.
    pub owner: String,
}

impl Admission {
    fn of(parts: &Parts, shared: &Shared) -> Result<Self, Failure> {
        let headers = &parts.headers;
        match &shared.authentication {
            Authentication::Token(guard) => {
                guard.check_source(headers)?;
                let chosen = guard.check_token(headers)?;
                Proof::of(parts).mark_authenticated();
                let owner = auth::token(headers).to_owned();
                Ok(Self { chosen, rights: Rights::ALL, owner })
            }
            Authentication::Device(guard) => {
                guard.check_origin(headers)?;
                let peer = parts.extensions.get::<ConnectInfo<Peer>>();
                // The secret of a browser opens the viewer's own endpoint alone.
                let device = peer.and_then(|peer| match &peer.0 {
                    Peer::Machine { device, .. } => device.as_ref(),
                    Peer::Browser(_) => None,
                });
                let device = device.filter(|d| !d.abort.is_cancelled());
                let stranger =
                    || Failure::new(Reason::NotPaired, "this device is not paired with the daemon");
                let device = device.ok_or_else(stranger)?;
                let chosen = auth::subprotocol(headers);
                let owner = format!("device {}", device.id());
                Ok(Self { chosen, rights: device.rights(), owner })
            }
        }
    }
}

impl FromRequestParts<Shared> for Admission {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Response> {
        Self::of(parts, shared).map_err(|failure| refusal(&failure))
    }
}
