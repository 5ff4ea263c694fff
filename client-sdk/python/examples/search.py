"""Searches everything that is indexed: search.py QUERY"""

import asyncio
import sys

import cairn_client


async def main(query: str) -> None:
    async with cairn_client.connect() as cairn:
        found = await cairn.search_hybrid(query=query, k=5)
        for hit in found["items"]:
            print(f"{hit['path']}:{hit['startLine']}-{hit['endLine']}  {hit['score']:.2f}")


asyncio.run(main(sys.argv[1]))
