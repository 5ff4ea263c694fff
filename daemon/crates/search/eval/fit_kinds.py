#!/usr/bin/env python3
"""Fits the weights of one kind of query (`../src/rank/mod.rs`): fit_kinds.py FEATURES.json QUERIES.jsonl KIND[,KIND...] [--penalty 0.1] [--files 2]

FEATURES.json: what `examples/evaluate.rs` prints with the mode `features`. As `../../vectors/model/fit.py`, from the common weights and with a
penalty on the distance to them. Prints the weights. Needs numpy."""
import argparse, json
import numpy as np
from by_kind import overlap

COMMON = {"windowWords": .43, "fileWords": .42, "fileMeaning": .33, "path": .44, "fileName": .11, "line": .8, "meaning": .8, "nameMeaning": .75,
          "exact": .25, "definition": .01, "container": -.64, "size": .76}
NAMES = [*COMMON, "windowNames", "words", "name", "fileNames", "namedPath", "document"]
SHARPNESS, DEPTH, STEPS, RATE, FEW = 6.0, 400, 250, 0.04, 10


def load(features, queries, kinds):
    ranked, out = json.load(open(features)), []
    for q in map(json.loads, open(queries)):
        rows = ranked.get(q["query_id"], [])[:DEPTH]
        if q["kind"] not in kinds or q.get("skip") or not rows: continue
        right = {x["path"]: x for x in q["relevant"]}
        X = np.array([[r["values"].get(n, 0.0) * r["values"]["prior"] for n in NAMES] for r in rows], np.float32)
        paths = {}
        out.append({"X": X, "repo": q["repo"].rsplit("-", 1)[0], "file": np.array([r["path"] in right for r in rows]),
                    "lines": np.array([r["path"] in right and overlap(r, right[r["path"]]) for r in rows]),
                    "key": np.array([paths.setdefault(r["path"], len(paths)) for r in rows])})
    return out


def gradient(X, right, w):
    """Of the logarithm of what a softmax gives to all that is not right, by the weights."""
    s = SHARPNESS * (X @ w); e = np.exp(s - s.max()); good = e * right
    return SHARPNESS * ((e / e.sum() - good / max(good.sum(), 1e-30)) @ X)


def fit(data, penalty, files):
    start = np.array([COMMON.get(n, 0.0) for n in NAMES], np.float32)
    w, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
    many = {d["repo"]: sum(x["repo"] == d["repo"] for x in data) for d in data}
    shares = np.array([1 / max(FEW, many[d["repo"]]) for d in data]); shares /= shares.sum()
    mixed = lambda right: right.any() and not right.all()
    for t in range(1, STEPS + 1):
        g = 2 * penalty * (w - start)
        for d, share in zip(data, shares):
            if mixed(d["lines"]): g += share * gradient(d["X"], d["lines"], w)
            if not mixed(d["file"]): continue
            order = np.argsort(-(d["X"] @ w), kind="stable")
            best = order[np.unique(d["key"][order], return_index=True)[1]]
            g += files * share * gradient(d["X"][best], d["file"][best], w)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        w = w - RATE * min(1.0, 2 * (1 - t / STEPS) + 0.02) * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.99 ** t)) + 1e-8)
    return w


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("features"); ap.add_argument("queries"); ap.add_argument("kinds")
    ap.add_argument("--penalty", type=float, default=0.1); ap.add_argument("--files", type=float, default=2.0)
    a = ap.parse_args()
    w = fit(load(a.features, a.queries, a.kinds.split(",")), a.penalty, a.files)
    print({n: round(float(x), 2) for n, x in zip(NAMES, w)})


if __name__ == "__main__":
    main()
