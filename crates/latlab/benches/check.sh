#!/usr/bin/env bash
# What watching costs a 1 kHz loop, natively: the median gap of check.c without and with latlab check,
# in turns.
# Usage: check.sh [PAIRS]
set -euo pipefail
cd "$(dirname "$0")"
latlab=${LATLAB:-../../../dist/latlab}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -pthread -Wl,-z,now -o "$work/loop" check.c
gap() { sed -n 's/.*median \([0-9]*\) ns/\1/p'; }
for _ in $(seq "${1:-10}"); do
  without=$("$work/loop" 2>&1 | gap)
  with=$("$latlab" check -- "$work/loop" 2>&1 >"$work/report" | gap)
  echo "$without $with"
done | python3 -c '
import statistics, sys
pairs = [[int(word) for word in line.split()] for line in sys.stdin]
middle = lambda values: statistics.median(values)
print(f"{len(pairs)} pairs: median gap {middle([a for a, _ in pairs])} ns without, {middle([b for _, b in pairs])} ns with; median ratio {middle([b / a for a, b in pairs]):.2f}")
'
