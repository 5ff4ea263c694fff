#!/usr/bin/env python3
"""Makes queries of what programs say: quoted.py FOLDER > QUERIES.jsonl

Each repository is a folder in FOLDER. A query is the text of a string of at least four words that stands once in the sources of its
repository, without what is filled in; the line it stands in is the answer. At most 40 of a repository and 3 of a file, drawn with a fixed seed."""
import json, os, random, re, sys

SOURCES = {"py", "go", "c", "rs", "js", "ts", "java", "rb"}
ASIDE = re.compile(r"(^|/)(tests?|testing|spec|examples?|docs?|benches|vendor|deps)(/|$)|_test\.|test_|\.spec\.|\.test\.|Test\.java", re.I)
STRING = re.compile(r'"([^"\\]{18,90})"|\'([^\'\\]{18,90})\'')
FILLED = re.compile(r"%[-\d.]*[a-z]+|\{[^}]*\}|[#$]\{?\w*\}?")


def strings(folder):
    """(query, path, line) of all sources."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(at, name), folder)
            if path.rsplit(".", 1)[-1] not in SOURCES or path.startswith(".git/"): continue
            text = open(os.path.join(folder, path), errors="replace").read()
            for number, line in enumerate(text.split("\n"), 1):
                for found in STRING.findall(line):
                    said = found[0] or found[1]
                    words = re.findall(r"[A-Za-z]{2,}", said)
                    if len(words) < 4 or len(" ".join(words)) < 0.75 * len(said) or "/" in said or "<" in said: continue
                    yield re.sub(r"\s+", " ", FILLED.sub(" ", said)).strip(" .:,"), path, number


def main():
    for repo in sorted(os.listdir(sys.argv[1])):
        found, count, of_file, made = list(strings(os.path.join(sys.argv[1], repo))), {}, {}, 0
        for query, _, _ in found: count[query] = count.get(query, 0) + 1
        once = [x for x in found if count[x[0]] == 1 and not ASIDE.search(x[1])]
        random.Random(7).shuffle(once)
        for query, path, line in once:
            if of_file.get(path, 0) >= 3 or made >= 40: continue
            of_file[path] = of_file.get(path, 0) + 1; made += 1
            right = [{"path": path, "start": line, "end": line}]
            print(json.dumps({"repo": repo, "query_id": f"{repo}-q{made:02}", "kind": "doc", "query": query, "relevant": right}))


if __name__ == "__main__":
    main()
