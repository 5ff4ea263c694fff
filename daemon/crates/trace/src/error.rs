//! Errors of the log.

use cairn_protocol::{
    error::{Failure, Reason},
    id::{ApprovalId, SessionId},
};
use cairn_store::StoreError;

/// A failed operation of the log. [`TraceError::reason`] returns its reason on the wire.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("there is no session {0}")]
    SessionNotFound(SessionId),
    #[error("session {0} already exists")]
    SessionExists(SessionId),
    #[error("session {0} was created here, not imported")]
    SessionNotImported(SessionId),
    #[error("session {0} does not exist: its import must begin with the header of the export")]
    ImportNotStarted(SessionId),
    #[error("a run is active in session {0}")]
    SessionBusy(SessionId),
    /// The session is not in a state that allows these records.
    #[error("session {0} already has an active run, or no run to resume")]
    WrongState(SessionId),
    #[error("session {session} ends at {head_seq}, there is no record {after}")]
    AfterBeyondHead { session: SessionId, after: u64, head_seq: u64 },
    #[error("there is no approval {0}")]
    ApprovalNotFound(ApprovalId),
    #[error("the approval is already answered")]
    ApprovalResolved,
    #[error("there is no blob {}", .0.escape_default())]
    BlobNotFound(String),
    /// The content of a blob is not what its hash says, or it is missing although a session has it.
    #[error(
        "blob {} is damaged or missing; 'cairn doctor --repair' shows what can be rescued",
        .0.escape_default()
    )]
    DamagedBlob(String),
    #[error("offset {0} is not a boundary in this blob")]
    BlobOffset(u64),
    #[error("requestId must have 1 to 128 bytes")]
    RequestId,
    #[error("requestId '{}' was used with different content", .0.escape_default())]
    RequestConflict(String),
    #[error("cursor does not belong to this export")]
    ExportCursor,
    #[error("{0}")]
    SessionCursor(String),
    #[error("'{}' is no part of a session's id: 4 to 32 hexadecimal digits", .0.escape_default())]
    SessionPart(String),
    #[error("{0}")]
    HistoryQuery(String),
    /// An imported export is damaged or incomplete.
    #[error("{0}")]
    BadTrace(String),
    #[error("a stored record cannot be read: {0}")]
    UnreadableRecord(serde_json::Error),
    #[error("a line of the export cannot be written: {0}")]
    UnwritableLine(serde_json::Error),
    #[error("log reader failed: {0}")]
    ReaderFailed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<cairn_store::rusqlite::Error> for TraceError {
    fn from(error: cairn_store::rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl TraceError {
    /// Returns the reason on the wire.
    pub fn reason(&self) -> Reason {
        match self {
            Self::SessionNotFound(_) | Self::ImportNotStarted(_) => Reason::SessionNotFound,
            Self::SessionExists(_) | Self::SessionNotImported(_) => Reason::SessionExists,
            Self::SessionBusy(_) | Self::WrongState(_) => Reason::SessionBusy,
            Self::AfterBeyondHead { .. } => Reason::AfterBeyondHead,
            Self::ApprovalNotFound(_) => Reason::ApprovalNotFound,
            Self::ApprovalResolved => Reason::ApprovalResolved,
            Self::BlobNotFound(_) => Reason::BlobNotFound,
            Self::BlobOffset(_)
            | Self::RequestId
            | Self::ExportCursor
            | Self::SessionCursor(_)
            | Self::SessionPart(_)
            | Self::HistoryQuery(_) => Reason::InvalidParams,
            Self::RequestConflict(_) => Reason::RequestConflict,
            Self::BadTrace(_) => Reason::BadTrace,
            Self::UnreadableRecord(_) | Self::DamagedBlob(_) => Reason::StorageFailed,
            Self::UnwritableLine(_) | Self::ReaderFailed(_) => Reason::Internal,
            Self::Store(error) => error.reason(),
        }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let failure = Failure::new(error.reason(), error.to_string());
        match error {
            TraceError::AfterBeyondHead { head_seq, .. } => {
                failure.with_details(serde_json::json!({"headSeq": head_seq}))
            }
            _ => failure,
        }
    }
}
