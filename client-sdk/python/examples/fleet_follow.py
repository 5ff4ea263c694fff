"""Prints the records of sessions of any daemon, from the broker: fleet_follow.py nats://HOST:4222 DAEMON [SESSION] [AFTER]

    pip install nats-py

A session is continued after the number of its last record that was read, as with a daemon itself.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import nats
import nats.js


class Gap(Exception):
    """A record is missing on the broker."""


async def follow(
    jetstream: nats.js.JetStreamContext, daemon: str, session: str = "*", after: int = 0
) -> AsyncIterator[tuple[str, int, dict[str, Any]]]:
    """Yields session, number and record, each session in order, from after the number `after` on."""
    subject = f"cairn.{daemon}.ev.{session}"
    # An ordered consumer begins again where it was when the connection is back.
    subscription = await jetstream.subscribe(subject, stream=f"CAIRN_EV_{daemon}", ordered_consumer=True)
    last: dict[str, int] = {}
    async for message in subscription.messages:
        name = message.subject.rsplit(".", 1)[1]
        seq = int((message.headers or {})["Cairn-Seq"])
        if name in last and seq != last[name] + 1:
            raise Gap(f"{name}: {seq} follows {last[name]}")
        last[name] = seq
        if seq > after:
            yield name, seq, json.loads(message.data)


async def main(broker: str, daemon: str, session: str = "*", after: str = "0") -> None:
    connection = await nats.connect(broker)
    async for name, seq, record in follow(connection.jetstream(), daemon, session, int(after)):
        print(name, seq, record["kind"], flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
