"""Reads all records of a daemon from the broker and prints how many there are, how many are
missing, repeated or out of order: check.py SERVER DAEMON"""

import asyncio
import json
import sys

import nats


async def main() -> None:
    server, daemon = sys.argv[1:3]
    client = await nats.connect(server)
    stream = client.jetstream()
    total = (await stream.stream_info(f"CAIRN_EV_{daemon}")).state.messages
    records = await stream.subscribe(f"cairn.{daemon}.ev.*", ordered_consumer=True)
    last: dict[str, int] = {}
    counts = {"records": 0, "missing": 0, "repeated": 0, "disordered": 0}
    while counts["records"] < total:
        message = await records.next_msg(timeout=30)
        seq = json.loads(message.data)["seq"]
        before = last.get(message.subject, 0)
        counts["records"] += 1
        counts["missing"] += max(0, seq - before - 1)
        counts["repeated"] += seq == before
        counts["disordered"] += seq < before
        last[message.subject] = max(seq, before)
    print(json.dumps(counts | {"sessions": len(last)}))
    await client.close()


asyncio.run(main())
