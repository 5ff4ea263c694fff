"""Prints the edges between modules that rust-analyzer resolves: TREE LSIF, its `lsif` of the tree.

An edge is the last module of a path in code or `use`, and the file that this module is.
"""
import json
import os
import re
import sys

root, dump = os.path.realpath(sys.argv[1]), sys.argv[2]
documents, ranges, following, definitions, items, inside = {}, {}, {}, {}, {}, {}
for line in open(dump):
    entry = json.loads(line)
    label, number = entry["label"], entry["id"]
    if label == "document":
        documents[number] = entry["uri"].removeprefix("file://")
    elif label == "range":
        ranges[number] = (entry["start"]["line"], entry["start"]["character"],
                          entry["end"]["line"], entry["end"]["character"])
    elif label == "next":
        following[entry["outV"]] = entry["inV"]
    elif label == "textDocument/definition":
        definitions[entry["outV"]] = entry["inV"]
    elif label == "contains":
        for target in entry["inVs"]:
            inside[target] = entry["outV"]
    elif label == "item":
        items.setdefault(entry["outV"], []).extend(entry["inVs"])


def module_file(number):
    """The file that is the module which a range names."""
    for target in items.get(definitions.get(following.get(number)), []):
        path = documents.get(inside.get(target), "")
        if ranges[target][:2] == (0, 0) and path.startswith(root + "/"):
            return os.path.relpath(path, root)


tokens = {}
for number, (line, column, end, last) in ranges.items():
    path = documents.get(inside.get(number), "")
    if path.startswith(root + "/") and line == end:
        tokens.setdefault(os.path.relpath(path, root), {})[line, column] = module_file(number)


def children(text, at):
    """Positions of the names after `::` at `at`; None for one that is the module itself."""
    found = re.compile(r"\s*::\s*").match(text, at)
    if not found:
        return [None]
    at = found.end()
    if text[at] != "{":
        return [at if re.match(r"\w", text[at]) else None]
    names, depth, fresh = [], 0, False
    while at < len(text):
        c = text[at]
        if c == "{":
            depth, fresh = depth + 1, depth == 0
        elif c == "}":
            depth -= 1
            if depth == 0:
                break
        elif c == ",":
            fresh = depth == 1
        elif fresh and not c.isspace():
            names.append(at if re.match(r"\w", c) and not text.startswith("self", at) else None)
            fresh = False
        at += 1
    return names


for file, found in sorted(tokens.items()):
    text = open(os.path.join(root, file)).read()
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    modules = {starts[line] + column for (line, column), target in found.items() if target}
    print(f"file\t{file}")
    for (line, column), target in found.items():
        if target:
            at = starts[line] + column
            end = re.compile(r"\w+").match(text, at)
            # `pub(super)` names a module, but imports nothing.
            is_visibility = re.search(r"pub\s*\((in\s+)?[\w:]*$", text[max(0, at - 80):at])
            if end and not is_visibility and any(c not in modules for c in children(text, end.end())):
                print(f"edge\t{file}\t{target}")
