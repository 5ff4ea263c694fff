"""Compares module trees with the files of rustc's units: NAME DEPS_FOLDER TREE OURS.

DEPS_FOLDER has the `.d` files of a build in TREE. Units of one root file are united, since a test
has more modules than its library; units that name a file which no longer exists are stale.
"""
import glob
import os
import sys

name, deps, root, ours = sys.argv[1:]
units, modules = {}, {}
for path in glob.glob(os.path.join(deps, "*.d")):
    first = open(path).readline().split(": ", 1)[-1].split()
    files = [f for f in first if f.endswith(".rs") and not f.startswith("/")]
    if files and all(os.path.exists(os.path.join(root, f)) for f in files):
        units.setdefault(files[0], set()).update(files[1:])
for line in open(ours):
    source, target, _, kind = line.rstrip("\n").split("\t")
    if kind == "module":
        modules.setdefault(source, []).append(target)
found = peer = mine = 0
for unit, files in sorted(units.items()):
    reached, queue = set(), [unit]
    while queue:
        new = [t for t in modules.get(queue.pop(), []) if t not in reached]
        reached.update(new)
        queue.extend(new)
    for kind, odd in (("missing", files - reached), ("extra", reached - files)):
        for file in sorted(odd):
            print(f"{kind}\t{unit}\t{file}", file=sys.stderr)
    found, peer, mine = found + len(files & reached), peer + len(files), mine + len(reached)
print(f"{name:28} {peer:6} {mine:6} {found / max(1, mine):9.4f} {found / max(1, peer):7.4f}  {len(units)} units")
