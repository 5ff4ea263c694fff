"""Copies the mirrored records of daemons to PostgreSQL, for SQL over what agents did and what it cost.

    pip install nats-py 'psycopg[binary]'
    fleet_sql.py nats://HOST:4222 postgresql://HOST/DATABASE DAEMON...

It goes on until it is interrupted; with --once it ends when it has copied what is there. Each record is stored once,
however often it is delivered: its key is daemon, session and number. The views `agent_calls` and `agent_costs` are
examples of what SQL can ask.
"""

import asyncio
import json
import sys
from typing import Any

import nats
import nats.errors
import nats.js.api
import psycopg

TABLES = """
CREATE TABLE IF NOT EXISTS agent_records (
    daemon text NOT NULL,
    session text NOT NULL,
    seq bigint NOT NULL,
    record jsonb NOT NULL,
    PRIMARY KEY (daemon, session, seq)
);
CREATE OR REPLACE VIEW agent_calls AS
    SELECT daemon, session, seq, (record ->> 'ts')::timestamptz AS ts, record #>> '{evt,name}' AS tool,
        record #> '{evt,arguments}' AS arguments
    FROM agent_records WHERE record #>> '{evt,type}' = 'tool_call';
CREATE OR REPLACE VIEW agent_costs AS
    SELECT daemon, session, sum((record #>> '{evt,usage,costMicroUsd}')::numeric) / 1000000 AS usd
    FROM agent_records WHERE record #>> '{evt,usage,costMicroUsd}' IS NOT NULL GROUP BY daemon, session;
"""
INSERT = """
INSERT INTO agent_records (daemon, session, seq, record) VALUES (%s, %s, %s, %s)
ON CONFLICT (daemon, session, seq) DO NOTHING
"""
# Messages of one transaction.
BATCH = 500


def storable(value: Any) -> Any:
    """Removes the character with the code 0, which PostgreSQL does not have."""
    match value:
        case str():
            return value.replace("\0", "")
        case list():
            return [storable(item) for item in value]
        case dict():
            return {key: storable(item) for key, item in value.items()}
    return value


async def copy(jetstream: nats.js.JetStreamContext, database: psycopg.AsyncConnection, daemon: str, once: bool) -> None:
    # The broker remembers the position of the consumer; what was not acknowledged is delivered again.
    stream = f"CAIRN_EV_{daemon}"
    consumer = await jetstream.pull_subscribe(f"cairn.{daemon}.ev.*", durable="postgres", stream=stream)
    while True:
        try:
            messages = await consumer.fetch(BATCH, timeout=2)
        except nats.errors.TimeoutError:
            if once:
                return
            continue
        rows = []
        for message in messages:
            session = message.subject.rsplit(".", 1)[1]
            seq = int((message.headers or {})["Cairn-Seq"])
            rows.append((daemon, session, seq, json.dumps(storable(json.loads(message.data)))))
        async with database.transaction(), database.cursor() as cursor:
            await cursor.executemany(INSERT, rows)
        # Only what is committed is acknowledged.
        for message in messages:
            await message.ack()


async def main(broker: str, postgres: str, *arguments: str) -> None:
    once = "--once" in arguments
    connection = await nats.connect(broker)
    async with await psycopg.AsyncConnection.connect(postgres, autocommit=True) as database:
        await database.execute(TABLES)
    async with asyncio.TaskGroup() as tasks:
        for daemon in arguments:
            if daemon != "--once":
                # A connection has one transaction at a time.
                own = await psycopg.AsyncConnection.connect(postgres, autocommit=True)
                tasks.create_task(copy(connection.jetstream(), own, daemon, once))
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
