"""A language server for tests: lines with BAD are errors, lines with WARN are warnings. The first
argument selects the way in which it misbehaves."""

import json
import os
import socket
import sys
import urllib.parse

MODE = sys.argv[1]
OUT = sys.stdout.buffer


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    OUT.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    OUT.flush()


def read():
    length = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            return json.loads(sys.stdin.buffer.read(length))
        name, value = line.split(b":")
        if name.lower() == b"content-length":
            length = int(value)


def diagnostics(text):
    found = []
    for number, line in enumerate(text.splitlines()):
        for word, severity in (("BAD", 1), ("WARN", 2), ("HINT", 4)):
            if word in line:
                start = {"line": number, "character": line.index(word)}
                found.append({"range": {"start": start, "end": start}, "severity": severity,
                              "source": "fake", "message": "found " + line.strip()})
    if MODE == "flood":
        start = {"line": 1, "character": 0}
        found = [{"range": {"start": start, "end": start}, "severity": 1, "message": f"no {n}"}
                 for n in range(100_000)] if found else []
    if MODE == "probe":
        start = {"line": 0, "character": 0}
        found = [{"range": {"start": start, "end": start}, "severity": 1, "message": text}
                 for text in probes()] if found else []
    return found


def outcome(name, action):
    try:
        action()
        return name + " succeeded"
    except OSError:
        return name + " refused"


def probes():
    root = os.getcwd()
    cache = os.environ.get("XDG_CACHE_HOME", "/nonexistent")

    def write(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("x")

    def connect():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.connect(("192.0.2.1", 9))

    return [
        outcome("write to repository", lambda: write(os.path.join(root, "planted.txt"))),
        outcome("write to cache", lambda: write(os.path.join(cache, "own.txt"))),
        outcome("network", connect),
        outcome("secret", lambda: open(os.path.join(root, "secret.key")).read()),
    ]


texts = {}
while True:
    message = read()
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        if MODE == "hang":
            continue
        capabilities = {"textDocumentSync": 1}
        if MODE == "pull":
            capabilities["diagnosticProvider"] = {"workspaceDiagnostics": False}
        send({"id": message["id"], "result": {"capabilities": capabilities}})
        send({"id": "c", "method": "workspace/configuration", "params": {"items": [{}, {}]}})
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        uri, version = document["uri"], document["version"]
        text = document["text"] if "text" in document else params["contentChanges"][0]["text"]
        texts[uri] = text
        if MODE == "crash":
            print("a trace of the crash", file=sys.stderr)
            sys.exit(7)
        if MODE == "json":
            OUT.write(b"Content-Length: 4\r\n\r\n{]}]")
            OUT.flush()
        elif MODE == "length":
            OUT.write(b"Content-Length: 1073741824\r\n\r\n{")
            OUT.flush()
        elif MODE not in ("silent", "pull"):
            # Another spelling of the same address.
            uri = "file://" + urllib.parse.quote(urllib.parse.unquote(uri[7:]), safe="/%")
            send({"method": "textDocument/publishDiagnostics",
                  "params": {"uri": uri, "version": version, "diagnostics": diagnostics(text)}})
    elif method == "textDocument/diagnostic":
        items = diagnostics(texts[params["textDocument"]["uri"]])
        send({"id": message["id"], "result": {"kind": "full", "items": items}})
    elif method == "exit":
        sys.exit(0)
