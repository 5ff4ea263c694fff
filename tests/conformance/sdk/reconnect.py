"""Calls before and after a restart of the daemon. Usage: reconnect.py BINARY, with `CAIRN_HOME`."""

import asyncio
import json
import os
import signal
import sys

import cairn_client


async def main():
    binary = sys.argv[1]
    out = {}
    async with cairn_client.connect(exe=binary) as cairn:
        first = await cairn.daemon_status()
        os.kill(first["pid"], signal.SIGKILL)
        # A call that meets the end of the connection fails: its outcome is unknown.
        try:
            await cairn.call("daemon.status", timeout=10)
        except cairn_client.CairnError as error:
            out["cut"] = type(error).__name__
        async with cairn_client.connect(exe=binary):
            pass
        second, third = await asyncio.gather(cairn.daemon_status(), cairn.daemon_status())
        out["restarted"] = second["pid"] != first["pid"] and second["pid"] == third["pid"]
        out["same"] = cairn.server["server"]["instanceId"] != ""
        await cairn.daemon_stop()
    try:
        await cairn.daemon_status()
    except cairn_client.ClosedError as error:
        out["closed"] = str(error)
    print(json.dumps(out))


asyncio.run(asyncio.wait_for(main(), 60))
