#!/usr/bin/env python3
"""Judges boosted trees (LambdaMART) as a second step of ranking: trees.py FEATURES.json QUERIES.jsonl KIND[,KIND...]

FEATURES.json: what `examples/evaluate.rs` prints with the mode `features`. Five parts of the repositories: each is ranked by trees that were learnt
from the others, added to the sum of the ranker with four weights. Prints where right files are in the order, then figures of the sum alone and
with trees. Columns as in `by_kind.py`. Needs numpy and lightgbm."""
import argparse, collections, json, math, random
import lightgbm as lgb
import numpy as np
from by_kind import overlap
# The weights of `../src/rank/mod.rs`: HYBRID, ISSUE, USE.
H = dict(windowWords=.43,fileWords=.42,fileMeaning=.33,path=.44,fileName=.11,line=.8,meaning=.8,nameMeaning=.75,exact=.25,definitionOf=3.,literal=.5,namedPath=.4,definition=.01,container=-.64,size=.76)
I = dict(windowWords=.42,fileWords=.28,fileMeaning=.14,path=.54,fileName=.11,words=-.19,line=.1,meaning=.35,nameMeaning=.68,name=-.12,exact=.22,fileNames=.16,namedPath=.4,definition=-.2,container=-.63,size=.83)
U = dict(windowWords=.85,fileWords=.05,fileName=.26,words=.31,line=.33,meaning=.39,nameMeaning=1.7,name=-.31,exact=.25,document=.72,definition=-.79,container=-.64,size=-.45)
W = {"issue": I, "use": U}
NAMES = ["windowWords","fileWords","fileMeaning","path","fileName","windowNames","words","line","meaning","nameMeaning","name","exact","fileNames","namedPath","document","definition","container","size","prior"]
REPEAT = {"issue": .92}
DEPTH = 80
AGG = ["windowWords","words","line","meaning","nameMeaning","exact","windowNames","name"]
FEATS = NAMES + ["score","rank","rel","gap","nth","fileRank","n10","n20","n40","top3"] + ["max_"+a for a in AGG] + ["best","second"]

def load(features, queries, kinds):
    ranked = json.load(open(features)); out = []
    for q in map(json.loads, open(queries)):
        rows = ranked.get(q["query_id"], [])
        if q["kind"] not in kinds or q.get("skip") or not rows: continue
        w = W.get(q["kind"], H)
        right = {x["path"]: x for x in q["relevant"]}
        V = np.array([[r["values"].get(n, 0.0) for n in NAMES] for r in rows], np.float32)
        prior = V[:, NAMES.index("prior")]
        wv = np.array([w.get(n, 0) for n in NAMES], np.float32)
        ex = np.array([r["values"].get("definitionOf", 0)*w.get("definitionOf",0)+r["values"].get("literal",0)*w.get("literal",0) for r in rows], np.float32)
        s = (V @ wv) * prior + ex
        order = np.argsort(-s, kind="stable")
        rows = [rows[i] for i in order]; V = V[order]; s = s[order]
        paths = [r["path"] for r in rows]
        ids = {}; key = np.array([ids.setdefault(p, len(ids)) for p in paths])
        allfiles = list(ids)
        ceiling = [i for i, p in enumerate(allfiles) if p in right]
        n = min(DEPTH, len(rows))
        F = feats(V[:n], s[:n], key[:n])
        lines = np.array([r["path"] in right and overlap(r, right[r["path"]]) for r in rows[:n]])
        file = np.array([p in right for p in paths[:n]])
        haslines = any(("start" in x or "ranges" in x) for x in q["relevant"])
        out.append(dict(q=q, kind=q["kind"], repo=q["repo"].rsplit("-",1)[0] if q["kind"]=="issue" else q["repo"], F=F, s=s[:n], key=key[:n], file=file, lines=lines,
                        haslines=haslines, right=len(right), ceiling=ceiling, paths=paths[:n], nfiles=len(allfiles)))
    return out

def feats(V, s, key):
    """The features of each passage, its rank, and sums and maxima over its file."""
    n = len(s); A = [NAMES.index(a) for a in AGG]
    rank = np.arange(n); top = s[0] if s[0] > 0 else 1.0
    m = key.max() + 1
    nth = np.zeros(n); cnt = np.zeros(m)
    for i in range(n): nth[i] = cnt[key[i]]; cnt[key[i]] += 1
    first = np.full(m, n); np.minimum.at(first, key, rank)
    forder = np.argsort(first); frank = np.empty(m); frank[forder] = np.arange(m)
    c = lambda k: np.bincount(key[:k], minlength=m)[key].astype(float)
    top3 = np.zeros(m)
    for i in range(n):
        if nth[i] < 3: top3[key[i]] += s[i] / 3
    mx = np.full((m, len(A)), -9.0, np.float32); np.maximum.at(mx, key, V[:, A])
    cols = [V, np.stack([s, np.log1p(rank), s/top, np.concatenate([[0], s[:-1]-s[1:]]), nth, np.log1p(frank[key]), c(10), c(20), c(40), top3[key]], 1), mx[key],
            np.full((n,1), s[0]), np.full((n,1), s[min(1,n-1)])]
    return np.concatenate(cols, 1).astype(np.float32)

