"""Sends a message over the limit with the package `websockets`, and goes on sending while the daemon refuses it.

Usage: oversize.py HOME BYTES ROUNDS
Prints one JSON object: the close codes that came.
"""

import asyncio
import json
import pathlib
import sys

import websockets


async def once(url, headers, size):
    socket = await websockets.connect(url, additional_headers=headers, max_size=None)
    hello = {"protocolVersions": ["1"], "client": {"name": "oversize", "version": "1"}}
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))
    await socket.recv()
    try:
        await socket.send("x" * size)
        await socket.recv()
    except websockets.exceptions.ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None
    return "answered"


async def main(home, size, rounds):
    daemon = json.loads(pathlib.Path(home, "daemon.json").read_text())
    headers = {"Authorization": "Bearer " + pathlib.Path(daemon["tokenPath"]).read_text()}
    url = "ws://%s/rpc" % daemon["addresses"][0]
    print(json.dumps({"codes": [await once(url, headers, int(size)) for _ in range(int(rounds))]}))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:4]), 120))
