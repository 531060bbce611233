#!/usr/bin/env python3
"""Functions of a program that ran, from what callgrind wrote: one name a line. First those that ran when it was called, side by
side; then those that ran only when it started.

    names.py PROGRAM WHEN_CALLED WHEN_STARTED
"""

import re
import sys

ENTRY = re.compile(r"(c?fn|c?ob)=\((\d+)\)(?: (.+))?")
# What is added to a name by callgrind, and by the compiler for what it shares between its own files.
ADDED = [(re.compile(r"'\d+$"), ""), (re.compile(r"\.llvm\.\d+$"), "*")]


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
            # Valgrind knows no file for code outside of `.text`, which is where the last list has put much of it.
            inside = objects[number] in (program, "???")
        elif kind == "fn" and inside:
            yield functions[number]


def names(path, program):
    """The same as the linker shall look for them."""
    with open(path, encoding="utf-8") as file:
        for name in ran(file, program):
            for pattern, instead in ADDED:
                name = pattern.sub(instead, name)
            if re.fullmatch(r"[A-Za-z_][\w.$*]*", name):
                yield name


def main():
    program, when_called, when_started = sys.argv[1:]
    called = set(names(when_called, program))
    print("# What a server runs when it is called, and then what it runs when it starts. Made by tools/order/make.")
    print("\n".join(sorted(called)))
    print("\n".join(sorted(set(names(when_started, program)) - called)))


main()
