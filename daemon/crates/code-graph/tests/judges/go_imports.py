"""Prints the edges between the packages (folders) of a tree that `go list` finds: TREE, a copy.

Files of go.mod must be readable by the installed Go.
"""
import json
import os
import subprocess
import sys

root = os.path.abspath(sys.argv[1])
environment = dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOWORK="off", GOSUMDB="off")
packages = {}
for folder, folders, names in os.walk(root):
    folders[:] = [f for f in folders if not f.startswith((".", "_"))]
    if "go.mod" in names:
        run = subprocess.run(["go", "list", "-e", "-json", "./..."], cwd=folder, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        text, at, decoder = run.stdout.lstrip(), 0, json.JSONDecoder()
        while at < len(text):
            package, at = decoder.raw_decode(text, at)
            packages[package["ImportPath"]] = package
            while at < len(text) and text[at].isspace():
                at += 1
folders = {path: os.path.relpath(p["Dir"], root) for path, p in packages.items() if "Dir" in p}
for path, package in packages.items():
    if path not in folders:
        continue
    print(f"file\t{folders[path]}")
    for kind in ("Imports", "TestImports", "XTestImports"):
        for target in package.get(kind) or []:
            if target in folders:
                print(f"edge\t{folders[path]}\t{folders[target]}")
