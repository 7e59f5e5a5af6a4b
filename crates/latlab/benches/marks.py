#!/usr/bin/env python3
"""Measures what a mark costs, watched and not: docs/results/check.md.

usage: marks.py LATLAB LIBRARY TARGET…

LIBRARY is liblatlab-period.so; a target is native or lab:PROFILE. Prints the median time of a mark in
nanoseconds: of a C program that nobody watches, of one that latlab check watches, and of Python where
nobody watches, by its CPU time.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "../../..")
INCLUDE = os.path.join(TREE, "crates/latlab-period/include")
TURNS = 5
PYTHON = """
import time
from latlab.mark import Part
part = Part("part")
def once(count=100000):
    begin = time.thread_time_ns()
    for number in range(count):
        with part(number):
            pass
    marked = time.thread_time_ns() - begin
    begin = time.thread_time_ns()
    for number in range(count):
        pass
    return (marked - (time.thread_time_ns() - begin)) / (2 * count)
print(sorted(once() for _ in range(11))[5])
"""


def compiled(folder):
    program = os.path.join(folder, "marks")
    words = ["cc", "-O2", "-static", "-I", INCLUDE, "-o", program, os.path.join(HERE, "marks.c")]
    subprocess.run(words, check=True)
    return program


def mark(latlab, target, how, *command):
    on = [] if target == "native" else ["--on", target]
    output = subprocess.run([latlab, how, *on, "--", *command], capture_output=True, text=True)
    found = re.search(r"mark ([\d.]+)", output.stderr)
    if not found:
        sys.exit(f"{target}: {output.stderr}")
    return float(found.group(1))


def in_python(library):
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "latlab")
        os.mkdir(package)
        open(os.path.join(package, "__init__.py"), "w").close()
        for module in ("period.py", "mark.py"):
            shutil.copy(os.path.join(TREE, "packages/python/latlab", module), package)
        shutil.copy(library, os.path.join(package, "liblatlab-period.so"))
        words = [sys.executable, "-c", PYTHON]
        output = subprocess.run(words, env={**os.environ, "PYTHONPATH": folder}, capture_output=True,
                                text=True, check=True)
    return float(output.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    latlab, library, *targets = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(folder)
        for target in targets:
            turns = TURNS if target == "native" else 1
            rows = [(mark(latlab, target, "exec", program, "1000"),
                     mark(latlab, target, "check", program)) for _ in range(turns)]
            unwatched, watched = (statistics.median(column) for column in zip(*rows))
            print(f"| `{target}` | {unwatched:.2f} | {watched:.0f} |", flush=True)
    print(f"Python, not watched: {in_python(library):.0f}", flush=True)
