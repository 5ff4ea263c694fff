#!/usr/bin/env python3
"""Fits the weights of the ranker (`../../search/src/rank/mod.rs`).

    fit.py [--lexical | --semantic | --rescored] FEATURES.json=QUERIES.jsonl... [--test FEATURES.json=QUERIES.jsonl...]

FEATURES.json: what `examples/evaluate.rs` prints with the mode `features`; QUERIES.jsonl: its queries. Two listwise softmaxes over what was
ranked best for a query: of files by the best that each has, where the right ones are those asked for, and of lines, where what overlaps
those asked for is right (as the evaluation counts it). Each repository and kind of query counts alike. Prints weights and, for each set, MRR
and nDCG@10 of files and of lines. Needs numpy."""
import argparse, json, math
import numpy as np

NAMES = ["windowWords", "fileWords", "fileMeaning", "path", "fileName", "windowNames", "words", "line", "meaning", "nameMeaning", "name",
         "exact", "definition", "container", "size", "rerank"]
LEXICAL = {"windowWords", "fileWords", "path", "fileName", "windowNames", "words", "name", "definition", "container", "size"}
SEMANTIC = {"fileMeaning", "meaning", "nameMeaning", "definition", "container", "size"}
HYBRID = {"windowWords", "fileWords", "fileMeaning", "path", "fileName", "meaning", "nameMeaning", "definition", "container", "size"}
# Given, not learnt: no query of the evaluation names or quotes what it looks for.
HELD = {"exact": 0.25, "line": 0.8}
SHARPNESS, RATE, STEPS, DECAY, MAX_SPAN = 6.0, 0.05, 200, 1e-3, 120
# What files count against lines; passages of a query that are looked at; queries of a repository and kind from which on they share one weight.
FILES, DEPTH, FEW = 1.5, 250, 20


def overlaps(r, x):
    """Whether lines answer: half of the shorter of the two, and not far longer than what is asked for."""
    both = min(r["end"], x["end"]) - max(r["start"], x["start"]) + 1
    own, asked = r["end"] - r["start"] + 1, x["end"] - x["start"] + 1
    return own <= max(MAX_SPAN, 2 * asked) and both >= 1 and both * 2 >= min(own, asked)


def load(pair):
    features, queries = pair.split("=")
    ranked = json.load(open(features))
    out = []
    for q in map(json.loads, open(queries)):
        rows = ranked.get(q["query_id"], [])
        if q.get("skip") or not rows: continue
        right = {x["path"]: x for x in q["relevant"]}
        X = np.array([[r["values"].get(n, 0.0) for n in NAMES] for r in rows], np.float32)
        prior = np.array([r["values"]["prior"] for r in rows], np.float32)
        file = np.array([r["path"] in right for r in rows])
        lines = np.array([r["path"] in right and "start" in right[r["path"]] and overlaps(r, right[r["path"]]) for r in rows])
        out.append({"X": X * prior[:, None], "file": file, "lines": lines, "rows": rows, "q": q, "lined": any("start" in x for x in q["relevant"])})
    return out


def gradient(X, right, w):
    """Of the logarithm of what a softmax gives to all that is not right, by the weights."""
    s = SHARPNESS * (X @ w); e = np.exp(s - s.max()); good = e * right
    return SHARPNESS * ((e / e.sum() - good / max(good.sum(), 1e-30)) @ X)


def fit(data, mask, held):
    kind = lambda d: (d["q"]["repo"], d["q"]["kind"])
    many = {}
    for d in data: many[kind(d)] = many.get(kind(d), 0) + 1
    w = mask * 0.5 + held
    lists = []
    for d in data:
        top = np.argsort(-(d["X"] @ w), kind="stable")[:DEPTH]
        paths = {}
        key = np.array([paths.setdefault(d["rows"][i]["path"], len(paths)) for i in top])
        lists.append((d["X"][top], d["file"][top], d["lines"][top], key, d["lined"], 1 / max(FEW, many[kind(d)])))
    mixed = lambda right: right.any() and not right.all()
    of_files = sum(share for _, file, *_, share in lists if mixed(file))
    of_lines = sum(share for _, _, lines, _, lined, share in lists if lined and mixed(lines)) or 1.0
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(1, STEPS + 1):
        g = DECAY * w * mask
        for X, file, lines, key, lined, share in lists:
            if lined and mixed(lines): g += share / of_lines * gradient(X, lines, w)
            if not mixed(file): continue
            order = np.argsort(-(X @ w), kind="stable")
            best = order[np.unique(key[order], return_index=True)[1]]
            g += FILES * share / of_files * gradient(X[best], file[best], w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        rate = RATE * min(1.0, 2 * (1 - t / STEPS) + 0.02)
        w = w - rate * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.99 ** t)) + 1e-8) * mask
    return w


def told(d, w):
    """What is told: best first, lines that share half of the shorter with earlier ones of their file left out."""
    out, seen = [], {}
    for i in np.argsort(-(d["X"] @ w), kind="stable"):
        r = d["rows"][i]; ranges = seen.setdefault(r["path"], [])
        if any(2 * (min(r["end"], b) - max(r["start"], a) + 1) >= min(r["end"] - r["start"], b - a) + 1 for a, b in ranges): continue
        ranges.append((r["start"], r["end"])); out.append(i)
        if len(out) == 100: break
    return out


def figures(data, w):
    """Means over the queries of MRR and nDCG@10, of files and of lines."""
    def one(hits, n):
        got = [i for i, h in enumerate(hits[:10]) if h]
        ideal = sum(1 / math.log2(i + 2) for i in range(min(n, 10)))
        return (1 / (got[0] + 1) if got else 0.0, sum(1 / math.log2(i + 2) for i in got[:n]) / ideal)
    files, lines = [], []
    for d in data:
        order, seen = told(d, w), []
        for i in order:
            if d["rows"][i]["path"] not in seen: seen.append(d["rows"][i]["path"])
        right = {x["path"] for x in d["q"]["relevant"]}
        files.append(one([p in right for p in seen], len(right)))
        if d["lined"]: lines.append(one([bool(d["lines"][i]) for i in order], 1))
    return np.mean(files, 0).round(3), np.mean(lines, 0).round(3) if lines else None


def main():
    ap = argparse.ArgumentParser(); ap.add_argument("sets", nargs="+"); ap.add_argument("--test", nargs="*", default=[])
    ap.add_argument("--lexical", action="store_true"); ap.add_argument("--semantic", action="store_true"); ap.add_argument("--rescored", action="store_true")
    a = ap.parse_args()
    chosen = LEXICAL if a.lexical else SEMANTIC if a.semantic else HYBRID | {"rerank"} if a.rescored else HYBRID
    mask = np.array([float(n in chosen) for n in NAMES])
    held = np.array([0.0 if a.semantic else HELD.get(n, 0.0) for n in NAMES])
    sets = {s: load(s) for s in a.sets}
    w = fit([d for data in sets.values() for d in data], mask, held)
    print({n: round(float(x), 3) for n, x in zip(NAMES, w)})
    for name, data in [*sets.items(), *((s, load(s)) for s in a.test)]:
        print(name.split("=")[0], *figures(data, w))


if __name__ == "__main__":
    main()
