"""Prints a row for each record of `latlab explain` in the output of explain-stress.sh.

Usage: explained.py PROFILE STRESSOR FILE
"""

import json
import re
import sys

# What `explain` calls the causes that `inject` calls otherwise.
NAMES = {
    "preemption-off": "non-preemptible",
    "raw-spinlock": "interrupts-off",
    "timer-callback": "timer-callbacks",
    "mutex": "lock",
}

profile, stressor, path = sys.argv[1:]
text = open(path, encoding="utf-8", errors="replace").read().replace("\r", "")
parts = re.split(r"^== (\S+)\n", text, flags=re.MULTILINE)
for cause, output in zip(parts[1::2], parts[2::2]):
    if cause == "end":
        operations = re.findall(rf"\] {stressor} +(\d+)", output)
        print(f"{profile} {stressor}: {''.join(operations[:1]) or 'no'} operations", file=sys.stderr)
        continue
    if re.search(r"^exit 3$", output, flags=re.MULTILINE):
        print(f"| {profile} | {stressor} | {cause} | not possible | | |")
        continue
    begin = re.search(r"^\{", output, flags=re.MULTILINE)
    if begin is None:
        sys.exit(f"{profile} {stressor}, {cause}: no record: {output[-500:]}")
    explained = json.JSONDecoder().raw_decode(output[begin.start():])[0]["explained"]
    total = explained["total"] or 1
    name = NAMES.get(cause, cause)
    named = sum(one["total"] for one in explained["causes"] if one["cause"] == name)
    unexplained = f"{100 * explained['unexplained'] / total:.2f} %"
    shares = f"{100 * named / total:.1f} % | {unexplained}"
    print(f"| {profile} | {stressor} | {cause} | {explained['late']} | {shares} |")
