//! Who a request is from, and what he may do: decided in one place, before any handler.

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
    http::{Shared, refusal},
    remote::Peer,
    unproven::Proof,
};

/// How a listener knows its clients.
#[derive(Clone)]
pub enum Door {
    /// By the token of the data folder.
    Token(Arc<Guard>),
    /// By the key of a paired device; the guard's origins count, its token does not.
    Device(Arc<Guard>),
}

/// A request that may be answered.
pub struct Admission {
    /// The subprotocol to choose.
    pub chosen: Option<String>,
    /// What the client may do.
    pub rights: Rights,
    /// Says which requests are of one client: a token or a device.
    pub owner: String,
}

impl Admission {
    fn of(parts: &Parts, shared: &Shared) -> Result<Self, Failure> {
        let headers = &parts.headers;
        match &shared.door {
            Door::Token(guard) => {
                guard.check_source(headers)?;
                let chosen = guard.check_token(headers)?;
                Proof::of(parts).give();
                let owner = auth::token(headers).to_owned();
                Ok(Self { chosen, rights: Rights::ALL, owner })
            }
            Door::Device(guard) => {
                guard.check_origin(headers)?;
                let peer = parts.extensions.get::<ConnectInfo<Peer>>();
                let device = peer.and_then(|peer| peer.0.device.as_ref()).filter(|d| !d.cut.is_cancelled());
                let stranger =
                    || Failure::new(Reason::NotPaired, "this device is not paired with the daemon");
                let device = device.ok_or_else(stranger)?;
                let (chosen, owner) = (auth::subprotocol(headers), format!("device {}", device.id()));
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
