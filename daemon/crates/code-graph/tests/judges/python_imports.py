"""Prints the import edges that grimp finds: FOLDER_OF_PATH PACKAGE... -> importer, target."""
import os
import sys

import grimp

root, path, *packages = sys.argv[1:]
sys.path.insert(0, os.path.join(root, path))
graph = grimp.build_graph(*packages, include_external_packages=False, cache_dir=None)


def file_of(module):
    base = os.path.join(path, *module.split("."))
    for name in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.exists(os.path.join(root, name)):
            return os.path.normpath(name)


for module in sorted(graph.modules):
    source = file_of(module)
    if source:
        print(f"file\t{source}")
        for target in sorted(graph.find_modules_directly_imported_by(module)):
            if file_of(target):
                print(f"edge\t{source}\t{file_of(target)}")
