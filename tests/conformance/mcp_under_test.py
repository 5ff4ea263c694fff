"""Cairn as the client that the MCP conformance suite looks at: a daemon that has the suite's server in its configuration.

Usage: mcp_under_test.py CAIRN URL
Every tool that the server lists is called once, as a user calls it who says yes.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ARGUMENTS = {"add_numbers": {"a": 5, "b": 3}}


def main(cairn, url):
    with tempfile.TemporaryDirectory() as home:
        config = {"mcp": {"servers": {"peer": {"url": url, "timeoutSeconds": 20}}}}
        folder = pathlib.Path(home, "config")
        folder.mkdir()
        folder.joinpath("config.json").write_text(json.dumps(config))
        root = pathlib.Path(home, "root")
        root.mkdir()
        env = {"CAIRN_HOME": home, "HOME": home, "PATH": os.environ["PATH"]}
        log = open(pathlib.Path(home, "log"), "w+")
        daemon = subprocess.Popen([cairn, "serve", "--port", "0"], env=env, stderr=log)

        def run(*args):
            return subprocess.run([cairn, *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

        try:
            until = time.monotonic() + 10
            while time.monotonic() < until and "is connected" not in pathlib.Path(home, "log").read_text():
                time.sleep(0.1)
            listed = run("tools", "list", "--json")
            names = [t["name"] for t in json.loads(listed.stdout or '{"data": []}')["data"]]
            for name in (n for n in names if n.startswith("mcp_peer_")):
                given = json.dumps(ARGUMENTS.get(name.removeprefix("mcp_peer_"), {}))
                called = run("tools", "call", name, given, "--yes", "--root", str(root))
                print(name, called.returncode, called.stdout, called.stderr, file=sys.stderr)
        finally:
            daemon.terminate()
            daemon.wait()
            print(pathlib.Path(home, "log").read_text(), file=sys.stderr)


main(*sys.argv[1:3])
