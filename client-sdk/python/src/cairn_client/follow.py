"""Following a session across cut connections: no gap, no repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import types as t
from .errors import CairnError, ClosedError, GoneError, UnauthorizedError

if TYPE_CHECKING:
    from .client import Client

Notice = tuple[str, dict[str, Any]]
"""A notification: its method and params."""
_BACKOFF = (0.05, 2.0)
_MAX_GAPS = 3


def ends(record: t.Envelope) -> bool:
    """Whether a record is the last of a turn or of an explore."""
    evt: Any = record.get("evt") or {}
    kind = evt.get("type")
    return kind in ("completed", "run_completed") or (kind in ("stopped", "error") and evt.get("op") == "explore")


class Stream:
    """A bounded queue whose end comes after what it holds."""

    def __init__(self, size: int) -> None:
        self._items: asyncio.Queue[Notice | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(size)

    async def put(self, item: Notice) -> None:
        await self._room.acquire()
        self._items.put_nowait(item)

    def end(self) -> None:
        self._items.put_nowait(None)

    async def get(self) -> Notice | None:
        """The next one; `None` at the end."""
        item = await self._items.get()
        self._room.release()
        return item


class Follow(AsyncIterator[t.Envelope]):
    """A session followed from one record on, over connections that are made as needed."""

    def __init__(
        self,
        again: Callable[[], Awaitable[Client]],
        session_id: str,
        after: int,
        to_end: bool,
        live: bool,
        patience: float,
    ) -> None:
        self._again, self._session = again, session_id
        self._to_end, self._live, self._patience = to_end, live, patience
        self._client: Client | None = None
        self._stream: Stream | None = None
        self._over = False
        self.last = after
        """The last record that was given."""
        self.synced = False
        """Whether everything there was at the beginning was given: what comes is live."""
        self.reconnects = 0
        """Connections that were made after the first."""

    def __aiter__(self) -> Follow:
        return self

    async def __aenter__(self) -> Follow:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends it with its connection."""
        self._over, client, self._client = True, self._client, None
        if client is not None:
            await client.close()

    async def __anext__(self) -> t.Envelope:
        gaps = 0
        while not self._over:
            if self._stream is None:
                self._stream = await self._subscribe()
            step = await self._stream.get()
            if step is None:
                self.reconnects += 1
                await self._drop()
                continue
            method, params = step
            if method == "orchestrate.gone":
                await self.aclose()
                raise GoneError(f"the session no longer exists: {params.get('message', '')}")
            if method == "orchestrate.synced":
                self.synced = True
            if method != "orchestrate.event":
                continue
            seq = params.get("seq")
            if seq is None:
                if self._live:
                    return params  # type: ignore[return-value]
                continue
            if seq <= self.last:
                continue
            if seq > self.last + 1:
                # Never seen from a daemon that keeps to the protocol; asking again is cheap and right.
                gaps += 1
                if gaps > _MAX_GAPS:
                    await self.aclose()
                    raise CairnError(f"record {seq} arrived after {self.last}")
                await self._drop()
                continue
            self.last = seq
            record: t.Envelope = params  # type: ignore[assignment]
            if self._to_end and ends(record):
                await self.aclose()
            return record
        raise StopAsyncIteration

    async def _drop(self) -> None:
        client, self._client, self._stream = self._client, None, None
        if client is not None:
            await client.close()

    async def _subscribe(self) -> Stream:
        clock, pause = asyncio.get_running_loop().time, _BACKOFF[0]
        until = clock() + self._patience
        while True:
            try:
                self._client = await self._again()
                return await self._client._subscribe(self._session, self.last)
            except CairnError as error:
                await self._drop()
                # The token of a daemon that starts may be read before it is written.
                passes = error.retryable or isinstance(error, (ClosedError, UnauthorizedError))
                if not passes or clock() + pause >= until:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _BACKOFF[1])
