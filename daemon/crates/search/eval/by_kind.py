#!/usr/bin/env python3
"""Scores results by kind of query: by_kind.py RESULTS.json QUERIES.jsonl

RESULTS.json: what `examples/evaluate.rs` prints. Columns: f1, f5, f10: a right file is the first, among five, among ten files; R10 and nF: recall
and nDCG of the first ten files; p10 and nP: a right file, and nDCG of the files, in the first ten passages; files: how many these name; l1, l10: right
lines in the first, in the first ten passages; nL: nDCG of lines; L200: right lines before 200 lines were printed; F200: a right file, for queries
without lines. Means over repositories of their means; each issue counts alike. Lines are right if they share half of the shorter range and are at
most 120, or twice the answer's."""
import collections, json, math, sys

MAX_LINES = 120
COLUMNS = ["n", "f1", "f5", "f10", "R10", "nF", "p10", "nP", "files", "l1", "l10", "nL", "L200", "F200"]


def ranges(answer):
    return answer.get("ranges") or ([[answer["start"], answer["end"]]] if "start" in answer else [])


def overlap(result, answer):
    start, end = result["start"], result["end"]
    for a, b in ranges(answer):
        both = min(end, b) - max(start, a) + 1
        if end - start + 1 <= max(MAX_LINES, 2 * (b - a + 1)) and both >= 1 and 2 * both >= min(end - start + 1, b - a + 1): return True
    return False


def ndcg(hits, right):
    found = [i for i, hit in enumerate(hits[:10]) if hit]
    return sum(1 / math.log2(i + 2) for i in found[:right]) / sum(1 / math.log2(i + 2) for i in range(min(right, 10)))


def within(results, hits, lines):
    """Whether a hit begins before so many lines were printed."""
    used = 0
    for result, hit in zip(results, hits):
        if used >= lines: return 0.0
        if hit: return 1.0
        used += result["end"] - result["start"] + 1
    return 0.0


def score(query, results):
    right = {x["path"]: x for x in query["relevant"]}
    paths, ten = list(dict.fromkeys(r["path"] for r in results)), [r["path"] for r in results[:10]]
    files = [p in right for p in paths]
    first = [p in right and p not in ten[:i] for i, p in enumerate(ten)]
    out = {"f1": float(any(files[:1])), "f5": float(any(files[:5])), "f10": float(any(files[:10])), "R10": sum(files[:10]) / min(10, len(right)),
           "nF": ndcg(files, len(right)), "p10": float(any(first)), "nP": ndcg(first, len(right)), "files": len(set(ten))}
    if not any(ranges(x) for x in query["relevant"]):
        return out | {"F200": within(results, [r["path"] in right for r in results], 200)}
    lines = [r["path"] in right and overlap(r, right[r["path"]]) for r in results]
    return out | {"l1": float(any(lines[:1])), "l10": float(any(lines[:10])), "nL": ndcg(lines, 1), "L200": within(results, lines, 200)}


def table(results, queries):
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for q in queries:
        if not q.get("skip"): cells[q["kind"]][q["query_id"] if q["kind"] == "issue" else q["repo"]].append(score(q, results.get(q["query_id"], [])))
    mean = lambda values: sum(values) / len(values)
    for kind, groups in cells.items():
        row = {"n": sum(map(len, groups.values()))}
        for column in COLUMNS[1:]:
            means = [mean(known) for known in ([s[column] for s in g if column in s] for g in groups.values()) if known]
            if means: row[column] = mean(means)
        yield kind, row


def main():
    queries = [json.loads(line) for line in open(sys.argv[2])]
    print(" " * 11 + "".join(f"{c:>7}" for c in COLUMNS))
    for kind, row in table(json.load(open(sys.argv[1])), queries):
        print(f"{kind:11}" + "".join(f"{row[c]:7.3f}" if c != "n" and c in row else f"{row.get(c, ''):>7}" for c in COLUMNS))


if __name__ == "__main__":
    main()
