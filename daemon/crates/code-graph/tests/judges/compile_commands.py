"""Writes compile_commands.json for the sources of leveldb or curl: TREE STUBS."""
import json
import os
import subprocess
import sys

root, stubs = map(os.path.realpath, sys.argv[1:])
listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout
if os.path.exists(os.path.join(root, "lib")):
    flags = ["gcc", "-DBUILDING_LIBCURL", *(f"-I{f}" for f in ("include", "lib", "src"))]
    files = [f for f in listed.split() if f.endswith(".c") and f.startswith(("lib/", "src/"))]
else:
    flags = ["g++", "-std=c++17", "-DLEVELDB_PLATFORM_POSIX=1", "-I.", "-Iinclude"]
    files = [f for f in listed.split() if f.endswith(".cc")]
with open(os.path.join(root, "compile_commands.json"), "w") as out:
    json.dump([{"directory": root, "file": f, "arguments": [*flags, f"-I{stubs}", "-c", f]} for f in files], out)
