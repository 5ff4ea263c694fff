"""Puts the daemon's token before a test suite that cannot send one. Everything else passes as it is.

Usage: bearer.py HOME
HOME is the daemon's; it may start later. Prints `host:port` of the listener, then serves until it is killed.
"""

import asyncio
import json
import pathlib
import sys


async def requests(reader, writer, token):
    """Copies requests, adding the header to each head; bodies are told by their length."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            break
        lines = head[:-4].split(b"\r\n")
        names = [line.split(b":", 1)[0].strip().lower() for line in lines[1:]]
        length = 0
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if b"authorization" not in names:
            lines.append(b"Authorization: Bearer " + token)
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + await reader.readexactly(length))
        await writer.drain()
    writer.close()


async def answers(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(home):
    async def serve(reader, writer):
        daemon = json.loads(pathlib.Path(home, "daemon.json").read_text())
        token = pathlib.Path(daemon["tokenPath"]).read_bytes().strip()
        host, port = daemon["addresses"][0].rsplit(":", 1)
        to_reader, to_writer = await asyncio.open_connection(host, int(port))
        await asyncio.gather(requests(reader, to_writer, token), answers(to_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("%s:%d" % server.sockets[0].getsockname()[:2], flush=True)
    await server.serve_forever()


asyncio.run(main(sys.argv[1]))
