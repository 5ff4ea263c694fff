"""Explores a folder and prints what is worth knowing: explore.py FOLDER"""

import asyncio
import sys

import cairn_client


async def main(folder: str) -> None:
    async with cairn_client.connect() as cairn:
        run = await cairn.explore_start(root=folder)
        async for record in cairn.follow(run["sessionId"], to_end=True):
            if record["kind"] == "Cmd":
                print(record["seq"], "asked", record["cmd"]["type"])
            else:
                evt = record["evt"]
                print(record["seq"], evt["type"], evt.get("op", ""))
                if evt["type"] == "completed":
                    print(evt["summary"]["languages"])


asyncio.run(main(sys.argv[1]))
