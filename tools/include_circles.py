#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the circles of includes between files of different folders of src/; exit status 1 where there are any.

A header and the source of its name count as one file."""

import os
import re
import sys

ENDINGS = (".c", ".h", ".cu", ".cuh", ".cpp", ".hpp", ".def")


def read_includes(root):
    """{file: the files that it includes}, both without their endings, relative to root."""
    graph = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(ENDINGS):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found = re.findall(r'^#\s*include "([^"]+)"', file.read(), re.MULTILINE)
            source = os.path.splitext(os.path.relpath(path, root))[0]
            targets = {os.path.splitext(include)[0] for include in found}
            graph.setdefault(source, set()).update(targets - {source})
    return graph


def reachable(graph, start):
    seen, left = set(), [start]
    while left:
        for target in graph.get(left.pop(), ()):
            if target not in seen:
                seen.add(target)
                left.append(target)
    return seen


def main():
    graph = read_includes(os.path.join(os.path.dirname(__file__), "..", "src"))
    reached = {file: reachable(graph, file) for file in graph}
    circles = {
        tuple(sorted(other for other in reached[file] if file in reached.get(other, ())))
        for file in graph
        if file in reached[file]
    }
    across = [circle for circle in circles if len({os.path.dirname(file) for file in circle}) > 1]
    for circle in sorted(across):
        print("these include each other:", " ".join(circle), file=sys.stderr)
    return 1 if across else 0


sys.exit(main())
