#!/usr/bin/env python3
"""Makes floor.jsonl, the held-out pairs that a test ranks: floor.py PAIRS.jsonl SOURCES.md > floor.jsonl

Six definitions of each language, of packages that nothing was learnt from, each of another file. Kept are their words in the order of the
alphabet: all that the table sees, since it knows no order."""
import collections, json, re, sys, zlib
from tokens import words
from train import CODE_WORDS, HELD_OUT, family

EACH = 6
licence = dict(re.findall(r"^\* (\S+) \S+ \((.*)\) \d+/\d+", open(sys.argv[2]).read(), re.M))
held = {l: set(f) for l, f in HELD_OUT.items()}
found = collections.defaultdict(list)
for line in open(sys.argv[1]):
    r = json.loads(line); kind, name, _ = r["package"].split("__", 2)
    # Only what a package registry gives under a licence of its own.
    if not r["doc"] or kind == "repo" or family(r["package"]) not in held.get(r["lang"], ()): continue
    doc = words(re.sub(r"\b%s\b" % re.escape(r["name"]), " ", r["doc"])); code = words(r["code"])[:CODE_WORDS]
    if 8 <= len(doc) <= 40 and 40 <= len(code) <= 200:
        found[r["lang"]].append((zlib.crc32((r["path"] + r["name"]).encode()), name, r["path"], doc, code))
for lang in sorted(found):
    files, packages = set(), collections.Counter()
    for _, name, path, doc, code in sorted(found[lang]):
        if (name, path) in files or packages[name] >= EACH // 2 or name not in licence: continue
        files.add((name, path)); packages[name] += 1
        print(json.dumps({"lang": lang, "package": name, "licence": licence[name], "doc": " ".join(sorted(doc)), "code": " ".join(sorted(code))}))
        if sum(packages.values()) == EACH: break
