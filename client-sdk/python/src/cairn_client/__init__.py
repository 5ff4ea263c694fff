"""Client of a Cairn daemon: finds it, starts it if need be, calls it, and follows sessions without a gap."""

from . import types
from .blocking import Cairn, search
from .client import CALL_TIMEOUT, Client, connect
from .discovery import Found, discover
from .errors import (
    CairnError,
    ClosedError,
    ConnectError,
    GoneError,
    IncompatibleError,
    NotRunningError,
    RpcError,
    StartError,
    TimedOutError,
    UnauthorizedError,
)
from .follow import Follow, ends
from .location import Target, data_root, locate

__all__ = [
    "CALL_TIMEOUT",
    "Cairn",
    "CairnError",
    "Client",
    "ClosedError",
    "ConnectError",
    "Follow",
    "Found",
    "GoneError",
    "IncompatibleError",
    "NotRunningError",
    "RpcError",
    "StartError",
    "Target",
    "TimedOutError",
    "UnauthorizedError",
    "connect",
    "data_root",
    "discover",
    "ends",
    "locate",
    "search",
    "types",
]
