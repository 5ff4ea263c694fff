"""What the Python client says when it is used wrongly. Stops the daemon of `CAIRN_HOME` in the end."""

import asyncio
import json
import os
import pathlib

import cairn_client


async def failure(attempt):
    try:
        async with attempt as cairn:
            return str(cairn.server)
    except cairn_client.CairnError as error:
        return type(error).__name__


async def main():
    out = {}
    home = pathlib.Path(os.environ["CAIRN_HOME"])
    elsewhere = home / "elsewhere"
    out["absent"] = await failure(cairn_client.connect(home=elsewhere, start=False))
    out["broken"] = await failure(cairn_client.connect(home=elsewhere, exe="/nowhere/cairn"))
    target = cairn_client.locate(home)
    out["token"] = await failure(cairn_client.connect(target.address, "wrong"))
    out["unreachable"] = await failure(cairn_client.connect("127.0.0.1:1", target.token))
    versions, cairn_client.types.PROTOCOL_VERSIONS[:] = list(cairn_client.types.PROTOCOL_VERSIONS), ["0"]
    out["version"] = await failure(cairn_client.connect(target.address, target.token))
    cairn_client.types.PROTOCOL_VERSIONS[:] = versions
    async with cairn_client.connect(target.address, target.token) as cairn:
        try:
            await cairn.session_get(sessionId="ses_" + "0" * 32)
        except cairn_client.RpcError as error:
            said = {"reason": error.reason, "retryable": error.retryable, "hint": bool(error.hint), "code": error.code}
            out["rpc"] = said
        try:
            await cairn.call("daemon.status", timeout=0.0)
        except cairn_client.TimedOutError as error:
            out["late"] = type(error).__name__
        assert (await cairn.daemon_status())["pid"] > 0
        await cairn.daemon_stop()
        async for _ in cairn.notices():
            pass
        try:
            await cairn.daemon_status()
        except cairn_client.ClosedError as error:
            out["after"] = type(error).__name__
    print(json.dumps(out))


asyncio.run(asyncio.wait_for(main(), 60))
