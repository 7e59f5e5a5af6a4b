#!/usr/bin/env bash
# Worst PDLT of system calls on six kernels in the laboratory, as a table in microseconds. Takes ten
# minutes on two cores, and needs kernels that `make kernels` builds.
# Usage: scan.sh [CALL…]
set -euo pipefail
cd "$(dirname "$0")/../../.."
latlab=dist/latlab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
profiles=(monolithic utime rapid-reaction preemptible-hr rt rt-lazy)
calls=("$@")
[ $# -gt 0 ] || calls=(munmap:4MiB populate:4MiB mprotect:4MiB mremap:4MiB fork exec exit:16MiB read:tmpfs,1MiB write:tmpfs,1MiB procfs:/proc/kallsyms sync:1MiB open-close futex pipe socket:unix sched_yield)
# shellcheck disable=SC2046
$latlab scan "${calls[@]}" --points 60 --resolution 1us --for 3s $(printf -- '--on lab:%s ' "${profiles[@]}") --out "$work" >/dev/null 2>"$work/errors" || { cat "$work/errors"; exit 1; }
python3 - "$work" "${profiles[@]}" <<'PYTHON'
import json, sys
folder, profiles = sys.argv[1], sys.argv[2:]
scans = {p: json.load(open(f"{folder}/lab-{p}.json"))["scans"] for p in profiles}
def call(scan):
    values = [str(v) for v in scan["call"]["params"].values()]
    return ":".join([scan["call"]["name"], ",".join(values)]).rstrip(":")
print("| call |", " | ".join(profiles), "|")
print("| --- |" + " ---: |" * len(profiles))
worst = lambda scan: max(point["pdlt"]["min"] for point in scan["points"]) / 1000
for n, scan in enumerate(scans[profiles[0]]):
    print(f"| {call(scan)} |", " | ".join(f"{worst(scans[p][n]):.1f}" for p in profiles), "|")
print("| idle CPU |", " | ".join(f"{scans[p][0]['baseline'] / 1000:.1f}" for p in profiles), "|")
PYTHON
