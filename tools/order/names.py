#!/usr/bin/env python3
"""Functions of a program that ran, from what callgrind wrote: one name a line, without what differs from build to build.

    names.py PROGRAM FILE...
"""

import re
import sys

ENTRY = re.compile(r"(c?fn|c?ob)=\((\d+)\)(?: (.+))?")
# What a compiler adds to tell two of the same name apart.
ADDED = [(re.compile(r"'\d+$"), ""), (re.compile(r"17h[0-9a-f]{16}E.*$"), "17h*E"), (re.compile(r"\.llvm\.\d+$"), "*")]


def ran(lines, program):
    """The names in one file. A name or a path is spelt out where it is met first, and has a number from then on."""
    functions, objects, inside = {}, {}, False
    for line in lines:
        entry = ENTRY.match(line.rstrip("\n"))
        if not entry:
            continue
        kind, number, text = entry.groups()
        known = objects if kind.endswith("ob") else functions
        if text:
            known[number] = text
        if kind == "ob":
            inside = objects[number] == program
        elif kind == "fn" and inside:
            yield functions[number]


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    met = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for name in ran(file, program):
                for pattern, instead in ADDED:
                    name = pattern.sub(instead, name)
                if re.fullmatch(r"[A-Za-z_][\w.$*]*", name):
                    met.add(name)
    print("# What a server runs when it starts and when it is called. Made by tools/order/make.")
    print("\n".join(sorted(met)))


main()
