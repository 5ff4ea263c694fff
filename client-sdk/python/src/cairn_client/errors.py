"""What can go wrong; every error is a `CairnError`."""

from __future__ import annotations

from typing import Any


class CairnError(Exception):
    """Any failure of this client or of the daemon."""

    retryable = False
    """Whether the same may succeed later."""


class NotRunningError(CairnError):
    """No daemon has left its address."""

    retryable = True


class ConnectError(CairnError):
    """The daemon cannot be reached."""

    retryable = True


class UnauthorizedError(CairnError):
    """The daemon rejected the token."""


class IncompatibleError(CairnError):
    """This client and the daemon have no version of the protocol in common."""


class StartError(CairnError):
    """The daemon did not start."""


class ClosedError(CairnError):
    """The connection ended. What was asked may have been done; a call with a retry key can be sent again."""

    retryable = True


class TimedOutError(CairnError):
    """No answer came in time; the call was cancelled."""

    retryable = True


class GoneError(CairnError):
    """The session that was followed is gone."""


class RpcError(CairnError):
    """The daemon's answer to a call that failed."""

    def __init__(self, method: str, error: dict[str, Any]) -> None:
        data = error.get("data") or {}
        self.method = method
        self.code = int(error.get("code", 0))
        self.message = str(error.get("message", ""))
        self.reason = str(data.get("reason", ""))
        """Stable string; the contract. One of `cairn_client.types.Reason`."""
        self.hint = str(data.get("hint", ""))
        """The way out."""
        self.retryable = bool(data.get("retryable", False))
        self.retry_after_ms: int | None = data.get("retryAfterMs")
        self.details: Any = data.get("details")
        super().__init__(f"{method}: {self.message} ({self.reason})" + (f"; {self.hint}" if self.hint else ""))
