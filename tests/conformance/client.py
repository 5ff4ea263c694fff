"""A client in another language, written from the protocol reference alone.

Usage: client.py HOME ROOT QUERY
Explores ROOT, searches for QUERY, and prints one JSON object with what came.
"""

import asyncio
import json
import pathlib
import sys

import websockets


class Client:
    def __init__(self, socket):
        self.socket = socket
        self.next = 0
        self.told = []

    async def call(self, method, params):
        self.next += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))
        while True:
            message = json.loads(await self.socket.recv())
            if message.get("id") == self.next:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
            self.told.append(message)

    async def notification(self):
        if self.told:
            return self.told.pop(0)
        return json.loads(await self.socket.recv())


async def main(home, root, query):
    daemon = json.loads(pathlib.Path(home, "daemon.json").read_text())
    token = pathlib.Path(daemon["tokenPath"]).read_text()
    headers = {"Authorization": "Bearer " + token}
    url = "ws://%s/rpc" % daemon["addresses"][0]
    async with websockets.connect(url, additional_headers=headers, max_size=None) as socket:
        client = Client(socket)
        hello = {"protocolVersions": ["1"], "client": {"name": "python", "version": "1"}}
        shaken = await client.call("initialize", hello)
        receipt = await client.call("orchestrate.explore.start", {"root": root})
        await client.call("orchestrate.subscribe", {"sessionId": receipt["sessionId"], "after": 0})
        seqs, synced, evt = [], 0, {}
        while evt.get("type") not in ("completed", "stopped") and not (
            evt.get("type") == "error" and evt.get("op") == "explore"
        ):
            message = await client.notification()
            if message["method"] == "orchestrate.event":
                seqs.append(message["params"]["seq"])
                evt = message["params"].get("evt", {})
            elif message["method"] == "orchestrate.synced":
                synced += 1
        found = await client.call("search.hybrid", {"query": query, "k": 5})
        print(json.dumps({"version": shaken["protocolVersion"], "seqs": seqs, "synced": synced, "end": evt, "found": found}))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:4]), 120))
