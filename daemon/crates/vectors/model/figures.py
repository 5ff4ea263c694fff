#!/usr/bin/env python3
"""Measures tables on the definitions of packages that are held out of training.

    figures.py CACHE.npz TABLE_DIR...

For each language: up to 500 docs (the name of the definition taken out of them) against up to 4,000 held-out definitions of that language;
MRR@10 and Recall@10 of each table, and of BM25 over the same words. CACHE.npz is what `train.py --cache` leaves. Needs numpy."""
import struct, sys
import numpy as np
from tokens import Rows
from train import CODE_WORDS, Expand, Texts, held_out


def load(folder):
    b = open(f"{folder}/table.bin", "rb").read()
    _, V, B, dim = struct.unpack_from("<IIII", b, 8)
    scale = np.frombuffer(b, np.float16, V + B, 24).astype(np.float32)
    T = np.frombuffer(b, np.int8, (V + B) * dim, 24 + 2 * (V + B)).reshape(-1, dim)
    return Rows(open(f"{folder}/vocab.txt").read().split("\n")[:V], B), T * scale[:, None]


def vectors(table, bags, n):
    idx, val, off = bags
    out = np.zeros((n, table.shape[1]), np.float32)
    end = np.append(off[1:], len(idx))
    for i in range(n):
        s = slice(off[i], end[i]); out[i] = val[s] @ table[idx[s]]
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def bm25(code, query, n, m, V, k1=1.2, b=0.75):
    import scipy.sparse as sp
    X = sp.csr_matrix((np.ones(len(code[0]), np.float32), (code[1], code[0])), shape=(n, V))
    X.sum_duplicates(); size = np.asarray(X.sum(1)).ravel(); df = np.asarray((X > 0).sum(0)).ravel()
    idf = np.log(1 + (n - df + 0.5) / (df + 0.5))
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    X.data = X.data * (k1 + 1) / (X.data + k1 * (1 - b + b * size[row] / size.mean())) * idf[X.indices]
    Q = sp.csr_matrix((np.ones(len(query[0]), np.float32), (query[1], query[0])), shape=(m, V)); Q.sum_duplicates(); Q.data[:] = 1
    return np.asarray((Q @ X.T).todense())


def score(S, right):
    own = S[np.arange(len(right)), right][:, None]
    rank = (S > own).sum(1) + ((S == own).sum(1) - 1) / 2 + 1
    return np.where(rank <= 10, 1 / rank, 0).mean(), (rank <= 10).mean()


def main():
    z = np.load(sys.argv[1], allow_pickle=True); data = {k: z[k] for k in z.files}
    test = held_out(data); T = {k: Texts(data[k], data[k + "_off"]) for k in ("bare", "code")}
    size = lambda k: np.diff(data[k + "_off"])
    fit = test & (size("doc") > 0) & (size("code") >= 8)
    tables = {f: load(f) for f in sys.argv[2:]}
    expand = {f: Expand(r, data["words"]) for f, (r, _) in tables.items()}
    V = len(data["words"]); names = ["BM25"] + list(tables); sums = {n: [] for n in names}
    print(f"{'':12}{'queries':>8}{'of':>6}  " + "".join(f"{n.rstrip('/').rsplit('/', 1)[-1][:18]:>20}" for n in names))
    for l in np.argsort(data["langs"].astype(str)):
        which = np.nonzero(fit & (data["lang"] == l))[0]; r = np.random.default_rng(7)
        asked = r.permutation(which[size("bare")[which] >= 5])[:500]
        if len(asked) < 30: continue
        others = r.permutation(np.setdiff1d(which, asked))[:4000 - len(asked)]
        pool = np.concatenate([asked, others])
        code, query = T["code"].many(pool, CODE_WORDS), T["bare"].many(asked, 400)
        right = np.arange(len(asked)); told = []
        for n in names:
            if n == "BM25": S = bm25(code, query, len(pool), len(asked), V)
            else:
                e, t = expand[n], tables[n][1]
                S = vectors(t, e.bags(*query, len(asked)), len(asked)) @ vectors(t, e.bags(*code, len(pool)), len(pool)).T
            told.append(score(S, right)); sums[n].append(told[-1])
        print(f"{data['langs'][l]:12}{len(asked):>8}{len(pool):>6}  " + "".join(f"{a:>14.3f} {b:.3f}" for a, b in told), flush=True)
    print(f"{'mean':12}{'':>8}{'':>6}  " + "".join(f"{np.mean([a for a, _ in sums[n]]):>14.3f} {np.mean([b for _, b in sums[n]]):.3f}" for n in names))


if __name__ == "__main__":
    main()
