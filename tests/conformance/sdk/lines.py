"""All lines of a pattern, beside the pages of a plain search. Stops the daemon of `CAIRN_HOME` in the end."""

import asyncio
import json

import cairn_client


async def main():
    async with cairn_client.connect() as cairn:
        pages = []
        page = {}
        while page.get("nextCursor") or not page:
            page = await cairn.search_grep(pattern="e", k=5000, **({"cursor": page["nextCursor"]} if page else {}))
            pages += page["items"]
        parts = [part async for part in cairn.grep_lines(requestId="all", pattern="e", withRanges=True)]
        told = [item for part in parts for item in part]
        same = told == pages
        # Who stops reading ends the search, and the connection goes on.
        stopped = cairn.grep_lines(requestId="some", pattern="e")
        async for part in stopped:
            break
        await stopped.aclose()
        try:
            [part async for part in cairn.grep_lines(requestId="bad", pattern="(", isRegex=True)]
            bad = None
        except cairn_client.RpcError as error:
            bad = error.reason
        some = [item async for part in cairn.grep_lines(requestId="few", pattern="e", k=70) for item in part]
        for item in pages:
            item.pop("ranges")
        out = {"lines": len(told), "same": same, "parts": len(parts), "bad": bad, "some": some == pages[:70]}
        await cairn.daemon_stop()
    print(json.dumps(out))


asyncio.run(asyncio.wait_for(main(), 60))
