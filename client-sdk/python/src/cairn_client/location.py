"""Where the daemon is, and starting it when it is not there."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import NotRunningError, StartError

ALREADY_RUNNING = 5
"""Exit code of a daemon that leaves because another one holds its data root."""
_TAIL = 16 * 1024

_started: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Target:
    """One daemon's address and secret."""

    address: str
    """`host:port`."""
    token: str = field(repr=False)
    instance: str | None = None
    """The instance that is expected to answer, when it is known."""
    version: str | None = None
    """Version of its build, when it is known."""


def data_root(env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> pathlib.Path:
    """`CAIRN_HOME`; else Application Support on macOS; else XDG data."""
    if env.get("CAIRN_HOME"):
        return pathlib.Path(os.path.abspath(env["CAIRN_HOME"]))
    home = env.get("HOME", "")
    if platform == "darwin" and os.path.isabs(home):
        return pathlib.Path(home, "Library/Application Support/cairn")
    data = env.get("XDG_DATA_HOME", "")
    if os.path.isabs(data):
        return pathlib.Path(data, "cairn")
    if os.path.isabs(home):
        return pathlib.Path(home, ".local/share/cairn")
    raise NotRunningError("there is no home folder to look for a daemon in; set CAIRN_HOME")


def locate(root: pathlib.Path) -> Target:
    """Reads `daemon.json` and the token it names.

    Raises `NotRunningError` when no daemon has left its address.
    """
    try:
        said = json.loads((root / "daemon.json").read_text())
        token = pathlib.Path(said["tokenPath"]).read_text().strip()
        return Target(said["addresses"][0], token, said["instanceId"], said["version"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NotRunningError(f"no daemon is running on {root}; start one with 'cairn serve'") from error


def binary(given: str | os.PathLike[str] | None) -> str:
    """The binary that starts the daemon: the one given, `CAIRN_BIN`, or `cairn` on the path."""
    found = os.fspath(given) if given else os.environ.get("CAIRN_BIN") or shutil.which("cairn")
    if not found:
        raise StartError("'cairn' was not found on the path; install it, or name it with CAIRN_BIN")
    return found


class Starter:
    """Starts a daemon for one data root, once at a time."""

    def __init__(self, root: pathlib.Path, exe: str) -> None:
        self._root, self._exe = root, exe
        self._child: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._log = root / "logs" / "daemon.log"
        self._from = 0

    def step(self) -> None:
        """Starts one if none is there or on its way; raises `StartError` when one failed."""
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return
            self._child = None
            # The loser of a race leaves at once, and the winner will answer.
            if code not in (0, ALREADY_RUNNING):
                raise StartError(f"the daemon did not start: {self._reason() or f'it exited with {code}'}")
        if self._starts < 5 and not self._held():
            self._starts += 1
            self._spawn()

    def _spawn(self) -> None:
        # A root of the caller's choice is told; the usual one the daemon finds by itself.
        told = "CAIRN_HOME" in os.environ or self._root != data_root()
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._from = os.fstat(log).st_size
            self._child = subprocess.Popen(
                [self._exe, "serve", "--on-demand"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "CAIRN_HOME": str(self._root)} if told else None,
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"the daemon did not start: {self._exe}: {error}") from error
        finally:
            os.close(log)
        # It outlives this process; its end is looked for when the next one is started.
        _started.append(self._child)

    def _held(self) -> bool:
        try:
            with open(self._root / "daemon.lock", "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _reason(self) -> str | None:
        try:
            with open(self._log, "rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(0 if size < self._from else max(self._from, size - _TAIL))
                lines = log.read(_TAIL).decode(errors="replace").splitlines()
        except OSError:
            return None
        return next((line[7:] for line in reversed(lines) if line.startswith("error: ")), None)
