"""A program that uses the Python client as its types allow; the checker judges it in strict mode."""

import asyncio

import cairn_client
from cairn_client import types as t


def best(items: list[t.SearchItem]) -> tuple[str, int] | None:
    return (items[0]["path"], items[0]["startLine"]) if items else None


def blocking() -> str:
    with cairn_client.Cairn(start=False) as cairn:
        status: t.DaemonStatus = cairn.daemon_status()
        for part in cairn.grep_lines(requestId="a", pattern="x", k=10):
            for item in part:
                print(item["line"], item["text"])
        for record in cairn.follow("ses_x", to_end=True):
            print(record["kind"])
        return status["version"]


async def main() -> None:
    async with cairn_client.connect(approvals=True) as cairn:
        answer = await cairn.search_hybrid(query="a", k=3, filters={"languages": ["rust"]})
        print(best(answer["items"]), best(await cairn.search("a", root=".")))
        try:
            await cairn.session_get(sessionId="ses_x")
        except cairn_client.RpcError as error:
            print(error.reason, error.retry_after_ms)
        async for method, params in cairn.notices():
            print(method, params)


if __name__ == "__main__":
    print(blocking())
    asyncio.run(main())
