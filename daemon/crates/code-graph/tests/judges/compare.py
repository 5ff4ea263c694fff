"""Compares edges: NAME PEER OURS [--folders] [KIND...], without our edges of the kinds. A peer's lines: `file PATH`, `edge FROM TO`, `active FROM TO`,
`open FROM FOLDER` for an import of a package that the peer cannot find.

Only edges between files that the peer read are compared. If it names active edges, our other edges
(branches of the preprocessor that it did not take) are not judged.
"""
import os.path
import sys

name, peer, ours = sys.argv[1:4]
options = sys.argv[4:]
files, edges, active, opened = set(), set(), set(), set()
for line in open(peer):
    kind, *fields = line.rstrip("\n").split("\t")
    {"file": files, "edge": edges, "active": active, "open": opened}[kind].add(tuple(fields))
files = {f for (f,) in files}
edges = {(a, b) for a, b in edges if a != b and a in files and b in files}
mine = set()
for line in open(ours):
    source, target, _, kind = line.rstrip("\n").split("\t")
    if "--folders" in options:
        source, target = (os.path.dirname(f) or "." for f in (source, target))
    if source != target and source in files and target in files and kind not in options:
        mine.add((source, target))
unjudged = {e for e in mine if active and e not in active and e not in edges}
folders = {}
for source, folder in opened:
    folders.setdefault(source, []).append("" if folder == "." else folder + "/")
unjudged |= {e for e in mine - edges if any(e[1].startswith(f) for f in folders.get(e[0], []))}
mine -= unjudged
right = mine & (edges | active)
found = mine & edges
precision = len(right) / max(1, len(mine))
recall = len(found) / max(1, len(edges))
print(f"{name:28} {len(edges):6} {len(mine):6} {precision:9.4f} {recall:7.4f}  {len(unjudged)} not judged")
with open(peer + ".differences", "w") as out:
    for a, b in sorted(edges - mine):
        out.write(f"missing\t{a}\t{b}\n")
    for a, b in sorted(mine - right):
        out.write(f"extra\t{a}\t{b}\n")
