"""A connection: the handshake, calls, notifications."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import pathlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Unpack

import websockets
from websockets.asyncio.client import ClientConnection

from . import types as t
from .errors import (
    CairnError,
    ClosedError,
    ConnectError,
    IncompatibleError,
    NotRunningError,
    RpcError,
    StartError,
    TimedOutError,
    UnauthorizedError,
)
from .follow import Follow, Notice, Stream
from .location import Starter, Target, binary, data_root, locate
from .methods import Methods

CALL_TIMEOUT = 120.0
"""Seconds that a call may take, unless another time is given."""
_VERSION = "0.1.0"
_HANDSHAKE_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
_START_TIMEOUT = 10.0
_MAX_MESSAGE = 64 * 1024 * 1024
_STREAM_QUEUE = 1024
_NOTICE_QUEUE = 256
_PARTS = 4
_RECONNECT_PATIENCE = 10.0
_INDEX_PATIENCE = 60.0
_INDEX_INTERVAL = 0.1

Open = Callable[[], Awaitable["Client"]]


class _Connecting:
    """What `connect` returns: `await` it, or use it with `async with`."""

    def __init__(self, open_: Open) -> None:
        self._open = open_
        self._client: Client | None = None

    def __await__(self) -> Generator[Any, None, Client]:
        return self._open().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()


def connect(
    address: str | None = None,
    token: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    start: bool = True,
    exe: str | os.PathLike[str] | None = None,
    approvals: bool = False,
    name: str = "cairn-client-python",
    version: str = _VERSION,
) -> _Connecting:
    """Connects to the daemon of this user, which is started first if none answers and `start` is true.

    With `address` (`host:port`) and `token`, to that daemon. `home` is a data root other than the usual one, `exe` the
    binary that is started. `approvals` tells the daemon that whoever is behind this client answers approvals.
    """
    hello: t.InitializeParams = {
        "protocolVersions": t.PROTOCOL_VERSIONS,
        "client": {"name": name, "version": version},
        "capabilities": {"approvals": approvals},
    }
    if address is not None:
        fixed = Target(address, token or "")

        async def open_fixed() -> Client:
            return await Client._open(fixed, hello, open_fixed)

        return _Connecting(open_fixed)
    root = pathlib.Path(home).absolute() if home else data_root()

    async def find() -> Client:
        return await Client._open(locate(root), hello, find)

    async def ensure() -> Client:
        try:
            return await find()
        except CairnError as error:
            if not start or not _absent(error):
                raise
        return await _start(root, binary(exe), find)

    return _Connecting(ensure)


def _absent(error: CairnError) -> bool:
    """Whether no daemon of ours answers there; one that starts or stops may cut a connection."""
    return isinstance(error, (NotRunningError, ConnectError, UnauthorizedError, ClosedError))


async def _start(root: pathlib.Path, exe: str, find: Open) -> Client:
    starter, pause = Starter(root, exe), 0.01
    until = asyncio.get_running_loop().time() + _START_TIMEOUT
    while True:
        starter.step()
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)
        try:
            return await find()
        except CairnError as error:
            if not _absent(error):
                raise
            if asyncio.get_running_loop().time() >= until:
                raise StartError(f"the daemon did not start: no answer within {_START_TIMEOUT:.0f} s: {error}") from error


class Client(Methods):
    """A connection to a daemon. A call after its end connects again, to a daemon that was restarted too.

    Calls that wait for their answer when it ends fail with `ClosedError`: their outcome is unknown.
    """

    def __init__(self, socket: ClientConnection, again: Open) -> None:
        self._socket, self._again = socket, again
        self._next = 0
        self._waiting: dict[int, tuple[asyncio.Future[Any], Stream | None]] = {}
        self._streams: dict[str, Stream] = {}
        self._lines: dict[str, asyncio.Queue[list[t.GrepItem]]] = {}
        self._listeners: set[asyncio.Queue[Notice | None]] = set()
        self._follows: weakref.WeakSet[Follow] = weakref.WeakSet()
        self._ended: str | None = None
        self._closed = False
        self._reconnecting = asyncio.Lock()
        self._reader = asyncio.create_task(self._read())
        self.server: t.InitializeResult
        """What the daemon said of itself."""

    @classmethod
    async def _open(cls, target: Target, hello: t.InitializeParams, again: Open) -> Client:
        client = cls(await _socket(target), again)
        try:
            client.server = await client.call("initialize", hello, timeout=_HANDSHAKE_TIMEOUT)
        except RpcError as error:
            await client.close()
            if error.reason == "incompatible_version":
                raise IncompatibleError(f"this client and the daemon are incompatible: {error.message}; {error.hint}") from error
            raise
        except BaseException:
            await client.close()
            raise
        if target.instance not in (None, client.server["server"]["instanceId"]):
            await client.close()
            raise ConnectError(f"the daemon that answers at {target.address} is not the one in the address file")
        return client

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection and those of its follows."""
        for follow in list(self._follows):
            await follow.aclose()
        self._closed = True
        self._end("by this client")
        await self._socket.close()
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = CALL_TIMEOUT
    ) -> Any:
        """Calls a method by its name on the wire. A call that is late or whose task is cancelled is cancelled."""
        if self._ended is not None and not self._closed:
            await self._reconnect()
        return await self._call(method, params, timeout, None)

    async def _reconnect(self) -> None:
        """Takes over a new connection; subscriptions of the old one are over, and `follow` makes its own."""
        async with self._reconnecting:
            if self._ended is None:
                return
            until = asyncio.get_running_loop().time() + _RECONNECT_PATIENCE
            while True:
                try:
                    fresh = await self._again()
                    break
                except CairnError as error:
                    if not _absent(error):
                        raise
                    if asyncio.get_running_loop().time() >= until:
                        raise ClosedError(f"the connection ended, and there is no other: {error}") from error
                    await asyncio.sleep(0.05)
            fresh._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await fresh._reader
            if self._closed:
                await fresh._socket.close()
                raise ClosedError("the connection ended: by this client")
            self._socket, self.server = fresh._socket, fresh.server
            self._next = max(self._next, fresh._next)
            self._streams.clear()
            self._ended = None
            self._reader = asyncio.create_task(self._read())

    async def _call(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        stream: Stream | None,
    ) -> Any:
        if self._ended is not None:
            raise ClosedError(f"the connection ended: {self._ended}")
        self._next += 1
        call = self._next
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[call] = (answer, stream)
        request = {"jsonrpc": "2.0", "id": call, "method": method, "params": params or {}}
        try:
            async with asyncio.timeout(timeout):
                await self._send(request)
                message = await answer
        except BaseException as error:
            if self._waiting.pop(call, None) and self._ended is None and not isinstance(error, ClosedError):
                with contextlib.suppress(ClosedError):
                    await self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
            if isinstance(error, TimeoutError):
                raise TimedOutError(f"{method} was not answered within {timeout} s") from error
            raise
        if "error" in message:
            raise RpcError(method, message["error"])
        return message["result"]

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            await self._socket.send(json.dumps(message, separators=(",", ":")))
        except websockets.ConnectionClosed as error:
            raise ClosedError(f"the connection ended: {error}") from error

    async def notices(self) -> AsyncIterator[Notice]:
        """Live progress of what this connection asks for: `(method, params)`. A slow reader misses the oldest."""
        queue: asyncio.Queue[Notice | None] = asyncio.Queue(_NOTICE_QUEUE)
        self._listeners.add(queue)
        try:
            while self._ended is None or not queue.empty():
                notice = await queue.get()
                if notice is None:
                    return
                yield notice
        finally:
            self._listeners.discard(queue)

    async def search(
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
        filters: t.SearchFilters = {}
        if root is not None:
            folder = pathlib.Path(root).resolve()
            declared, inside = await self._declared(folder)
            filters["roots"] = [declared]
            path = str(pathlib.PurePath(inside, path or "")) if inside != "." else path
        if path is not None:
            filters["pathPrefix"] = path
        if lang is not None:
            filters["languages"] = [lang]
        until = asyncio.get_running_loop().time() + _INDEX_PATIENCE
        while True:
            answer = await self.search_hybrid(query=query, k=k, filters=filters, includeText=True)
            # A daemon that starts has no results yet; a folder of the caller's choice is searched completely.
            late = not answer["complete"] and (root is not None or not answer["items"])
            if not late or asyncio.get_running_loop().time() >= until:
                return answer["items"]
            await asyncio.sleep(_INDEX_INTERVAL)

    async def _declared(self, folder: pathlib.Path) -> tuple[str, str]:
        """The root that has a folder, and the folder's path in it; a folder without one becomes a root."""
        roots = [pathlib.Path(root["path"]) for root in (await self.index_status())["roots"]]
        enclosing = [root for root in roots if folder.is_relative_to(root)]
        if not enclosing:
            await self.index_add_root(path=str(folder))
            return str(folder), "."
        nearest = max(enclosing, key=lambda root: len(root.parts))
        return str(nearest), str(folder.relative_to(nearest))

    async def grep_lines(self, **params: Unpack[t.GrepStreamParams]) -> AsyncIterator[list[t.GrepItem]]:
        """All lines of `search.grepStream`, in order, part by part. `requestId` is a name that no other search has.

        A slow reader slows the search down, and all else on the connection; one that stops ends it.
        """
        name = params["requestId"]
        if name in self._lines:
            raise ValueError(f"requestId {name!r} is in use")
        queue: asyncio.Queue[list[t.GrepItem]] = asyncio.Queue(_PARTS)
        self._lines[name] = queue
        call = asyncio.create_task(self.call("search.grepStream", params, timeout=None))
        part = asyncio.create_task(queue.get())
        try:
            while True:
                await asyncio.wait({part, call}, return_when=asyncio.FIRST_COMPLETED)
                if part.done():
                    yield part.result()
                    part = asyncio.create_task(queue.get())
                elif queue.empty():
                    # It is answered, and all parts came before.
                    break
            await call
        finally:
            del self._lines[name]
            part.cancel()
            call.cancel()
            # What waits to be put into it is let go.
            while not queue.empty():
                queue.get_nowait()

    def follow(
        self, session_id: str, after: int = 0, *, to_end: bool = False, live: bool = False, patience: float = 15.0
    ) -> Follow:
        """Follows a session over a connection of its own, which is made again when it is cut.

        Gives every record after `after` exactly once and in order; with `to_end` up to the end of the run, with `live`
        also what is told live only and has no `seq`. A cut is reported when connecting failed for `patience` seconds.
        """
        follow = Follow(self._again, session_id, after, to_end, live, patience)
        self._follows.add(follow)
        return follow

    async def _subscribe(self, session_id: str, after: int) -> Stream:
        stream = Stream(_STREAM_QUEUE)
        params = {"sessionId": session_id, "after": after}
        await self._call("orchestrate.subscribe", params, CALL_TIMEOUT, stream)
        return stream

    async def _read(self) -> None:
        why = "the daemon closed the connection"
        try:
            async for text in self._socket:
                await self._take(json.loads(text))
        except (websockets.ConnectionClosed, ValueError) as error:
            why = str(error)
        finally:
            self._end(why)

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            answer, stream = self._waiting.pop(message.get("id") or 0, (None, None))
            if stream is not None and "result" in message:
                self._streams[message["result"]["subscriptionId"]] = stream
            if answer is not None and not answer.done():
                answer.set_result(message)
            return
        method, params = message["method"], message.get("params") or {}
        if method.startswith("orchestrate."):
            stream = self._streams.get(params.pop("subscriptionId", ""))
            if stream is not None:
                # A full queue holds the connection back, and the daemon serves it from the log later.
                await stream.put((method, params))
            return
        lines = self._lines.get(params.get("requestId", "")) if method == "search.partial" else None
        if lines is not None:
            await lines.put([item for file in params["files"] for item in _items(file)])
            return
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait((method, params))

    def _end(self, why: str) -> None:
        if self._ended is not None:
            return
        self._ended = why
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(ClosedError(f"the connection ended: {why}"))
        self._waiting.clear()
        for stream in self._streams.values():
            stream.end()
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


def _items(file: t.FileLines) -> Iterator[t.GrepItem]:
    """The lines of a file one by one, as `search.grep` has them."""
    ranges: Iterable[list[list[int]]] = file.get("ranges") or itertools.repeat([])
    for line, text, of in zip(file["lines"], file["text"].split("\n"), ranges):
        item: t.GrepItem = {"path": file["path"], "root": file["root"], "line": line, "text": text}
        if of:
            item["ranges"] = of
        yield item


async def _socket(target: Target) -> ClientConnection:
    url = f"ws://{target.address}/rpc"
    headers = {"Authorization": f"Bearer {target.token}"}
    try:
        return await websockets.connect(
            url,
            additional_headers=headers,
            compression=None,
            max_size=_MAX_MESSAGE,
            open_timeout=_CONNECT_TIMEOUT,
            proxy=None,
        )
    except websockets.InvalidStatus as error:
        response = error.response
        if response.status_code == 401:
            raise UnauthorizedError(f"the daemon at {target.address} rejected the token") from error
        try:
            cause = json.loads(response.body or b"")["error"]
        except (ValueError, LookupError, TypeError):
            cause = f"the answer was HTTP {response.status_code}"
        raise ConnectError(f"cannot connect to {target.address}: {cause}") from error
    except (OSError, TimeoutError, websockets.WebSocketException, ValueError) as error:
        raise ConnectError(f"cannot connect to {target.address}: {error or 'no answer in time'}") from error
