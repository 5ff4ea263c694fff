//! Prefixed, opaque entity ids such as `ses_…` and `run_…`: a UUIDv7 inside makes them sort by
//! time.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! prefixed {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Prefix of all ids of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Creates a new unique id.
            #[expect(clippy::new_without_default, reason = "a default would hide that each one is unique")]
            pub fn new() -> Self {
                Self(format!(concat!($prefix, "{}"), Uuid::now_v7().simple()).into())
            }

            /// Returns the nil id: all digits are 0.
            pub fn nil() -> Self {
                Self(format!(concat!($prefix, "{}"), Uuid::nil().simple()).into())
            }

            /// Returns the id as written on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let rest = text.strip_prefix($prefix).unwrap_or("");
                let plain = rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit());
                if plain { Ok(Self(text.into())) } else { Err(format!("'{}' is not an id of the form {}<32 hex digits>", text.escape_default(), $prefix)) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "pattern": concat!("^", $prefix, "[0-9a-f]{32}$")})
            }
        }
    };
}

prefixed!(
    /// Id of a session: one numbered log of commands and events. Also serves as its trace id.
    SessionId, "ses_");
prefixed!(
    /// Id of one run (an explore or a turn) inside a session.
    RunId, "run_");
prefixed!(
    /// Id of one subscription of one connection.
    SubscriptionId, "sub_");
prefixed!(
    /// Id of a request for approval.
    ApprovalId, "apr_");
prefixed!(
    /// Id of a login to an MCP server.
    McpLoginId, "lgn_");
prefixed!(
    /// Id of a schedule.
    ScheduleId, "sch_");
prefixed!(
    /// Id of a paired device.
    DeviceId, "dev_");
prefixed!(
    /// Id of an instance of the daemon: a new one at each start.
    InstanceId, "ins_");

impl SubscriptionId {
    /// Returns the id of the first subscription to a session on any connection.
    pub fn of(session: &SessionId) -> Self {
        let digits = session.as_str().strip_prefix(SessionId::PREFIX).unwrap_or_default();
        Self(format!("{}{digits}", Self::PREFIX).into())
    }
}

/// Id of an indexed root: `root_` and the first 16 hex digits of the SHA-256 of its canonical path,
/// so that the same folder retains its index.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RootId(pub Arc<str>);

impl std::fmt::Display for RootId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_only_with_their_prefix() {
        let id = SessionId::new();
        assert_eq!(id.as_str().parse::<SessionId>().unwrap(), id);
        assert!(id.as_str().parse::<RunId>().is_err());
        for bad in ["", "ses_", "ses_zz", "ses_0123", "../ses_"] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad}");
        }
    }
}
