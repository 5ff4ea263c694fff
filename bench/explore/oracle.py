#!/usr/bin/env python3
"""Write two summaries per repository: one made from the labels and an empty one.

    python3 oracle.py OUT        writes OUT/oracle/<name>.json and OUT/empty/<name>.json

The scorer must give the first 1 in every column (0 in edgeBad), the second 0.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def first(item):
    return item[0] if isinstance(item, list) else item


def oracle(label):
    components = [
        {
            "path": item["paths"][0],
            "role": "It covers " + item["role"][0] + ".",
            "dependsOn": [b for a, b in label["edges"] if a == item["paths"][0]],
        }
        for item in label["components"]
    ]
    core = [first(item) for item in label["top_files_core"]]
    rest = [path for path in label["top_files_good"] if path not in core]
    return {
        "entrypoints": [{"path": first(item)} for item in label["entrypoints_required"]],
        "topFiles": [{"path": path} for path in core + rest],
        "details": {
            "purpose": label["purpose"]["example"],
            "components": components,
            "conventions": [group[0] for group in label["conventions"]],
            "commands": {
                kind: [label[f"{kind}_commands"][0].replace("*", "")]
                for kind in ("build", "test")
            },
        },
    }


def main():
    with open(os.path.join(HERE, "labels.json"), encoding="utf-8") as handle:
        labels = json.load(handle)["repos"]
    for kind, make in (("oracle", oracle), ("empty", lambda label: {})):
        folder = os.path.join(sys.argv[1], kind)
        os.makedirs(folder, exist_ok=True)
        for name, label in labels.items():
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as handle:
                json.dump(make(label), handle)


if __name__ == "__main__":
    main()
