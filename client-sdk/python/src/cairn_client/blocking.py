"""The client without asyncio: every call returns when the daemon has answered."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from typing import Any, TypeVar, Unpack

from . import types as t
from .blocking_methods import BlockingMethods
from .client import CALL_TIMEOUT, Client, connect
from .errors import ClosedError

T = TypeVar("T")


class Cairn(BlockingMethods):
    """A connection to the daemon of this user, for programs without asyncio. Threads may share it.

    Takes the arguments of `connect`. Use it with `with`, or call `close`.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        start: bool = True,
        exe: str | os.PathLike[str] | None = None,
        approvals: bool = False,
        name: str = "cairn-client-python",
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cairn-client", daemon=True)
        self._thread.start()
        self._closed = False

        async def open_client() -> Client:
            return await connect(address, token, home=home, start=start, exe=exe, approvals=approvals, name=name)

        try:
            self._client = self._wait(open_client())
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Cairn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def server(self) -> t.InitializeResult:
        """The daemon's answer to the handshake."""
        return self._client.server

    def close(self) -> None:
        """Closes the connection; it can be called again."""
        if not self._closed:
            try:
                self._wait(self._client.close())
            finally:
                self._stop()

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = CALL_TIMEOUT
    ) -> Any:
        """Calls a method by its name on the wire."""
        return self._wait(self._client.call(method, params, timeout=timeout))

    def search(
        self,
        query: str,
        *,
        root: str | os.PathLike[str] | None = None,
        k: int = 10,
        path: str | None = None,
        lang: str | None = None,
    ) -> list[t.SearchItem]:
        """Passages that answer a question or define a name, best first, with their text.

        With `root` in that folder, which is indexed first if need be; else in all that is indexed.
        """
        return self._wait(self._client.search(query, root=root, k=k, path=path, lang=lang))

    def grep_lines(self, **params: Unpack[t.GrepStreamParams]) -> Iterator[list[t.GrepItem]]:
        """All lines of `search.grepStream`, in order, part by part."""
        return self._iterate(self._client.grep_lines(**params))

    def follow(
        self, session_id: str, after: int = 0, *, to_end: bool = False, live: bool = False, patience: float = 15.0
    ) -> Iterator[t.Envelope]:
        """Follows a session, as `Client.follow` does."""
        return self._iterate(self._client.follow(session_id, after, to_end=to_end, live=live, patience=patience))

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def next_item() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        try:
            while (item := self._wait(next_item())) is not None:
                yield item[0]
        finally:
            close = getattr(items, "aclose", None)
            if close is not None and not self._closed:
                self._wait(close())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            work.close()
            raise ClosedError("the connection ended: by this client")
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call inside of the client's own loop would never return")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # An interrupt of the waiting thread cancels the call.
            future.cancel()
            raise

    def _stop(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def search(
    query: str,
    *,
    root: str | os.PathLike[str] | None = None,
    k: int = 10,
    path: str | None = None,
    lang: str | None = None,
) -> list[t.SearchItem]:
    """Searches over a connection of its own: `cairn_client.search("where are retries limited", root=".")`."""
    with Cairn() as cairn:
        return cairn.search(query, root=root, k=k, path=path, lang=lang)
