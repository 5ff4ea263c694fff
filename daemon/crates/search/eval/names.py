#!/usr/bin/env python3
"""Makes queries that are one name: names.py FOLDER REPO... > QUERIES.jsonl

Each repository is a folder in FOLDER. universal-ctags finds the definitions; a query is a name that one definition has. Kind `ident`: 30
definitions of a repository in its code; `ident-test`: 10 in its tests and the like. Drawn with a fixed seed."""
import collections, json, random, re, subprocess, sys

KINDS = {"function", "method", "class", "struct", "interface", "trait", "enum", "type", "func", "singletonMethod", "module"}
SECONDARY = re.compile(r"(^|/)(tests?|testing|testdata|specs?|__tests__|fixtures|e2e|benches|benchmarks?|examples?|playground|docs?|docs_src|fuzz)(/|$)"
                       r"|_test\.|(^|/)test_[^/]*\.py$|[._-](spec|test)\.[a-z]+$|_spec\.rb$|Test\.java$|(^|/)conftest\.py$", re.I)
SOURCE = re.compile(r"\.(py|rs|go|js|ts|tsx|java|c|h|rb)$")


def definitions(folder):
    """Definitions of a repository by name."""
    out = subprocess.run(["ctags", "-R", "--output-format=json", "--fields=+neKl", "-f", "-", "--exclude=.git", "."], cwd=folder,
                         capture_output=True, text=True, errors="replace", check=True).stdout
    by_name = collections.defaultdict(list)
    for line in filter(None, out.split("\n")):
        tag = json.loads(line)
        if tag.get("_type") != "tag" or tag.get("kind") not in KINDS or re.match(r"Anonymous|__anon", tag["name"]): continue
        if len(tag["name"]) >= 4 and re.fullmatch(r"[\w?!]+", tag["name"]): by_name[tag["name"]].append(tag)
    return by_name


def main():
    for repo in sys.argv[2:]:
        single = [tags[0] for tags in definitions(f"{sys.argv[1]}/{repo}").values() if len(tags) == 1]
        single = [tag | {"path": tag["path"].removeprefix("./")} for tag in single]
        rng = random.Random(11)
        for kind, secondary, most in (("ident", False, 30), ("ident-test", True, 10)):
            pool = [t for t in single if SOURCE.search(t["path"]) and bool(SECONDARY.search(t["path"])) == secondary]
            pool.sort(key=lambda t: (t["path"], t["line"]))
            rng.shuffle(pool)
            for n, tag in enumerate(pool[:most]):
                lines = {"path": tag["path"], "start": tag["line"], "end": tag.get("end", tag["line"])}
                print(json.dumps({"repo": repo, "query_id": f"{repo}-{kind}{n:02}", "kind": kind, "query": tag["name"], "relevant": [lines]}))


if __name__ == "__main__":
    main()
