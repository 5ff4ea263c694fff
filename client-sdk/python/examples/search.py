"""Searches everything that is indexed: search.py QUERY"""

import asyncio
import sys

import cairn_client


async def main(query: str) -> None:
    async with cairn_client.connect() as cairn:
        for hit in await cairn.search(query, k=5):
            print(f"{hit['path']}:{hit['startLine']}-{hit['endLine']}  {hit['score']:.2f}")


asyncio.run(main(sys.argv[1]))
