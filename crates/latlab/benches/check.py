#!/usr/bin/env python3
"""Judges latlab check by programs whose faults are known: docs/results/check.md.

usage: check.py LATLAB TARGET…
       check.py LATLAB cost TARGET…

The second form measures what watching costs a cycle of 1 kHz. A target is native, lab:PROFILE or
lab:PROFILE@arm64; for the latter latlab-arm64 lies beside LATLAB, and programs are linked statically.
CFLAGS=-static does so elsewhere. Programs of rt-tests are judged where they are installed: for arm64,
RT_TESTS_ARM64 names the folder that Debian's package was unpacked to.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.path.dirname(__file__), "../tests/cli/check/faults.c")
# Each fault: the rule that it breaches, and the function that does, if it is one.
FAULTS = {
    "fault": ("fault", "touch_page"),
    "copy": ("fault", "write_private_page"),
    "stack": ("fault", "grow_stack"),
    "allocation": ("allocation", "allocate"),
    "file-io": ("file-io", "log_state"),
    "sleep": ("sleep", "rest"),
    "inversion": ("inversion", "update"),
    "waker": ("waker", "wait_for_time"),
    "wall-clock": ("wall-clock", "wait_for_time"),
    "drift": ("drift", "wait_for_time"),
    "not-locked": ("not-locked", None),
    "catch-up": ("catch-up", None),
    "lock-future": ("lock-future", None),
    "syscall": ("syscall", "pin"),
    "shared-cpu": ("shared-cpu", None),
}
CORRECT = ["none", "timer", "busy", "calls"]
RT_TESTS = {
    "cyclictest": "-q -m -p 80 -t 1 -i 1000 -l 500 -a 0".split(),
    "cyclicdeadline": "-q -i 1000 -D 1 -t 1 -a 0".split(),
}


def rt_test(target, name):
    if "@arm64" not in target:
        return "/usr/bin/" + name
    return os.path.join(os.environ.get("RT_TESTS_ARM64", "/nonexistent"), "usr/bin", name)


def check(latlab, target, command):
    on = [] if target == "native" else ["--on", target]
    words = [latlab, "check", "--json", *on, "--", *command]
    output = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    try:
        return json.loads(output.stdout), None
    except json.JSONDecodeError:
        return None, output.stderr.strip().splitlines()[-1:]


def compile_program(target, source, folder):
    compiler = ["aarch64-linux-gnu-gcc", "-static"] if "@arm64" in target else ["cc", "-Wl,-z,now"]
    program = os.path.join(folder, os.path.basename(source)[:-2])
    options = os.environ.get("CFLAGS", "").split()
    subprocess.run([*compiler, "-O1", "-g", *options, "-o", program, source, "-pthread"], check=True)
    return program


def cycle(latlab, target, how, program):
    on = [] if target == "native" else ["--on", target]
    output = subprocess.run([latlab, how, *on, "--", program], capture_output=True, text=True)
    found = re.search(r"latency (\d+) used (\d+)", output.stderr)
    if not found:
        sys.exit(f"{target}: {output.stderr}")
    return [int(number) for number in found.groups()]


def cost(latlab, target):
    """In turns on this machine, whose times differ from run to run."""
    turns = 7 if target == "native" else 1
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(target, os.path.join(os.path.dirname(__file__), "cycle.c"), folder)
        runs = [[cycle(latlab, target, how, program) for how in ("exec", "check")] for _ in range(turns)]
    median = [[statistics.median(run[how][what] for run in runs) for what in (0, 1)] for how in (0, 1)]
    (latency, used), (watched_latency, watched_used) = median
    more = watched_latency - latency + watched_used - used
    print(f"| `{target}` | {latency:.0f} | {watched_latency:.0f} | {used:.0f} | {watched_used:.0f} | "
          f"{more:.0f} |", flush=True)


def breaches(report):
    return [breach for thread in report["threads"] for breach in thread["breaches"]]


def line_of(fault, target):
    marks = [f"/* mark on arm64: {fault} */"] * ("@arm64" in target) + [f"/* mark: {fault} */"]
    with open(SOURCE) as source:
        lines = source.readlines()
    return next(number for mark in marks for number, line in enumerate(lines, 1) if mark in line)


def judge_fault(latlab, target, program, fault, wrong):
    rule, function = FAULTS[fault]
    report, error = check(latlab, target, [program, fault])
    if report is None:
        wrong.append(f"{fault}: {error}")
        return 0, 0, 0
    found = [breach for breach in breaches(report) if breach["rule"] == rule]
    place = f"{function} (faults.c:{line_of(fault, target)})" if function else None
    right = [breach for breach in found if not place or breach.get("place") == place]
    own = {rule, "non-pi"} if rule == "inversion" else {rule}
    other = [b for b in breaches(report) if b["level"] == "error" and b["rule"] not in own]
    if not right or other:
        wrong.append(f"{fault}: {[(b['rule'], b.get('place'), b['subject']) for b in breaches(report)]}")
    return bool(found), bool(right), len(other)


def judge_correct(latlab, target, command, wrong):
    report, error = check(latlab, target, command)
    if report is None:
        wrong.append(f"{command[0]}: {error}")
        return None
    errors = [breach for breach in breaches(report) if breach["level"] == "error"]
    if errors:
        said = [(b["rule"], b.get("place"), b["subject"], b["count"]) for b in errors]
        wrong.append(f"{os.path.basename(command[0])} {command[1]}: {said}")
    return len(errors)


def judge(latlab, target):
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(target, SOURCE, folder)
        results = [judge_fault(latlab, target, program, fault, wrong) for fault in FAULTS]
        found, right, alarms = (sum(column) for column in zip(*results))
        accused = [judge_correct(latlab, target, [program, name], wrong) for name in CORRECT]
        programs = [[rt_test(target, name), *words] for name, words in RT_TESTS.items()]
        there = [command for command in programs if os.path.exists(command[0])]
        accused += [judge_correct(latlab, target, command, wrong) for command in there]
    accused = [errors for errors in accused if errors is not None]
    print(f"| `{target}` | {found} of {len(FAULTS)} | {right} of {len(FAULTS)} | "
          f"{alarms} | {len(accused)} | {sum(accused)} |", flush=True)
    for what in wrong:
        print(re.sub(r"\s+", " ", f"  {what}"), file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    work = {"cost": cost}.get(sys.argv[2], judge)
    for name in sys.argv[2 if work is judge else 3 :]:
        work(sys.argv[1], name)
