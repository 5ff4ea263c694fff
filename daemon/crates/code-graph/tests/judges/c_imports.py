"""Prints the includes that the preprocessor takes: TREE COMPILER SUFFIXES FOLDER... of headers.

Each file is a unit of its own. An edge is an included file as the line markers show it; an active
edge is a directive that was read but whose file was open before, with the file of that name among
the files of the unit.
"""
import os
import re
import subprocess
import sys

root, compiler, suffixes, *folders = sys.argv[1:]
root = os.path.realpath(root)
suffixes = tuple(suffixes.split(","))
listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout
files = [f for f in listed.split("\n") if f.endswith(suffixes)]
marker = re.compile(r'# (\d+) "([^"]*)"((?: \d)*)$')
directive = re.compile(r'#\s*include(?:_next)?\s*[<"]([^>"]+)[>"]')
language = "c++" if "++" in compiler else "c"


def relative(path):
    path = os.path.realpath(os.path.join(root, path))
    return os.path.relpath(path, root) if path.startswith(root + "/") else None


for file in files:
    command = [compiler, "-E", "-dI", "-w", "-x", language, *(f"-I{f}" for f in folders), file]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace")
    print(f"file\t{file}")
    stack, unit, actives = [relative(file)], {relative(file)}, set()
    for line in run.stdout.split("\n"):
        if line.startswith("# "):
            found = marker.match(line)
            if found:
                path, flags = relative(found[2]), found[3].split()
                if "1" in flags:
                    if path and stack[-1]:
                        print(f"edge\t{stack[-1]}\t{path}")
                    stack.append(path)
                    unit.add(path)
                elif "2" in flags and len(stack) > 1:
                    stack.pop()
        elif line.startswith("#i") and stack[-1]:
            found = directive.match(line)
            if found:
                actives.add((stack[-1], found[1]))
    for source, name in actives:
        for path in unit:
            if path and ("/" + path).endswith("/" + name.lstrip("./")):
                print(f"active\t{source}\t{path}")