def measure(d, s):
    """f1 f5 f10 nF l1 l10 after diversification."""
    order = np.argsort(-s, kind="stable"); seen = collections.Counter(); t = s.copy(); rep = REPEAT.get(d["kind"], .94)
    for i in order:
        if t[i] > 0: t[i] *= rep ** min(seen[d["key"][i]], 3)
        seen[d["key"][i]] += 1
    order = np.argsort(-t, kind="stable"); seen = set(); hits = []
    for i in order:
        if d["key"][i] in seen: continue
        seen.add(d["key"][i]); hits.append(bool(d["file"][i]))
    r = d["right"]; ideal = sum(1/math.log2(i+2) for i in range(min(r,10)))
    l = d["lines"][order]
    return [float(any(hits[:1])), float(any(hits[:5])), float(any(hits[:10])), sum(1/math.log2(i+2) for i,h in enumerate(hits[:10]) if h)/ideal, float(d["lines"][order[:1]].any()), float(l[:10].any())]
COLS = ["f1","f5","f10","nF","l1","l10"]

def table(data, scores, label):
    for kind in sorted({d["kind"] for d in data}):
        g = collections.defaultdict(list)
        for d, s in zip(data, scores):
            if d["kind"] == kind: g[d["q"]["query_id"] if kind == "issue" else d["repo"]].append(measure(d, s))
        m = np.mean([np.mean(v, 0) for v in g.values()], 0)
        print(f"{label:18}{kind:8}" + "".join(f" {c} {x:.3f}" for c, x in zip(COLS, m)), flush=True)

def ceiling(data):
    for kind in sorted({d["kind"] for d in data}):
        D = [d for d in data if d["kind"] == kind]
        print("ceiling", kind, len(D), {k: round(float(np.mean([any(c < k for c in d["ceiling"]) for d in D])), 3) for k in (1,5,10,20,50,100,1000)},
              "recall", {k: round(float(np.mean([sum(c < k for c in d["ceiling"])/d["right"] for d in D])), 3) for k in (10,20,50,100,1000)}, "files", np.mean([d["nfiles"] for d in D]))

def label(d):
    """1 for the right file, 2 for the right lines in it."""
    y = d["file"].astype(int)
    if d["haslines"]: y = y + d["lines"].astype(int)
    return y

def train(D, a):
    X = np.concatenate([d["F"] for d in D]); y = np.concatenate([label(d) for d in D]); g = [len(d["s"]) for d in D]
    many = collections.Counter((d["kind"], d["repo"]) for d in D)
    w = np.concatenate([np.full(len(d["s"]), 1/math.sqrt(max(10, many[(d["kind"], d["repo"])]))) for d in D]); w /= w.mean()
    init = np.concatenate([d["s"] * a.base for d in D])
    ds = lgb.Dataset(X, y, group=g, weight=w, init_score=init, feature_name=FEATS, free_raw_data=False)
    p = dict(objective="lambdarank", lambdarank_truncation_level=a.trunc, label_gain=[0,1,3], num_leaves=a.leaves, learning_rate=a.rate, min_data_in_leaf=a.leafmin, lambda_l2=a.l2, feature_fraction=.6, bagging_fraction=.7, bagging_freq=1, num_threads=1, verbosity=-1, seed=7)
    return lgb.train(p, ds, num_boost_round=a.trees)

def main():
    ap = argparse.ArgumentParser(); ap.add_argument("features"); ap.add_argument("queries"); ap.add_argument("kinds")
    ap.add_argument("--trees", type=int, default=120); ap.add_argument("--leaves", type=int, default=12); ap.add_argument("--rate", type=float, default=.05)
    ap.add_argument("--leafmin", type=int, default=60); ap.add_argument("--l2", type=float, default=5.0); ap.add_argument("--trunc", type=int, default=10); ap.add_argument("--base", type=float, default=6.0)
    ap.add_argument("--folds", type=int, default=5)
    a = ap.parse_args()
    data = []
    data = load(a.features, a.queries, a.kinds.split(","))
    ceiling(data)
    base = [d["s"] for d in data]; table(data, base, "linear")
    repos = sorted({d["repo"] for d in data}); random.Random(1).shuffle(repos)
    fold = {r: i % a.folds for i, r in enumerate(repos)}
    raw = [None] * len(data)
    for k in range(a.folds):
        model = train([d for d in data if fold[d["repo"]] != k], a)
        for i, d in enumerate(data):
            if fold[d["repo"]] == k: raw[i] = model.predict(d["F"])
    for mix in (0.25, 0.5, 1.0, 1.5):
        table(data, [d["s"] + mix * r / a.base for d, r in zip(data, raw)], f"trees x {mix}")


if __name__ == "__main__":
    main()
