"""Looks for the daemon by Bonjour with the package `zeroconf`, and connects to what it finds.

Usage: browse.py TOKEN NAME
Prints one JSON object: what was announced as NAME, the version that a client with the token gets, and the status of one without.
"""

import asyncio
import json
import sys
import threading

import websockets
from zeroconf import ServiceBrowser, ServiceListener, Zeroconf

KIND = "_oasearch._tcp.local."


class Found(ServiceListener):
    def __init__(self, wanted):
        self.wanted = wanted
        self.info = None
        self.there = threading.Event()

    def add_service(self, zeroconf, kind, name):
        info = zeroconf.get_service_info(kind, name, 10000)
        if info is not None and (info.decoded_properties.get("name") == self.wanted):
            self.info = info
            self.there.set()

    def update_service(self, zeroconf, kind, name):
        self.add_service(zeroconf, kind, name)

    def remove_service(self, zeroconf, kind, name):
        pass


async def connect(url, token):
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        async with websockets.connect(url, additional_headers=headers) as socket:
            params = {"protocolVersions": ["1"], "client": {"name": "browse", "version": "1"}}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
            return json.loads(await socket.recv())["result"]["protocolVersion"]
    except websockets.exceptions.InvalidStatus as refused:
        return refused.response.status_code


def main(token, name):
    zeroconf = Zeroconf()
    found = Found(name)
    browser = ServiceBrowser(zeroconf, KIND, found)
    found.there.wait(30)
    info = found.info
    addresses = info.parsed_addresses()
    url = "ws://%s:%d/rpc" % (addresses[0], info.port)
    said = {
        "properties": info.decoded_properties,
        "addresses": addresses,
        "port": info.port,
        "let in": asyncio.run(connect(url, token)),
        "refused": asyncio.run(connect(url, None)),
    }
    browser.cancel()
    zeroconf.close()
    print(json.dumps(said))


main(*sys.argv[1:3])
