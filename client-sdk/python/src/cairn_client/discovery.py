"""Daemons of the local network, by Bonjour. Needs the extra `discovery`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

SERVICE_TYPE = "_oasearch._tcp.local."
SHORTEST = 2.0
"""Shortest time to listen: a daemon answers at most once a second (RFC 6762, section 6)."""
_MAX_FOUND = 256


@dataclass(frozen=True)
class Found:
    """A daemon that announces itself."""

    name: str
    id: str
    """Its instance id."""
    version: str
    """Version of its build."""
    addresses: tuple[str, ...]
    port: int


async def discover(timeout: float = SHORTEST) -> list[Found]:
    """Listens for `timeout` seconds, but not less than `SHORTEST`, to what daemons announce."""
    from zeroconf import ServiceStateChange, Zeroconf
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

    names: set[str] = set()

    def changed(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        if state_change is ServiceStateChange.Removed:
            names.discard(name)
        elif len(names) < _MAX_FOUND:
            names.add(name)

    found = []
    async with AsyncZeroconf() as zeroconf:
        browser = AsyncServiceBrowser(zeroconf.zeroconf, SERVICE_TYPE, handlers=[changed])
        await asyncio.sleep(max(timeout, SHORTEST))
        for name in sorted(names):
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            if not await info.async_request(zeroconf.zeroconf, 1000):
                continue
            text = {k.decode(errors="replace"): (v or b"").decode(errors="replace") for k, v in info.properties.items()}
            addresses = tuple(sorted(info.parsed_addresses()))
            found.append(
                Found(text.get("name", ""), text.get("id", ""), text.get("version", ""), addresses, info.port or 0)
            )
        await browser.async_cancel()
    return found
