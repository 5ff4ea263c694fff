"""Writes compile_commands.json for the C++ sources of a tree without a configured build: TREE STUBS."""
import json
import os
import subprocess
import sys

root, stubs = map(os.path.realpath, sys.argv[1:])
listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout
flags = ["g++", "-std=c++17", "-DLEVELDB_PLATFORM_POSIX=1", "-I.", "-Iinclude", f"-I{stubs}", "-c"]
commands = [{"directory": root, "file": f, "arguments": [*flags, f]}
            for f in listed.split() if f.endswith(".cc")]
with open(os.path.join(root, "compile_commands.json"), "w") as out:
    json.dump(commands, out)
