#!/usr/bin/env python3
"""Check labels_src.py against the pinned trees and write labels.json.

    python3 build_labels.py TREES --scorer FOLDER

TREES/<name> is a checkout of each row of repos.tsv; FOLDER holds score.py (the scorer).
Every listed path must exist, every pattern must match a file, every end of an edge must be a
component, every edge needs a line of code that shows it and no false edge may have one.
"""
import argparse
import json
import os
import re
import runpy
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = (".kt", ".java", ".cs", ".php", ".swift", ".ex", ".js")
TEST = re.compile(r"(^|/)(tests?|Tests|templates|integration_test|\w+Test)/")
COMMENT = re.compile(r"^\s*(//|/\*|\*|#(?!\w))")
ELIXIR_DOC = re.compile(r"""@(?:module|type)?doc\s+(?:~[sS])?(\"{3}|'{3}).*?\1""", re.S)
MANIFESTS = ("build.gradle.kts", "composer.json", "Package.swift", "mix.exs", "package.json")


class Tree:
    """The file list of a checkout, with the folders that it implies."""

    def __init__(self, path):
        self.path = path
        listing = self.git("-c", "core.quotePath=false", "ls-files")
        self.files = set(filter(None, listing.split("\n")))
        self.folders = {"."}
        for file in self.files:
            parts = file.split("/")
            self.folders.update("/".join(parts[:i]) for i in range(1, len(parts)))

    def git(self, *arguments):
        command = ["git", "-C", self.path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def code(self, file):
        """Yield (number, line) of the lines that are neither comment nor documentation."""
        with open(os.path.join(self.path, file), encoding="utf-8", errors="replace") as handle:
            text = handle.read()
        if file.endswith(".ex"):
            text = ELIXIR_DOC.sub(lambda match: "\n" * match[0].count("\n"), text)
        for number, line in enumerate(text.split("\n"), 1):
            if not COMMENT.match(line):
                yield number, line


def parse_rows(text, short):
    for line in text.strip().splitlines():
        pair, regex = line.split(" : ", 1)
        source, target = (short.get(end.strip(), end.strip()) for end in pair.split(" -> "))
        yield source, target, re.compile(regex.strip())


def spellings(path, tree):
    """Other names of a component folder: its src folder and its manifest."""
    if path not in tree.folders:
        return []
    names = ["src", *MANIFESTS, os.path.basename(path) + ".csproj"]
    found = [f"{path}/{name}" for name in names]
    return [name for name in found if name in tree.files or name in tree.folders]


def owner(path, components):
    """The component with the longest spelling that is the path or contains it."""
    best = (0, None)
    for index, item in enumerate(components):
        for name in item["paths"]:
            if path == name or path.startswith(name + "/"):
                best = max(best, (len(name), index), key=lambda pair: pair[0])
    return best[1]


def evidence(tree, components, source, regex):
    """Lines of non-test code of the component `source` that match."""
    for file in sorted(tree.files):
        if file.endswith(SOURCE) and not TEST.search(file) and owner(file, components) == source:
            for number, line in tree.code(file):
                if regex.search(line):
                    yield f"{file}:{number}"


def flatten(items):
    return [path for item in items for path in (item if isinstance(item, list) else [item])]


def check_paths(label, tree, scorer, report):
    def matches(pattern, names):
        return any(scorer.any_match(name, [pattern]) for name in names)

    for key in ("entrypoints_required", "top_files_good", "top_files_core"):
        listed = flatten(label[key])
        for path in listed:
            if path not in tree.files:
                report(key, "no such file", path)
        if len(listed) != len(set(listed)):
            report(key, "listed twice", [path for path in listed if listed.count(path) > 1])
    for key in ("entrypoints_acceptable", "entrypoints_wrong", "top_files_neutral"):
        for pattern in label[key]:
            if not matches(pattern, tree.files):
                report(key, "matches nothing", pattern)
    for pattern in label["components_acceptable"]:
        if not matches(pattern, tree.files | tree.folders):
            report("components_acceptable", "matches nothing", pattern)
    for path in flatten(label["entrypoints_required"]):
        if scorer.any_match(path, label["entrypoints_wrong"]):
            report("entrypoints_required", "also wrong", path)
    for path in flatten(label["top_files_core"]):
        if path not in label["top_files_good"]:
            report("top_files_core", "not in top_files_good", path)


def check_components(label, tree, report):
    seen = {}
    for index, item in enumerate(label["components"]):
        for path in item["paths"]:
            if path not in tree.files and path not in tree.folders:
                report("components", "no such path", path)
        for path in list(item["paths"]):
            item["paths"] += [p for p in spellings(path, tree) if p not in item["paths"]]
        for path in item["paths"]:
            if seen.setdefault(path, index) != index:
                report("components", "two components share", path)
    return seen


def check_edges(label, tree, report, verbose):
    names = check_components(label, tree, report)
    short = label.pop("short", {})
    for key, wanted in (("edges", True), ("no_edges", False)):
        pairs = []
        for source, target, regex in parse_rows(label[key], short):
            unknown = [end for end in (source, target) if end not in names]
            if unknown:
                report(key, "not a component", unknown)
                continue
            lines = list(evidence(tree, label["components"], names[source], regex))
            if bool(lines) != wanted:
                report(key, f"{len(lines)} lines", f"{source} -> {target} {lines[:3]}")
            if [source, target] in pairs:
                report(key, "listed twice", [source, target])
            pairs.append([source, target])
            if verbose:
                print(f"  {key}: {source} -> {target}: {len(lines)} {lines[:1]}")
        label[key] = pairs


def check_ranges(label, report):
    bounds = {"components": (7, 12), "edges": (12, 15), "no_edges": (3, 8),
              "top_files_core": (6, 14), "conventions": (4, 4)}
    for key, (low, high) in bounds.items():
        if not low <= len(label[key]) <= high:
            report(key, "count", len(label[key]))
    if not 3 <= len(label["purpose"]["groups"]) <= 4:
        report("purpose", "count", len(label["purpose"]["groups"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trees")
    parser.add_argument("--scorer", required=True, help="folder that holds score.py")
    parser.add_argument("--verbose", action="store_true", help="print the evidence of each edge")
    arguments = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.path.insert(0, arguments.scorer)
    import score as scorer

    source = runpy.run_path(os.path.join(HERE, "labels_src.py"))["LABELS"]
    problems = []
    result = {}
    with open(os.path.join(HERE, "repos.tsv"), encoding="utf-8") as handle:
        repositories = [line.split() for line in handle]
    for name, slug, commit in repositories:
        tree = Tree(os.path.join(arguments.trees, name))
        if tree.git("rev-parse", "HEAD").strip() != commit:
            sys.exit(f"{name}: the checkout is not at {commit}")
        label = source[name]

        def report(key, problem, value, name=name):
            problems.append(f"{name}: {key}: {problem}: {value}")

        check_paths(label, tree, scorer, report)
        check_edges(label, tree, report, arguments.verbose)
        check_ranges(label, report)
        example = {"purpose": label["purpose"]["example"]}
        if scorer.score({name: label}, {name: example})[1]["purpose"] != 1:
            report("purpose", "the example does not score 1", example)
        keys = ("entrypoints_required", "top_files_good", "top_files_core", "components",
                "edges", "no_edges", "conventions")
        print(f"{name:10}", *(f"{key} {len(label[key])}" for key in keys))
        result[name] = {"repo": slug, "commit": commit, **label}
    if problems:
        sys.exit("\n".join(problems))
    with open(os.path.join(HERE, "labels.json"), "w", encoding="utf-8") as handle:
        json.dump({"repos": result}, handle, indent=1, ensure_ascii=False)
        handle.write("\n")


if __name__ == "__main__":
    main()
