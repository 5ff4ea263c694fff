"""Compares our references with those of a language server: NAME TREE OURS COMMAND...

OURS is the output of the example `references`. The server is asked for the references of each
target at its name, the declaration included. Positions are compared by line.
"""
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse

name, root, ours, *command = sys.argv[1:]
root = os.path.realpath(root)
options = json.loads(os.environ.get("LSP_OPTIONS", "{}"))
server = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
answers, ready, opened = {}, threading.Condition(), set()


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def receive():
    while True:
        length = None
        while (line := server.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if length is None:
            return
        message = json.loads(server.stdout.read(length))
        if "method" in message and "id" in message:
            items = message.get("params", {}).get("items") if isinstance(message.get("params"), dict) else None
            send({"id": message["id"], "result": [{} for _ in items] if items else None})
        elif "id" in message:
            with ready:
                answers[message["id"]] = message.get("result")
                ready.notify_all()


def request(number, method, params, seconds=60):
    send({"id": number, "method": method, "params": params})
    with ready:
        ready.wait_for(lambda: number in answers, seconds)
        return answers.pop(number, None)


def uri(path):
    return "file://" + urllib.parse.quote(os.path.join(root, path))


def open_file(path):
    kinds = {"py": "python", "ts": "typescript", "tsx": "typescriptreact", "js": "javascript",
             "c": "c", "h": "c", "cc": "cpp", "go": "go", "rs": "rust", "java": "java"}
    if path not in opened:
        opened.add(path)
        text = open(os.path.join(root, path), errors="replace").read()
        kind = kinds.get(path.rsplit(".", 1)[-1], "plaintext")
        send({"method": "textDocument/didOpen", "params": {"textDocument": {
            "uri": uri(path), "languageId": kind, "version": 1, "text": text}}})


threading.Thread(target=receive, daemon=True).start()
request(0, "initialize", {"processId": None, "rootUri": "file://" + root, "capabilities": {},
                          "workspaceFolders": [{"uri": "file://" + root, "name": "x"}],
                          "initializationOptions": options})
send({"method": "initialized", "params": {}})
listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout
# Folders that the server has read, if it does not read all.
prefixes = tuple(os.environ.get("LSP_ONLY", "").split()) or ("",)
tracked = {f for f in listed.split("\n") if f.startswith(prefixes)}
targets = []
for line in open(ours):
    kind, *fields = line.rstrip("\n").split("\t")
    if kind == "target":
        targets.append((fields, [], set()))
    elif kind == "ref":
        if fields[0] in tracked:
            targets[-1][1].append(fields)
    else:
        targets[-1][2].add((fields[0], int(fields[1])))
# Servers list the files of the tree in the background.
time.sleep(float(os.environ.get("LSP_WAIT", "5")))
for path in os.environ.get("LSP_OPEN", "").split():
    open_file(path)
# Of all targets, of those that the server does not unite with other definitions (overrides, an
# interface of a library), and of the rest.
KINDS = ("all", "single", "united")
totals = {kind: dict(symbols=0, peer=0, mine=0, right=0, unsure=0, unsure_right=0) for kind in KINDS}
details = open(ours + ".differences", "w")
for number, (target, references, twins) in enumerate(targets, 1):
    path, line, column, symbol = target[:4]
    if not any(r[4] == "Definition" for r in references):
        print("no definition", *target, sep="\t", file=details)
        continue
    open_file(path)
    result = request(number, "textDocument/references", {
        "textDocument": {"uri": uri(path)},
        "position": {"line": int(line) - 1, "character": int(column)},
        "context": {"includeDeclaration": True}})
    if not result:
        print("no answer", *target, sep="\t", file=details)
        continue
    peer = set()
    for location in result:
        file = os.path.realpath(urllib.parse.unquote(location["uri"].removeprefix("file://")))
        file = os.path.relpath(file, root)
        if file in tracked:
            peer.add((file, location["range"]["start"]["line"] + 1))
    sure = {(r[0], int(r[1])) for r in references if r[3] != "Ambiguous"}
    unsure = {(r[0], int(r[1])) for r in references if r[3] == "Ambiguous"} - sure
    # One of several definitions of a macro is read, by conditions.
    is_conditional = target[4] == "macro" and twins
    kind = "united" if peer & twins or is_conditional else "single"
    for total in (totals["all"], totals[kind]):
        total["symbols"] += 1
        total["peer"] += len(peer)
        total["mine"] += len(sure)
        total["right"] += len(peer & sure)
        total["unsure"] += len(unsure)
        total["unsure_right"] += len(unsure & peer)
    for label, positions in (("missing", peer - sure), ("extra", sure - peer)):
        for file, row in sorted(positions):
            note = " (ambiguous)" if (file, row) in unsure else ""
            print(f"{label}{note}\t{target[4]} {target[5]}.{symbol} {path}:{line}\t{file}:{row}\t{kind}",
                  file=details)
for kind in KINDS:
    t = totals[kind]
    precision, recall = t["right"] / max(1, t["mine"]), t["right"] / max(1, t["peer"])
    unsure = (t["right"] + t["unsure_right"]) / max(1, t["peer"])
    print(f"{name:24} {kind:7} {t['symbols']:4} symbols {t['peer']:6} {t['mine']:6} {precision:9.4f} {recall:7.4f}"
          f"  with {t['unsure']} ambiguous: {unsure:.4f}")
details.close()
server.kill()
